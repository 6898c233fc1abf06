"""Read a published file of points in one pass: summarize each record, and count the wrong values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.lists import ranges_of
from shoal.parallel import ahead
from shoal.run import LOCAL, Run
from shoal.seen.arrays import fresh
from shoal.seen.file import read_points
from shoal.seen.polygons import PlainPoints
from shoal.seen.scan import report_form

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release import Release
    from shoal.seen.file import Batch, File
    from shoal.seen.findings import Findings

__all__ = ["PointScan", "scan_point_release", "scan_points"]

_SCALE = 1e7  # degrees have seven decimals at most
_CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class PointScan:
    """The result of a pass: the records' numbers and counts of points, and in `odd` the wrong values by kind.

    `edges` are each record's first time, last time, first longitude and first latitude. `columns` are all points
    (ms, lng, lat), if they are asked for. `shapes` is the result for the points as geometry, if there is such a column.
    """

    uids: NDArray[np.int64]
    counts: NDArray[np.int64]
    edges: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]
    odd: Counter[str] = field(default_factory=Counter)
    columns: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]] | None = None
    shapes: PlainPoints | None = None

    def __len__(self) -> int:
        return len(self.uids)


@dataclass
class _Runs:
    """Runs of one uid within a batch, and the last row seen."""

    parts: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    kept: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    last: tuple[int, int] | None = None


def scan_points(findings: Findings, file: File, *, keep: bool, run: Run = LOCAL) -> PointScan | None:
    """Read a file's points and check its values; None, with the failure noted, if the points are missing.

    Wrong values are counted here, and reported later by the verifier. Cost: linear; memory: a
    batch, and 24 bytes a point with `keep`.
    """
    odd: Counter[str] = Counter()
    runs = _Runs()
    shapes = PlainPoints() if "geometry" in file.names and not file.is_csv else None
    readable = True
    for columns in ahead(read_points(findings, file, odd)):
        if columns is None:
            readable = False
            break
        if shapes is not None:
            shapes.look(columns)
        if len(columns):
            _count_order(odd, columns, runs)
            _count_values(odd, columns, run)
            _collect(runs, columns, keep=keep)
    report_form(findings, file, odd)
    if not readable:
        return None
    uids, counts, *edges = (np.concatenate(parts) for parts in zip(*runs.parts, strict=True)) if runs.parts else _NONE
    first = np.flatnonzero(fresh(uids)) if len(uids) else np.empty(0, np.int64)
    last = np.append(first, len(uids))[1:] - 1  # a record may continue in the next batch
    totals = np.add.reduceat(counts, first) if len(first) else counts
    begun, ended, lng, lat = edges
    whole = tuple(np.concatenate(column) for column in zip(*runs.kept, strict=True)) if keep and runs.kept else None
    return PointScan(uids[first], totals, (begun[first], ended[last], lng[first], lat[first]), odd, whole, shapes)  # type: ignore[arg-type]


_NONE = tuple(np.empty(0, kind) for kind in (np.int64, np.int64, np.int64, np.int64, np.float64, np.float64))


def scan_point_release(release: Release) -> PointScan:
    """Return the scan of a release of points that is still in memory."""
    first, last = release.offsets[:-1], release.offsets[1:] - 1
    points = release.points
    edges = points.ms[first], points.ms[last], points.lng[first], points.lat[first]
    columns = points.ms, points.lng, points.lat
    return PointScan(np.arange(len(release)), np.diff(release.offsets), edges, Counter(), columns)


def _count_order(odd: Counter[str], columns: Batch, runs: _Runs) -> None:
    uid, ms = columns["uid"], columns["datetime"]
    if runs.last is not None:
        odd["unsorted"] += (int(uid[0]), int(ms[0])) < runs.last
    runs.last = int(uid[-1]), int(ms[-1])
    back = (uid[1:] < uid[:-1]) | ((uid[1:] == uid[:-1]) & (ms[1:] < ms[:-1]))
    odd["unsorted"] += int(np.count_nonzero(back))


def _count_values(odd: Counter[str], columns: Batch, run: Run) -> None:
    """Count rows with something missing, places off the Earth, and degrees with too many decimals."""
    wild = np.zeros(len(columns), dtype=bool)
    fine = np.zeros(len(columns), dtype=bool)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        wild[part] = ~columns.whole[part]
        for name, most in (("lat", 90.0), ("lng", 180.0)):
            degrees = columns[name][part]
            wild[part] |= ~(np.abs(degrees) <= most)
            on_earth = np.clip(degrees, -most, most)
            fine[part] |= np.rint(on_earth * _SCALE) / _SCALE != on_earth

    run.ranges(work, ranges_of(len(columns), _CHUNK))
    odd["wild"] += int(np.count_nonzero(wild))
    odd["fine"] += int(np.count_nonzero(fine & ~wild))


def _collect(runs: _Runs, columns: Batch, *, keep: bool) -> None:
    uid, ms, lng, lat = (columns[name] for name in ("uid", "datetime", "lng", "lat"))
    starts = np.flatnonzero(fresh(uid))
    ends = np.append(starts[1:], len(uid)) - 1
    runs.parts.append((uid[starts], ends - starts + 1, ms[starts], ms[ends], lng[starts], lat[starts]))
    if keep:
        runs.kept.append((ms, lng, lat))
