"""PROTOCOL.md: Schemas, and the rows that a receiver refuses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import isqrt

from decoder.values import Reader, check_value, limited, refuse, utf8

SCHEMA_BYTES_MAX = 8192
STATE_KEY_BYTES_MAX = 64
STATE_VALUE_BYTES_MAX = 16384
HINTS_BYTES_MAX = 1201
COMPONENTS_MAX = 32
FIELDS_MAX = 32
LANES_MAX = 64
CHOICES_MAX = 256
ANGLE_STEPS_MAX = 4194304
UNIT_VECTOR_BITS = range(4, 17)
ROTATION_BITS = range(4, 13)


def nearest(x: float) -> int:
    """To the nearest integer, halves away from 0."""
    whole = math.floor(abs(x))
    return int(math.copysign(1, x)) * (whole + (abs(x) - whole >= 0.5))


@dataclass
class Range:
    """The numbers of a field: `span` is its whole steps."""

    low: float
    step: float
    span: int

    @staticmethod
    def read(r: Reader) -> Range:
        low, high, step = r.f64(), r.f64(), r.f64()
        if not -1e15 <= low < high <= 1e15 or step < 1e-15 or (high - low) / step < 0.5:
            refuse("no range")
        steps = (high - low) / step + 1 / 1024
        if not 1 <= steps < 2**31 or max(abs(low), abs(high)) / step > 2**44:
            refuse("a range has too few or too many steps")
        return Range(low, step, math.floor(steps))


@dataclass
class Group:
    """Lanes of a component, or its blob, that are coded together."""

    shape: str
    family: str = ""
    lanes: list[int] = field(default_factory=list)
    span: int = 0
    cyclic: bool = False
    velocity: tuple[list[int], Range, Range] | None = None
    """The lanes of a body's velocity, and the ranges of position and velocity."""
    blob: int = 0
    bytes_max: int = 0
    blob_kind: str = ""


@dataclass
class Component:
    """Spans of the lanes, and the groups in the order in which they are coded."""

    spans: list[int] = field(default_factory=list)
    blobs: int = 0
    groups: list[Group] = field(default_factory=list)
    unit_vectors: list[int] = field(default_factory=list)
    """The first lane of each direction."""

    def add(self, *spans: int) -> list[int]:
        self.spans += spans
        return list(range(len(self.spans) - len(spans), len(self.spans)))

    def numbers(self, family: str, lanes: list[int], **more: object) -> None:
        self.groups.append(Group("numbers", family, lanes, self.spans[lanes[0]], **more))  # type: ignore[arg-type]

    def rotation(self, lanes: list[int]) -> None:
        self.groups.append(Group("rotation", "turn", lanes, self.spans[lanes[1]]))

    def blob(self, kind: str, bytes_max: int) -> None:
        if not 1 <= bytes_max <= STATE_VALUE_BYTES_MAX:
            refuse(f"a blob of at most {bytes_max} bytes")
        self.groups.append(Group("blob", blob=self.blobs, bytes_max=bytes_max, blob_kind=kind))
        self.blobs += 1


@dataclass
class Schema:
    components: list[Component]
    tick_hz: int


def read_schema(data: bytes, tick_hz: int) -> Schema:
    r = Reader(data)
    if len(data) > SCHEMA_BYTES_MAX:
        refuse("a schema is too large")
    flags = r.fixed(1)
    if flags > 1:
        refuse(f"a schema has the flags {flags}")
    key, ack = Component(), Component()
    key.blob("text", STATE_KEY_BYTES_MAX)
    key.blob("bytes", HINTS_BYTES_MAX)
    key.blob("value", STATE_VALUE_BYTES_MAX)
    for span in (2**31 - 1, 1_000, 255):
        ack.numbers("rate", ack.add(span))
    components = [key, ack] if flags else []
    names = {"keyed.key", "input.ack"} if flags else set[str]()
    placed: list[list[int]] = [[] for _ in components]
    for _ in range(limited(r.varint(), range(COMPONENTS_MAX + 1), "components")):
        fresh(names, r.text(1))
        component, kinds = read_component(r)
        components.append(component)
        placed.append(kinds)
    if limited(r.fixed(1), range(2), "option"):
        at, number = r.varint(), r.varint()
        if at >= len(placed) or number >= len(placed[at]) or placed[at][number] not in (4, 7, 8):
            refuse("the field of interest has no position")
        if not 0 < r.f64() <= r.f64() <= 1e15:
            refuse("no radius of interest")
    r.end()
    return Schema(components, tick_hz)


def fresh(names: set[str], name: str) -> None:
    if name in names:
        refuse(f"two have the name {name!r}")
    names.add(name)


