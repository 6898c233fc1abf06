"""Sinks: write generated rows to a file, which appears whole or not at all."""

from __future__ import annotations

import gzip
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import OutputError, SettingsError
from shoal.folders import private_folder, refuse_existing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["SCHEMA", "file_sink"]

_COLUMNS: dict[str, pa.DataType] = {
    "uid": pa.int64(),
    "datetime": pa.timestamp("ms", tz="UTC"),
    "lat": pa.float64(),
    "lng": pa.float64(),
}
SCHEMA = pa.schema(_COLUMNS)


@contextmanager
def file_sink(path: Path, *, overwrite: bool) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Open a file by its ending (.parquet, .csv, .csv.gz); it appears under its name when the block ends without error.

    Raises SettingsError for another ending, AlreadyExists if it is there, OutputError if it can't be written.
    """
    opener = _opener(path.name)
    refuse_existing([path], overwrite=overwrite)
    try:
        with private_folder(path.parent) as folder:
            staged = folder / path.name
            with staged.open("xb") as raw:
                with opener(raw) as write:
                    yield write
                raw.flush()
                os.fsync(raw.fileno())
            refuse_existing([path], overwrite=overwrite)
            staged.replace(path)
    except OSError as error:
        raise OutputError(
            f"can't write {path.name}: {error.strerror or 'input/output error'}; "
            "check that its folder may be written to and has room"
        ) from None


def _opener(name: str) -> Callable[[Any], Any]:
    if name.endswith((".parquet", ".pq")):
        return _parquet
    if name.endswith(".csv"):
        return _csv
    if name.endswith(".csv.gz"):
        return _csv_gz
    raise SettingsError("the file to generate must end in .parquet, .csv or .csv.gz")


@contextmanager
def _parquet(raw: Any) -> Iterator[Callable[[pa.RecordBatch], None]]:
    from pyarrow import parquet

    with parquet.ParquetWriter(raw, SCHEMA, compression="zstd") as writer:
        yield writer.write_batch


@contextmanager
def _csv(raw: Any) -> Iterator[Callable[[pa.RecordBatch], None]]:
    import pyarrow.compute as pc
    from pyarrow import csv

    text = SCHEMA.set(1, pa.field("datetime", pa.string()))

    options = csv.WriteOptions(include_header=False, quoting_style="none")  # a header of its own would be quoted
    raw.write(",".join(SCHEMA.names).encode() + b"\n")
    with csv.CSVWriter(raw, text, write_options=options) as writer:

        def write(batch: pa.RecordBatch) -> None:
            times: Any = batch.column(1).cast(pa.timestamp("s"))
            columns = [batch.column(0), pc.strftime(times, "%Y-%m-%dT%H:%M:%SZ"), batch.column(2), batch.column(3)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=text))

        yield write


@contextmanager
def _csv_gz(raw: Any) -> Iterator[Callable[[pa.RecordBatch], None]]:
    with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed, _csv(packed) as write:
        yield write
