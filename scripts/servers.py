"""What scripts/suites.py and scripts/drivers.py share: servers that live in directories that are thrown away, and tables of pages.

    with postgres() as port: ...
    with quorate(program, nodes=3) as port: ...   # the second node's, which does not lead at first

PostgreSQL is the one whose programs come first on the PATH, else Debian's. Everything listens on loopback.
"""
import contextlib
import os
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


def psql(port, database, *statements):
    """Runs statements as postgres, each in a transaction of its own; whether all went well."""
    command = ["psql", "-X", "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-d", database]
    commands = [word for statement in statements for word in ["-c", statement]]
    return subprocess.run(command + commands, capture_output=True, text=True).returncode == 0


@contextlib.contextmanager
def running(command, port):
    """A server while it runs, from when it answers."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while not psql(port, "postgres", "select 1"):
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(f"{command[0]} did not start")
            time.sleep(0.2)
        yield port
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


@contextlib.contextmanager
def postgres():
    """PostgreSQL's port, while it runs; as the user postgres, where this is root."""
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
        with running([*who, os.path.join(programs, "postgres"), "-D", data, *words], POSTGRES_PORT) as port:
            yield port


@contextlib.contextmanager
def quorate(program, nodes=1):
    """The port of a node, while it and its peers run: of several, the second's."""
    with tempfile.TemporaryDirectory() as directory:
        up = [program, "up", "--nodes", str(nodes), "--data", os.path.join(directory, "data")]
        ports = ["--port", str(QUORATE_PORT), "--http-port", str(HTTP_PORT)]
        with running([*up, *ports], QUORATE_PORT + min(nodes - 1, 1)) as port:
            yield port


def between(begin, end, replaced):
    """Replaces what stands between two marks of the page with the lines that `replaced` makes of it."""
    with open(PAGE, encoding="utf8") as file:
        head, rest = file.read().split(begin)
    old, tail = rest.split(end)
    with open(PAGE, "w", encoding="utf8") as file:
        file.write(f"{head}{begin}\n" + "\n".join(replaced(old)) + f"\n{end}{tail}")
