#!/usr/bin/env python3
"""Scores one node against PostgreSQL 15's own regression suite, into docs/CONFORMANCE.md.

    scripts/conformance.py QUORATE PG_REGRESS_SCORE [--accept]

QUORATE is the built program; PG_REGRESS_SCORE a script that takes --port and --json, runs the suite's
files through psql and counts, for each, the statements whose whole output is PostgreSQL's (`exact`),
and those that differ in positions, details and hints only (`lenient`).

The page is also the floor: a file that scores lower than it says there fails the run, and so does a
server that ends, or a file that does not come to its end. --accept writes the page all the same.
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "CONFORMANCE.md")
PORT = "27543"
BEGIN, END = "<!-- scores -->", "<!-- end -->"


def floors(page):
    """The exact scores that stand on the page, by file."""
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|$", page, re.M)
    return {name: int(exact) for name, _, exact, _ in rows}


def answers():
    """Whether the server answers."""
    command = ["psql", "-X", "-h", "127.0.0.1", "-p", PORT, "-U", "postgres", "-Atc", "select 1", "postgres"]
    return subprocess.run(command, capture_output=True, timeout=30).stdout == b"1\n"


def measure(quorate, score, directory):
    """The scores by file, the total, and what was wrong."""
    out = os.path.join(directory, "scores.json")
    up = [quorate, "up", "--nodes", "1", "--data", os.path.join(directory, "data")]
    server = subprocess.Popen(up + ["--port", PORT, "--http-port", "27544"], stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not answers() and time.monotonic() < end:
            time.sleep(0.2)
        run = subprocess.run([sys.executable, score, "--port", PORT, "--json", out], stdout=subprocess.PIPE, text=True)
        wrong = [line for line in run.stdout.splitlines() if "timed out" in line]
        if run.returncode or not answers():
            wrong.append("the server or the suite broke off")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)
    with open(out, encoding="utf8") as file:
        return json.load(file), wrong


def table(scores):
    """The page's table."""
    percent = lambda count: f"{100 * count / scores['statements']:.1f}%"
    lines = [f"{scores['statements']:,} statements: {percent(scores['exact'])} exact, {percent(scores['lenient'])} lenient.", ""]
    lines += ["| file | statements | exact | lenient |", "| --- | --- | --- | --- |"]
    for name, file in scores["files"].items():
        lines.append(f"| {name} | {file['statements']} | {file['exact']} | {file['lenient']} |")
    return "\n".join(lines)


def main():
    quorate, score, *rest = sys.argv[1:]
    with open(PAGE, encoding="utf8") as file:
        page = file.read()
    with tempfile.TemporaryDirectory() as directory:
        scores, wrong = measure(quorate, score, directory)
    for name, floor in floors(page).items():
        exact = scores["files"].get(name, {}).get("exact", 0)
        if exact < floor:
            wrong.append(f"{name}: {exact} statements are exact, fewer than {floor}")
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
    if not wrong or "--accept" in rest:
        head, tail = page.split(BEGIN)[0], page.split(END)[1]
        with open(PAGE, "w", encoding="utf8") as file:
            file.write(f"{head}{BEGIN}\n{table(scores)}\n{END}{tail}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
