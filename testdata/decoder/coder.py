"""PROTOCOL.md: Bodies, the range coder and the models that it decides by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from decoder.values import refuse

Bit = list[int]
"""A decision model, [p, n]."""


@dataclass
class Choice:
    """A choice model of sixteen."""

    weights: list[int]
    count: int = 0


class Decoder:
    """The binary range coder."""

    def __init__(self, body: bytes) -> None:
        self.body, self.at, self.range = body, 8, 2**64 - 1
        self.code = self.word(0, 8)

    def word(self, at: int, size: int) -> int:
        return int.from_bytes(self.body[at : at + size].ljust(size, b"\0"), "big")

    def settle(self) -> None:
        if self.range < 2**32:
            self.code = self.code << 32 | self.word(self.at, 4)
            self.range <<= 32
            self.at += 4
        if self.code >= self.range or self.at > len(self.body) + 8:
            refuse("no encoder wrote this")

    def bit(self, model: Bit) -> int:
        p, n = model
        bound = (self.range >> 16) * p
        bit = int(self.code < bound)
        if bit:
            self.range = bound
        else:
            self.code -= bound
            self.range -= bound
        p += (65536 * bit - p) * (65536 // (2 * n + 3)) >> 15
        model[:] = min(max(p, 32), 65504), min(n + 1, 160)
        self.settle()
        return bit

    def symbol(self, model: Choice) -> int:
        weights, n = model.weights, model.count
        unit = self.range >> 15
        value = self.code // unit
        if value >= 32768:
            refuse("between two numbers")
        edges = [w + 16 * i for i, w in enumerate(weights)] + [32768]
        symbol = max(i for i in range(16) if edges[i] <= value)
        self.code -= unit * edges[symbol]
        self.range = unit * (edges[symbol + 1] - edges[symbol])
        shift = 2 if n < 4 else 3 if n < 10 else 4 if n < 24 else 5 if n < 60 else 6
        for i in range(1, 16):
            weights[i] += (32512 * (i > symbol) - weights[i]) >> shift
        model.count = min(n + 1, 120)
        self.settle()
        return symbol

    def plain(self, count: int) -> int:
        if count == 0:
            return 0
        if count > 16:
            high = self.plain(count - 16)
            return high << 16 | self.plain(16)
        self.range >>= count
        value = self.code // self.range
        if value >= 1 << count:
            refuse("between two numbers")
        self.code -= value * self.range
        self.settle()
        return value

    def number(self, models: list[Bit]) -> int:
        c = 0
        while c < 31 and self.bit(models[c]):
            c += 1
        if c == 0:
            return 0
        second = self.bit(models[32 + c])
        return ((2 | second) << (c - 1) | self.plain(c - 1)) - 1

    def tree(self, models: list[Bit], bits: int) -> int:
        node = 1
        for _ in range(bits):
            node = node << 1 | self.bit(models[node])
        return node - (1 << bits)

    def finish(self) -> None:
        low = (self.word(self.at - 8, 8) - self.code) % 2**64
        length, over = next((k, o) for k in range(9) if (o := -low % 2 ** (64 - 8 * k)) < self.range)
        if self.code != over or len(self.body) != self.at - 8 + length:
            refuse("it does not end as an encoder ends it")


DECISIONS = {
    "head.next": 2,
    "head.same": 2,
    "head.kind": 2,
    "head.ages_same": 2,
    "head.history": 3,
    "head.mask": 1,
    "head.meta": 1,
    "head.meta_parts": 3,
    "head.changed_same": 1,
    "head.in_mask": 64,
    "head.changed": 64,
    "head.gap": 64,
    "head.row_age": 64,
    "head.age": 64,
    "head.age_step": 64,
    "flag": 2,
    "choice": 257,
    "numbers": 4,
    "rotation": 10,
    "blob.same": 1,
    "blob.same_byte": 8,
    "blob.prefix": 64,
    "blob.suffix": 64,
    "blob.middle": 64,
    "blob.byte": 256,
}
CHOICES = {"motion.size": 32, "rate.size": 32, "turn.size": 32}


class Models:
    """The models that a body begins with, and copies of them that learn."""

    def __init__(self, priors: Path) -> None:
        self.bits = {name: [[32768, 0] for _ in range(count)] for name, count in DECISIONS.items()}
        self.choices = {name: [Choice([])] * count for name, count in CHOICES.items()}
        for line in priors.read_text().splitlines():
            name, *rest = line.split()
            if name == "#":
                continue
            at, *numbers = map(int, rest)
            if name in self.bits:
                p, n = numbers
                self.bits[name][at] = [p, n]
            else:
                n, *weights = numbers
                self.choices[name][at] = Choice([0, *weights], n)
        if any(len(choice.weights) != 16 for of in self.choices.values() for choice in of):
            raise ValueError(f"{priors} lacks a choice")

    def of(self, prefix: str) -> dict[str, list[Bit]]:
        """Fresh copies of the decisions of this name or whose names begin so."""
        found = [name for name in self.bits if name == prefix or name.startswith(prefix + ".")]
        return {name: [[p, n] for p, n in self.bits[name]] for name in found}

    def family(self, name: str) -> list[Choice]:
        """Fresh copies of its choices."""
        return [Choice(list(choice.weights), choice.count) for choice in self.choices[name + ".size"]]
