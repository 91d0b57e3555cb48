"""What scripts/suites.py and scripts/drivers.py share: servers that live in directories that are thrown away, and tables of pages.

    with postgres() as at: ...                    # at.host, at.port
    with quorate(program, nodes=3) as at: ...     # the second node, which does not lead at first

PostgreSQL is the one whose programs come first on the PATH, else Debian's. Everything listens on loopback.
"""
import collections
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "quorate")
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "CONFORMANCE.md")
DEBIAN_BIN = "/usr/lib/postgresql/15/bin"
POSTGRES_PORT = 27545
QUORATE_PORT = 27546
HTTP_PORT = 27556
START_SECONDS = 60


Address = collections.namedtuple("Address", "host port")


def psql(at, database, *statements):
    """Runs statements as postgres, each in a transaction of its own; whether all went well."""
    command = ["psql", "-X", "-q", "-h", at.host, "-p", str(at.port), "-U", "postgres", "-d", database]
    commands = [word for statement in statements for word in ["-c", statement]]
    return subprocess.run(command + commands, capture_output=True, text=True).returncode == 0


@contextlib.contextmanager
def running(command, directory, find):
    """A server while it runs, from when it answers; `find` tells where from what it has printed."""
    with open(os.path.join(directory, "printed"), "w+", encoding="utf8") as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + START_SECONDS
            while not ((at := find(open(printed.name, encoding="utf8").read())) and psql(at, "postgres", "select 1")):
                if process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"{command[0]} did not start")
                time.sleep(0.2)
            yield at
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


@contextlib.contextmanager
def postgres():
    """PostgreSQL while it runs; as the user postgres, where this is root."""
    found = shutil.which("postgres")
    programs = os.path.dirname(os.path.realpath(found)) if found else DEBIAN_BIN
    with tempfile.TemporaryDirectory() as directory:
        who = []
        if os.geteuid() == 0:
            shutil.chown(directory, "postgres", "postgres")
            who = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = os.path.join(directory, "data")
        init = [os.path.join(programs, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8"]
        subprocess.run([*who, *init, "--locale=C.UTF-8", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd=directory)
        settings = {
            "port": POSTGRES_PORT,
            "unix_socket_directories": directory,
            "listen_addresses": "127.0.0.1",
            "max_prepared_transactions": 10,
            "timezone": "UTC",
            "fsync": "off",
        }
        words = [word for setting in settings.items() for word in ["-c", "{}={}".format(*setting)]]
        command = [*who, os.path.join(programs, "postgres"), "-D", data, *words]
        with running(command, directory, lambda _: Address("127.0.0.1", POSTGRES_PORT)) as at:
            yield at


@contextlib.contextmanager
def quorate(program, nodes=1):
    """A node, while it and its peers run: of several, the second."""
    with tempfile.TemporaryDirectory() as directory:
        up = [program, "up", "--nodes", str(nodes), "--data", os.path.join(directory, "data")]
        ports = ["--port", str(QUORATE_PORT), "--http-port", str(HTTP_PORT)]
        with running([*up, *ports], directory, lambda printed: place(printed, min(nodes, 2))) as at:
            yield at


def place(printed, number):
    """Where a node is, in what `quorate up` prints once it is ready.

    >>> place("  n1  psql -h 127.0.0.1 -p 5433 postgres\\n", 1)
    Address(host='127.0.0.1', port=5433)
    """
    places = re.findall(r"psql -h (\S+) -p (\d+)", printed)
    return Address(places[number - 1][0], int(places[number - 1][1])) if len(places) >= number else None


def between(begin, end, replaced):
    """Replaces what stands between two marks of the page with the lines that `replaced` makes of it."""
    with open(PAGE, encoding="utf8") as file:
        head, rest = file.read().split(begin)
    old, tail = rest.split(end)
    with open(PAGE, "w", encoding="utf8") as file:
        file.write(f"{head}{begin}\n" + "\n".join(replaced(old)) + f"\n{end}{tail}")
