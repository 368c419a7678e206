"""PROTOCOL.md: Values, and the encoded values of keyed state."""

from __future__ import annotations

import math
import struct
import sys
from typing import NoReturn

LABEL_BYTES_MAX = 64
VALUE_DEPTH_MAX = 32


class Refused(Exception):
    """What is read is against the protocol."""


def refuse(why: str) -> NoReturn:
    raise Refused(why)


class Reader:
    """The bytes of a message, from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            refuse(f"{count} bytes are wanted at {self.at} of {len(self.data)}")
        self.at += count
        return self.data[self.at - count : self.at]

    def fixed(self, count: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(count), "little", signed=signed)

    def varint(self) -> int:
        first = self.fixed(1)
        width = 1 << (first >> 6)
        value = int.from_bytes(bytes([first & 0x3F]) + self.take(width - 1), "big")
        if width > 1 and value < 1 << (4 * width - 2):
            refuse("a varint is longer than it has to be")
        return value

    def text(self, least: int = 0, most: int = LABEL_BYTES_MAX) -> str:
        length = self.varint()
        if not least <= length <= most:
            refuse(f"a text has {length} bytes")
        return utf8(self.take(length))

    def f64(self) -> float:
        (value,) = struct.unpack("<d", self.take(8))
        if not math.isfinite(value) or 0 < abs(value) < sys.float_info.min or is_minus_zero(value):
            refuse(f"{value} is not a number that a schema has")
        return float(value)

    def end(self) -> None:
        if self.at != len(self.data):
            refuse(f"{len(self.data) - self.at} bytes are left over")


def limited(value: int, allowed: range, what: str) -> int:
    if value not in allowed:
        refuse(f"{value} is no {what}")
    return value


def utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        refuse(f"no UTF-8: {error}")


def is_minus_zero(value: float) -> bool:
    return value == 0 and math.copysign(1, value) < 0


def check_value(r: Reader, depth: int = 0) -> None:
    """Reads an encoded value, which stands in `depth` lists and maps, and refuses what is not its one form."""
    tag = r.fixed(1)
    is_list_or_map = 0x80 <= tag <= 0x9F or tag in (0xCB, 0xCC)
    if is_list_or_map and depth == VALUE_DEPTH_MAX:
        refuse("a value is nested too deep")
    if tag <= 0x7F or tag >= 0xE0 or tag in (0xC0, 0xC1, 0xC2):
        return
    if tag <= 0x8F:
        check_map(r, tag - 0x80, depth)
    elif tag <= 0x9F or tag == 0xCB:
        count = tag - 0x90 if tag <= 0x9F else at_least(16, r.varint())
        for _ in range(count):
            check_value(r, depth + 1)
    elif tag <= 0xBF or tag == 0xC9:
        utf8(r.take(tag - 0xA0 if tag <= 0xBF else at_least(32, r.varint())))
    elif 0xC3 <= tag <= 0xC6:
        width = 1 << (tag - 0xC3)
        value = r.fixed(width, signed=True)
        shorter = range(-32, 128) if width == 1 else range(-1 << (4 * width - 1), 1 << (4 * width - 1))
        if value in shorter:
            refuse("an integer is longer than it has to be")
    elif tag in (0xC7, 0xC8):
        (number,) = struct.unpack("<f", r.take(4)) if tag == 0xC7 else struct.unpack("<d", r.take(8))
        if not math.isfinite(number) or is_minus_zero(number) or (tag == 0xC8 and is_f32(number)):
            refuse(f"the float {number} is not in its one form")
    elif tag == 0xCA:
        r.take(r.varint())
    elif tag == 0xCC:
        check_map(r, at_least(16, r.varint()), depth)
    else:
        refuse(f"no value begins with {tag:#04x}")


def check_map(r: Reader, count: int, depth: int) -> None:
    before = None
    for _ in range(count):
        name = r.text(most=len(r.data)).encode()
        if before is not None and name <= before:
            refuse("names of a map do not ascend")
        before = name
        check_value(r, depth + 1)


def at_least(least: int, count: int) -> int:
    if count < least:
        refuse(f"{count} has a shorter form")
    return count


def is_f32(number: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", number))[0] == number)
    except OverflowError:
        return False
