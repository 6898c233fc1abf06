"""Write tables (Parquet or CSV) and JSON to files, synced to the disk."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.errors import OutputError
from shoal.parallel import ahead

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["PRIVATE", "PUBLIC", "write_json", "write_tables"]

PUBLIC, PRIVATE = 0o644, 0o600


def write_tables(path: Path, tables: Iterator[pa.Table], mode: int, **encoding: Any) -> None:
    """Write tables of one schema one after the other; the next one is made while the current one is written."""
    as_text = path.suffix.lower() != ".parquet"
    quoting = "needed" if mode == PRIVATE else "none"  # labels may hold commas, published values never do
    writer: Any = None
    with _new_file(path, mode) as file, ExitStack() as open_writer, closing(ahead(tables)) as ready:
        for made in ready:
            table = _as_text(made) if as_text else made
            if writer is None and as_text:
                file.write((",".join(table.column_names) + "\n").encode())
                options = pa_csv.WriteOptions(include_header=False, quoting_style=quoting)
                writer = open_writer.enter_context(pa_csv.CSVWriter(file, table.schema, write_options=options))
            elif writer is None:
                parquet = pq.ParquetWriter(file, table.schema, compression="zstd", **encoding)
                writer = open_writer.enter_context(parquet)
            writer.write_table(table)


def _as_text(table: pa.Table) -> pa.Table:
    """Return a table whose times are ISO 8601 with Z, as CSV releases have them."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            instant = column.to_numpy().astype("datetime64[ms]")
            text = np.datetime_as_string(instant, unit="ms", timezone="UTC")
            column = pa.array(text, pa.string(), mask=np.isnat(instant))
        columns[name] = column
    return pa.table(columns)


def write_json(path: Path, value: dict[str, Any], mode: int) -> None:
    """Write a value as indented JSON."""
    with _new_file(path, mode) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n").encode())


@contextmanager
def _new_file(path: Path, mode: int) -> Iterator[BinaryIO]:
    """Open a new file that is synced to the disk when the block ends; raises OutputError for I/O errors."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode & 0o777 | 0o600)  # whatever the umask took
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OutputError(f"writing failed ({error.strerror or 'I/O error'}); nothing was published") from None
