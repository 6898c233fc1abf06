"""Read a published Parquet or CSV file batch by batch, without assumptions about who wrote it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.arrow import from_arrow_array
from shoal.errors import CannotCheck
from shoal.regular import open_regular
from shoal.seen.header import parse_json
from shoal.seen.pages import open_parquet, unpacked
from shoal.switch import mend

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.seen.findings import Findings

__all__ = ["BOX", "POINT", "Batch", "File", "open_release_file", "read_columns", "read_points", "typed_loosely"]

_BATCH = 1 << 20
_MOST_SHAPE = 128  # bytes of a polygon or a point, and more
_BLOCK = 1 << 26
_MOST_STATED = 1 << 14  # bytes of the `shoal` object; it has some hundreds
_INSTANT = pa.timestamp("ms", "UTC")
BOX = ("t_start", "t_end", "x_min", "y_min", "x_max", "y_max")
POINT = ("uid", "datetime", "lat", "lng")
TYPES: dict[str, Any] = {
    "uid": pa.int64(),
    "t_start": _INSTANT,
    "t_end": _INSTANT,
    **dict.fromkeys(BOX[2:], pa.int32()),
    "datetime": _INSTANT,
    "lat": pa.float64(),
    "lng": pa.float64(),
    "count": pa.int32(),
    "geometry": pa.binary(),
}
_WHOLE = r"^(0|-?[1-9][0-9]*)$"
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"
_DEGREES = r"^-?\d{1,3}(\.\d{1,20})?(e-\d{1,2})?$"
# Years 1 to 9999: beyond them nothing is a time, and arithmetic on it could overflow.
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999


@dataclass(frozen=True, eq=False)
class File:
    """A published file: its columns, its footer and its `shoal` object (None if it has none)."""

    path: Path
    names: list[str]
    schema: pa.Schema
    footer: dict[bytes, bytes]
    stated: Any
    is_csv: bool = False
    parquet: pq.FileMetaData | None = None
    writer: str = ""

    @property
    def layout(self) -> str:
        """What records are made of, known from the columns: boxes or points."""
        return "points" if sorted({*self.names} - {"geometry"}) == sorted(POINT) else "boxes"

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Return the rows, about a million at a time, with some columns (of text files: all); raises `CannotCheck`."""
        try:
            if self.is_csv:
                with _open_csv(self.path) as reader:
                    yield from reader
            else:
                with open_parquet(self.path, {"geometry": _MOST_SHAPE}) as file:
                    for batch in file.iter_batches(_BATCH, columns=columns):
                        yield _with_plain_shapes(batch)
        except (OSError, UnicodeError, pa.ArrowException):
            raise _unreadable() from None

    def chunks(self) -> list[Any]:
        """Return what a Parquet file says of its column chunks; raises `CannotCheck` if it can't be read.

        pyarrow ends the process if it is asked for the description of a broken chunk. If it reads from one, it raises
        an error. So a row of each row group is read first.
        """
        found: Any = self.parquet
        try:
            with pq.ParquetFile(self.path) as file:
                for n in range(found.num_row_groups):
                    next(file.iter_batches(1, row_groups=[n]), None)
        except (OSError, UnicodeError, pa.ArrowException):
            raise _unreadable() from None
        groups = [found.row_group(n) for n in range(found.num_row_groups)]
        return [group.column(n) for group in groups for n in range(group.num_columns)]


@dataclass(frozen=True, eq=False)
class Batch:
    """The columns of some rows as arrays; `whole` marks the rows in which nothing is missing."""

    whole: NDArray[np.bool_]
    values: dict[str, NDArray[Any]]
    geometry: Any

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def __len__(self) -> int:
        return len(self.whole)


