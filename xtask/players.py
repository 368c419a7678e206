"""Programs in a terminal of their own, played by a script."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

# Only a hang takes this long.
PATIENCE_S = 60
ROWS, COLUMNS = 30, 100
# A cursor's place, a cleared screen, any other command of a terminal, or a letter.
TOKEN = re.compile(r"\x1b\[(\d+);(\d+)H|(\x1b\[2J)|\x1b\[[0-9;?]*[A-Za-z]|\x1b[^\[]|(\r|\n|[^\x1b])")


class Player:
    """A program in a terminal, which may have a root file system of its own."""

    def __init__(self, program, args, env, root=None):
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            if root:
                os.chroot(root)
                os.chdir("/")
            os.execve(program, [program, *args], env)
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.printed = ""

    def take(self):
        """Takes what was printed within a moment."""
        if select.select([self.terminal], [], [], 0.05)[0]:
            try:
                self.printed += self.decoder.decode(os.read(self.terminal, 65536))
            except OSError:
                raise SystemExit(f"it ended by itself: {self.shown()[-1000:]}")

    def shown(self):
        return self.printed

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


class Painter(Player):
    """A program that paints only what changes on its screen."""

    def __init__(self, program, args, env, root=None):
        super().__init__(program, args, env, root)
        self.at = (0, 0)
        self.clear()

    def shown(self):
        return "\n".join("".join(row).rstrip() for row in self.cells).rstrip()

    def clear(self):
        self.cells = [[" "] * COLUMNS for _ in range(ROWS)]

    def read(self):
        """Gives the screen."""
        self.take()
        end = self.printed.rfind("\x1b")
        # A command that is cut waits for its rest.
        whole = len(self.printed) if end < 0 or TOKEN.match(self.printed, end) else end
        for row, column, cleared, letter in TOKEN.findall(self.printed[:whole]):
            if row:
                self.at = (int(row) - 1, int(column) - 1)
            elif cleared:
                self.clear()
            elif letter == "\r":
                self.at = (self.at[0], 0)
            elif letter == "\n":
                self.at = (min(self.at[0] + 1, ROWS - 1), self.at[1])
            elif letter:
                y, x = self.at
                if y < ROWS and x < COLUMNS:
                    self.cells[y][x] = letter
                self.at = (y, x + 1)
        self.printed = self.printed[whole:]
        return self.shown()


class Printer(Player):
    """A program that prints lines and ends when it is told to."""

    def read(self):
        """Gives the newest lines."""
        self.take()
        self.printed = self.printed[-20_000:]
        return self.printed

    def end(self):
        os.kill(self.pid, signal.SIGTERM)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def until(players, keys, shown):
    """Reads all screens, and presses keys, or what a function gives, at the last player, until the first one's screen shows
    something; gives that."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        screens = [player.read() for player in players]
        if found := shown(screens[0]):
            return found
        if keys:
            players[-1].press(keys() if callable(keys) else keys)
    raise SystemExit(f"it is never shown; the last screen: {screens[0]!r}")
