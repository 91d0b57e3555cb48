"""What the programs share: parts that print, each of which goes on where the one before failed.

    @part
    def arrays(url): ...

    run()   # "# arrays", what it prints, and "! SQLSTATE message" where it raised
"""
import os

PARTS = []


def part(function):
    """Adds a part to the program."""
    PARTS.append(function)
    return function


def address():
    """Where the server is: host, port, user and database."""
    return {name: os.environ["PG" + name.upper()] for name in ["host", "port", "user", "database"]}


def dsn():
    """The same as a connection string of libpq."""
    return "host={host} port={port} user={user} dbname={database}".format(**address())


def url(scheme):
    """The same as a URL."""
    return scheme + "://{user}@{host}:{port}/{database}".format(**address())


def told(error):
    """An error as its SQLSTATE and its first line, whichever driver wraps it."""
    inner = error
    while not getattr(inner, "sqlstate", None) and (getattr(inner, "orig", None) or inner.__cause__):
        inner = getattr(inner, "orig", None) or inner.__cause__
    state = getattr(inner, "sqlstate", None) or getattr(inner, "pgcode", None)
    return f"{type(inner).__name__} {state} {(str(inner).splitlines() or [''])[0]}"


def run(*arguments):
    """Runs all parts."""
    for function in PARTS:
        print("#", function.__name__)
        try:
            function(*arguments)
        except Exception as error:
            print("!", told(error))
