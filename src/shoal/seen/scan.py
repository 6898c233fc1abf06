"""Read a published file in one pass: its records, and the wrong values in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.lists import offsets_of
from shoal.parallel import ahead
from shoal.run import LOCAL, Run
from shoal.seen.arrays import fresh, narrow, spread
from shoal.seen.file import read_columns
from shoal.seen.polygons import Polygons
from shoal.seen.records import Records, catalogue

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.file import Batch, File
    from shoal.seen.findings import Findings
    from shoal.seen.grid import Grid
    from shoal.seen.records import Catalogue

__all__ = ["Scan", "report_form", "scan_file"]


@dataclass(frozen=True, eq=False)
class Scan:
    """The result of a pass through a file: its records, and in `odd` the numbers of wrong values by kind.

    `count` is the column of that name, and `polygons` is the result about the geometry, if the file has them.
    """

    records: Catalogue
    odd: Counter[str]
    count: NDArray[np.int32] | None
    polygons: Polygons | None


@dataclass
class _Rows:
    """The data kept of the rows seen so far: boxes, runs of one uid, and the last row."""

    boxes: list[NDArray[Any]] = field(default_factory=list)
    uids: list[NDArray[np.int64]] = field(default_factory=list)
    lengths: list[NDArray[np.int64]] = field(default_factory=list)
    counts: list[NDArray[np.int32]] = field(default_factory=list)
    last: tuple[int, ...] | None = None


def scan_file(findings: Findings, file: File, grid: Grid, *, own: bool = True, run: Run = LOCAL) -> Scan | None:
    """Read a file's records and check its values; None, with the failure noted, if the boxes are missing.

    `own` says that the file must be exactly a shoal release; another tool's file needs the columns of the boxes only.

    Wrong values are counted here and reported later by `check_values`. Values that are missing or not written as the
    format says are reported at once. Cost: linear; memory: 24 bytes per row, and a batch.
    """
    odd: Counter[str] = Counter()
    polygons = Polygons() if "geometry" in file.names else None
    rows = _Rows()
    readable = True
    for columns in ahead(read_columns(findings, file, grid.crs, odd, own=own)):
        if columns is None:
            readable = False
            break
        _count_order(odd, columns, rows)
        boxes = _granules(odd, columns, grid)
        _count_derived(odd, columns, grid, run)
        if polygons is not None:
            polygons.look(columns, grid, run)
        _collect(rows, columns, boxes)
    report_form(findings, file, odd)
    if not readable:
        return None
    count = np.concatenate(rows.counts) if rows.counts else None
    return Scan(_records(rows, count, run, ordered=not odd["unsorted"]), odd, count, polygons)


def report_form(findings: Findings, file: File, odd: Counter[str]) -> None:
    """Report values that are missing or, in text, not written as the format says."""
    for name in file.names if file.is_csv else ():
        forms, digits = odd[f"form of {name}"], odd[f"digits of {name}"]
        findings.fail_if(forms, "leaks/value-form")
        findings.fail_if(digits, "leaks/number-form")
        findings.fail_if(odd[f"range of {name}"], "leaks/range")
    findings.fail_if(odd["nulls"], "leaks/missing-values")
    findings.fail_if(odd["holes"], "leaks/not-numbers")


def _count_order(odd: Counter[str], columns: Batch, rows: _Rows) -> None:
    """Count the rows that are not sorted by record and time, and those with another count than the row before."""
    if not len(columns):
        return
    uid, start = columns["uid"], columns["t_start"]
    count = columns["count"] if "count" in columns else np.zeros(0, dtype=np.int32)
    first, last = (tuple(int(column[row]) for column in (uid, start, *[count] * len(count[:1]))) for row in (0, -1))
    if rows.last is not None:
        odd["unsorted"] += first[:2] < rows.last[:2]
        odd["uneven"] += first[0] == rows.last[0] and first[2:] != rows.last[2:]
    rows.last = last
    back = (uid[1:] < uid[:-1]) | ((uid[1:] == uid[:-1]) & (start[1:] < start[:-1]))
    odd["unsorted"] += _count(back)
    odd["uneven"] += _count((count[1:] != count[:-1]) & (uid[1:] == uid[:-1])) if len(count) else 0


def _granules(odd: Counter[str], columns: Batch, grid: Grid) -> NDArray[Any]:
    """Return the boxes as inclusive granules, and count the rows with edges off the grid or with nothing inside.

    A granule counts as held only if it lies wholly inside the published box, so that edges off the grid can't
    gain anything. A row in which something is missing becomes an empty box.
    """
    start, end, slot_ms, cell_m = columns["t_start"], columns["t_end"], grid.slot_s * 1000, grid.cell_m
    sizes = {"t_start": slot_ms, "t_end": slot_ms, "x_min": cell_m, "x_max": cell_m, "y_min": cell_m, "y_max": cell_m}
    kind = np.result_type(*(narrow(columns[name] // slot_ms).dtype for name in ("t_start", "t_end")))
    boxes = np.empty((len(columns), 6), dtype=kind)
    off = np.zeros(len(columns), dtype=bool)
    for place, (name, size) in enumerate(sizes.items()):
        granule = columns[name] // size
        between = granule * size != columns[name]
        off |= between
        boxes[:, place] = granule - 1 if place % 2 else granule + between
    empty = (end <= start) | (columns["x_max"] <= columns["x_min"]) | (columns["y_max"] <= columns["y_min"])
    if off.any():  # whole slots are whole seconds
        odd["fractions"] += _count((start % 1000 != 0) | (end % 1000 != 0))
    odd["off"] += _count(off & columns.whole)
    odd["empty"] += _count(empty & columns.whole)
    odd["wild"] += _count(~columns.whole)
    boxes[~columns.whole] = [0, -1, 0, -1, 0, -1]
    return boxes


def _count_derived(odd: Counter[str], columns: Batch, grid: Grid, run: Run) -> None:
    if "datetime" in columns:
        middle = columns["t_start"] + (columns["t_end"] - columns["t_start"]) // 2
        odd["times"] += _count((columns["datetime"] != middle) & columns.whole)
    given = [name for name in ("lng", "lat") if name in columns]  # another tool may give one of them alone
    if given:
        east = (columns["x_min"].astype(np.float64) + columns["x_max"]) / 2
        north = (columns["y_min"].astype(np.float64) + columns["y_max"]) / 2
        middle = dict(zip(("lng", "lat"), grid.degrees(east, north, run=run), strict=True))
        same = np.all([_same_bits(columns[name], middle[name]) for name in given], axis=0)
        odd["places"] += _count(~same & columns.whole)


def _same_bits(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = left.view(np.int64) == right.view(np.int64)
    return same


def _count(mask: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(mask))


def _collect(rows: _Rows, columns: Batch, boxes: NDArray[Any]) -> None:
    """Keep the rows' boxes, and the rows where records start."""
    rows.boxes.append(boxes)
    starts = np.flatnonzero(fresh(columns["uid"]))
    rows.uids.append(columns["uid"][starts])
    rows.lengths.append(np.diff(starts, append=len(columns)))
    if "count" in columns:
        rows.counts.append(columns["count"])


