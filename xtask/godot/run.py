#!/usr/bin/env python3
"""Builds the Godot extension of sdk/godot with a built library, and plays it without a screen: its test with a host and a guest, and
its example as the host of the example in C.
Usage: run.py REPOSITORY TARGET BUILT GODOT, where BUILT has `parlor` and `libparlor_capi.so`."""

import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

# Only a hang takes this long.
PATIENCE_S = 60


class Program:
    """A program whose lines are read as they come."""

    def __init__(self, command, env):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)
        self.name, self.seen, self.lines = Path(command[0]).name, [], queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip())
        self.lines.put(None)

    def until(self, pattern, meanwhile=lambda: None):
        """Waits for a line in which a pattern is found, and does something now and then."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                line = self.lines.get(timeout=0.3)
            except queue.Empty:
                meanwhile()
                continue
            if line is None:
                break
            self.seen.append(line)
            if found := re.search(pattern, line):
                return found
        raise SystemExit(f"{self.name} does not print {pattern!r}; what it printed:\n" + "\n".join(self.seen[-40:]))

    def press(self, keys):
        self.process.stdin.write(keys)
        self.process.stdin.flush()

    def end(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)


def build(repository, project, built, godot):
    """Copies the project, builds its extension, and lets Godot find it."""
    shutil.rmtree(project, ignore_errors=True)
    left_out = shutil.ignore_patterns("build", "*.so", ".godot")
    shutil.copytree(repository / "sdk" / "godot", project, ignore=left_out)
    make = ["make", "-C", str(project), f"ROOT={repository}", f"LIB={built}", f"GODOT={godot}"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    # That is when Godot finds its extensions and classes. The first time, an editor without a screen crashes as it ends, with any
    # extension (godotengine/godot#123511), so the second time counts.
    for _ in range(2):
        command = [godot, "--headless", "--path", project, "--import"]
        imported = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    if imported.returncode or "parlor.gdextension" not in (project / ".godot" / "extension_list.cfg").read_text():
        raise SystemExit(f"Godot does not import the project:\n{imported.stdout}{imported.stderr}")


def build_example(repository, target, built):
    """Builds the example in C as its Makefile does."""
    folder = target / "c"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(repository / "examples" / "c", folder)
    subprocess.run(["make", "-C", str(folder), f"ROOT={repository}", f"LIB={built}"], check=True, stdout=subprocess.DEVNULL)
    return str(folder / "dots")


def play_test(project, godot, env):
    test = Program([godot, "--headless", "--path", str(project), "--script", "res://test/play.gd"], env)
    test.until("^played$")
    if test.process.wait(PATIENCE_S):
        raise SystemExit("the test ends with an error:\n" + "\n".join(test.seen[-40:]))


def play_example(project, godot, dots, env):
    host = Program([godot, "--headless", "--path", str(project)], env)
    code = host.until(r"^room (\w+)")[1]
    guest = Program([dots, code], env)
    host.until("^joined 1")
    guest.until("^joined 1")
    # Pressed now and then, because an input that comes late is not used.
    host.until("^dot 1 at (?!20 8)", lambda: guest.press("d"))
    guest.until("^dot 1 at (?!20 8)")
    host.until("^honks 1", lambda: guest.press(" "))
    guest.press("q")
    host.until("^left 1")
    if guest.process.wait(PATIENCE_S):
        raise SystemExit("the game in C ends with an error:\n" + "\n".join(guest.seen[-40:]))
    host.end()
    return code


def main():
    repository, target, built, godot = (Path(argument).absolute() for argument in sys.argv[1:])
    project, godot = target / "project", str(godot)
    target.mkdir(parents=True, exist_ok=True)
    build(repository, project, built, godot)
    dots = build_example(repository, target, built)
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "XDG_RUNTIME_DIR": home}
        server = Program([str(built / "parlor"), "serve", "--port", "0"], env)
        env["PARLOR_SERVER"] = server.until(r"PARLOR_SERVER=(127\.0\.0\.1:\S+)")[1]
        play_test(project, godot, env)
        code = play_example(project, godot, dots, env)
        server.end()
    print(f"a room, a world and a match played in Godot; room {code} hosted in Godot and joined in C, the guest's move seen by both")


main()
