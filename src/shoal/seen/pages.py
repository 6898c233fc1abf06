"""The pages of a Parquet file: whether they can be as large as they say, before Arrow makes room for them.

A page of a few bytes may say that it unpacks to two gigabytes, or a group that it has a billion rows. Arrow then takes
so much, and looks afterwards.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from shoal.regular import open_regular
from shoal.seen.thrift import NotThrift, read_struct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedReader
    from pathlib import Path

__all__ = ["open_parquet", "require_true_sizes"]

_MAGIC = b"PAR1"
_MOST_FOOTER = 1 << 28
_MOST_PAGE = 1 << 30  # bytes, unpacked; usual ones have a megabyte
_LITTLE, _MOST_PACKED = 1 << 16, 40_000  # no codec of Parquet packs closer (zstd: 128 kB of zeros in 4 bytes)
_HEADERS = (1 << 10, 1 << 16, 1 << 22)  # how much is read to find a page's header
# Fields of FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData and PageHeader.
_SCHEMA, _ROW_GROUPS, _TYPE, _CHILDREN = 2, 4, 1, 5
_CHUNKS, _ROWS, _ABOUT = 1, 3, 3
_VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 5, 6, 7, 9, 11
_PAGE_UNPACKED, _PAGE_PACKED, _PAGES, _PAGE_OF_DICTIONARY, _PAGE_VALUES = 2, 3, (5, 8), 7, 1


@contextmanager
def open_parquet(path: str | Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file whose sizes can be true; raises OSError or an error of Arrow for any other file."""
    with open_regular(path) as raw:
        require_true_sizes(raw)
        with pq.ParquetFile(raw) as file:
            yield file


def require_true_sizes(raw: BufferedReader) -> None:
    """Check what the pages of an open Parquet file say of their sizes; raises OSError if they can't be true.

    Pages unpack to no more than their chunk says, each to no more than a codec could pack into its bytes, and than a
    gigabyte; and they lie within the chunk. A page has no more values than its chunk, a dictionary no more than bytes.
    A chunk has the type that the schema says, and as many values as its group has rows, or more.
    Cost: some microseconds a page; nothing is unpacked.
    """
    try:
        footer = _footer(raw)
        types = [column.get(_TYPE) for column in footer[_SCHEMA] if not column.get(_CHILDREN)]
        for group in footer[_ROW_GROUPS]:
            for chunk, kind in zip(group[_CHUNKS], types, strict=True):
                if chunk[_ABOUT][_TYPE] != kind or not 0 <= group[_ROWS] <= chunk[_ABOUT][_VALUES]:
                    raise NotThrift
                _check_chunk(raw, chunk[_ABOUT])
    except (ValueError, LookupError, TypeError, AttributeError):  # no such structure, or not of these fields
        raise OSError("the Parquet file is damaged") from None
    finally:
        raw.seek(0)


def _footer(raw: BufferedReader) -> dict[int, Any]:
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(0, size - 8))
    end = raw.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != _MAGIC or length > min(size - 8, _MOST_FOOTER):
        raise NotThrift
    raw.seek(size - 8 - length)
    return read_struct(raw.read(length))[0]


def _check_chunk(raw: BufferedReader, about: dict[int, Any]) -> None:
    """Check the pages of a column chunk, one after the other."""
    starts = [start for start in (about[_DATA], about.get(_DICTIONARY, 0)) if start > 0]  # 0: there is none
    at = min(starts, default=0)
    end = at + about[_PACKED] if starts else 0
    left = about[_UNPACKED]
    while at < end:
        header, size = _header(raw, at)
        unpacked, packed = header[_PAGE_UNPACKED], header[_PAGE_PACKED]
        most = min(left, _MOST_PAGE, _LITTLE + _MOST_PACKED * packed)
        if packed < 0 or not 0 <= unpacked <= most or at + size + packed > end:
            raise NotThrift
        of_data = (header[one][_PAGE_VALUES] for one in _PAGES if one in header)
        of_dictionary = header.get(_PAGE_OF_DICTIONARY, {_PAGE_VALUES: 0})[_PAGE_VALUES]
        if not all(0 <= values <= about[_VALUES] for values in of_data) or not 0 <= of_dictionary <= unpacked:
            raise NotThrift
        at, left = at + size + packed, left - unpacked


def _header(raw: BufferedReader, at: int) -> tuple[dict[int, Any], int]:
    """Return the header of the page at a position, and its size."""
    for most in _HEADERS:
        raw.seek(at)
        try:
            return read_struct(raw.read(most))
        except NotThrift:
            if most == _HEADERS[-1]:
                raise
    raise NotThrift
