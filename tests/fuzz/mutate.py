"""Damage that knows what it damages: bytes, lines of text, cells, and trees of JSON."""

from __future__ import annotations

import copy
import json
import struct
from typing import TYPE_CHECKING, Any

from tests.fuzz.case import CANARY

if TYPE_CHECKING:
    from random import Random

EDGES = (
    *(0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 65_535, 65_536, 1 << 24, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32),
    *((1 << 53) + 1, (1 << 63) - 1, 1 << 63, -(1 << 63), 1 << 64, -(1 << 64), 10**30, -(10**30), 10**400),
)
FLOATS = (0.0, -0.0, 0.5, 1e-320, 1e-9, 1e9, 1e308, -1e308, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    *("", " ", "\0", "\n", "\r\n", "\t", '"', "'", '"""', ";", ",", "\\", "\x1b[2J", "\u202e", "\ufeff", "\ud7ff"),
    *(
        "ß",
        "İ",
        "é",
        "e\u0301",
        "日本",
        "😀",
        "\U0010ffff",
        "NaN",
        "nan",
        "null",
        "None",
        "true",
        "-",
        "−1",
        "٣",
        "0x1F",
    ),
    *("1e400", "1_000", "%s", "{0}", "{", "}", "${HOME}", "../../x", "'; DROP TABLE part_0; --", CANARY, "a" * 300),
)
KEYS = tuple(text for text in TEXTS if text != CANARY)  # names may be told, values not
_MORE = ("\r", "|", "[", "]", "(", ")", ":", "@", "<", "</trk>", "&#0;", "PK", "PAR1", "1e999", "9" * 30)
TOKENS = (
    *(text.encode("utf-8", "surrogatepass") for text in (*KEYS, *_MORE)),
    *(b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x80", b"\xed\xa0\x80", b"\x1f\x8b", b"\xff\xff\xff\x7f"),
)


def any_bytes(draw: Random, data: bytes, most: int = 6) -> bytes:
    """Return bytes with one to `most` changes anywhere."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, most)):
        _BYTES[int(draw.random() * len(_BYTES))](draw, changed)
    return bytes(changed)


def _place(draw: Random, data: bytearray) -> tuple[int, int]:
    at = draw.randint(0, len(data))
    return at, at + min(draw.choice((1, 1, 2, 4, 8, 20, 100)), len(data) - at)


def _insert(draw: Random, data: bytearray) -> None:
    at, _ = _place(draw, data)
    data[at:at] = draw.choice(TOKENS)


def _delete(draw: Random, data: bytearray) -> None:
    at, end = _place(draw, data)
    del data[at:end]


def _random(draw: Random, data: bytearray) -> None:
    at, end = _place(draw, data)
    data[at:end] = draw.randbytes(end - at)


def _flip(draw: Random, data: bytearray) -> None:
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _repeat(draw: Random, data: bytearray) -> None:
    at, end = _place(draw, data)
    data[at:at] = bytes(data[at:end]) * draw.choice((1, 1, 2, 50))


def _cut(draw: Random, data: bytearray) -> None:
    if draw.random() < 0.5:
        del data[draw.randint(0, len(data)) :]


def _move(draw: Random, data: bytearray) -> None:
    at, end = _place(draw, data)
    part = bytes(data[at:end])
    del data[at:end]
    to = draw.randint(0, len(data))
    data[to:to] = part


def _number(draw: Random, data: bytearray) -> None:
    at, _ = _place(draw, data)
    form = draw.choice(("<i", "<q", ">i", "<h", "<d"))
    value = draw.choice(FLOATS) if form == "<d" else draw.choice((0, 1, -1, 127, -128, 32767))
    data[at : at + struct.calcsize(form)] = struct.pack(form, value)


_BYTES = (_insert, _insert, _delete, _random, _flip, _flip, _repeat, _cut, _move, _number)


def lines(draw: Random, data: bytes) -> bytes:
    """Return text whose lines are repeated, left out, exchanged, joined or cut."""
    rows = data.split(b"\n")
    for _ in range(draw.randint(1, 3)):
        at, what = draw.randrange(len(rows)), draw.randrange(7)
        other = draw.randrange(len(rows))
        if what == 0:
            rows.insert(at, rows[other])
        elif what == 1 and len(rows) > 1:
            del rows[at]
        elif what == 2:
            rows[at], rows[other] = rows[other], rows[at]
        elif what == 3:
            rows[at] += rows[other]
        elif what == 4:
            rows[at] = rows[at][: draw.randint(0, len(rows[at]))]
        elif what == 5:
            rows.insert(at, b"")
        else:
            rows[at] = any_bytes(draw, rows[at], 2)
    return b"\n".join(rows)


def value(draw: Random) -> Any:
    """Return any value that JSON and TOML can hold, odd ones often."""
    what = draw.randrange(8)
    if what < 2:
        return draw.choice(EDGES)
    if what < 4:
        return draw.choice(TEXTS)
    if what == 4:
        return draw.choice(FLOATS)
    if what == 5:
        return draw.choice((None, True, False))
    if what == 6:
        return [value(draw) for _ in range(draw.randrange(4))]
    return {draw.choice(KEYS): value(draw) for _ in range(draw.randrange(3))}


def near(draw: Random, old: Any) -> Any:
    """Return a value near an old one: a little more or less, of another type, or cut."""
    if isinstance(old, bool):
        return draw.choice((not old, int(old), str(old)))
    if isinstance(old, int | float) and abs(old) < 1 << 70:
        return draw.choice((old + 1, old - 1, -old, old * 2, float(old), str(old), old + 0.5, [old], old == old))
    if isinstance(old, str) and old:
        at = draw.randrange(len(old))
        return draw.choice(
            (old[:at], old[at:], old[:at] + draw.choice(TEXTS) + old[at:], old.upper(), old * 2, [old], f"{old} ",
             old[:at] + draw.choice("0123456789.-+=") + old[at + 1 :])
        )  # fmt: skip
    return value(draw)


def tree(draw: Random, old: Any, most: int = 3) -> Any:
    """Return a tree of JSON with one to `most` changes: values, keys, members that are new, gone or elsewhere."""
    root = [copy.deepcopy(old)]
    for _ in range(draw.randint(1, most)):
        _change(draw, draw.choice(_places(root)))
    return root[0]


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Return all pairs of a container and one of its keys."""
    keys = range(len(node)) if isinstance(node, list) else list(node) if isinstance(node, dict) else ()
    return [pair for key in keys for pair in ((node, key), *_places(node[key]))]


def _change(draw: Random, place: tuple[Any, Any]) -> None:
    node, key = place
    what = draw.randrange(8)
    if what < 3:
        node[key] = near(draw, node[key])
    elif what < 5:
        node[key] = value(draw)
    elif isinstance(node, dict) and what == 5:
        del node[key]
    elif isinstance(node, dict) and what == 6:
        node[draw.choice((key.upper(), f"{key}_", *KEYS))] = node[key]
    elif isinstance(node[key], dict):
        node[key][draw.choice(KEYS)] = value(draw)
    elif isinstance(node[key], list):
        node[key].append(value(draw))
    else:
        node[key] = [[[[node[key]]]]]


def as_json(draw: Random, node: Any) -> bytes:
    """Return a tree as text of JSON, mostly as Python writes it; sometimes deep, doubled or not JSON at all."""
    text = json.dumps(node, indent=draw.choice((None, None, 2)), ensure_ascii=draw.random() < 0.5)
    what = draw.randrange(24)
    if what == 0:
        text = text.replace("{", '{"k": 1, ', 1)
    elif what == 1:
        text = "[" * draw.choice((10, 990, 100_000)) + text
    elif what == 2:
        text = text.replace(": ", ":", 1)
    elif what == 3:
        text = text.replace("1", "9" * draw.choice((30, 5_000)), 1)
    elif what == 4:
        text = text.encode().decode("latin-1")
    elif what == 5:
        return text.encode(draw.choice(("utf-16", "utf-8-sig", "utf-32")), "surrogatepass")
    elif what == 6:
        return any_bytes(draw, text.encode("utf-8", "surrogatepass"), 3)
    return text.encode("utf-8", "surrogatepass")