def open_release_file(release: str | Path) -> File:
    """Open a release file; raises `CannotCheck` if it is not a readable Parquet or CSV file.

    A publication that was killed between its moves is finished first.
    """
    path = Path(release)
    mend(path.parent)
    try:
        if path.suffix.lower() == ".csv":
            with _open_csv(path) as reader:
                return File(path, reader.schema.names, reader.schema, {}, None, is_csv=True)
        with open_parquet(path) as file:
            footer = dict(file.metadata.metadata or {})
            schema, parquet, writer = file.schema_arrow, file.metadata, file.metadata.created_by or ""
            return File(path, schema.names, schema, footer, _stated(footer), parquet=parquet, writer=writer)
    except (OSError, UnicodeError, pa.ArrowException):
        raise _unreadable() from None


def _with_plain_shapes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose geometry is plain binary; nulls instead if it is larger than that of any release."""
    if "geometry" not in batch.schema.names or not pa.types.is_dictionary(batch.schema.field("geometry").type):
        return batch
    at = batch.schema.get_field_index("geometry")
    shapes = unpacked(batch.column(at), _MOST_SHAPE * batch.num_rows)
    return batch.set_column(at, "geometry", pa.nulls(batch.num_rows, pa.binary()) if shapes is None else shapes)


def _unreadable() -> CannotCheck:
    return CannotCheck("the release can't be read; give a Parquet or CSV file of a release")


def _stated(footer: dict[bytes, bytes]) -> Any:
    return parse_json(footer[b"shoal"], _MOST_STATED) if b"shoal" in footer else None


@contextmanager
def _open_csv(path: Path) -> Iterator[Any]:
    """Open a CSV file whose values are all text."""
    parse = pa_csv.ParseOptions(ignore_empty_lines=False)
    read = pa_csv.ReadOptions(block_size=_BLOCK)
    with open_regular(path) as raw, pa_csv.open_csv(raw, parse_options=parse, read_options=read) as probe:
        names = probe.schema.names
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    with (
        open_regular(path) as raw,
        pa_csv.open_csv(raw, parse_options=parse, read_options=read, convert_options=convert) as reader,
    ):
        yield reader


def read_columns(
    findings: Findings, file: File, crs: str | None, odd: Counter[str], *, own: bool
) -> Iterator[Batch | None]:
    """Check names, order and types of the columns and return them as arrays, batch by batch; None if they can't be.

    What is wrong with values is counted in `odd`. Another tool's file (not `own`) needs the columns of the boxes only,
    in any order, as anything that can be read as such; what other columns hold can't be checked, which is a failure.
    """
    names = file.names
    derived = ["datetime"] if crs is None else ["datetime", "lat", "lng"]
    wanted = ["uid", *BOX, *derived, *(name for name in ("count", "geometry") if name in names)]
    findings.ran("leaks")
    if not own:
        others = len(set(names) - set(wanted))
        findings.fail_if(others, "leaks/foreign-columns")
    elif names != wanted:
        missing, extra = len(set(wanted) - set(names)), len(names) - len(set(names) & set(wanted))
        findings.fail("leaks/columns", missing=missing, extra=extra)
    if file.layout == "points":
        raise CannotCheck("the release holds points, not boxes; this claim can't be checked on points")
    if len(set(names)) < len(names) or not {"uid", *BOX} <= set(names):
        if not own:
            raise CannotCheck(f"the release must have the columns uid, {', '.join(BOX)}, each once")
        yield None
        return
    chosen = [name for name in wanted if name in names]
    if not own:
        for batch in file.batches(chosen):
            yield _arrays(_as_boxes(batch.select(chosen)), odd)
        return
    yield from _own_columns(findings, file, chosen, odd)


def read_points(findings: Findings, file: File, odd: Counter[str]) -> Iterator[Batch | None]:
    """Check names, order and types of the columns of points and return them as arrays, as `read_columns` does."""
    findings.ran("leaks")
    wanted = [*POINT, *(["geometry"] if "geometry" in file.names and not file.is_csv else [])]
    if file.names != wanted:
        findings.fail("leaks/point-columns")
    if file.layout != "points" or len(set(file.names)) < len(file.names):
        yield None
        return
    yield from _own_columns(findings, file, wanted, odd)


def _own_columns(findings: Findings, file: File, chosen: list[str], odd: Counter[str]) -> Iterator[Batch | None]:
    """Return some columns of a shoal release; they must have exactly the types and forms of the format."""
    if not file.is_csv:
        wrong = [name for name in chosen if file.schema.field(name).type != TYPES[name]]
        findings.fail_if(len(wrong), "leaks/column-types")
    for batch in file.batches(chosen):
        if file.is_csv:
            odd["bytes"] += sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in batch.columns)
            odd["bytes"] += len(file.names) * len(batch)
        part = batch.select(chosen)
        typed = _typed_csv(part, odd) if file.is_csv else _typed(part)
        yield None if typed is None else _arrays(typed, odd)
        if typed is None:
            return


def _typed(batch: pa.RecordBatch) -> dict[str, Any] | None:
    try:
        return {name: batch[name].cast(TYPES[name]) for name in batch.schema.names}
    except pa.ArrowException:  # the types differ, which was noted
        return None


def _typed_csv(batch: pa.RecordBatch, odd: Counter[str]) -> dict[str, Any] | None:
    typed = {}
    for name in batch.schema.names:
        form = {_INSTANT: _TIME, pa.float64(): _DEGREES}.get(TYPES[name], _WHOLE)
        fits: Any = pc.match_substring_regex(batch[name], form)
        odd[f"form of {name}"] += int(pc.sum(pc.invert(fits)).as_py() or 0)
        text = pc.if_else(fits, batch[name], None)
        try:
            typed[name] = text.cast(TYPES[name])
            if TYPES[name] == pa.float64():
                other = pc.sum(pc.not_equal(typed[name].cast(pa.string()), text)).as_py()
                odd[f"digits of {name}"] += int(other or 0)
        except pa.ArrowException:
            odd[f"range of {name}"] += 1
            return None
    return typed


def typed_loosely(batch: pa.RecordBatch) -> dict[str, Any]:
    """Cast columns to the types of a release; times without a zone are UTC. Raises ArrowException if this fails."""
    return {name: _loosely(batch[name], TYPES[name]) for name in batch.schema.names}


def _as_boxes(batch: pa.RecordBatch) -> dict[str, Any]:
    """Return another tool's columns cast to the types of a release."""
    try:
        return typed_loosely(batch)
    except pa.ArrowException:
        raise CannotCheck(
            "the columns can't be read as boxes: uid and metres must be whole numbers, t_start and t_end timestamps or "
            "ISO 8601 text"
        ) from None


