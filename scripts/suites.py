#!/usr/bin/env python3
"""Runs a suite that a driver's authors wrote, against PostgreSQL 15 and against one node.

    scripts/suites.py psycopg|sqlalchemy|django QUORATE [--tests DIRECTORY] [TEST …]

QUORATE is the built program. A virtual environment with the driver, and the sources of the suite, are
made with pip in the cache directory at the first use; psycopg's tests are not in its package, so
DIRECTORY is the one that holds its folder `tests`. TEST are files (of psycopg and SQLAlchemy) or labels (of Django)
to run in place of all.

What counts are the tests that PostgreSQL passes. Those that the node does not pass are printed by the
error that ended them, the most frequent first, with one test of each. A run of all tests writes its
figures into docs/CONFORMANCE.md.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree

import servers

CACHE = os.path.join(servers.CACHE, "suites")
BEGIN, END = "<!-- suites -->", "<!-- end of suites -->"
TEST_SECONDS = 120
SUITE_SECONDS = 3 * 3600
DJANGO = """basic queries aggregation expressions transactions migrations schema introspection constraints
bulk_create select_for_update backends postgres_tests inspectdb""".split()

DJANGO_SETTINGS = """
DATABASES = {{
    alias: {{"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1", "PORT": {port}, "USER": "postgres",
            "NAME": "django_" + alias}}
    for alias in ["default", "other"]
}}
SECRET_KEY = "of tests only"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "suite_runner.Runner"
"""

# Writes a line of JSON for each test that ends; one that takes too long is an error.
DJANGO_RUNNER = """
import json
import os
import signal
import unittest

from django.test.runner import DiscoverRunner


class Recorder(unittest.TextTestResult):
    def note(self, test, outcome, error=None):
        with open(os.environ["SUITE_RESULTS"], "a", encoding="utf8") as out:
            said = f"{{error[0].__name__}}: {{error[1]}}" if error else ""
            print(json.dumps([test.id(), outcome, said]), file=out)

    def startTest(self, test):
        super().startTest(test)
        signal.signal(signal.SIGALRM, self.late)
        signal.alarm({seconds})

    def late(self, *_):
        raise TimeoutError("the test took more than {seconds} s")

    def stopTest(self, test):
        signal.alarm(0)
        super().stopTest(test)

    def addSuccess(self, test):
        self.note(test, "passed")
        super().addSuccess(test)

    def addError(self, test, error):
        self.note(test, "failed", error)
        super().addError(test, error)

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error:
            self.note(test, "failed", error)
        super().addSubTest(test, subtest, error)

    def addSkip(self, test, reason):
        self.note(test, "skipped")
        super().addSkip(test, reason)

    def addExpectedFailure(self, test, error):
        self.note(test, "skipped")
        super().addExpectedFailure(test, error)

    def addUnexpectedSuccess(self, test):
        self.note(test, "failed")
        super().addUnexpectedSuccess(test)


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Recorder
"""


def environment(name, packages):
    """The python of a virtual environment that has these packages, made where it is missing."""
    directory = os.path.join(CACHE, name)
    python, made = os.path.join(directory, "bin", "python"), os.path.join(directory, "packages")
    wanted = "\n".join(packages)
    if not os.path.exists(made) or open(made, encoding="utf8").read() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", directory], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
        with open(made, "w", encoding="utf8") as file:
            file.write(wanted)
    return python


def sources(python, package):
    """The directory of a package's sources, as its authors put them out."""
    directory = os.path.join(CACHE, "sources", package)
    if not os.path.exists(directory):
        with tempfile.TemporaryDirectory() as download:
            pip = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package.split("==")[0], "-d", download]
            subprocess.run([*pip, package], check=True)
            (archive,) = os.listdir(download)
            with tarfile.open(os.path.join(download, archive)) as tar:
                tar.extractall(os.path.join(download, "out"))
            os.makedirs(os.path.dirname(directory), exist_ok=True)
            (top,) = os.listdir(os.path.join(download, "out"))
            shutil.move(os.path.join(download, "out", top), directory)
    return directory


