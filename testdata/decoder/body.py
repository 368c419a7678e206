"""PROTOCOL.md: Bodies, heads and components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from decoder.coder import Bit, Decoder, Models
from decoder.numbers import Numbers
from decoder.schema import Component, Group, Schema, State, nearest
from decoder.values import refuse

ENTITIES_MAX = 16384
ADDRESSEES_MAX = 256


@dataclass
class Entry:
    """The head of an entry: who, and in terms of what."""

    slot: int
    kind: str = "update"
    row_age: int = 0
    generation: int | None = None
    ages: list[int] = field(default_factory=list)
    changed: int = 0
    mask: int | None = None
    meta: Meta | None = None


@dataclass
class Meta:
    """Who owns an entity, and to whom it is told; no audience is everybody."""

    owner: int | None = None
    room: int = 0
    audience: list[int] | None = None


class Heads:
    """Decodes heads, each in terms of the one before."""

    def __init__(self, code: Decoder, models: dict[str, list[Bit]], everything: bool, components: int) -> None:
        self.code, self.m, self.everything, self.components = code, models, everything, components
        self.slot, self.is_again, self.was_next, self.was_same = 0, False, 1, 1
        self.row_age, self.ages, self.changed = 0, list[int](), 0

    def next(self) -> Entry | None:
        self.was_next = self.code.bit(self.m["head.next"][self.was_next])
        if not self.was_next:
            gap = self.code.number(self.m["head.gap"])
            if gap == 0:
                self.code.finish()
                return None
            self.slot += gap
        if self.slot >= ENTITIES_MAX and not self.is_again:
            self.slot, self.is_again = self.slot - ENTITIES_MAX, True
        entry = Entry(self.slot)
        if self.slot >= ENTITIES_MAX:
            refuse("no such slot")
        self.slot += 1
        self.was_same = self.code.bit(self.m["head.same"][self.was_same])
        if not self.was_same:
            self.rest(entry)
        entry.row_age, entry.ages, entry.changed = self.row_age, self.ages, self.changed
        return entry

    def rest(self, entry: Entry) -> None:
        code, m = self.code, self.m
        if not code.bit(m["head.kind"][0]):
            entry.kind = "spawn" if code.bit(m["head.kind"][1]) else "despawn"
        if not code.bit(m["head.ages_same"][0]):
            self.row_age = code.number(m["head.row_age"])
        if entry.kind == "despawn":
            self.ages, self.changed = [], 0
            return
        spawns = entry.kind == "spawn"
        if spawns:
            entry.generation, self.ages = code.plain(16), []
        elif not code.bit(m["head.ages_same"][1]):
            self.ages = self.history()
        if spawns or code.bit(m["head.mask"][0]):
            entry.mask = self.mask("head.in_mask")
        if spawns or code.bit(m["head.meta"][0]):
            entry.meta = self.meta()
        if entry.mask is not None and spawns:
            self.changed = entry.mask
        elif not code.bit(m["head.changed_same"][0]):
            self.changed = self.mask("head.changed")

    def history(self) -> list[int]:
        high = self.code.bit(self.m["head.history"][0])
        count = 2 * high + self.code.bit(self.m["head.history"][1 + high])
        ages, age = [], 0
        for i in range(count):
            age += 1 + self.code.number(self.m["head.age_step" if i else "head.age"])
            ages.append(age)
        return ages

    def mask(self, models: str) -> int:
        return sum(self.code.bit(self.m[models][i]) << i for i in range(self.components))

    def meta(self) -> Meta:
        code, parts = self.code, self.m["head.meta_parts"]
        meta = Meta(code.plain(32) if code.bit(parts[0]) else None)
        if self.everything:
            meta.room = code.plain(32) if code.bit(parts[1]) else 0
            if code.bit(parts[2]):
                meta.audience = [code.plain(32) for _ in range(code.plain(16))]
                pairs = zip(meta.audience, meta.audience[1:])
                if len(meta.audience) > ADDRESSEES_MAX or any(a >= b for a, b in pairs):
                    refuse("no audience")
        return meta


@dataclass
class Past:
    """A component of an older row, and how many ticks older it is."""

    age: int
    state: State


class ComponentDecoder:
    """What a packet knows about one component of the schema."""

    def __init__(self, code: Decoder, models: Models, component: Component, tick_hz: int) -> None:
        self.code, self.component, self.tick_hz = code, component, tick_hz
        families = {name: models.family(name) for name in {group.family for group in component.groups if group.family}}
        self.models = [models.of(group.shape) for group in component.groups]
        self.numbers = {
            i: Numbers(code, families[group.family], self.models[i][group.shape])
            for i, group in enumerate(component.groups)
            if group.family
        }
        self.last = State([0] * len(component.spans), [b""] * component.blobs)

    def decode(self, pasts: Sequence[Past]) -> State:
        ages = [past.age for past in pasts]
        rows = [past.state for past in pasts] or [self.last]
        state = State([0] * len(self.component.spans), [b""] * self.component.blobs)
        for i, group in enumerate(self.component.groups):
            if group.shape == "blob":
                state.blobs[group.blob] = self.blob(self.models[i], rows[0].blobs[group.blob], group.bytes_max)
                continue
            velocity = self.velocity(group, rows[0], state) if ages else None
            lanes = self.lanes(i, [[row.lanes[lane] for lane in group.lanes] for row in rows], ages, velocity)
            for lane, value in zip(group.lanes, lanes):
                if not 0 <= value <= self.component.spans[lane]:
                    refuse(f"lane {lane} is {value}, beyond its span of {self.component.spans[lane]}")
                state.lanes[lane] = value
        self.last = state
        return state

    def velocity(self, group: Group, held: State, state: State) -> list[int] | None:
        """In 1/65,536 steps of the position per tick."""
        if group.velocity is None:
            return None
        lanes, position, velocity = group.velocity
        offset = nearest(velocity.low / position.step * 65536 / self.tick_hz)
        scale = nearest(velocity.step / position.step * 65536 / self.tick_hz)
        offset = min(max(offset, -(2**54)), 2**54)
        scale = min(scale, 2**54 // velocity.span)
        return [offset + (scale * (held.lanes[lane] + state.lanes[lane]) >> 1) for lane in lanes]

    def lanes(self, i: int, rows: list[list[int]], ages: list[int], velocity: list[int] | None) -> list[int]:
        group, was = self.component.groups[i], rows[0][0]
        if group.shape == "flag":
            return [self.code.bit(self.models[i]["flag"][was != 0])]
        if group.shape == "choice":
            models = self.models[i]["choice"]
            if not self.code.bit(models[0]):
                return [was]
            now = self.code.tree(models, group.span.bit_length())
            if now == was:
                refuse("a choice is another one, and the same")
            return [now]
        if group.shape == "rotation":
            return self.numbers[i].rotation(rows, ages, group.span)
        if group.cyclic:
            steps = group.span + 1
            rows = rows[:1] + [[unwound(x, was, steps) for x in row] for row in rows[1:]]
            return self.numbers[i].decode(rows, ages, -(2**28), 2**28, steps=steps)
        return self.numbers[i].decode(rows, ages, 0, group.span, velocity)

    def blob(self, m: dict[str, list[Bit]], base: bytes, bytes_max: int) -> bytes:
        if self.code.bit(m["blob.same"][0]):
            return base
        prefix, suffix, middle = (self.code.number(m["blob." + part]) for part in ("prefix", "suffix", "middle"))
        if prefix + suffix > len(base) or prefix + suffix + middle > bytes_max:
            refuse("no such blob")
        old, out, run = base[prefix : len(base) - suffix], bytearray(), 0
        for i in range(middle):
            if len(old) == middle:
                if self.code.bit(m["blob.same_byte"][min((run + 1).bit_length() - 1, 7)]):
                    run += 1
                    out.append(old[i])
                    continue
                run = 0
            byte = self.code.tree(m["blob.byte"], 8)
            if len(old) == middle and byte == old[i]:
                refuse("a byte is another one, and the same")
            out.append(byte)
        blob = base[:prefix] + bytes(out) + base[len(base) - suffix :]
        if blob == base or (prefix, suffix) != kept(base, blob):
            refuse("a blob keeps less than it could")
        return blob


def kept(base: bytes, blob: bytes) -> tuple[int, int]:
    """How many bytes of both are the same at the beginning, and how many of the others at the end."""
    shorter = min(len(base), len(blob))
    prefix = next((i for i in range(shorter) if base[i] != blob[i]), shorter)
    rest = shorter - prefix
    return prefix, next((i for i in range(rest) if base[-1 - i] != blob[-1 - i]), rest)


def unwound(x: int, held: int, steps: int) -> int:
    ahead = (x - held) % steps
    return held + ahead - steps * (ahead > steps // 2)


class Body:
    """The entries of a body: a head, and then each component that it says has changed, by ascending number."""

    def __init__(self, body: bytes, schema: Schema, models: Models, everything: bool) -> None:
        self.code, self.schema, self.models = Decoder(body), schema, models
        self.heads = Heads(self.code, models.of("head"), everything, len(schema.components))
        self.decoders: dict[int, ComponentDecoder] = {}

    def head(self) -> Entry | None:
        return self.heads.next()

    def component(self, number: int, pasts: Sequence[Past]) -> State:
        if number not in self.decoders:
            component = self.schema.components[number]
            self.decoders[number] = ComponentDecoder(self.code, self.models, component, self.schema.tick_hz)
        return self.decoders[number].decode(pasts)


def bits_of(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
