"""Where the values of a structure in Thrift's compact form are, as Parquet has them in footers and page headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.fuzz.mutate import EDGES, TEXTS

if TYPE_CHECKING:
    from random import Random

_BOOL, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, *range(3, 13)


class Spot(NamedTuple):
    """A piece of the bytes: a number, a text, the head of a list, or the head of a field."""

    what: str
    start: int
    end: int


class NotThrift(ValueError):
    """The bytes are no such structure."""


def spots(data: bytes, at: int = 0) -> tuple[list[Spot], int]:
    """Return the pieces of the structure at a position, and where it ends; raises NotThrift."""
    found: list[Spot] = []
    try:
        return found, _struct(data, at, found, 0)
    except IndexError:
        raise NotThrift from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 70:
            raise NotThrift


def _struct(data: bytes, at: int, found: list[Spot], depth: int) -> int:
    if depth > 30:
        raise NotThrift
    while data[at]:
        kind, start = data[at] & 15, at
        at = at + 1 if data[at] >> 4 else _varint(data, at + 1)[1]
        found.append(Spot("field", start, at))
        at = _value(data, at, kind, found, depth, inside=False)
    found.append(Spot("stop", at, at + 1))
    return at + 1


def _value(data: bytes, at: int, kind: int, found: list[Spot], depth: int, *, inside: bool) -> int:
    if kind in (_BOOL, _FALSE):
        return at + inside
    if kind in (_I16, _I32, _I64):
        end = _varint(data, at)[1]
        found.append(Spot("number", at, end))
        return end
    if kind in (_BYTE, _DOUBLE):
        return at + (1 if kind == _BYTE else 8)
    if kind == _BINARY:
        size, start = _varint(data, at)
        if start + size > len(data):
            raise NotThrift
        found += [Spot("size", at, start), Spot("text", start, start + size)]
        return start + size
    if kind in (_LIST, _SET):
        size, member, start = data[at] >> 4, data[at] & 15, at + 1
        if size == 15:
            size, start = _varint(data, start)
        found.append(Spot("list", at, start))
        for _ in range(size):
            start = _value(data, start, member, found, depth + 1, inside=True)
        return start
    if kind == _STRUCT:
        return _struct(data, at, found, depth + 1)
    raise NotThrift


def varint(value: int) -> bytes:
    """Return a number as a variable-length integer, at most ten bytes of it."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def damaged(draw: Random, data: bytes, at: int = 0) -> bytes:
    """Return the structure at a position with one piece changed, and what was around it; else the bytes as they are."""
    try:
        found, _ = spots(data, at)
    except NotThrift:
        return data
    spot = draw.choice([spot for spot in found if spot.what != "stop"] or [Spot("field", at, at + 1)])
    old = data[spot.start : spot.end]
    if spot.what in ("number", "size"):
        number, _ = _varint(data, spot.start)
        plain = (number >> 1) ^ -(number & 1)
        new = draw.choice((plain + 1, plain - 1, -plain, plain * 2, plain + (1 << 20), draw.choice(EDGES)))
        return data[: spot.start] + varint(new << 1 ^ new >> 63 if spot.what == "number" else new) + data[spot.end :]
    if spot.what == "text":
        new = draw.choice((old.upper(), old[:-1], draw.randbytes(len(old)), draw.choice(TEXTS).encode(), b""))
        if draw.random() < 0.7:  # with the size that goes with it
            size = len(varint(len(old)))
            return data[: spot.start - size] + varint(len(new)) + new + data[spot.end :]
        return data[: spot.start] + new[: len(old)].ljust(len(old), b"\0") + data[spot.end :]
    if spot.what == "list":
        new = bytes([draw.choice((0, 1, 14, 15)) << 4 | old[0] & 15]) + old[1:]
        return data[: spot.start] + draw.choice((new, b"\xfc" + varint(draw.choice(EDGES)))) + data[spot.end :]
    new = bytes([old[0] & 0xF0 | draw.randint(1, 12)]) if draw.random() < 0.5 else bytes([old[0] ^ 0x10])
    return data[: spot.start] + new + data[spot.start + 1 :]


def damaged_parquet(draw: Random, data: bytes) -> bytes:
    """Return a Parquet file with a damaged footer of the right length, or with a damaged page header."""
    size = int.from_bytes(data[-8:-4], "little")
    body, footer = data[: -8 - size], data[-8 - size : -8]
    if draw.random() < 0.25 and len(body) > 4:
        return damaged(draw, body, 4) + data[-8 - size :]
    for _ in range(draw.randint(1, 2)):
        footer = damaged(draw, footer)
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"
