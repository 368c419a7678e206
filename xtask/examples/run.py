#!/usr/bin/env python3
"""Makes a game with each template in Rust of `parlor new` outside of the repository, and one of the guide's first program, and builds
the games of examples/ that are no template. Tests and plays each: a host, and a guest who joins by the code that the host shows.
With --window the game of docs/bevy.md in a window is compiled, too.
Usage: run.py REPOSITORY TARGET PARLOR [--window]"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from players import Player, Printer, until

SYMBOL = re.compile(r"\x1b\[(\d+);(\d+)H(.)(?=\x1b|$)")


def letter_right_of(begin):
    """The guest's letter is not where it began."""
    return lambda symbols: any(symbol == "B" and column > begin for _, column, symbol in symbols)


def tank_moved(symbols):
    """Two tanks, and not at one place."""
    return len({(row, column) for row, column, symbol in symbols if symbol in "→↘↓↙←↖↑↗"}) == 2


# The templates: what the guest presses, and what the host's screen shows then.
TEMPLATES = {
    "dots": ("\x1b[C", letter_right_of(21)),
    "tanks": ("\x1b[A", tank_moved),
    "bevy": ("\x1b[C", letter_right_of(31)),
}
# The other games for a terminal, played where they lie: the guest comes near and lunges, one key after another.
GAMES = {"duel": (itertools.cycle(["\x1b[D", "\x1b[D", "\x1b[A"]).__next__, lambda screen: re.search(r"touches \d+ : [1-9]", screen))}


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


def compile_window(repository, target, parlor, folder, env):
    """The game of docs/bevy.md in a window: the commands that make it of the template's, and what replaces the terminal."""
    page = (repository / "docs/bevy.md").read_text()
    commands, window = re.search(r"### In a window.*?```sh\n(.*?)```.*?```rust,ignore\n(.*?)```", page, re.DOTALL).groups()
    subprocess.run([parlor, "new", "in-a-window", "--template", "bevy"], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    game = folder / "in-a-window"
    subprocess.run(["sh", "-ec", commands], cwd=game, env=env, check=True)
    (game / "src/terminal.rs").write_text(window)
    build(repository, target, "in-a-window", game)
    print("bevy: compiled with a window")


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
        if "--window" in sys.argv[4:]:
            compile_window(repository, target, parlor, Path(outside), env)


main()
