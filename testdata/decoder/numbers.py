"""PROTOCOL.md: Bodies, numbers and rotations."""

from __future__ import annotations

from collections.abc import Iterable
from math import isqrt

from decoder.coder import Bit, Choice, Decoder
from decoder.values import refuse

Rows = list[list[int]]
"""The lanes of a group in each of the pasts, the first of them first."""


class Learned:
    """How well predictions did in this packet, for a group of numbers or a rotation."""

    def __init__(self) -> None:
        self.mean = [[128] * 3, [48] * 3, [4096] * 3]
        self.seen = [0, 0, 0]
        self.errors = [4096, 3072, 3072, 3072]
        self.groups = 0


def ratio(a: int, b: int) -> int:
    """65,536 a / b, to the nearest, halves up."""
    return (131072 * a + b) // (2 * b)


def foretell(rows: Rows, ages: list[int], low: int, high: int, velocity: list[int] | None) -> dict[int, list[int]]:
    """The predictions that there are, by their number: linear, quadratic, between, by velocity."""

    def ahead(parts: Iterable[int]) -> list[int]:
        return [min(max(x + (part + 32768 >> 16), low), high) for x, part in zip(rows[0], parts)]

    found: dict[int, list[int]] = {}
    recent = [age for age in ages if age <= 128]
    if len(recent) >= 2:
        a, b = recent[:2]
        line = -ratio(a, b - a)
        found[0] = ahead((y - x) * line for x, y in zip(rows[0], rows[1]))
    if len(recent) >= 3:
        c = recent[2]
        near, further = -ratio(a * c, (b - a) * (c - b)), ratio(a * b, (c - a) * (c - b))
        for number, p, q in [(1, near, further), (2, line + near >> 1, further >> 1)]:
            found[number] = ahead((y - x) * p + (z - x) * q for x, y, z in zip(*rows))
    if velocity and recent:
        found[3] = ahead(v * recent[0] for v in velocity)
    return found


def far(a: list[int], b: list[int]) -> int:
    return sum(abs(x - y) for x, y in zip(a, b))


def half_octaves(x: int) -> int:
    x |= 1
    log = x.bit_length() - 1
    return 2 * log + (x << 1 >> log & 1)


class Numbers:
    """Decodes a group of numbers or a rotation, for one component in one packet."""

    def __init__(self, code: Decoder, sizes: list[Choice], models: list[Bit]) -> None:
        self.code, self.sizes, self.models, self.learned = code, sizes, models, Learned()

    def decode(
        self, rows: Rows, ages: list[int], low: int, high: int, velocity: list[int] | None = None, steps: int = 0
    ) -> list[int]:
        learned, held = self.learned, rows[0]
        found = foretell(rows, ages, low, high, velocity)
        moved, base = self.choose(found, held)
        way = moved if ages else 2
        seen = learned.seen[way]
        shift = 1 if seen < 2 else 2 if seen < 4 else 3 if seen < 8 else 4 if seen < 16 else 5
        learned.seen[way] = min(seen + 1, 31)
        values, lean = list[int](), 0
        for j in range(len(held)):
            mean = learned.mean[way][j]
            expected = max(half_octaves(mean) + lean, 0)
            away = self.distance(16 * moved, expected)
            if base[j] < held[j]:
                away = -away
            if abs(away) >= 2**31 or (steps and not -steps < 2 * away <= steps):
                refuse(f"{away} is too far away")
            values.append(base[j] + away)
            size = min(abs(away), 2**26) << 4
            learned.mean[way][j] += size - mean >> shift
            lean = half_octaves(size + 8) - half_octaves(mean)
            lean = min(lean // 3, 3) if lean >= 0 else max(-(-lean // 3), -2)
        if learned.groups < 8 or learned.groups % 8 == 0:
            for i, prediction in found.items():
                error = min(far(values, prediction), 4096) << 8
                learned.errors[i] += error - learned.errors[i] >> 4
        learned.groups = 8 if learned.groups == 255 else learned.groups + 1
        return [value % steps for value in values] if steps else values

    def choose(self, found: dict[int, list[int]], held: list[int]) -> tuple[int, list[int]]:
        """Whether a prediction that moves is taken, and what is predicted."""
        if not found:
            return 0, held
        best = found[min(found, key=lambda i: self.learned.errors[i])]
        reach = far(best, held)
        if reach == 0:
            return 0, held
        moved = self.code.bit(self.models[0 if reach < 2 else 1 if reach < 4 else 2 if reach < 16 else 3])
        return moved, best if moved else held

    def distance(self, first: int, expected: int) -> int:
        """How far a number is from its prediction; positive is onwards."""
        noise = 0 if expected < 14 else min((expected - 12) // 2, 20)
        symbol = self.code.symbol(self.sizes[first + (expected if expected < 14 else 14 + expected % 2)])
        if symbol == 15:
            down, length = self.code.plain(1), self.code.plain(5)
            size = 64 + (1 << length | self.code.plain(length))
            low = self.code.plain(noise)
        else:
            extra = [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5][symbol]
            read = self.code.plain(extra + noise)
            down, low = symbol & 1, read & (1 << noise) - 1
            size = [0, 1, 1, 2, 2, 3, 3, 5, 5, 9, 9, 17, 17, 33, 33][symbol] + (read >> noise)
        return ((-size if down else size) << noise) + low - (1 << noise >> 1)

    def rotation(self, rows: Rows, ages: list[int], span: int) -> list[int]:
        """Four lanes: which part is left out, and the others."""
        half = span // 2
        was, parts = rows[0][0], [part - half for part in rows[0][1:]]
        rest = 2 * half**2 - sum(part**2 for part in parts)
        sizes = [abs(part) for part in parts]
        largest = max(sizes)
        near = next((i for i, d in enumerate([32, 8, 2]) if rest < (largest + half // d) ** 2), 3)
        now = was
        if not self.code.bit(self.models[4 + near]):
            others = [i for i in range(4) if i != was]
            now = others.pop(sizes.index(largest))
            if not self.code.bit(self.models[8]):
                now = others[self.code.bit(self.models[9])]
        turned = [leaving_out(now, row, half) for row in rows]
        turned[0] = [min(max(part, 0), span) for part in turned[0]]
        return [now] + self.decode(turned, ages, 0, span)


def leaving_out(now: int, row: list[int], half: int) -> list[int]:
    """The lanes of a rotation, turned so that the part `now` is left out."""
    if row[0] == now:
        return row[1:]
    parts = [part - half for part in row[1:]]
    rest = max(2 * half**2 - sum(part**2 for part in parts), 0)
    parts.insert(row[0], (isqrt(4 * rest) + 1) // 2)
    left = parts.pop(now)
    return [half - part if left < 0 else half + part for part in parts]