def read_component(r: Reader) -> tuple[Component, list[int]]:
    component, kinds, names = Component(), list[int](), set[str]()
    limited(r.varint(), range(1, 65536), "priority")
    limited(r.fixed(1), range(3), "condition")
    for _ in range(limited(r.varint(), range(1, FIELDS_MAX + 1), "count of fields")):
        fresh(names, r.text(1))
        before = len(component.spans)
        kind = limited(r.fixed(1), range(13), "kind")
        read_field(r, kind, component)
        kinds.append(kind)
        ways = [1, 2, 2, 2, 2, 3, 3, 3, 4, 1, 1, 1, 1][kind]
        way = r.fixed(1)
        limited(way & 0x7F, range(ways), "interpolation")
        rotation = {6: 0, 7: 3, 8: 3}.get(kind, -1)
        spans = [span for i, span in enumerate(component.spans[before:]) if i != rotation]
        still = kind in (0, 9, 10, 11, 12)
        limited(r.varint(), range(1 if still else max(min(spans), 1)), "threshold")
        if way & 0x80:
            limited(r.varint(), range(1, 65536), "priority")
    if len(component.spans) > LANES_MAX:
        refuse("a component has too many lanes")
    return component, kinds


def read_field(r: Reader, kind: int, c: Component) -> None:
    if kind == 0:
        c.groups.append(Group("flag", lanes=c.add(1), span=1))
    elif kind == 1:
        low, span = r.fixed(8, signed=True), limited(r.varint(), range(1, 2**31), "span")
        if low < -(2**53) or low + span > 2**53:
            refuse("an int is out of bounds")
        c.numbers("rate", c.add(span))
    elif kind in (2, 4):
        count = limited(r.fixed(1), range(2, 4), "count of parts") if kind == 4 else 1
        c.numbers("motion", c.add(*[Range.read(r).span] * count))
    elif kind == 3:
        steps = limited(r.varint(), range(2, ANGLE_STEPS_MAX + 1), "count of steps")
        c.numbers("motion", c.add(steps - 1), cyclic=True)
    elif kind == 5:
        span = 2 * half_of(r, UNIT_VECTOR_BITS)
        lanes = c.add(span, span)
        c.unit_vectors.append(lanes[0])
        c.numbers("rate", lanes)
    elif kind == 6:
        span = 2 * half_of(r, ROTATION_BITS)
        c.rotation(c.add(3, span, span, span))
    elif kind in (7, 8):
        position = Range.read(r)
        span = 2 * half_of(r, ROTATION_BITS)
        lanes = c.add(*[position.span] * 3, 3, span, span, span)
        if kind == 7:
            c.numbers("motion", lanes[:3])
        else:
            velocity, spin = Range.read(r), Range.read(r)
            lanes += c.add(*[velocity.span] * 3, *[spin.span] * 3)
            c.numbers("rate", lanes[7:10])
            c.numbers("motion", lanes[:3], velocity=(lanes[7:10], position, velocity))
            c.numbers("rate", lanes[10:])
        c.rotation(lanes[3:7])
    elif kind == 9:
        names = set[str]()
        count = limited(r.varint(), range(1, CHOICES_MAX + 1), "count of names")
        for _ in range(count):
            fresh(names, r.text(1))
        c.groups.append(Group("choice", lanes=c.add(count - 1), span=count - 1))
    else:
        c.blob({10: "text", 11: "bytes", 12: "value"}[kind], r.varint())


def half_of(r: Reader, allowed: range) -> int:
    return (1 << (limited(r.fixed(1), allowed, "count of bits") - 1)) - 1


@dataclass
class State:
    """A component of a row."""

    lanes: list[int]
    blobs: list[bytes]


def check_state(component: Component, state: State) -> None:
    """Refuses what is in bounds but not in its one form."""
    for first in component.unit_vectors:
        m = component.spans[first] // 2
        u, v = (state.lanes[first + i] - m for i in range(2))
        if (abs(v) == m and u < 0) or (abs(u) == m and v < 0):
            refuse("a direction is not in its one form")
    for group in component.groups:
        if group.shape == "rotation":
            left, *lanes = (state.lanes[i] for i in group.lanes)
            parts = [lane - group.span // 2 for lane in lanes]
            rest = 2 * (group.span // 2) ** 2 - sum(part**2 for part in parts)
            root = (isqrt(4 * max(rest, 0)) + 1) // 2
            if rest < 0 or any(abs(part) >= root + (i >= left) for i, part in enumerate(parts)):
                refuse("a rotation is not in its one form")
        elif group.blob_kind == "text":
            utf8(state.blobs[group.blob])
        elif group.blob_kind == "value":
            r = Reader(state.blobs[group.blob])
            check_value(r)
            r.end()
