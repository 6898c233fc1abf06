"""Limits: how much of an input is read. What is beyond is refused, so that no file takes more than its share.

A file of a few megabytes can stand for billions of cells or terabytes of text. Real data does not: the limits are far
above everything that people have, and each error names its limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.reading.options import ReadOptions

__all__ = [
    "CONFIRM_ROWS",
    "LEAST_UNPACKED",
    "MAX_CELLS",
    "MAX_COLUMNS",
    "MAX_DEPTH",
    "MAX_FEATURE",
    "MAX_FOOTER",
    "MAX_LINE",
    "MAX_MEMBERS",
    "MAX_PROPERTIES",
    "MAX_RECORD",
    "MAX_REJECTS",
    "MAX_SHEET",
    "MAX_SHEET_RATIO",
    "MAX_TEXT",
    "MAX_TIME",
    "bounded_sql",
    "broken_limit",
    "check_rows",
    "check_unpacked",
    "check_width",
    "most_unpacked",
]

MAX_COLUMNS = 10_000
MAX_TEXT = 1_000  # characters of a user, a time, a number or a code
MAX_TIME = 100  # characters of a time in an unusual form; longer ones can't be read
MAX_GEOMETRY = 1 << 24  # bytes of one geometry or one trip
MAX_LINE = 2_000_000  # bytes of one line of a text
MAX_REJECTS = 1_000_000  # lines of a text that are no rows
MAX_RECORD = 1 << 24  # characters of one JSON record
MAX_FEATURE = 1 << 25  # characters of one GeoJSON feature, which may be a whole trip
MAX_PROPERTIES = 1_000  # different ones, of GeoJSON features
MAX_DEPTH = 100  # elements inside each other
MAX_FOOTER = 1 << 26  # bytes that describe a Parquet file
MAX_MEMBERS = 100_000  # files in an archive
MAX_SHEET = 1 << 31  # bytes of an unpacked spreadsheet, and of the texts of its cells
MAX_CELLS = 1 << 25  # cells of a sheet from the first to the last, with those between them that are empty
MAX_SHEET_RATIO = 200  # of an unpacked spreadsheet to its size
MAX_RATIO = 500  # real rows shrink to a tenth; a larger ratio is a decompression bomb
LEAST_UNPACKED = 1 << 26  # bytes that any file may unpack to
ROWS_PER_BYTE = 8  # real rows take more than a byte each, also where columns are sorted
LEAST_ROWS = 10_000_000  # that any file may have
CONFIRM_ROWS = "many-rows"
_MARK = "shoal-limit:"
_CELLS = {"user": "the user", "time": "the time", "date": "the date", "geometry": "the geometry", "trip": "the trip"}


def check_width(columns: int, name: str) -> None:
    """Raise TooLarge for a table with too many columns."""
    if columns > MAX_COLUMNS:
        raise TooLarge(f"{name}: more than {MAX_COLUMNS:,} columns; keep those for user, time and place")


def check_rows(rows: int, size: int, name: str, options: ReadOptions | None) -> None:
    """Raise TooLarge for a file with far more rows than its bytes can hold, unless that was confirmed."""
    most = LEAST_ROWS + ROWS_PER_BYTE * size
    if rows > most and (options is None or CONFIRM_ROWS not in options.confirm):
        raise TooLarge(
            f"{name}: more than {most:,} rows, which is too many for a file of its size: nearly all rows are equal, as "
            f'in a decompression bomb; if that is right, `confirm="{CONFIRM_ROWS}"`'
        )


def most_unpacked(size: int) -> int:
    """Return how many bytes a packed file of a size may unpack to.

    >>> most_unpacked(1_000), most_unpacked(1_000_000)
    (67108864, 500000000)
    """
    return max(LEAST_UNPACKED, MAX_RATIO * size)


def check_unpacked(unpacked: int, size: int, name: str) -> None:
    """Raise TooLarge for a file of a size that unpacks to too many bytes: a decompression bomb."""
    if unpacked > most_unpacked(size):
        raise TooLarge(
            f"{name}: unpacks to more than {MAX_RATIO} times its size and {LEAST_UNPACKED >> 20} MB; unpack it and look"
        )


def bounded_sql(cells: Mapping[str, tuple[str, str]]) -> str:
    """Return SQL that is true for rows whose cells are within the limits, and ends the query at another one.

    `cells` are the SQL name and the type of the engine of the columns that are read, by role. Empty if none needs it.
    It looks only at the lengths, which the engine has at hand.

    >>> bounded_sql({"user": ("c0", "VARCHAR"), "lat": ("c1", "DOUBLE")})
    "CASE WHEN strlen(c0) > 1000 THEN error('shoal-limit:user') ELSE true END"
    """
    lengths = {"VARCHAR": "strlen", "BLOB": "octet_length"}
    whens = [
        f"WHEN {lengths[kind]}({name}) > {most_of(role)} THEN error('{_MARK}{role}')"
        for role, (name, kind) in cells.items()
        if kind in lengths
    ]
    return f"CASE {' '.join(whens)} ELSE true END" if whens else ""


def most_of(role: str) -> int:
    """Return the most bytes that a cell of a role may have."""
    return MAX_GEOMETRY if role in {"geometry", "trip"} else MAX_TEXT


def broken_limit(error: Any, where: str) -> TooLarge | None:
    """Return what to raise if an error of the engine says that a cell is beyond its limit (see `bounded_sql`)."""
    _, mark, role = str(error).partition(_MARK)
    role = next((known for known in (*_CELLS, "lat", "lng", "place") if role.startswith(known)), "place")
    if not mark:
        return None
    column = _CELLS.get(role, "the place")
    return TooLarge(
        f"{where}: a cell of the column for {column} has more than {most_of(role):,} characters; check `columns`, and "
        "that all quotes are closed"
    )
