#!/usr/bin/env python3
"""Scores one node against PostgreSQL 15's own regression suite, into docs/CONFORMANCE.md.

    scripts/conformance.py QUORATE PG_REGRESS_SCORE [--accept]

QUORATE is the built program; PG_REGRESS_SCORE a script that takes --port and --json, runs the suite's
files through psql and counts, for each, the statements whose whole output is PostgreSQL's (`exact`),
and those that differ in positions, details and hints only (`lenient`).

The page is also the floor: a file that scores lower than it says there fails the run, and so does a
server that ends, or a file that does not come to its end. --accept writes the page all the same.

Scores are a psql's as well as a server's, so the page says with which psql they were made. After a COPY
FROM STDIN that the server has refused, some versions take the next line for a statement, and others read
on up to `\\.`: these are given one wherever PostgreSQL refuses the COPY and no data follow. Where that does
not help (Quorate refuses a COPY that PostgreSQL does not) they lose step, and what they skip would count as
failures of the server. That is noticed in what psql echoes, and said; such a file is held to no floor of
another psql, and keeps its row on the page.

Of the files that tests/conformance/missing.txt names, every statement that fails stands there with the
feature that it lacks. One that fails and does not stand there fails the run, and so does one that stands
there and does not fail.
"""
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "CONFORMANCE.md")
MISSING = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "conformance", "missing.txt")
PORT = "27543"
HTTP_PORT = "27544"

# A statement that gives way less often keeps others of its reactor waiting.
STRETCH_MS_MAX = 20
# COPY from the client; FROM STDOUT is another word for it, whose data the suite's script takes for statements.
FROM_CLIENT = re.compile(r"\bfrom\s+std(in|out)\b", re.I)
FROM_STDOUT = re.compile(r"\bfrom\s+stdout\b", re.I)
BEGIN, END = "<!-- scores -->", "<!-- end -->"


