"""Check every byte of a Parquet file: write its rows again as Arrow does, and compare.

Pages have room that no reader shows: padding, entries of a dictionary that no row uses, statistics, the choices of a
compressor. If this version of Arrow wrote the file, all of it follows from the rows, the codec and the encodings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.errors import CannotCheck
from shoal.regular import open_regular

if TYPE_CHECKING:
    from io import BufferedReader

    from shoal.seen.file import File
    from shoal.seen.findings import Findings

__all__ = ["check_rewritten"]

_ROWS = 1 << 20  # of a row group, at most, as Arrow writes tables
_DELTA = "DELTA_BINARY_PACKED"


class _Compared:
    """A file to write to, which only compares what is written with another file."""

    closed = False

    def __init__(self, other: BufferedReader) -> None:
        self.other, self.same = other, True

    def write(self, data: Any) -> int:
        """Compare some bytes."""
        size = memoryview(data).nbytes
        self.same = self.same and self.other.read(size) == bytes(data)
        return size

    def ended(self) -> bool:
        """Return whether all was the same, and there is no more."""
        return self.same and not self.other.read(1)

    def flush(self) -> None:
        """Do nothing: nothing is written."""

    def close(self) -> None:
        """Do nothing: the other file is closed by whoever opened it."""


def check_rewritten(findings: Findings, file: File) -> None:
    """Check that a Parquet file is, byte for byte, what Arrow writes for its rows.

    The codec and the encodings of each column are those of the file, at Arrow's default level. If another version of
    Arrow wrote it, its statistics are compared with its rows instead, and the verdict says so. Cost: that of reading
    and writing the file; memory: a row group, a million rows.
    """
    parquet: Any = file.parquet
    groups = [parquet.row_group(n) for n in range(parquet.num_row_groups)]
    ours = file.writer == f"parquet-cpp-arrow version {pa.cpp_version}"
    if not ours:
        findings.skip("bytes")
    if any(group.num_rows > _ROWS for group in groups):
        findings.fail("leaks/bytes")
        return
    try:
        with open_regular(file.path) as raw, pq.ParquetFile(raw) as reader:
            if ours:
                findings.fail_if(not _is_rewritten(file, reader, groups), "leaks/bytes")
            else:
                findings.fail_if(not _are_true(reader, groups), "leaks/statistics")
    except (OSError, UnicodeError, pa.ArrowException):
        raise CannotCheck("the release can't be read; give a Parquet or CSV file of a release") from None


def _is_rewritten(file: File, reader: pq.ParquetFile, groups: list[Any]) -> bool:
    """Return whether the file is what Arrow writes for its rows, row group by row group."""
    with open_regular(file.path) as raw:
        compared = _Compared(raw)
        with pq.ParquetWriter(compared, file.schema, **_settings(groups)) as writer:
            for n, group in enumerate(groups):
                if not compared.same:
                    break
                writer.write_table(reader.read_row_group(n).combine_chunks(), row_group_size=max(group.num_rows, 1))
        return compared.ended()


def _settings(groups: list[Any]) -> dict[str, Any]:
    """Return the settings with which Arrow writes columns of the codec and the encodings that these have."""
    chunks = [group.column(n) for group in groups[:1] for n in range(group.num_columns)]
    packed = {chunk.path_in_schema: _DELTA for chunk in chunks if _DELTA in chunk.encodings}
    return {
        "compression": {chunk.path_in_schema: chunk.compression.replace("UNCOMPRESSED", "NONE") for chunk in chunks},
        "use_dictionary": [chunk.path_in_schema for chunk in chunks if chunk.has_dictionary_page],
        "column_encoding": packed or None,
    }


def _are_true(reader: pq.ParquetFile, groups: list[Any]) -> bool:
    """Return whether the statistics of each column chunk, if it has any, are those of its rows."""
    for n, group in enumerate(groups):
        for place in range(group.num_columns):
            chunk = group.column(place)
            if not chunk.is_stats_set:
                continue
            said, column = chunk.statistics, reader.read_row_group(n, columns=[chunk.path_in_schema]).column(0)
            found = pc.min_max(column)
            limits = [said.min, said.max] if said.has_min_max else [None, None]
            wrong = said.has_min_max and limits != [pc.cast(found[key], column.type).as_py() for key in ("min", "max")]
            if wrong or said.has_distinct_count or (said.has_null_count and said.null_count != column.null_count):
                return False
    return True
