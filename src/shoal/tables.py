"""Save tables of figures (CSV, JSON, Parquet) and pictures. Releases are not written here."""

from __future__ import annotations

import csv
import io
import json
import os
from typing import TYPE_CHECKING, Any

from shoal.errors import OutputError, SettingsError
from shoal.folders import private_folder, refuse_existing
from shoal.reading.sources import expand
from shoal.stores.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

__all__ = ["refuse_table", "save_file", "save_rows", "save_table"]

_ENDINGS = (".csv", ".json", ".parquet")
_KINDS: dict[type, str] = {bool: "bool", int: "int64", float: "float64", str: "string"}


def refuse_table(path: Path, inputs: Sequence[str | Path], *, overwrite: bool) -> None:
    """Check, before any work, that the table can be saved there: a known ending, free, and not an input."""
    if path.suffix.lower() not in _ENDINGS:
        raise SettingsError(f"the table must end in one of {', '.join(_ENDINGS)}")
    files = [one for one in inputs if not is_address(one)]
    if path.exists() and files and any(path.samefile(file) for file in expand(files)):
        raise OutputError(f"{path.name} is an input; an input is never overwritten")
    refuse_existing([path], overwrite=overwrite)


def save_rows(
    rows: Sequence[Mapping[str, Any]],
    path: Path,
    *,
    kinds: Mapping[str, type] | None = None,
    overwrite: bool = False,
) -> None:
    """Save rows as CSV, JSON or Parquet, by the ending; the file appears whole or not at all.

    Columns are those of all rows, in the order in which they come up; what a row lacks is empty. `kinds` tells the
    type of a column that may be empty throughout (Parquet); else it is that of its values.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    whole = [{name: row.get(name) for name in columns} for row in rows]
    save_file(_ENCODE[path.suffix.lower()](whole, kinds or {}), path, overwrite=overwrite)


def save_table(table: pa.Table, path: Path, *, overwrite: bool = False) -> None:
    """Save figures about single people as CSV, JSON or Parquet, by the ending, in a private file (mode 0600)."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    if path.suffix.lower() == ".csv":
        pa.csv.write_csv(table, sink)
    elif path.suffix.lower() == ".parquet":
        pa.parquet.write_table(table, sink, compression="zstd")
    else:
        sink.write(_json(table.to_pylist(), {}))
    save_file(sink.getvalue().to_pybytes(), path, overwrite=overwrite, private=True)


def save_file(content: bytes, path: Path, *, overwrite: bool = False, private: bool = False) -> None:
    """Save a file, which appears whole or not at all. A private file can be read by its owner only."""
    refuse_existing([path], overwrite=overwrite)
    try:
        with private_folder(path.parent) as folder:
            staged = folder / path.name
            with staged.open("xb") as file:
                if private:
                    os.fchmod(file.fileno(), 0o600)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            refuse_existing([path], overwrite=overwrite)
            staged.replace(path)
    except OSError as error:
        raise OutputError(f"can't write {path.name}: {error.strerror or 'input/output error'}") from None


def _csv(rows: list[dict[str, Any]], _: Mapping[str, type]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _json(rows: list[dict[str, Any]], _: Mapping[str, type]) -> bytes:
    return (json.dumps(rows, indent=2) + "\n").encode()


def _parquet(rows: list[dict[str, Any]], kinds: Mapping[str, type]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = [(name, _KINDS[kinds.get(name) or _kind(rows, name)]) for name in (rows[0] if rows else ())]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(schema)), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _kind(rows: list[dict[str, Any]], name: str) -> type:
    """Return the type of a column's values: float if they are numbers and one of them is; float for no values."""
    found = {type(row[name]) for row in rows} - {type(None)}
    return found.pop() if len(found) == 1 else float


_ENCODE: dict[str, Callable[[list[dict[str, Any]], Mapping[str, type]], bytes]] = {
    ".csv": _csv,
    ".json": _json,
    ".parquet": _parquet,
}