def _records(rows: _Rows, count: NDArray[np.int32] | None, run: Run, *, ordered: bool) -> Catalogue:
    """Make records of the rows, in the order (uid, t_start)."""
    boxes = _joined(rows.boxes)
    uids, lengths = (np.concatenate([np.empty(0, np.int64), *lists]) for lists in (rows.uids, rows.lengths))
    if not ordered:
        uid = uids[spread(lengths)]
        order = np.lexsort((boxes[:, 0], uid))
        uids, lengths, boxes = uid[order], np.ones(len(uid), dtype=np.int64), boxes[order]
        count = None if count is None else count[order]
    starts = offsets_of(lengths)
    first = np.flatnonzero(fresh(uids))  # a record may continue in the next batch
    offsets = np.append(starts[first], starts[-1])
    weights = np.ones(len(first), dtype=np.int64) if count is None else count[offsets[:-1]].astype(np.int64)
    return catalogue(uids[first], Records(offsets, boxes, weights), run=run)


def _joined(chunks: list[NDArray[Any]]) -> NDArray[Any]:
    """Join chunks of boxes into one array, and free each chunk when it is copied."""
    kind = max((chunk.dtype for chunk in chunks), key=lambda dtype: dtype.itemsize, default=np.dtype(np.int32))
    joined = np.empty((sum(map(len, chunks)), 6), dtype=kind)
    end = len(joined)
    while chunks:
        chunk = chunks.pop()
        joined[end - len(chunk) : end] = chunk
        end -= len(chunk)
    return joined
