"""Pairs: an original and what was published of it as points, record by record; boxes count as their middle."""

from __future__ import annotations

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
from shoal.layouts import Points
from shoal.publishing.audit import audit_table
from shoal.reading.traces import read_traces
from shoal.release import Release
from shoal.run import LOCAL, Run
from shoal.traces import Traces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.reading.events import Input
    from shoal.reading.options import ReadOptions

__all__ = ["Pairs", "Track", "open_pairs", "read_track"]

_COLUMNS = ["uid", "datetime", "lat", "lng"]
_TIME = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, eq=False)
class Track:
    """Published points: record r is `ms`, `lng`, `lat` from `offsets[r]` to `offsets[r+1]`, in order of time."""

    offsets: NDArray[np.int64]
    ms: NDArray[np.int64]
    lng: NDArray[np.float64]
    lat: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, eq=False)
class Pairs:
    """The original traces and what was published; `traces[r]` is the trace that record r was made of, if it is known.

    Who owns a record tells the audit; which of her traces it was made of, its times.
    """

    original: Traces
    published: Track
    traces: NDArray[np.int64] | None

    def require_owners(self, what: str) -> NDArray[np.int64]:
        """Return the trace of each record; raises CannotCheck if nobody says whose is whose."""
        if self.traces is None:
            raise CannotCheck(f"{what} needs the private audit file, which says whose record is whose: give --audit")
        return self.traces


def open_pairs(
    original: Input | Traces,
    release: str | Path | Release,
    *,
    audit: str | Path | pa.Table | None = None,
    options: ReadOptions | None = None,
    run: Run = LOCAL,
) -> Pairs:
    """Read an original (with the reading options of the release) and a release, of boxes or points.

    Raises CannotCheck if the release has no points in degrees, or the audit is of another release or original.
    """
    with run.stage("reading the release"):
        uids, track = read_track(release)
    if audit is None and isinstance(release, Release):
        audit = audit_table(release)
    traces = original
    if not isinstance(traces, Traces):
        traces = read_traces(traces, options=options, run=run)
    of = None if audit is None else _traces_of(traces, track, _owners(audit, uids, traces.labels))
    return Pairs(traces, track, of)


def read_track(release: str | Path | Release) -> tuple[NDArray[np.int64], Track]:
    """Return the numbers and points of a release's records: `uid, datetime, lat, lng` of any release with degrees."""
    if isinstance(release, Release) and isinstance(release.layout, Points) and len(release.layout):
        points = release.layout
        return np.arange(len(release)), Track(release.offsets, points.ms, points.lng, points.lat)
    table = release.to_arrow() if isinstance(release, Release) else _table(Path(release))
    if not set(_COLUMNS) <= set(table.column_names):
        raise CannotCheck("the release has no points in degrees: it needs the columns uid, datetime, lat, lng")
    try:
        uid, ms = (_column(table[name], kind) for name, kind in (("uid", pa.int64()), ("datetime", _TIME)))
        lat, lng = (_column(table[name], pa.float64()) for name in ("lat", "lng"))
    except pa.ArrowException:
        raise CannotCheck("the columns uid, datetime, lat, lng of the release can't be read") from None
    if not len(uid) or not (np.isfinite(lat).all() and np.isfinite(lng).all()):
        raise CannotCheck("the release has no points, or some that are no places")
    later = (uid[1:] > uid[:-1]) | ((uid[1:] == uid[:-1]) & (ms[1:] >= ms[:-1]))
    if not later.all():
        order = np.lexsort((ms, uid))
        uid, ms, lat, lng = uid[order], ms[order], lat[order], lng[order]
    starts = np.flatnonzero(np.diff(uid, prepend=uid[0] - 1))
    return uid[starts], Track(np.append(starts, len(uid)), ms, lng, lat)


def _table(path: Path) -> Any:
    try:
        if path.suffix.lower() != ".csv":
            names = pq.read_schema(path).names
            return pq.read_table(path, columns=[name for name in _COLUMNS if name in names])
        return pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types={"datetime": _TIME}))
    except (OSError, pa.ArrowException):
        raise CannotCheck("the release can't be read; give a Parquet or CSV file of a release") from None


def _column(column: Any, kind: Any) -> NDArray[Any]:
    typed = column.cast(kind).combine_chunks()
    if typed.null_count:
        raise CannotCheck("the release has missing values; check it with shoal verify")
    return from_arrow_array(typed.cast(pa.int64()) if pa.types.is_timestamp(kind) else typed)


def _owners(audit: str | Path | pa.Table, uids: NDArray[np.int64], labels: Any) -> NDArray[np.int64]:
    """Return the person (index of a label) published as each record."""
    table = audit if isinstance(audit, pa.Table) else _audit(Path(audit))
    wrong = CannotCheck("the audit does not belong to this release and original; give the one written with it")
    if not {"record", "owner"} <= set(table.column_names):
        raise wrong
    table = table.filter(pc.is_valid(table["record"]))
    known = labels.cast(pa.large_string())
    owner = pc.fill_null(pc.index_in(table["owner"].cast(pa.large_string()), value_set=known), -1)
    owner, record = (_column(column, pa.int64()) for column in (owner, table["record"]))
    place = np.minimum(np.searchsorted(uids, record), len(uids) - 1)
    owners = np.full(len(uids), -1, np.int64)
    owners[place] = owner
    if (uids[place] != record).any() or (owners < 0).any():
        raise wrong
    return owners


def _audit(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".csv":
            types = {"record": pa.int64(), "owner": pa.string(), "member": pa.string()}
            return pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types=types))
        return pq.read_table(path)
    except (OSError, pa.ArrowException):
        raise CannotCheck("the audit file can't be read; give the file that --audit wrote") from None


def _traces_of(traces: Traces, track: Track, owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the trace of each record: her owner's last one that begins before the middle of its time."""
    first = traces.ms[traces.offsets[:-1]]
    middle = (track.ms[track.offsets[:-1]] + track.ms[track.offsets[1:] - 1]) // 2
    # Traces and records in one line, by (user, time): the trace before each record is hers.
    is_record = np.repeat([False, True], [len(traces), len(track)])
    order = np.lexsort((is_record, np.concatenate([first, middle]), np.concatenate([traces.users, owners])))
    before = np.empty(len(order), np.int64)
    before[order] = np.cumsum(~is_record[order]) - 1
    return np.maximum(before[len(traces) :], np.searchsorted(traces.users, owners))
