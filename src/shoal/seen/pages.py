"""The pages of a Parquet file: whether they can be as large as they say, before Arrow makes room for them.

A page of a few bytes may say that it unpacks to two gigabytes, or a group that it has a billion rows. Arrow then takes
so much, and looks afterwards.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.regular import open_regular
from shoal.seen.thrift import NotThrift, read_struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from io import BufferedReader
    from pathlib import Path

__all__ = ["open_parquet", "require_true_sizes", "unpacked"]

_NO_TEXTS: Mapping[str, int] = {}
_MAGIC = b"PAR1"
_MOST_FOOTER = 1 << 23  # bytes, of which each can become an object; usual ones have some kilobytes
_MOST_PAGE = 1 << 30  # bytes, unpacked; usual ones have a megabyte
_LITTLE = 1 << 22  # bytes that a chunk of texts may take in any case
_HEADERS = (1 << 10, 1 << 16, 1 << 22)  # how much is read to find a page's header
# Fields of FileMetaData, SchemaElement, RowGroup, ColumnChunk, ColumnMetaData and PageHeader.
_SCHEMA, _ROW_GROUPS, _TYPE, _NAME, _CHILDREN = 2, 4, 1, 4, 5
_CHUNKS, _ROWS, _ABOUT = 1, 3, 3
_PATH, _VALUES, _UNPACKED, _PACKED, _DATA, _DICTIONARY = 3, 5, 6, 7, 9, 11
_PAGE_UNPACKED, _PAGE_PACKED, _PAGES, _PAGE_OF_DICTIONARY, _PAGE_VALUES = 2, 3, (5, 8), 7, 1


@contextmanager
def open_parquet(path: str | Path, texts: Mapping[str, int] = _NO_TEXTS) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file whose sizes can be true; raises OSError or an error of Arrow for any other file.

    The columns `texts` have values of so many bytes at most. They stay dictionaries while they are read, as they are in
    the file: one long text may stand for a million rows. `unpacked` makes them plain.
    """
    with open_regular(path) as raw:
        names = require_true_sizes(raw, texts)
        with pq.ParquetFile(raw, read_dictionary=[name for name in texts if name in names]) as file:
            yield file


def unpacked(column: Any, most: int) -> Any:
    """Return a dictionary column as a plain one; None if it would take more than `most` bytes.

    >>> import pyarrow as pa
    >>> words = pa.array(["ann", "bea"]).dictionary_encode()
    >>> unpacked(words, 6).to_pylist(), unpacked(words, 5)
    (['ann', 'bea'], None)
    """
    size = 0
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    for chunk in chunks:
        if isinstance(chunk, pa.DictionaryArray):
            size += pc.sum(pc.binary_length(chunk.dictionary).cast(pa.int64()).take(chunk.indices)).as_py() or 0
    if size > most:
        return None
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def require_true_sizes(raw: BufferedReader, texts: Mapping[str, int] = _NO_TEXTS) -> list[str]:
    """Check what the pages of an open Parquet file say of their sizes; return the names of its columns.

    Pages unpack to no more than their chunk says, each to a gigabyte at most, and lie within the chunk. A page has no
    more values than its chunk, a dictionary no more than bytes. Raises OSError if this is not so.
    A chunk has the type that the schema says, as many values as its group has rows, or more, and of the columns `texts`
    no more than so many bytes a value.
    Cost: some microseconds a page; nothing is unpacked.
    """
    try:
        footer = _footer(raw)
        columns = [column for column in footer[_SCHEMA] if not column.get(_CHILDREN)]
        names, types = [str(column[_NAME], "utf-8") for column in columns], [column.get(_TYPE) for column in columns]
        for group in footer[_ROW_GROUPS]:
            for chunk, kind in zip(group[_CHUNKS], types, strict=True):
                if chunk[_ABOUT][_TYPE] != kind or not 0 <= group[_ROWS] <= chunk[_ABOUT][_VALUES]:
                    raise NotThrift
                _check_chunk(raw, chunk[_ABOUT])
                most = texts.get(chunk[_ABOUT][_PATH][-1].decode())
                if most is not None and chunk[_ABOUT][_UNPACKED] > _LITTLE + most * chunk[_ABOUT][_VALUES]:
                    raise NotThrift
    except (ValueError, LookupError, TypeError, AttributeError):  # no such structure, fields or place
        raise OSError("the Parquet file is damaged") from None
    finally:
        raw.seek(0)
    return names


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
        if packed < 0 or not 0 <= unpacked <= min(left, _MOST_PAGE) or at + size + packed > end:
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
