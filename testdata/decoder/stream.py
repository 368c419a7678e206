"""PROTOCOL.md: Packets of a stream, and who takes them in."""

from __future__ import annotations

from dataclasses import dataclass, field

from decoder.body import Body, Entry, Meta, Past, bits_of
from decoder.coder import Models
from decoder.schema import Schema, State, check_state
from decoder.values import Reader, limited, refuse

MESSAGE_BYTES_MAX = 65536
BASELINE_AGE_MAX = 64
HISTORY_TICKS = 128
NUMBER_WINDOW = 256
FIRST = 2**32
PACKET_ENTRIES_MAX = 1024
PACKET_OUTPUT_BYTES_MAX = 131072
PACKET_PART_BYTES = 32


@dataclass
class Row:
    """What an entity is at a tick."""

    meta: Meta
    states: dict[int, State]


@dataclass
class Slot:
    """What a receiver knows of a slot: rows by their labels, and what is shown."""

    generation: int = 0
    life: int = -1
    rows: dict[int, Row] = field(default_factory=dict)
    shown: Row | None = None
    stale: bool = False


class Packet:
    """A packet of a stream, before its body is read; `highest` is the highest number that came."""

    def __init__(self, data: bytes, highest: int) -> None:
        if len(data) > MESSAGE_BYTES_MAX:
            refuse("a packet is too large")
        r = Reader(data)
        flags = limited(r.fixed(1), range(8), "flags of a packet")
        self.last, self.transfer, complete = (bool(flags >> i & 1) for i in range(3))
        low = r.fixed(2)
        around = highest - 32768
        self.number = around + (low - around) % 65536
        gap = limited(r.varint(), range(2**30), "gap of the floor")
        self.floor = self.number - gap
        self.epoch = self.number - limited(r.varint(), range(gap, 2**30), "gap of the epoch") if complete else None
        self.tick = r.fixed(4)
        self.body = data[r.at :]


class Receiver:
    """Takes the packets of a stream in and holds what they say."""

    def __init__(self, schema: Schema, models: Models, everything: bool) -> None:
        self.schema, self.models, self.everything = schema, models, everything
        self.highest, self.came = FIRST, set[int]()
        self.epoch: int | None = None
        self.tick = 0
        self.slots: dict[int, Slot] = {}
        self.last: Packet | None = None

    def packet(self, data: bytes) -> Packet:
        return Packet(data, self.highest)

    def take(self, packet: Packet) -> str:
        """What becomes of a packet, in the words of the vectors."""
        if packet.epoch is not None and (self.epoch is None or packet.epoch > self.epoch):
            self.begin(packet.epoch, packet.tick)
        if self.epoch is None:
            return "waiting"
        n = packet.number
        if n < self.epoch or n in self.came or (self.came and n <= self.highest - NUMBER_WINDOW):
            return "old"
        if packet.tick < self.tick - BASELINE_AGE_MAX:
            return "old"
        self.tick = max(self.tick, packet.tick)
        self.entries(packet)
        self.highest = max(self.highest, n) if self.came else n
        self.came = {number for number in self.came | {n} if number > self.highest - NUMBER_WINDOW}
        if packet.last and (self.last is None or n > self.last.number):
            self.last = packet
        settled = self.settled()
        for slot in self.slots.values():
            self.forget(slot)
            if settled and slot.stale:
                slot.shown, slot.stale = None, False
        return f"taken tick {packet.tick} settled {settled:d} transfer {packet.transfer:d}"

    def begin(self, epoch: int, tick: int) -> None:
        self.epoch, self.tick, self.last = epoch, tick, None
        self.came.clear()
        for slot in self.slots.values():
            slot.rows.clear()
            slot.life, slot.stale = -1, slot.shown is not None

    def settled(self) -> bool:
        last = self.last
        if last is None or last.number != self.highest:
            return False
        return all(number in self.came for number in range(last.floor, last.number))

    def forget(self, slot: Slot) -> None:
        old = sorted(label for label in slot.rows if label < self.tick - HISTORY_TICKS)
        for label in old[:-1]:
            del slot.rows[label]

    def entries(self, packet: Packet) -> None:
        body = Body(packet.body, self.schema, self.models, self.everything)
        count = output_bytes = 0
        while entry := body.head():
            named, states = self.named(packet, entry), dict[int, State]()
            for number in bits_of(entry.changed):
                have = zip(entry.ages, named)
                pasts = [Past(age, row.states[number]) for age, row in have if number in row.states]
                states[number] = state = body.component(number, pasts)
                check_state(self.schema.components[number], state)
                output_bytes += PACKET_PART_BYTES * (1 + len(state.blobs)) + 4 * len(state.lanes)
                output_bytes += sum(map(len, state.blobs))
            count += 1
            if count > PACKET_ENTRIES_MAX or output_bytes > PACKET_OUTPUT_BYTES_MAX:
                refuse("a packet brings too much")
            self.entry(packet, entry, named, states)

    def named(self, packet: Packet, entry: Entry) -> list[Row]:
        """The rows that an entry builds on."""
        slot, label = self.slots.get(entry.slot, Slot()), packet.tick - entry.row_age
        if label < 0 and entry.kind != "despawn":
            refuse("a row is older than the room")
        if any(label - age not in slot.rows for age in entry.ages):
            refuse(f"slot {entry.slot} lacks a row that is {entry.ages} ticks older than {label}")
        if entry.kind == "update" and not entry.ages:
            refuse("an update has no baseline")
        return [slot.rows[label - age] for age in entry.ages]

    def entry(self, packet: Packet, entry: Entry, named: list[Row], states: dict[int, State]) -> None:
        slot, n = self.slots.setdefault(entry.slot, Slot()), packet.number
        label = packet.tick - entry.row_age
        newer = n > slot.life
        if entry.kind == "despawn":
            if newer:
                slot.shown, slot.stale, slot.life = None, False, n
            return
        if entry.kind == "spawn":
            if slot.generation != entry.generation:
                if not newer:
                    return
                slot.rows.clear()
                slot.shown, slot.stale = None, False
            slot.generation = entry.generation or 0
            slot.life = max(slot.life, n)
        elif newer and slot.shown is None:
            refuse(f"slot {entry.slot} has no entity to update")
        row = build_row(entry, named, states)
        shows = newer and (slot.shown is None or all(label > other for other in slot.rows))
        slot.rows.setdefault(label, row)
        if shows:
            slot.shown, slot.stale = row, False


def build_row(entry: Entry, named: list[Row], states: dict[int, State]) -> Row:
    before = named[0] if named else Row(Meta(), {})
    mask = entry.mask if entry.mask is not None else sum(1 << number for number in before.states)
    if entry.changed & ~mask:
        refuse("a component that changed is not there")
    there = before.states | states
    if any(number not in there for number in bits_of(mask)):
        refuse("a component comes from nowhere")
    return Row(entry.meta or before.meta, {number: there[number] for number in bits_of(mask)})
