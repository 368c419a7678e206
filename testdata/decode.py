#!/usr/bin/env python3
"""A second decoder of Parlor's worlds, written from PROTOCOL.md and testdata/priors.txt alone.

It shares no line with the implementation in Rust: that the two agree shows that the document is complete. It needs
nothing but Python's standard library, and takes files of golden vectors:

    python3 testdata/decode.py testdata/delta.txt testdata/world.txt

Each file is decoded and compared with what stands in it; the first difference is explained and ends the run with 1.
With --tamper one byte of each vector is changed, one vector at a time, and it is an error if that goes unnoticed. The
heads of the files say what is in them. The decoder itself is in testdata/decoder/, a module for each part.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn

sys.dont_write_bytecode = True

from decoder.body import Body, Entry, Meta, Past, bits_of
from decoder.coder import Models
from decoder.schema import Component, State, read_schema
from decoder.stream import Receiver
from decoder.values import Refused


class Differs(Exception):
    """A file says something else than the decoder."""


class Lines:
    """The lines of a file, without comments."""

    def __init__(self, path: Path) -> None:
        numbered = enumerate(path.read_text().splitlines(), 1)
        self.lines = [(number, line) for number, line in numbered if line and not line.startswith("#")]
        self.at = 0

    def begins(self, word: str) -> bool:
        return self.at < len(self.lines) and self.lines[self.at][1].split(" ", 1)[0] == word

    def take(self, word: str) -> str:
        """The rest of the line, which has to begin with `word`."""
        if not self.begins(word):
            self.differs(f"a line that begins with `{word}`")
        self.at += 1
        return self.lines[self.at - 1][1][len(word) + 1 :]

    def expect(self, line: str) -> None:
        if self.at == len(self.lines) or self.lines[self.at][1] != line:
            self.differs(f"`{line}`")
        self.at += 1

    def differs(self, wanted: str) -> NoReturn:
        number, line = self.lines[self.at] if self.at < len(self.lines) else (self.lines[-1][0] + 1, "nothing")
        raise Differs(f"line {number} is `{line}`, and the decoder wants {wanted}")


@dataclass
class Count:
    """What was compared."""

    vectors: int = 0
    values: int = 0
    tampered: int = 0

    def add(self, states: Iterable[State]) -> None:
        self.values += sum(len(state.lanes) + len(state.blobs) for state in states)


Tamper = Callable[[bytes], bytes]
"""What is done to a body before it is decoded."""


def untouched(body: bytes) -> bytes:
    return body


def check_delta(lines: Lines, models: Models, tamper: Tamper, count: Count) -> None:
    """Compares one body with what it says, which stands beside the rows that it is told against."""
    schema = read_schema(bytes.fromhex(lines.take("schema")), int(lines.take("rate")))
    everything = lines.take("everything") == "1"
    body = Body(tamper(bytes.fromhex(lines.take("body"))), schema, models, everything)
    while entry := body.head():
        lines.expect(entry_line(entry))
        for number in bits_of(entry.changed):
            pasts = []
            while lines.begins("past"):
                pasts.append(read_past(lines.take("past"), number, schema.components[number]))
            state = body.component(number, pasts)
            blobs = ", ".join(blob.hex() for blob in state.blobs)
            lines.expect(f"row {number} {state.lanes} [{blobs}]")
            count.add([state])
    count.vectors += 1


def entry_line(entry: Entry) -> str:
    mask = "-" if entry.mask is None else entry.mask
    head = f"entry {entry.kind} {entry.slot} {entry.row_age} {entry.generation or 0} {entry.changed}"
    return f"{head} ages {entry.ages} mask {mask} meta {meta_text(entry.meta)}"


def meta_text(meta: Meta | None) -> str:
    if meta is None:
        return "-"
    owner = "-" if meta.owner is None else meta.owner
    return f"{owner} {meta.room} {'all' if meta.audience is None else meta.audience}"


def read_past(line: str, number: int, component: Component) -> Past:
    of, age, rest = line.split(" ", 2)
    lanes, blobs = rest.removeprefix("[").removesuffix("]").split("] [")
    if int(of) != number:
        raise Differs(f"`past {line}` stands where the decoder wants rows of component {number}")
    parts = [bytes.fromhex(blob) for blob in blobs.split(",")] if component.blobs else []
    return Past(int(age), State([int(lane) for lane in lanes.split(",") if lane], parts))


def check_packet(lines: Lines, receiver: Receiver, tamper: Tamper, count: Count) -> bool:
    """Gives the receiver a packet and compares what it holds then; whether its body was read."""
    packet = receiver.packet(bytes.fromhex(lines.take("packet")))
    packet.body = tamper(packet.body)
    try:
        outcome = receiver.take(packet)
    except Refused:
        outcome = "refused"
    lines.expect(outcome)
    count.vectors += 1
    if not outcome.startswith("taken"):
        return False
    for number, slot in sorted(receiver.slots.items()):
        if slot.shown is None:
            continue
        meta = slot.shown.meta
        audience = "all" if meta.audience is None else listed(map(str, meta.audience))
        owner = "-" if meta.owner is None else meta.owner
        lines.expect(f"entity {number}.{slot.generation} owner {owner} room {meta.room} audience {audience}")
        for component, state in slot.shown.states.items():
            lanes, blobs = listed(map(str, state.lanes)), listed(blob.hex() for blob in state.blobs)
            lines.expect(f"row {component} lanes {lanes} blobs {blobs}")
        count.add(slot.shown.states.values())
    return True


def listed(parts: Iterable[str]) -> str:
    return ",".join(parts) or "-"


def check_file(path: Path, models: Models, tampers: bool) -> Count:
    """Checks all vectors of a file; with `tampers`, that each is missed when one of its bytes is another."""
    lines, count = Lines(path), Count()
    receiver: Receiver | None = None
    while lines.at < len(lines.lines):
        start = lines.at
        if lines.begins("stream"):
            everything = lines.take("stream") == "everything"
            schema = read_schema(bytes.fromhex(lines.take("schema")), int(lines.take("rate")))
            receiver = Receiver(schema, models, everything)
        elif lines.begins("packet") and receiver is not None:
            before = copy.deepcopy(receiver, {id(models): models})
            noted = check_packet(lines, receiver, untouched, count)
            if tampers and noted:
                count.tampered += 1
                must_differ(lines, start, partial(check_rest, lines, before, flipped(count.vectors)))
        else:
            lines.take("vector")
            check_delta(lines, models, untouched, count)
            if tampers:
                count.tampered += 1
                tamper = flipped(count.vectors)
                must_differ(lines, start + 1, partial(check_delta, lines, models, tamper, Count()))
    if count.values == 0:
        raise Differs("there is nothing in it")
    return count


def check_rest(lines: Lines, receiver: Receiver, tamper: Tamper) -> None:
    """Checks a stream to its end, of which the first packet is tampered with."""
    while lines.begins("packet"):
        check_packet(lines, receiver, tamper, Count())
        tamper = untouched


def must_differ(lines: Lines, start: int, check: Callable[[], None]) -> None:
    """Checks again from `start` on, and goes back to where it was."""
    end, lines.at = lines.at, start
    try:
        check()
    except (Refused, Differs):
        lines.at = end
        return
    raise Differs(f"the vector in line {lines.lines[start][0]} is decoded as before with a byte that was changed")


def flipped(number: int) -> Tamper:
    """Changes a byte, another one and in another way for each number."""

    def tamper(body: bytes) -> bytes:
        at = 7 * number % len(body)
        return body[:at] + bytes([body[at] ^ (1 + 37 * number % 255)]) + body[at + 1 :]

    return tamper


def main(args: list[str]) -> int:
    files = [Path(arg) for arg in args if arg != "--tamper"]
    if not files:
        print(__doc__, file=sys.stderr)
        return 2
    models = Models(Path(__file__).parent / "priors.txt")
    for path in files:
        try:
            count = check_file(path, models, "--tamper" in args)
        except (Refused, Differs) as error:
            print(f"{path}: {error}", file=sys.stderr)
            return 1
        tampered = f", {count.tampered} of them missed with a byte changed" if "--tamper" in args else ""
        print(f"{path}: {count.vectors} vectors, {count.values} values{tampered}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
