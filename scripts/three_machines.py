#!/usr/bin/env python3
"""Tries docs/THREE-MACHINES.md, command by command, between network namespaces.

    scripts/three_machines.py PROGRAM [--keep]

PROGRAM is the built `quorate`. Every block of the document that stands behind a line
`<!-- on NAMES -->` is run by `sh -e` on these machines, in order: each has a namespace with an
address of its own on one switch, and a directory of its own as home. A block is tried again until
it succeeds where the line says `<!-- on NAMES, soon -->`; it must fail where it says `refused`.
`scp` copies between the homes. Needs root; removes what it made, whatever happens.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "docs", "THREE-MACHINES.md")
MACHINES = {"desk": "10.77.0.9", "db1": "10.77.0.1", "db2": "10.77.0.2", "db3": "10.77.0.3"}
PATIENCE = 30.0
BLOCK = re.compile(r"<!-- on ([^>]*?) -->\n```sh\n(.*?)```", re.S)

# Copies to NAME:PATH, or from it.
SCP = """#!/usr/bin/env python3
import os, shutil, sys
homes = os.environ["QUORATE_HOMES"]
def place(name):
    machine, colon, path = name.partition(":")
    return os.path.join(homes, machine, path) if colon else name
*sources, target = [word for word in sys.argv[1:] if not word.startswith("-")]
for source in map(place, sources):
    copy = shutil.copytree if os.path.isdir(source) else shutil.copy
    copy(source, place(target))
"""


def run(*command):
    subprocess.run(command, check=True)


class World:
    """The machines and the switch between them."""

    def __init__(self, program):
        self.tag = f"quorate{os.getpid()}"
        self.homes = tempfile.mkdtemp(prefix="quorate-three-machines-")
        tools = os.path.join(self.homes, "bin")
        os.mkdir(tools)
        os.symlink(os.path.abspath(program), os.path.join(tools, "quorate"))
        with open(os.path.join(tools, "scp"), "w") as scp:
            scp.write(SCP)
        os.chmod(os.path.join(tools, "scp"), 0o755)
        self.environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "QUORATE_HOMES": self.homes,
            "PGCONNECT_TIMEOUT": "5",
            "LANG": "C.UTF-8",
        }
        self.leader = None

    def build(self):
        self.space("switch")
        self.on("switch", "ip", "link", "add", "switch", "type", "bridge")
        self.on("switch", "ip", "link", "set", "switch", "up")
        for name, address in MACHINES.items():
            os.mkdir(os.path.join(self.homes, name))
            self.space(name)
            here, there = f"{self.tag}-{name}", f"{self.tag}-switch"
            run("ip", "link", "add", "eth0", "netns", here, "type", "veth",
                "peer", "name", name, "netns", there)
            self.on("switch", "ip", "link", "set", name, "master", "switch", "up")
            self.on(name, "ip", "address", "add", f"{address}/24", "dev", "eth0")
            self.on(name, "ip", "link", "set", "eth0", "up")
            self.on(name, "ip", "link", "set", "lo", "up")

    def space(self, name):
        run("ip", "netns", "add", f"{self.tag}-{name}")

    def on(self, name, *command):
        run("ip", "netns", "exec", f"{self.tag}-{name}", *command)

    def remove(self, keep):
        for name in ["switch", *MACHINES]:
            space = f"{self.tag}-{name}"
            listed = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True)
            for pid in listed.stdout.split():
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", space], stderr=subprocess.DEVNULL)
        if keep:
            print(f"kept {self.homes}")
        else:
            shutil.rmtree(self.homes)

    def logs(self):
        for name in MACHINES:
            path = os.path.join(self.homes, name, "quorate", "node.log")
            if os.path.exists(path):
                print(f"--- {path}")
                with open(path) as log:
                    print("".join(log.readlines()[-20:]))

    def machines(self, names):
        """The machines of those names: `leader` is the one that leads, and `killed` it later on."""
        if names == ["leader"]:
            leads = "quorate status --data quorate | grep -q leader"
            self.leader = next(
                name for name in MACHINES if name != "desk" and self.shell(name, leads)[0] == 0)
            return [self.leader]
        return [self.leader] if names == ["killed"] else names

    def shell(self, name, script):
        """Runs a script; its environment goes on in the machine's next one."""
        home = os.path.join(self.homes, name)
        kept = os.path.join(self.homes, f"{name}.env")
        before = f'. "{kept}"\n' if os.path.exists(kept) else ""
        script = f'{before}{script}\nexport -p > "{kept}"\n'
        with open(os.path.join(self.homes, f"{name}.out"), "w") as out:
            done = subprocess.run(
                ["ip", "netns", "exec", f"{self.tag}-{name}", "sh", "-e", "-c", script],
                cwd=home, env={**self.environment, "HOME": home}, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT)
        with open(out.name) as out:
            return done.returncode, out.read().strip()


def try_block(world, name, script, words):
    begun = time.monotonic()
    while True:
        code, printed = world.shell(name, script)
        if (code != 0) == ("refused" in words):
            return printed
        if "soon" not in words or time.monotonic() > begun + PATIENCE:
            sys.exit(f"on {name}, this ended with {code}:\n{script}\n{printed}")
        time.sleep(0.2)


def main():
    program = sys.argv[1]
    with open(DOCUMENT) as document:
        blocks = BLOCK.findall(document.read())
    assert len(blocks) > 5, f"{DOCUMENT} has {len(blocks)} blocks"
    world = World(program)
    done = False
    try:
        world.build()
        for head, script in blocks:
            names, *words = [part.strip() for part in head.split(",")]
            for name in world.machines(names.split()):
                print(f"{name}$ {script.strip()}", flush=True)
                printed = try_block(world, name, script, words)
                if printed:
                    print(printed, flush=True)
        done = True
    finally:
        if not done:
            world.logs()
        world.remove("--keep" in sys.argv)
    print(f"all {len(blocks)} blocks of docs/THREE-MACHINES.md do what they say")


if __name__ == "__main__":
    main()
