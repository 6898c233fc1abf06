"""Spreadsheets: .xlsx, .xlsm and .ods become text, with dates in ISO form."""

from __future__ import annotations

import csv
import lzma
import re
import zipfile
import zlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, TooLarge, UnreadableFile
from shoal.reading.forms import Brought
from shoal.reading.inputs import is_panic
from shoal.reading.limits import LEAST_UNPACKED, MAX_CELLS, MAX_SHEET, MAX_SHEET_RATIO, MAX_TEXT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bring_sheets"]

_BLOCK = 1 << 20
_SHARED = "sharedStrings.xml"
_PLACE = re.compile(rb"""<(?:\w+:)?(?:c|row)\s[^<>]*?\br=["']([A-Za-z]*)(\d+)["']""")


def bring_sheets(path: Path, folder: Path, name: str) -> list[Brought]:
    """Write the sheets of a spreadsheet that hold data as text, and return their paths.

    Cells with dates become ISO text; numbers keep their value. Several sheets must have the same columns.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise InputError(
            f'{name}: spreadsheets need one more package: pip install "shoal-privacy[excel]"; or save it as CSV'
        ) from None
    _check_unpacked(path, name)
    if not name.lower().endswith(".ods"):
        _check_area(path, name)
    try:
        book = CalamineWorkbook.from_path(str(path))
        found = [
            file for i, sheet in enumerate(book.sheet_names) if (file := _written(book, sheet, folder / f"{i}.csv"))
        ]
    except (CalamineError, ValueError, zipfile.BadZipFile):
        raise UnreadableFile(f"{name}: not a whole spreadsheet, or it needs a password; save it as CSV") from None
    except BaseException as error:
        if not is_panic(error):
            raise
        raise UnreadableFile(f"{name}: the spreadsheet is damaged; save it as CSV") from None
    if not found:
        raise UnreadableFile(f"{name}: the spreadsheet is empty")
    if len({names for _, names in found}) > 1:
        raise InputError(f"{name}: several sheets hold data, with different columns; keep one, or save each as CSV")
    return [Brought(file) for file, _ in found]


def _written(book: Any, sheet: str, target: Path) -> tuple[Path, tuple[str, ...]] | None:
    """Write a sheet as text; return its path and its names, or None for an empty sheet."""
    rows = [row for row in book.get_sheet_by_name(sheet).to_python() if any(cell != "" for cell in row)]
    if not rows:
        return None
    with target.open("x", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([_text(cell) for cell in row] for row in rows)
    return target, tuple(_text(cell) for cell in rows[0])


def _check_unpacked(path: Path, name: str) -> None:
    """Check that a spreadsheet is no decompression bomb; Python's zip reader holds members to the sizes they state."""
    try:
        with zipfile.ZipFile(path) as packed:
            stated = sum(member.file_size for member in packed.infolist())
    except (zipfile.BadZipFile, ValueError):
        raise UnreadableFile(f"{name}: not a whole spreadsheet; save it as CSV") from None
    if stated > MAX_SHEET or (stated > LEAST_UNPACKED and stated > MAX_SHEET_RATIO * path.stat().st_size):
        raise TooLarge(f"{name}: the spreadsheet is too large; save it as CSV")


def _check_area(path: Path, name: str) -> None:
    """Check that no sheet has two cells so far apart that the reader can't have room for what is between them.

    Without room, the reader ends the process.
    """
    with zipfile.ZipFile(path) as packed:
        longest = repeats = 0
        for member in packed.infolist():
            try:
                rows, columns = _last_cell(packed, member)
                if member.filename.endswith(_SHARED):
                    longest = _longest_text(packed, member)
                else:
                    repeats += _shared_cells(packed, member)
            except (
                OSError,
                EOFError,
                ValueError,
                NotImplementedError,
                RuntimeError,
                zipfile.BadZipFile,
                zlib.error,
                lzma.LZMAError,
            ):
                raise UnreadableFile(
                    f"{name}: not a whole spreadsheet, or it needs a password; save it as CSV"
                ) from None
            if rows * columns > MAX_CELLS:
                raise TooLarge(f"{name}: a sheet of {rows:,} × {columns:,} cells is too large; save it as CSV")
        if longest * repeats > MAX_SHEET and longest > MAX_TEXT:
            raise TooLarge(
                f"{name}: texts of up to {longest:,} bytes in {repeats:,} cells are too much; save it as CSV"
            )


def _last_cell(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, int]:
    """Return the last row and the last column that the cells of a member name; 1, 1 for what is no sheet."""
    rows = columns = 1
    rest = b""
    with packed.open(member) as text:
        while block := text.read(_BLOCK):
            for letters, digits in _PLACE.findall(rest + block):
                rows = max(rows, int(digits[:20]))
                columns = max(columns, _column(letters))
            rest = (rest + block)[-200:]
    return rows, columns


def _longest_text(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return the bytes of the longest of the texts that cells share."""
    longest = before = 0
    with packed.open(member) as text:
        while block := text.read(_BLOCK):
            *ended, rest = block.split(b"</")
            for one in ended:
                longest, before = max(longest, before + len(one)), 0
            before += len(rest)
    return max(longest, before)


def _shared_cells(packed: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """Return how many cells of a member show a shared text."""
    found = 0
    with packed.open(member) as text:
        while block := text.read(_BLOCK):
            found += block.count(b't="s"') + block.count(b"t='s'")
    return found


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters[:10].upper():
        number = number * 26 + letter - 64
    return number


def _text(cell: Any) -> str:
    if isinstance(cell, datetime):
        # Serial days are no exact fractions: 07:59:59.9996 is 08:00.
        near = cell + timedelta(microseconds=500)
        return near.isoformat(" ", timespec="milliseconds" if near.microsecond >= 1_000 else "seconds")
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)
