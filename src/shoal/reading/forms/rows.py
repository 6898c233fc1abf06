"""Rows that a bringer found, written as a Parquet file a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RowWriter", "as_rows"]

_BATCH = 1 << 14


def as_rows(path: Path, folder: Path) -> Path:
    """Return where the rows of a file go: its name and that of its folder stay, since they may tell the user."""
    inside = folder / (path.parent.name or "files")
    inside.mkdir(mode=0o700)
    return inside / f"{path.stem}.parquet"


class RowWriter:
    """Writes rows (tuples, in the order of the schema) to a new Parquet file; use it in a `with` block."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1)
        self._rows: list[tuple[Any, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._flush()
        finally:
            self._writer.close()

    def add(self, row: tuple[Any, ...]) -> None:
        """Write a row, sooner or later."""
        self._rows.append(row)
        if len(self._rows) >= _BATCH:
            self._flush()

    def note(self, key: str, value: str) -> None:
        """Put something into the metadata of the file."""
        self._writer.add_key_value_metadata({key: value})

    def _flush(self) -> None:
        if self._rows:
            columns = [
                pa.array(values, field.type)
                for values, field in zip(zip(*self._rows, strict=True), self._schema, strict=True)
            ]
            self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
            self._rows.clear()
