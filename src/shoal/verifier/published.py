"""Reading what was published: a Parquet or CSV file, with nothing assumed about who wrote it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.errors import CannotCheck
from shoal.verifier.header import parse_json
from shoal.verifier.records import Records

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release import Release
    from shoal.verifier.grid import Grid
    from shoal.verifier.verdict import Findings

__all__ = ["Columns", "File", "open_file", "read_columns", "records_of", "records_of_release"]

_INSTANT = pa.timestamp("ms", "UTC")
BOX = ("t_start", "t_end", "x_min", "y_min", "x_max", "y_max")
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
    """A published file as it is: its table, its footer and the `shoal` object in it (None: it has none)."""

    path: Path
    table: pa.Table
    footer: dict[bytes, bytes]
    stated: Any
    is_csv: bool
    parquet: pq.FileMetaData | None = None


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a release as arrays; `whole` tells the rows in which nothing is missing."""

    whole: NDArray[np.bool_]
    values: dict[str, NDArray[Any]]
    geometry: Any

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.values[name]

    def __contains__(self, name: str) -> bool:
        return name in self.values


def open_file(release: str | Path) -> File:
    """Read a release file; raises `CannotCheck` if it is not a readable Parquet or CSV file."""
    path = Path(release)
    try:
        if path.suffix.lower() == ".csv":
            return File(path, _read_csv(path), {}, None, is_csv=True)
        with pq.ParquetFile(path) as file:
            footer = dict(file.metadata.metadata or {})
            return File(path, file.read(), footer, _stated(footer), is_csv=False, parquet=file.metadata)
    except (OSError, pa.ArrowException):
        raise CannotCheck("the release can't be read; give a Parquet or CSV file of a release") from None


def _stated(footer: dict[bytes, bytes]) -> Any:
    return parse_json(footer[b"shoal"]) if b"shoal" in footer else None


def _read_csv(path: Path) -> pa.Table:
    parse = pa_csv.ParseOptions(newlines_in_values=False, ignore_empty_lines=False)
    with pa_csv.open_csv(path, parse_options=parse) as probe:
        names = probe.schema.names
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    return pa_csv.read_csv(path, parse_options=parse, convert_options=convert)


def read_columns(findings: Findings, file: File, grid: Grid) -> Columns | None:
    """Check names, order and types of the columns and give them as arrays; None if the boxes aren't there."""
    table = file.table
    names = table.column_names
    derived = ["datetime"] if grid.crs is None else ["datetime", "lat", "lng"]
    wanted = ["uid", *BOX, *derived, *(name for name in ("count", "geometry") if name in names)]
    findings.ran("leaks")
    if names != wanted:
        missing, extra = len(set(wanted) - set(names)), len(names) - len(set(names) & set(wanted))
        findings.fail(
            "leaks",
            f"The columns are not those of a release, in its order: {missing} are missing, {extra} are too many.",
        )
    if set(names) == {"uid", "datetime", "lat", "lng"}:
        raise CannotCheck("the release holds points, not boxes; this claim can't be checked on points")
    if len(set(names)) < len(names) or not {"uid", *BOX} <= set(names):
        return None
    table = table.select([name for name in wanted if name in names])
    typed = _typed_csv(findings, table) if file.is_csv else _typed(findings, table)
    return None if typed is None else _arrays(findings, typed)


def _typed(findings: Findings, table: pa.Table) -> pa.Table | None:
    wrong = [field.name for field in table.schema if field.type != TYPES[field.name]]
    findings.fail_if(wrong, "leaks", f"{len(wrong)} columns do not have the type that the format says.")
    try:
        return table.cast(pa.schema([(name, TYPES[name]) for name in table.column_names]))
    except pa.ArrowException:
        return None


def _typed_csv(findings: Findings, table: pa.Table) -> pa.Table | None:
    typed = {}
    for name in table.column_names:
        form = {_INSTANT: _TIME, pa.float64(): _DEGREES}.get(TYPES[name], _WHOLE)
        fits: Any = pc.match_substring_regex(table[name], form)
        odd = int(pc.sum(pc.invert(fits)).as_py() or 0)
        findings.fail_if(odd, "leaks", f"{odd:,} values are not written as the format says.")
        text = pc.if_else(fits, table[name], None)
        try:
            typed[name] = text.cast(TYPES[name])
            if TYPES[name] == pa.float64():
                other = int(pc.sum(pc.not_equal(typed[name].cast(pa.string()), text)).as_py() or 0)
                findings.fail_if(other, "leaks", f"{other:,} numbers are not written in their shortest form.")
        except pa.ArrowException:
            findings.fail("leaks", "A column holds values that are out of range.")
            return None
    return pa.table(typed)


def _arrays(findings: Findings, table: pa.Table) -> Columns:
    nulls = sum(table[name].null_count for name in table.column_names)
    findings.fail_if(nulls, "leaks", f"{nulls:,} values are missing.")
    whole = np.ones(len(table), dtype=bool)
    values = {}
    for name in table.column_names:
        column: Any = table[name]
        whole &= pc.is_valid(column).to_numpy(zero_copy_only=False)
        if name != "geometry":
            column = column.combine_chunks()
            plain = column.cast(pa.int64()) if TYPES[name] == _INSTANT else column
            values[name] = pc.fill_null(plain, 0).to_numpy(zero_copy_only=False)
    geometry = table["geometry"] if "geometry" in table.column_names else None
    holes = sum(int(np.isnan(values[name]).sum()) for name in ("lat", "lng") if name in values)
    findings.fail_if(holes, "leaks", f"{holes:,} values are not numbers.")
    for name in ("t_start", "t_end"):
        whole &= (values[name] >= _FIRST_MS) & (values[name] <= _LAST_MS)
    return Columns(whole, values, geometry)


def records_of(columns: Columns, grid: Grid) -> Records:
    """Make records of the rows, in the order (uid, t_start).

    A granule counts as held only if it lies wholly inside the published box, so that edges off the grid can't
    gain anything; a row in which something is missing becomes an empty box.
    """
    slot_ms = grid.slot_s * 1000
    low = [-(-columns[name].astype(np.int64) // size) for name, size in _edges(grid, slot_ms, "t_start", "_min")]
    high = [columns[name].astype(np.int64) // size - 1 for name, size in _edges(grid, slot_ms, "t_end", "_max")]
    boxes = np.stack([low[0], high[0], low[1], high[1], low[2], high[2]], axis=1)
    boxes[~columns.whole] = [0, -1, 0, -1, 0, -1]
    order = np.lexsort((columns["t_start"], columns["uid"]))
    uids, starts = np.unique(columns["uid"][order], return_index=True)
    offsets = np.append(starts, len(boxes)).astype(np.int64)
    weights = np.ones(len(uids), dtype=np.int64)
    if "count" in columns:
        weights = columns["count"][order][starts].astype(np.int64)
    return Records(uids, offsets, boxes[order], weights)


def _edges(grid: Grid, slot_ms: int, time: str, side: str) -> list[tuple[str, int]]:
    return [(time, slot_ms), ("x" + side, grid.cell_m), ("y" + side, grid.cell_m)]


def records_of_release(release: Release) -> Records:
    """Make records of a release that is still in memory."""
    boxes = release.boxes.astype(np.int64).reshape(-1, 6)
    boxes[:, :2] += release.frame.origin_slot
    size = len(release.offsets) - 1
    weights = np.ones(size) if release.multiplicity is None else release.multiplicity
    return Records(np.arange(size), release.offsets.astype(np.int64), boxes, weights.astype(np.int64))
