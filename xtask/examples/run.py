#!/usr/bin/env python3
"""Makes a game with each template of `parlor new` outside of the repository, and one of the guide's first program, and builds
the games of examples/ that are no template. Tests and plays each: a host, and a guest who joins by the code that the host shows.
Usage: run.py REPOSITORY TARGET PARLOR"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Only a hang takes this long.
PATIENCE_S = 60
SYMBOL = re.compile(r"\x1b\[(\d+);(\d+)H(.)(?=\x1b|$)")


def dot_moved(symbols):
    """The guest's letter is not where it began."""
    return any(symbol == "B" and column > 21 for _, column, symbol in symbols)


def tank_moved(symbols):
    """Two tanks, and not at one place."""
    return len({(row, column) for row, column, symbol in symbols if symbol in "→↘↓↙←↖↑↗"}) == 2


# The templates: what the guest presses, and what the host's screen shows then.
TEMPLATES = {"dots": ("\x1b[C", dot_moved), "tanks": ("\x1b[A", tank_moved)}
# The other games for a terminal, played where they lie: the guest comes near and lunges.
GAMES = {"duel": ("\x1b[D\x1b[D\x1b[A", lambda screen: re.search(r"touches \d+ : [1-9]", screen))}


class Player:
    """A program in a terminal."""

    def __init__(self, program, args, env):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execve(program, [program, *args], env)
        self.printed = ""

    def take(self):
        """Takes what was printed within a moment."""
        if select.select([self.terminal], [], [], 0.05)[0]:
            try:
                self.printed += os.read(self.terminal, 65536).decode(errors="replace")
            except OSError:
                raise SystemExit(f"it ended by itself: {self.printed[-500:]!r}")

    def read(self):
        """Gives the newest screen that is whole."""
        self.take()
        screens = self.printed.split("\x1b[2J")
        self.printed = "\x1b[2J".join(screens[-2:])
        return screens[-2] if len(screens) > 1 else ""

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def leave(self):
        try:
            self.press("q")
        except OSError:
            pass  # it has ended, because the other player left
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            try:
                self.read()
            except SystemExit:
                pass
        raise SystemExit("it does not end")


class Printer(Player):
    """A program that prints lines and ends when it is told to."""

    def read(self):
        """Gives the newest lines."""
        self.take()
        self.printed = self.printed[-20_000:]
        return self.printed

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


def until(players, keys, shown):
    """Reads all screens, and presses keys at the last player, until the first one's screen shows something; gives that."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        screens = [player.read() for player in players]
        if found := shown(screens[0]):
            return found
        if keys:
            players[-1].press(keys)
    raise SystemExit(f"it is never shown; the last screen: {screens[0]!r}")


def build(repository, target, name, folder, *commands):
    """Builds the game in a folder."""
    # The versions that everything else is tested with.
    shutil.copy(repository / "Cargo.lock", folder)
    env = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    for command in (*commands, "cargo build --quiet"):
        subprocess.run(command.split(), cwd=folder, env=env, check=True)
    return str(target / "debug" / name)


def play_two(program, env, keys, shown):
    """Plays a program with itself, until the host's screen shows what the guest did. Gives the room's code."""
    host = Player(program, [], env)
    code = until([host], "", lambda screen: re.search(r"room (\w{4,})", screen))[1]
    guest = Player(program, [code], env)
    both = [host, guest]
    until(both, "", lambda screen: "players 2" in screen)
    until(both, keys, shown)
    guest_left, host_left = guest.leave(), host.leave()
    if (guest_left, host_left) != (0, 0):
        raise SystemExit(f"{program}: the guest ended with {guest_left}, the host with {host_left}")
    return code


def play_template(repository, target, parlor, template, folder, env):
    keys, moved = TEMPLATES[template]
    name = f"my-{template}"
    subprocess.run([parlor, "new", name, "--template", template], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    program = build(repository, target, name, folder / name, "cargo test --quiet")
    code = play_two(program, env, keys, lambda screen: moved([(int(y), int(x), s) for y, x, s in SYMBOL.findall(screen)]))
    print(f"{template}: made and tested outside, room {code} hosted and joined, the guest's move seen by the host")


def play_game(repository, target, name, env):
    program = build(repository, target, name, repository / "examples" / name, "cargo test --quiet")
    code = play_two(program, env, *GAMES[name])
    print(f"{name}: tested, room {code} hosted and joined, the guest's move seen by the host")


def guest_tank_moves(printed):
    """The guest's tank is printed at more than one place."""
    return len(set(re.findall(r"tank/1 is at (\S+),", printed))) > 1


def play_guide(repository, target, folder, env):
    """The first program of docs/guide.md, with the dependencies that stand below it."""
    page = (repository / "docs/guide.md").read_text()
    program, dependencies = re.search(r"```rust,no_run\n(.*?)```\n\n```toml\n(.*?)```", page, re.DOTALL).groups()
    (folder / "src").mkdir()
    (folder / "src/main.rs").write_text(program)
    own = "\n".join(line for line in dependencies.splitlines() if not line.startswith("parlor"))
    (folder / "Cargo.toml").write_text(f'[package]\nname = "guide"\nedition = "2024"\n\n[workspace]\n\n{own}')
    parlor = f"cargo add --quiet --path {repository / 'crates/client'} --features server"
    program = build(repository, target, "guide", folder, parlor)
    host = Printer(program, [], env)
    code = until([host], "", lambda printed: re.search(r"share (\w{4,})\s", printed))[1]
    guest = Printer(program, [code], env)
    until([host, guest], "", guest_tank_moves)
    until([guest, host], "", guest_tank_moves)
    guest.end()
    host.end()
    print(f"guide: built outside, room {code} hosted and joined, the guest's tank moves at both")


def main():
    repository, target, parlor = (Path(argument).resolve() for argument in sys.argv[1:4])
    with tempfile.TemporaryDirectory() as outside:
        env = {key: value for key, value in os.environ.items() if not key.startswith("PARLOR_")}
        env.update(PARLOR_REGISTRY=f"{outside}/registry", TERM="xterm")
        guide = Path(outside) / "guide"
        guide.mkdir()
        play_guide(repository, target, guide, env)
        for template in TEMPLATES:
            play_template(repository, target, parlor, template, Path(outside), env)
        for game in GAMES:
            play_game(repository, target, game, env)


main()