def of_junit(path):
    """The tests of a report in JUnit's form: name → (outcome, error)."""
    found = {}
    if not os.path.exists(path):
        return found
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        outcome, error = "passed", ""
        for child in case:
            if child.tag in ("failure", "error") and outcome != "failed":
                outcome, error = "failed", child.get("message") or child.text or ""
            elif child.tag == "skipped" and outcome == "passed":
                outcome = "skipped"
        # SQLAlchemy's have the server's version in their names.
        name = re.sub(r"_15_\d+", "", f"{case.get('classname')}::{case.get('name')}")
        if found.get(name, ("passed",))[0] != "failed":
            found[name] = (outcome, error)
    return found


def of_lines(path):
    """The tests that DJANGO_RUNNER has noted: name → (outcome, error). A test that failed once has failed."""
    found = {}
    if os.path.exists(path):
        with open(path, encoding="utf8") as file:
            for name, outcome, error in map(json.loads, file):
                if found.get(name, ("passed",))[0] != "failed":
                    found[name] = (outcome, error)
    return found


def run(command, directory, **variables):
    """Runs a suite; what it printed."""
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **variables)
    for name in [name for name in env if name.startswith("PG")]:
        del env[name]
    with open(os.path.join(directory, "printed"), "w+", encoding="utf8", errors="replace") as out:
        process = subprocess.Popen(command, cwd=directory, env=env, stdout=out, stderr=subprocess.STDOUT)
        try:
            process.wait(timeout=SUITE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        out.seek(0)
        return out.read()


def run_pytest(python, directory, *options):
    """Runs pytest: the outcomes, and what it printed."""
    report = os.path.join(directory, "report.xml")
    options = [*options, "-q", "--tb=short", "--timeout", str(TEST_SECONDS), "--junitxml", report]
    printed = run([python, "-m", "pytest", *options], directory, PYTHONPATH="lib")
    return of_junit(report), printed


class Psycopg:
    """psycopg's tests, but those that are slow, measure time, or are about other programs than a server."""

    title = "psycopg 3.2.3"

    def __init__(self, tests):
        if not tests:
            sys.exit("psycopg's tests are not in its package: name the directory that holds them, with --tests")
        self.tests = tests
        packages = ["psycopg[binary,pool]==3.2.3", "pytest<9", "pytest-timeout", "anyio<4.5", "numpy", "shapely"]
        self.python = environment("psycopg", packages)

    def run(self, at, directory, chosen):
        shutil.copytree(os.path.join(self.tests, "tests"), os.path.join(directory, "tests"), copy_function=shutil.copyfile)
        with open(os.path.join(directory, "pytest.ini"), "w", encoding="utf8") as file:
            file.write("[pytest]\nlog_level = INFO\n")
        dsn = f"host=127.0.0.1 port={at.port} user=postgres dbname=postgres"
        marks = " and ".join(f"not {mark}" for mark in "slow flakey mypy timing gevent dns proxy".split())
        return run_pytest(self.python, directory, *(chosen or ["tests"]), "--test-dsn", dsn, "-m", marks)


class Sqlalchemy:
    """SQLAlchemy's tests of its dialect, and the suite that every dialect has to pass, by psycopg2."""

    title = "SQLAlchemy 2.0.36"

    def __init__(self, _):
        packages = ["sqlalchemy==2.0.36", "psycopg2-binary", "psycopg[binary]==3.2.3", "pytest<8.2", "pytest-timeout"]
        self.python = environment("sqlalchemy", packages)
        self.sources = sources(self.python, "sqlalchemy==2.0.36")

    def run(self, at, directory, chosen):
        servers.psql(at, "postgres", "create role scott superuser login", "create database test owner scott")
        servers.psql(at, "test", "create schema test_schema authorization scott", "create schema test_schema_2 authorization scott")
        target = os.path.join(directory, "suite")
        shutil.copytree(self.sources, target)
        url = f"postgresql+psycopg2://scott:tiger@127.0.0.1:{at.port}/test"
        files = chosen or ["test/dialect/postgresql", "test/dialect/test_suite.py"]
        return run_pytest(self.python, target, *files, "--dburi", url, "--maxfail", "100000", "--dropfirst")


class Django:
    """Django's tests that concern the database most."""

    title = "Django 5.2"

    def __init__(self, _):
        packages = ["django==5.2", "psycopg[binary]==3.2.3", "tblib", "jinja2", "pillow"]
        self.python = environment("django", packages)
        self.sources = sources(self.python, "django==5.2")

    def run(self, at, directory, chosen):
        target = os.path.join(directory, "suite")
        shutil.copytree(self.sources, target)
        tests, results = os.path.join(target, "tests"), os.path.join(directory, "results")
        modules = {"suite_settings": DJANGO_SETTINGS.format(port=at.port), "suite_runner": DJANGO_RUNNER.format(seconds=TEST_SECONDS)}
        for module, text in modules.items():
            with open(os.path.join(tests, module + ".py"), "w", encoding="utf8") as file:
                file.write(text)
        printed = ""
        # Each label by itself, so that one whose set-up fails takes no other with it.
        for label in chosen or DJANGO:
            command = [self.python, "runtests.py", "--settings", "suite_settings", "--parallel", "1", "--noinput", label]
            said = run(command, tests, PYTHONPATH=f"{target}:{tests}", SUITE_RESULTS=results)
            if not re.search(r"^Ran [1-9]\d* tests? ", said, re.M):
                errors = re.findall(r"^\S+(?:Error|Exception): .*", said, re.M)
                print(f"{label} did not begin: {errors[-1] if errors else said[-300:]}")
            printed += said
        return of_lines(results), printed


SUITES = {"psycopg": Psycopg, "sqlalchemy": Sqlalchemy, "django": Django}


def cause(error):
    """The first line of an error, without what differs from test to test.

    >>> cause('UndefinedTable: relation "t17" does not exist')
    'UndefinedTable: relation "tN" does not exist'
    """
    first = next(iter(error.strip().splitlines()), "")
    return re.sub(r"0x[0-9a-f]+|\d+", "N", first)[:160]


def failed(wanted, got):
    """The tests that PostgreSQL passes, and of these what failed on the node: name → error."""
    counted = [name for name, (outcome, _) in wanted.items() if outcome == "passed"]
    missing = ("failed", "(not run)")
    return counted, {name: got.get(name, missing)[1] for name in counted if got.get(name, missing)[0] != "passed"}


def write(title, passed, counted):
    """Puts the figures of a suite into the page."""
    def replaced(table):
        rows = dict(re.findall(r"^\| ([^|]+) \| (\d+ \| \d+ \| [\d.]+%) \|$", table, re.M))
        rows[title] = f"{counted} | {passed} | {100 * passed / max(counted, 1):.1f}%"
        lines = ["| suite | passed by PostgreSQL 15 | of these by Quorate | share |", "| --- | --- | --- | --- |"]
        return lines + [f"| {name} | {rows[name]} |" for name in sorted(rows)]

    servers.between(BEGIN, END, replaced)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("quorate")
    parser.add_argument("--tests", metavar="DIRECTORY")
    parser.add_argument("test", nargs="*")
    asked = parser.parse_args()
    suite = SUITES[asked.suite](asked.tests)
    outcomes = {}
    for name, server in [("PostgreSQL", servers.postgres()), ("Quorate", servers.quorate(asked.quorate))]:
        with tempfile.TemporaryDirectory() as directory, server as at:
            outcomes[name], printed = suite.run(at, directory, asked.test)
        if not any(outcome == "passed" for outcome, _ in outcomes[name].values()):
            print(f"{name} passed nothing:\n{printed[-3000:]}", file=sys.stderr)
    counted, errors = failed(outcomes["PostgreSQL"], outcomes["Quorate"])
    causes = collections.defaultdict(list)
    for test, error in errors.items():
        causes[cause(error)].append(test)
    for error, tests in sorted(causes.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(tests):6} {error or '(skipped)'}   [{tests[0]}]")
    passed = len(counted) - len(errors)
    print(f"{suite.title}: PostgreSQL passes {len(counted)}, Quorate {passed} of these")
    if not counted:
        sys.exit("there is nothing to compare with")
    if not asked.test:
        write(suite.title, passed, len(counted))


if __name__ == "__main__":
    main()
