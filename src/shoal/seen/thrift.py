"""Read structures in Thrift's compact form, as Parquet has them in its footer and before each page.

Arrow reads them too, but it ends the process at some broken ones, and believes what they say of sizes.
"""

from __future__ import annotations

from typing import Any

__all__ = ["NotThrift", "read_struct"]

_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)
_DEPTH = 16


class NotThrift(ValueError):
    """The bytes are no such structure, or it goes on after them."""


def read_struct(data: bytes, at: int = 0, depth: int = 0) -> tuple[dict[int, Any], int]:
    r"""Return the fields of the structure at a position, by number, and where it ends; raises NotThrift.

    Numbers are int, texts bytes, lists and structures nested. Cost: linear in the bytes.

    >>> read_struct(b"\x15\x04\x18\x02hi\x00")
    ({1: 2, 2: b'hi'}, 7)
    """
    if depth > _DEPTH:
        raise NotThrift
    fields: dict[int, Any] = {}
    number = 0
    while head := _byte(data, at):
        at += 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _number(data, at)
        fields[number], at = _value(data, at, head & 15, depth)
    return fields, at + 1


def _byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise NotThrift
    return data[at]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = _byte(data, at)
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NotThrift


def _number(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """Return the value of a field of some kind, and where it ends."""
    if kind in (_TRUE, _FALSE):
        return kind == _TRUE, at
    if kind == _STRUCT:
        return read_struct(data, at, depth + 1)
    if kind in _NUMBERS:
        return _number(data, at)
    if kind in (_BYTE, _DOUBLE, _BINARY):
        size, start = _varint(data, at) if kind == _BINARY else (1 if kind == _BYTE else 8, at)
        if start + size > len(data):
            raise NotThrift
        return data[start : start + size], start + size
    if kind in (_LIST, _SET):
        return _list(data, at, depth)
    raise NotThrift  # maps: Parquet has none


def _list(data: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    head = _byte(data, at)
    size, at = (head >> 4, at + 1) if head < 0xF0 else _varint(data, at + 1)
    kind, values = head & 15, []
    if size > len(data) - at:  # each takes a byte at least
        raise NotThrift
    for _ in range(size):
        if kind in (_TRUE, _FALSE):
            value, at = _byte(data, at) == _TRUE, at + 1
        else:
            value, at = _value(data, at, kind, depth + 1)
        values.append(value)
    return values, at
