#!/usr/bin/env python3
"""Lists what of PostgreSQL 15 is there and what is not, into docs/CONFORMANCE.md.

    scripts/inventory.py QUORATE

QUORATE is the built program. Both servers are asked for what their own catalogs have: types, functions,
operators, operator classes, settings, relations of the catalog; the statements are those of the grammar, and
crates/sql/src/session/statements.rs says which are refused. A name counts as partly there if some of what
PostgreSQL has under it is: some of a function's argument types, some of a relation's columns. Nothing here is
typed in, so what is listed as missing is missing.

A function that is found and then refused with 0A000 counts as there: the catalog does not tell.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PAGE = os.path.join(ROOT, "docs", "CONFORMANCE.md")
STATEMENTS = os.path.join(ROOT, "crates", "sql", "src", "session", "statements.rs")
BEGIN, END = "<!-- inventory -->", "<!-- end of inventory -->"
PORT = "27553"
HTTP_PORT = "27554"

# Types that only the server's own functions have, and those of rows and arrays, are nobody's to name.
TYPES = """select typname, typname from pg_type t where typnamespace = 'pg_catalog'::regnamespace
    and typtype in ('b', 'r', 'm', 'p') and typelem = 0 and typname !~ '^pg_(ddl|node|brin|mcv|ndis|depen)'
    and typname not in ('internal', 'index_am_handler', 'table_am_handler', 'fdw_handler', 'tsm_handler')"""
# What takes or gives what clients cannot name is not called by clients: forms of types, handlers, supports.
FUNCTIONS = """select proname, proname || '(' || oidvectortypes(proargtypes) || ')' from pg_proc
    where pronamespace = 'pg_catalog'::regnamespace and oid < 16384
    and oidvectortypes(proargtypes) !~ 'internal|cstring' and prorettype::regtype::text !~
        'internal|cstring|_handler|trigger'
    and oid not in (select oprcode from pg_operator) and oid not in (select castfunc from pg_cast)
    and oid not in (select amproc from pg_amproc) and oid not in (select typsubscript from pg_type)
    and oid not in (select typsend from pg_type union select lanvalidator from pg_language)
    and proname !~ '^binary_upgrade'
    and oid not in (select aggtransfn from pg_aggregate union select aggfinalfn from pg_aggregate
        union select aggcombinefn from pg_aggregate union select aggmtransfn from pg_aggregate
        union select aggminvtransfn from pg_aggregate union select aggmfinalfn from pg_aggregate)"""
OPERATORS = """select oprname, coalesce(nullif(oprleft, 0)::regtype::text || ' ', '') || oprname || ' ' ||
    oprright::regtype from pg_operator where oprnamespace = 'pg_catalog'::regnamespace"""
CLASSES = """select opcname, amname || ' ' || opcname from pg_opclass join pg_am a on a.oid = opcmethod
    where opcnamespace = 'pg_catalog'::regnamespace"""
# One of them is a packager's.
SETTINGS = "select name, name || ' ' || vartype from pg_settings where name <> 'extension_destdir'"
RELATIONS = """select nspname || '.' || relname, nspname || '.' || relname || ' ' || attname
    from pg_class c join pg_namespace n on n.oid = relnamespace join pg_attribute on attrelid = c.oid
    where nspname in ('pg_catalog', 'information_schema') and relkind in ('r', 'v') and attnum > 0
    and relname not like '\\_pg%'"""

KINDS = [
    ("types", TYPES),
    ("functions", FUNCTIONS),
    ("operators", OPERATORS),
    ("operator classes", CLASSES),
    ("settings", SETTINGS),
    ("relations of the catalog", RELATIONS),
]


def ask(host, port, query):
    """The pairs that a query gives: a name, and what stands under it."""
    # Its lines must not be cut by what a name holds.
    command = ["psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", host, "-p", port, "-U", "postgres"]
    command += ["-d", "postgres", "-c", query]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [tuple(line.split("\t")) for line in out.splitlines()]


def by_name(pairs):
    """What stands under each name."""
    found = {}
    for name, under in pairs:
        found.setdefault(name, set()).add(under)
    return found


def compare(theirs, own):
    """The names that are there, partly there, and not there."""
    theirs, own = by_name(theirs), by_name(own)
    yes, partly, no = [], [], []
    for name, wanted in sorted(theirs.items()):
        has = wanted & own.get(name, set())
        (yes if has == wanted else partly if has else no).append(name)
    return yes, partly, no


def statements():
    """The statements of the grammar: carried out, in some forms only, refused."""
    text = open(STATEMENTS).read()
    text = text[text.rindex("statements! {"):]
    known, missing = text.split("    unsupported {", 1)
    missing = missing.split("\n    }", 1)[0]
    # Some nodes of the grammar are several statements; they are called as they are there.
    row = re.compile(r'^\s+(\w+)\(\w+\) => (?:"([A-Z ]+)")?', re.M)
    named = lambda block: {command or node for node, command in row.findall(block)}
    known, missing = named(known), named(missing)
    return sorted(known - missing), sorted(known & missing), sorted(missing - known)


def page(compared):
    """The part of the page that this makes."""
    lines = [BEGIN, "| of PostgreSQL 15 | there | partly | not there |", "| --- | --- | --- | --- |"]
    for kind, (yes, partly, no) in compared:
        # Rows with a bare word are scores of files to scripts/conformance.py.
        lines.append(f"| **{kind}** | {len(yes)} | {len(partly)} | {len(no)} |")
    for kind, (_, partly, no) in compared:
        for word, names in [("partly there", partly), ("not there", no)]:
            if names:
                shown = ", ".join(f"`{name}`" for name in names)
                lines += ["", f"**{kind.capitalize()}, {word}:** {shown}"]
    return "\n".join(lines + [END])


def start_postgres(directory):
    """A PostgreSQL of its own at a socket in the directory."""
    bin_dir = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True).stdout.strip()
    bin_dir = bin_dir if "15" in bin_dir else "/usr/lib/postgresql/15/bin"
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(directory, "postgres")
    data = os.path.join(directory, "data")
    initdb = ["initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
    server = ["pg_ctl", "-D", data, "-w", "-l", os.path.join(directory, "log"), "start"]
    options = ["-o", f"-k {directory} -p {PORT} -c listen_addresses=''"]
    for command in [initdb, server + options]:
        command[0] = os.path.join(bin_dir, command[0])
        subprocess.run(as_user + command, check=True, stdout=subprocess.DEVNULL, cwd=directory)
    stop = as_user + [os.path.join(bin_dir, "pg_ctl"), "-D", data, "-m", "fast", "stop"]
    return lambda: subprocess.run(stop, check=True, stdout=subprocess.DEVNULL, cwd=directory)


def start_quorate(program, directory):
    """One node."""
    up = [program, "up", "--voters", "1", "--data", directory, "--port", PORT, "--http-port", HTTP_PORT]
    process = subprocess.Popen(up, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        time.sleep(0.1)
        if subprocess.run(["pg_isready", "-q", "-h", "127.0.0.1", "-p", PORT]).returncode == 0:
            return process
    process.terminate()
    sys.exit("the node does not answer")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as theirs, tempfile.TemporaryDirectory() as own:
        stop = start_postgres(theirs)
        process = start_quorate(sys.argv[1], own)
        try:
            compared = [
                (kind, compare(ask(theirs, PORT, query), ask("127.0.0.1", PORT, query)))
                for kind, query in KINDS
            ]
        finally:
            stop()
            process.terminate()
            process.wait()
    compared.append(("statements", statements()))
    text = open(PAGE).read()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    with open(PAGE, "w") as out:
        out.write(before + page(compared) + after)
    for kind, (yes, partly, no) in compared:
        print(f"{kind}: {len(yes)} there, {len(partly)} partly, {len(no)} not")


if __name__ == "__main__":
    main()