def _loosely(column: Any, kind: Any) -> Any:
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column.cast(kind)
    if kind != _INSTANT:
        return (pc.replace_substring_regex(column, r"\.0+$", "") if pa.types.is_integer(kind) else column).cast(kind)
    marked = pc.replace_substring_regex(column, r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(\.\d{1,6})?)$", r"\1T\2Z")
    return marked.cast(pa.timestamp("us", "UTC")).cast(kind)


def _arrays(typed: dict[str, Any], odd: Counter[str]) -> Batch:
    whole = np.ones(len(typed["uid"]), dtype=bool)
    values = {}
    for name, column in typed.items():
        if column.null_count:
            odd["nulls"] += column.null_count
            whole &= from_arrow_array(pc.is_valid(column).cast(pa.uint8())).astype(bool)
        if name == "geometry":
            continue
        plain = column.cast(pa.int64()) if TYPES[name] == _INSTANT else column
        values[name] = from_arrow_array(pc.fill_null(plain, 0) if plain.null_count else plain)
    for name in ("lat", "lng"):
        if name in values:
            odd["holes"] += int((~np.isfinite(values[name])).sum())
    for name in ("t_start", "t_end") if "t_start" in values else ("datetime",):
        whole &= (values[name] >= _FIRST_MS) & (values[name] <= _LAST_MS)
    return Batch(whole, values, typed.get("geometry"))
