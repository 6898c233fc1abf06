"""Records: .jsonl, .ndjson and .json (a list of records) become text with columns."""

from __future__ import annotations

import csv
import json
from typing import IO, TYPE_CHECKING, Any

from shoal.errors import UnreadableFile
from shoal.reading.forms import Brought
from shoal.reading.limits import MAX_COLUMNS, MAX_RECORD, check_width

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["bring_records"]

_PART = 1 << 20
_DEEP = 8


class _TwiceError(Exception):
    """A field stands twice in a record."""


def bring_records(path: Path, folder: Path, name: str) -> list[Brought]:
    """Write records as text with a column for each of their fields, and return its path.

    Numbers keep their spelling. Fields of records inside records are joined with a dot (`position.lat`); lists are left
    out. Cost: the file is read twice, and only one record is held at a time.
    """
    target = folder / "rows.csv"
    columns: dict[str, None] = {}
    for record in _records(path, name):
        columns.update(dict.fromkeys(record))
        check_width(min(len(columns), MAX_COLUMNS + 1), name)
    if not columns:
        raise UnreadableFile(f"{name}: there are no records in it")
    with target.open("x", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        writer.writerows([record.get(column, "") for column in columns] for record in _records(path, name))
    return [Brought(target)]


def _records(path: Path, name: str) -> Iterator[dict[str, str]]:
    broken = UnreadableFile(
        f"{name}: not a list of records, nor one record a line; write it so, with e.g. user, time, lat, lng"
    )
    try:
        with path.open(encoding="utf-8-sig") as file:
            for value in _values(file):
                if not isinstance(value, dict):
                    raise broken
                yield _record(list(_flat(value)))
    except _TwiceError:
        raise UnreadableFile(f"{name}: a record has a field twice; keep one of them") from None
    except (ValueError, RecursionError):
        raise broken from None


def _values(file: IO[str]) -> Iterator[Any]:
    """Yield the values of a list, or those that follow each other, holding one at a time."""
    decoder = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_record)
    text, at, is_list, ended = "", 0, None, False
    while True:
        at = _past_blanks(text, at)
        if is_list is None and at < len(text):
            is_list = text[at] == "["
            at += is_list
        elif at < len(text) and is_list and text[at] in ",]":
            at += 1
        else:
            try:
                value, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                if ended and at >= len(text):
                    return
                if ended or len(text) - at > MAX_RECORD:
                    raise
                part = file.read(_PART)
                text, at, ended = text[at:] + part, 0, not part
            else:
                yield value
                # A number at the end of what was read could go on; records can't.


def _record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a record; raises _TwiceError if one stands twice, since no one knows which is meant."""
    record = dict(pairs)
    if len(record) < len(pairs):
        raise _TwiceError
    return record


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _flat(record: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict) and depth < _DEEP:
            yield from _flat(value, f"{before}{name}.", depth + 1)
        elif value is None or isinstance(value, str | bool):
            yield f"{before}{name}", "" if value is None else str(value)
