#!/usr/bin/env python3
"""Runs programs that use drivers, object-relational mappers and migration tools, against PostgreSQL 15, one node and three.

    scripts/drivers.py QUORATE [--keep DIRECTORY] [NAME …]

QUORATE is the built program; NAME is a program of the table below, or a language, to run in place of all.
The programs are in tests/drivers, those of each language with the pinned versions of what they use, which
the language's own tool brings into the cache directory at the first use. Each is run in a database of its
own, and prints what it gets in lines that do not change from run to run.

What a program prints on PostgreSQL is what it has to print on Quorate, part by part: a line that begins
with "# " names the next one. Differences are printed, and end the run with 1; but for the parts that
tests/drivers/missing.txt names with what they lack, and these must differ. A run of all programs writes its table into docs/CONFORMANCE.md. With --keep, all that was
printed is left in that directory, what went to the standard error beside it.
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys

import servers

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "tests", "drivers")
CACHE = os.path.join(servers.CACHE, "drivers")
BEGIN, END = "<!-- drivers -->", "<!-- end of drivers -->"
PROGRAM_SECONDS = 300


def at(*names):
    """A path below the cache directory."""
    return os.path.join(CACHE, *names)


def made(language, names, *commands, **variables):
    """Copies a language's programs into the cache directory, and runs commands there where what the names hold is new."""
    shutil.copytree(os.path.join(SOURCES, language), at(language), dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules", "target"))
    wanted = "".join(open(at(language, name), encoding="utf8").read() for name in names)
    stamp = at(language, "made")
    if not os.path.exists(stamp) or open(stamp, encoding="utf8").read() != wanted:
        for command in commands:
            subprocess.run(command, cwd=at(language), env=dict(os.environ, **variables), check=True)
        with open(stamp, "w", encoding="utf8") as file:
            file.write(wanted)


def python():
    made("python", ["requirements.txt"], [sys.executable, "-m", "venv", "--clear", "venv"],
         ["venv/bin/python", "-m", "pip", "install", "-q", "-r", "requirements.txt"])
    return lambda name: [at("python", "venv", "bin", "python"), f"with_{name}.py"]


def node():
    # Without scripts, and with a stand-in for what runs Prisma's migrations: they would fetch programs from elsewhere.
    install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    generate = ["node_modules/.bin/prisma", "generate", "--schema", "schema.prisma"]
    made("node", ["package-lock.json", "schema.prisma"], install, generate, PRISMA_SCHEMA_ENGINE_BINARY="/bin/true", CHECKPOINT_DISABLE="1")
    return lambda name: ["node", f"with_{name}.mjs"]


def go():
    made("go", [])
    subprocess.run(["go", "build", "-o", "bin/", "./..."], cwd=at("go"), check=True)
    return lambda name: [f"bin/{name}"]


def java():
    made("java", ["pom.xml"], ["mvn", "-q", "-B", "dependency:copy-dependencies"])
    subprocess.run(["mvn", "-q", "-B", "compile"], cwd=at("java"), check=True)
    return lambda name: ["java", "-cp", "target/classes:target/dependency/*", f"With{name.capitalize()}"]


def rust():
    made("rust", [])
    # Not where the server is built: what these programs use has other features.
    env = dict(os.environ, CARGO_TARGET_DIR=at("rust", "target"))
    subprocess.run(["cargo", "build", "-q", "--locked"], cwd=at("rust"), env=env, check=True)
    return lambda name: [f"target/debug/with_{name.replace('-', '_')}"]


# Name, language, what the table calls it, and the package whose version it says.
PROGRAMS = [
    ("psycopg", python, "psycopg 3", "psycopg[binary]"),
    ("asyncpg", python, "asyncpg", "asyncpg"),
    ("sqlalchemy", python, "SQLAlchemy", "SQLAlchemy[asyncio]"),
    ("django", python, "Django", "Django"),
    ("alembic", python, "Alembic", "alembic"),
    ("pg", node, "node-postgres", "pg"),
    ("postgres", node, "postgres.js", "postgres"),
    ("knex", node, "Knex", "knex"),
    ("sequelize", node, "Sequelize", "sequelize"),
    ("typeorm", node, "TypeORM", "typeorm"),
    ("drizzle", node, "Drizzle", "drizzle-orm"),
    ("prisma", node, "Prisma (without its migrations)", "prisma"),
    ("pgx", go, "pgx", "github.com/jackc/pgx/v5"),
    ("pq", go, "lib/pq", "github.com/lib/pq"),
    ("gorm", go, "GORM", "gorm.io/gorm"),
    ("migrate", go, "golang-migrate", "github.com/golang-migrate/migrate/v4"),
    ("jdbc", java, "pgJDBC", "postgresql"),
    ("hibernate", java, "Hibernate", "hibernate-core"),
    ("flyway", java, "Flyway", "flyway-database-postgresql"),
    ("liquibase", java, "Liquibase", "liquibase-core"),
    ("tokio-postgres", rust, "tokio-postgres", "tokio-postgres"),
    ("sqlx", rust, "sqlx", "sqlx"),
    ("diesel", rust, "Diesel", "diesel"),
]
MANIFESTS = {
    python: ("requirements.txt", r"^{}==(\S+)$"),
    node: ("package.json", r'^ *"{}": "([^"]+)"'),
    go: ("go.mod", r"^\s*{} v(\S+)"),
    java: ("pom.xml", r"<artifactId>{}</artifactId>\s*<version>([^<]+)<"),
    rust: ("Cargo.toml", r'^{} = (?:\{{ version = )?"=?([^"]+)"'),
}


def version(language, package):
    """The version of a package that a language's programs are pinned to."""
    name, pattern = MANIFESTS[language]
    with open(os.path.join(SOURCES, language.__name__, name), encoding="utf8") as file:
        return re.search(pattern.format(re.escape(package)), file.read(), re.M).group(1)


def run(name, command, language, where, server, keep):
    """The lines that a program prints."""
    database = "drivers_" + re.sub(r"\W", "_", name)
    servers.psql(where, "postgres", f"create database {database}")
    env = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    env.update(PGHOST=where.host, PGPORT=str(where.port), PGUSER="postgres", PGDATABASE=database, PYTHONDONTWRITEBYTECODE="1", TZ="UTC")
    try:
        done = subprocess.run(command, cwd=at(language), env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROGRAM_SECONDS)
        out, err, code = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as late:
        out, err, code = late.stdout or b"", late.stderr or b"", "too late"
    lines = out.decode("utf8", "replace").splitlines() + [f"ended with {code}"]
    if keep:
        for ending, text in [("out", "\n".join(lines)), ("err", err.decode("utf8", "replace"))]:
            with open(os.path.join(keep, f"{name}.{server}.{ending}"), "w", encoding="utf8") as file:
                file.write(text + "\n")
    return lines


def parts(lines):
    """The parts of what a program printed: name → its lines.

    >>> parts(["# a", "1", "2", "# b"])
    {'a': ['1', '2'], 'b': []}
    """
    found, lines_of = {}, []
    for line in lines:
        if line.startswith("# "):
            lines_of = found.setdefault(line[2:], [])
        else:
            lines_of.append(line)
    return found


def missing():
    """The parts that lack something: (program, part)."""
    with open(os.path.join(SOURCES, "missing.txt"), encoding="utf8") as file:
        lines = [line.split(":")[0] for line in file if line.strip() and not line.startswith("#")]
    return {tuple(line.split(" ", 1)) for line in lines}


def compare(name, server, wanted, got, lacking):
    """Prints in which parts a program's output differs: how many are the same, and whether that is as expected."""
    wanted, got, expected, same = parts(wanted), parts(got), True, 0
    for part, lines in wanted.items():
        other = list(difflib.unified_diff(lines, got.get(part, []), "PostgreSQL", server, n=1, lineterm=""))
        same += not other
        if bool(other) == ((name, part) in lacking):
            continue
        expected = False
        print(f"{name}, {part}, {server}: " + ("differs" if other else "is the same, though missing.txt names it"), *other, sep="\n")
    return same, expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quorate")
    parser.add_argument("--keep", metavar="DIRECTORY")
    parser.add_argument("name", nargs="*")
    asked = parser.parse_intermixed_args()
    known = {word for name, language, _, _ in PROGRAMS for word in (name, language.__name__)}
    if unknown := set(asked.name) - known:
        sys.exit(f"there is no {', '.join(sorted(unknown))}: the programs are {', '.join(sorted(known))}")
    chosen = [it for it in PROGRAMS if not asked.name or {it[0], it[1].__name__} & set(asked.name)]
    if asked.keep:
        os.makedirs(asked.keep, exist_ok=True)
    commands = {language: language() for language in dict.fromkeys(language for _, language, _, _ in chosen)}
    printed = {}
    starts = [("PostgreSQL", servers.postgres), ("one node", lambda: servers.quorate(asked.quorate)), ("three nodes", lambda: servers.quorate(asked.quorate, 3))]
    for server, start in starts:
        with start() as where:
            for name, language, _, _ in chosen:
                printed[name, server] = run(name, commands[language](name), language.__name__, where, server, asked.keep)
    rows, as_expected, lacking = [], True, missing()
    for name, language, title, package in chosen:
        wanted, cells = printed[name, "PostgreSQL"], []
        for server in ["one node", "three nodes"]:
            same, expected = compare(name, server, wanted, printed[name, server], lacking)
            cells.append(f"{same} of {len(parts(wanted))}")
            as_expected &= expected
        rows.append((title, version(language, package), language.__name__, *cells))
        print(f"{title} {version(language, package)}: {cells[0]} parts the same on one node, {cells[1]} on three")
    if not asked.name:
        head = ["| program | version | language | parts the same, one node | three nodes |", "| --- | --- | --- | --- | --- |"]
        servers.between(BEGIN, END, lambda _: head + ["| {} | {} | {} | {} | {} |".format(*row) for row in rows])
    sys.exit(0 if as_expected else 1)


if __name__ == "__main__":
    main()