def rows(page):
    """The scores that stand on the page, by file."""
    found = re.findall(r"^\| ([\w.]+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.M)
    columns = ["statements", "exact", "lenient"]
    return {name: dict(zip(columns, map(int, counts))) for name, *counts in found}


def psql_version():
    """psql's version, such as 15.18."""
    return subprocess.run(["psql", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]


def made_with(page):
    """The psql that made the rows of the page, and, by file, that of rows which are another's."""
    made = re.search(r"^Made with psql (\S+)\.$", page, re.M)
    kept = re.findall(r"^Kept from psql (\S+), .*: (.+)\.$", page, re.M)
    return made and made[1], {name: version for version, names in kept for name in names.split(", ")}


def echoed(lines, printed):
    """Which of a script's lines psql echoed, by index."""
    matcher = difflib.SequenceMatcher(None, lines, printed, autojunk=False)
    return {at for start, _, size in matcher.get_matching_blocks() for at in range(start, start + size)}


def lost_step(lines, expected, printed):
    """Where psql read on after a COPY FROM STDIN, as (number of its line, lines that it skipped).

    >>> script = ["copy t from stdin (nonsense);", "select 1;", "copy t from stdin;", "5", r"\\.", "select 2;"]
    >>> in_step = [script[0], "ERROR", script[1], "1", script[2], script[5], "2"]
    >>> lost_step(script, in_step, in_step)
    []
    >>> lost_step(script, in_step, [script[0], "ERROR", script[5], "2"])
    [(1, 2)]
    >>> lost_step(script, in_step, [script[0], "ERROR: another", script[1], "1", script[2], "ERROR", script[5]])
    []
    >>> lost_step(["copy t from stdout;", "5", r"\\.", "select 2;"], ["copy t from stdout;", "select 2;"], ["copy t from stdout;", "ERROR", "select 2;"])
    [(1, 2)]
    """
    wanted, seen = echoed(lines, expected), echoed(lines, printed)
    for at in list(wanted):
        if FROM_STDOUT.search(lines[at]) and "\\." in lines[at:]:
            wanted.update(range(at, lines.index("\\.", at) + 1))
    wanted, found = sorted(wanted), []
    for place, at in enumerate(wanted):
        if at in seen and FROM_CLIENT.search(lines[at]):
            skipped = 0
            for other in wanted[place + 1 :]:
                if other in seen:
                    break
                skipped += 1
            if skipped:
                found.append((at + 1, skipped))
    return found


# Named psql and first on the PATH of the suite's script: keeps what the real one prints of each file, beside
# the name of that file, and gives it another in its place where it needs one.
KEEPER = """#!/usr/bin/env bash
file=$(readlink /proc/$$/fd/0)
out=$(mktemp -p {directory} XXXXXX.printed)
echo "$file" > "$out.of"
ended={directory}/ended/$(basename "$file")
[ ! -e "$ended" ] || exec < "$ended"
exec {psql} "$@" > >(exec tee "$out") 2>&1
"""


def lines_of(path):
    """The lines of a file."""
    with open(path, encoding="utf8", errors="replace") as file:
        return file.read().split("\n")


def answered(lines, printed):
    """What was printed after each of a script's lines that were echoed, by index.

    >>> answered(["select 1;", "select 2;"], ["select 1;", "1", "select 2;", "ERROR", "DETAIL"])
    {0: ['1'], 1: ['ERROR', 'DETAIL']}
    """
    matcher = difflib.SequenceMatcher(None, lines, printed, autojunk=False)
    places = {}
    for start, at, size in matcher.get_matching_blocks():
        places.update((start + step, at + step) for step in range(size))
    ends = [*list(places.values())[1:], len(printed)]
    return {line: printed[at + 1 : end] for (line, at), end in zip(places.items(), ends)}


def failures(lines, expected, printed):
    """The numbers of a script's lines after which something else was printed, with its first line.

    >>> failures(["select 1;", "", "select 2;"], ["select 1;", "1", "select 2;", "2"], ["select 1;", "1", "select 2;", "ERROR"])
    {3: 'ERROR'}
    """
    spoken = [at for at, line in enumerate(lines) if line.strip()]
    texts = [lines[at] for at in spoken]
    tidy = lambda block: [line.rstrip() for line in block if line.strip()]
    wanted, got = answered(texts, expected), answered(texts, printed)
    found = {}
    for place, at in enumerate(spoken):
        if place in wanted and tidy(wanted[place]) != tidy(got.get(place, ["(not reached)"])):
            found[at + 1] = (tidy(got.get(place, ["(not reached)"])) or ["(nothing)"])[0]
    return found


def missing():
    """What stands in MISSING: for each of its files the feature by number of line."""
    found = {}
    for line in lines_of(MISSING):
        if line and not line.startswith("#"):
            name, where, feature = (line.split(" ", 2) + ["", ""])[:3]
            first, _, last = where.partition("-")
            numbers = range(int(first), int(last or first) + 1) if where else []
            found.setdefault(name, {}).update(dict.fromkeys(numbers, feature))
    return found


def unexplained(directory, lost):
    """What of the statements that fail, and of those that should, is not as MISSING says, from what was kept. Of a file
    in which psql lost step, what it skipped cannot be told."""
    wrong, listed = [], missing()
    for kept in sorted(os.listdir(directory)):
        if not kept.endswith(".of"):
            continue
        (sql, *_) = lines_of(os.path.join(directory, kept))
        name = os.path.basename(sql).removesuffix(".sql")
        if name in listed and name in lost:
            print(f"{name}: what it lacks is not looked at, because psql lost step")
        if name not in listed or name in lost:
            continue
        printed = lines_of(os.path.join(directory, kept.removesuffix(".of")))
        expected = os.path.join(os.path.dirname(sql), "..", "expected")
        others = [os.path.join(expected, f"{name}{suffix}.out") for suffix in ["", "_1", "_2", "_3"]]
        found = [failures(lines_of(sql), lines_of(path), printed) for path in others if os.path.exists(path)]
        failed = min(found, key=len)
        wrong += [f"{name} {line}: fails, and no feature is missing: {failed[line]}" for line in failed if line not in listed[name]]
        wrong += [f"{name} {line}: does not fail ({listed[name][line]})" for line in listed[name] if line not in failed]
    return wrong


def steps(directory):
    """Where psql lost step, by file of the suite, from what was kept."""
    found = {}
    for kept in os.listdir(directory):
        if kept.endswith(".of"):
            (sql, *_) = lines_of(os.path.join(directory, kept))
            name = os.path.basename(sql).removesuffix(".sql")
            expected = os.path.join(os.path.dirname(sql), "..", "expected", name + ".out")
            if os.path.exists(expected) and any(map(FROM_CLIENT.search, lines_of(sql))):
                printed = lines_of(os.path.join(directory, kept.removesuffix(".of")))
                found[name] = lost_step(lines_of(sql), lines_of(expected), printed)
    return {name: places for name, places in found.items() if places}


def reads_on():
    """Whether this psql reads on after a COPY FROM STDIN that was refused."""
    asked = "copy nothing_of_that_name from stdin;\n\\echo here\n"
    command = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", PORT, "-U", "postgres", "postgres"]
    return "here" not in subprocess.run(command, input=asked, capture_output=True, text=True, timeout=30).stdout


def ended(lines, expected):
    r"""A script in which every COPY FROM STDIN that PostgreSQL refuses is ended.

    >>> ended(["copy t from stdin;", "5", r"\.", "copy t from stdin;", "", "select 2;"],
    ...       ["copy t from stdin;", "copy t from stdin;", "ERROR", "select 2;", "2"])
    ['copy t from stdin;', '5', '\\.', 'copy t from stdin;', '\\.', '', 'select 2;']
    """
    wanted, found = echoed(lines, expected), []
    for at, line in enumerate(lines):
        found.append(line)
        following = next((other for other in range(at + 1, len(lines)) if lines[other].strip()), None)
        if at in wanted and FROM_CLIENT.search(line) and line.rstrip().split("--")[0].rstrip().endswith(";"):
            if following in wanted and lines[following] != "\\.":
                found.append("\\.")
    return found


def end_refused_copies(score, directory):
    """Leaves in a directory the scripts of the suite as a psql needs them that reads on, where they differ."""
    os.mkdir(directory)
    suite = os.path.join(os.path.dirname(os.path.abspath(score)), "pg_regress")
    for name in os.listdir(os.path.join(suite, "sql")):
        expected = os.path.join(suite, "expected", name.removesuffix(".sql") + ".out")
        # Bytes of any encoding come back as they were.
        with open(os.path.join(suite, "sql", name), encoding="latin-1", newline="\n") as file:
            lines = file.read().split("\n")
        if os.path.exists(expected) and any(map(FROM_CLIENT.search, lines)):
            with open(expected, encoding="latin-1", newline="\n") as file:
                text = "\n".join(ended(lines, file.read().split("\n")))
            with open(os.path.join(directory, name), "w", encoding="latin-1", newline="\n") as file:
                file.write(text)


def answers():
    """Whether the server answers."""
    command = ["psql", "-X", "-h", "127.0.0.1", "-p", PORT, "-U", "postgres", "-Atc", "select 1", "postgres"]
    return subprocess.run(command, capture_output=True, timeout=30).stdout == b"1\n"


def longest_stretch():
    """For how many milliseconds a statement kept its reactor without giving way, at most, and which."""
    with urllib.request.urlopen(f"http://127.0.0.1:{HTTP_PORT}/status", timeout=30) as page:
        stretch = json.load(page)["longest_stretch"] or {"microseconds": 0, "command": ""}
    return stretch["microseconds"] / 1000, stretch["command"]


def measure(quorate, score, directory):
    """The scores by file and the total, what was wrong, and where psql lost step by file."""
    out = os.path.join(directory, "scores.json")
    kept = os.path.join(directory, "kept")
    os.mkdir(kept)
    keeper = os.path.join(kept, "psql")
    with open(keeper, "w", encoding="utf8") as file:
        file.write(KEEPER.format(directory=kept, psql=shutil.which("psql")))
    os.chmod(keeper, 0o755)
    environment = dict(os.environ, PATH=kept + os.pathsep + os.environ["PATH"])
    up = [quorate, "up", "--nodes", "1", "--data", os.path.join(directory, "data")]
    server = subprocess.Popen(up + ["--port", PORT, "--http-port", HTTP_PORT], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not answers() and time.monotonic() < end:
            time.sleep(0.2)
        if reads_on():
            end_refused_copies(score, os.path.join(kept, "ended"))
        suite = [sys.executable, score, "--port", PORT, "--json", out]
        run = subprocess.run(suite, stdout=subprocess.PIPE, text=True, env=environment)
        wrong = [line for line in run.stdout.splitlines() if "timed out" in line]
        if run.returncode or not answers():
            wrong.append("the server or the suite broke off")
        milliseconds, command = longest_stretch()
        print(f"A statement kept its reactor for {milliseconds:.1f} ms at most: {command}")
        if milliseconds > STRETCH_MS_MAX:
            wrong.append(f"more than {STRETCH_MS_MAX} ms")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
    with open(out, encoding="utf8") as file:
        lost = steps(kept)
        return json.load(file), wrong + unexplained(kept, lost), lost


def table(files, psql, kept):
    """The page's table of rows by file; `kept` are files whose rows were made by another psql."""
    total = lambda column: sum(file[column] for file in files.values())
    percent = lambda column: f"{100 * total(column) / total('statements'):.1f}%"
    lines = [f"{total('statements'):,} statements: {percent('exact')} exact, {percent('lenient')} lenient.", ""]
    lines += [f"Made with psql {psql}."]
    for version in sorted(set(kept.values())):
        names = ", ".join(name for name in files if kept.get(name) == version)
        lines += ["", f"Kept from psql {version}, because psql {psql} loses step with them: {names}."]
    lines += ["", "| file | statements | exact | lenient |", "| --- | --- | --- | --- |"]
    for name, file in files.items():
        lines.append(f"| {name} | {file['statements']} | {file['exact']} | {file['lenient']} |")
    return "\n".join(lines)


def main():
    quorate, score, *rest = sys.argv[1:]
    with open(PAGE, encoding="utf8") as file:
        page = file.read()
    with tempfile.TemporaryDirectory() as directory:
        scores, wrong, lost = measure(quorate, score, directory)
    psql, floors = psql_version(), rows(page)
    usual, others = made_with(page)
    kept = {}
    for name, places in lost.items():
        for line, skipped in places:
            print(f"{name}: psql {psql} read on after the COPY of line {line} was refused, skipping {skipped}")
        maker = others.get(name, usual)
        if name in floors and maker not in (None, psql):
            print(f"{name}: its score is not held to the floor, which is of psql {maker}")
            kept[name] = maker
    for name, floor in floors.items():
        exact = scores["files"].get(name, {}).get("exact", 0)
        if exact < floor["exact"] and name not in kept:
            wrong.append(f"{name}: {exact} statements are exact, fewer than {floor['exact']}")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        if psql != usual:
            print(f"The floors are of psql {usual}, and this is psql {psql}.", file=sys.stderr)
    if not wrong or "--accept" in rest:
        head, tail = page.split(BEGIN)[0], page.split(END)[1]
        files = {name: floors[name] if name in kept else file for name, file in scores["files"].items()}
        with open(PAGE, "w", encoding="utf8") as file:
            file.write(f"{head}{BEGIN}\n{table(files, psql, kept)}\n{END}{tail}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
