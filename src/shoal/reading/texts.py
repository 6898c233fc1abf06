"""Texts: tell the encoding and the form of a text file from its beginning, and rewrite what the engine can't read."""

from __future__ import annotations

import codecs
import csv
import io
import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from shoal.errors import UnreadableFile
from shoal.reading.columns import looks_like_data, number_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Form", "Repair", "check_encoding", "decoded", "form_of", "rewrite"]

_PART = 1 << 20
_PLT = ("lat", "lng", "zero", "altitude", "days", "date", "time")  # OziExplorer, GeoLife: six lines, then these
_MARKED = {b"\xff\xfe\x00\x00": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_CP1252_NOTE = (
    'text that is not UTF-8 was read as Windows-1252; if it is another encoding, give it, e.g. `encoding="cp1250"`'
)


@dataclass(frozen=True)
class Repair:
    """What must be changed in a text before the engine can read it."""

    encoding: str = "utf-8"
    returns: bool = False  # lines end in a carriage return alone
    blanks: bool = False  # columns are separated by one or several blanks


@dataclass(frozen=True)
class Form:
    """The form of a text: its delimiter, its columns, the lines before them, and whether they have names that fit."""

    delimiter: str
    columns: tuple[str, ...]
    skip: int = 0
    header: bool = True
    repair: Repair | None = None
    fits: bool = True  # whether the first row has as many fields as there are names


def check_encoding(encoding: str) -> str:
    """Return Python's name of an encoding; raises ValueError if it is not known.

    >>> check_encoding("Windows-1252"), check_encoding("UTF8")
    ('cp1252', 'utf-8')
    """
    try:
        found = codecs.lookup(encoding)
        "".encode(found.name)
    except (LookupError, TypeError, ValueError):
        raise ValueError("the encoding is not known; give e.g. utf-8, cp1252, latin-1, utf-16, gb18030") from None
    return found.name


def decoded(look: bytes, encoding: str | None, name: str, *, whole: bool) -> tuple[str, Repair | None, tuple[str, ...]]:
    """Decode the beginning of a text; return it, the repair it needs, and notes.

    Text that is not UTF-8 is taken for Windows-1252 if every byte has a meaning there, and if nothing in it is a
    letter in UTF-8: then the whole file has one encoding, and two labels can't become one.
    """
    notes: tuple[str, ...] = ()
    if encoding is None:
        encoding = next((found for mark, found in _MARKED.items() if look.startswith(mark)), "utf-8")
        if encoding == "utf-8" and _is_cp1252(look, whole=whole):
            encoding, notes = "cp1252", (_CP1252_NOTE,)
    if encoding == "utf-8" and b"\0" in look.split(b"\n", 1)[0]:
        raise UnreadableFile(
            f'{name}: not UTF-8 text (UTF-16 or binary); convert it to UTF-8, or give `encoding="utf-16-le"`'
        )
    try:
        decoder = codecs.getincrementaldecoder(encoding)("replace" if encoding == "utf-8" else "strict")
        text = decoder.decode(look, final=whole).removeprefix("\ufeff")
    except UnicodeError:
        raise _not_in(encoding, name) from None
    return text, None if encoding == "utf-8" else Repair(encoding), notes


def _not_in(encoding: str, name: str) -> UnreadableFile:
    return UnreadableFile(f"{name}: the text is not in the encoding {encoding}; give another one with `encoding`")


def _is_cp1252(look: bytes, *, whole: bool) -> bool:
    if look.isascii():
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(look, final=whole)
    except UnicodeDecodeError:
        pass
    else:
        return False
    try:
        look.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return look.decode("utf-8", errors="ignore").isascii()


def form_of(text: str, name: str, ending: str, given: Mapping[str, str], *, whole: bool) -> Form:
    """Return the form of a text from its beginning and the ending of its name, which messages call `name`.

    `given` are columns by role, perhaps by their numbers.

    Empty lines, comments (`#`) and Excel's `sep=;` before the names are passed over. Raises UnreadableFile for a text
    whose names can't be read.
    """
    returns = "\n" not in text.strip() and "\r" in text.strip()
    if returns:
        text = text.replace("\r", "\n")
    if ending == ".plt":
        return Form(",", _PLT, 6, header=False, repair=Repair(returns=True) if returns else None)
    skip, delimiter = _preamble(text, is_tsv=ending == ".tsv")
    lines = io.StringIO(text, newline="")
    for _ in range(skip):
        lines.readline()
    try:
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        columns = next(reader, [])
    except csv.Error:
        raise UnreadableFile(f"{name}: the line of column names can't be read; check its quotes") from None
    blanks = delimiter == " " and ("  " in text or "\n " in text or " \n" in text)
    if blanks:
        columns = [column for column in columns if column]
    if not whole and lines.tell() >= len(text):
        raise UnreadableFile(f"{name}: the line of column names is longer than {_PART >> 20} MB; is it a CSV file?")
    if not any(columns):
        raise UnreadableFile(f"{name}: the first line is empty; it should hold the column names")
    if any("�" in column or "\0" in column for column in columns):
        raise UnreadableFile(
            f"{name}: the column names are not UTF-8 text; convert the file to UTF-8, or give its `encoding`"
        )
    repair = Repair(returns=returns, blanks=blanks) if returns or blanks else None
    if _is_headless(columns, given):
        return Form(delimiter, tuple(f"#{i + 1}" for i in range(len(columns))), skip, header=False, repair=repair)
    first = _first_row(lines, delimiter, blanks=blanks)
    if first is not None and len(first) == len(columns) + 1 and first[-1].strip() == "":
        columns = [*columns, ""]  # every row ends in a delimiter, and the names do not
    fits = first is not None and len(first) in {0, len(columns)}
    return Form(delimiter, tuple(columns), skip, repair=repair, fits=fits)


def _preamble(text: str, *, is_tsv: bool) -> tuple[int, str]:
    """Return how many lines stand before the names, and the delimiter."""
    skip = 0
    lines = text.split("\n", 1_000)
    for i, line in enumerate(lines):
        bare = line.strip("\r \t;,|")
        if marked := re.fullmatch(r"sep=(.)", bare if len(bare) > 4 else line.strip(), re.IGNORECASE):
            return i + 1, marked[1]
        delimiter = _delimiter(line, is_tsv=is_tsv)
        after = next((one for one in lines[i + 1 :] if one.strip() and not one.startswith("#")), "")
        is_name = _count(line, delimiter) >= 2 and _count(after, delimiter) == _count(line, delimiter)
        if bare and (not line.startswith("#") or is_name):
            return i, delimiter
        skip = i + 1
    return (0, ",") if skip >= len(lines) else (skip, _delimiter(lines[skip], is_tsv=is_tsv))


def _count(line: str, delimiter: str) -> int:
    return "".join(line.split('"')[::2]).count(delimiter)


def _delimiter(line: str, *, is_tsv: bool) -> str:
    """Choose the delimiter that is most frequent in a line, outside quotes; blanks if there is no other."""
    candidates = "\t,;|" if is_tsv else ",\t;|"
    best = max(candidates, key=lambda one: _count(line, one))
    return " " if _count(line, best) == 0 and _count(line.strip(), " ") > 0 else best


def _is_headless(columns: list[str], given: Mapping[str, str]) -> bool:
    """Return whether columns are given by number and the first line holds data there."""
    positions = [number_of(name, columns) for role, name in given.items() if role != "user"]
    return any(at is not None and looks_like_data(columns[at]) for at in positions)


def _first_row(lines: io.StringIO, delimiter: str, *, blanks: bool) -> list[str] | None:
    """Return the first row after the names; empty if there is none, None if it can't be read."""
    try:
        first = next((row for row in csv.reader(lines, delimiter=delimiter) if row), [])
    except csv.Error:
        return None
    return [field for field in first if field] if blanks else first


def rewrite(source: IO[bytes], target: Path, repair: Repair, name: str) -> None:
    """Write a text anew, as UTF-8 with common line ends and one blank between columns.

    Raises UnreadableFile if it is not in its encoding.
    """
    text = io.TextIOWrapper(source, encoding=repair.encoding, newline="")
    kept = ""
    try:
        with target.open("x", encoding="utf-8", newline="") as out:
            while part := text.read(_PART):
                if repair.returns:
                    part = part.replace("\r", "\n")
                if repair.blanks:
                    *lines, kept = (kept + part).split("\n")
                    part = "".join(f"{' '.join(line.split())}\n" for line in lines)
                out.write(part.removeprefix("\ufeff"))
            out.write(" ".join(kept.split()))
    except UnicodeError:
        raise _not_in(repair.encoding, name) from None
