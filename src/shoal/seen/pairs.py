"""Pairs: an original and its release as points, record by record; a box counts as its middle."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import to_arrow_array
from shoal.errors import CannotCheck
from shoal.run import LOCAL, Run
from shoal.seen.audit import audit_rows, places_among
from shoal.seen.fixes import open_fixes
from shoal.seen.opened import open_release
from shoal.seen.recorded import Recorded, recorded_reading
from shoal.seen.stores import brought
from shoal.seen.track import Track
from shoal.traces import Traces

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.reading.events import Input
    from shoal.reading.options import ReadOptions
    from shoal.release import Release

__all__ = ["Pairs", "Track", "open_pairs"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The original traces and the published points; `traces[r]` is the trace that record r was made of, if known.

    The audit says who owns a record; the record's times say which of their traces it was made of. `recorded` says how
    the original was read.
    """

    original: Traces | Track
    published: Track
    traces: NDArray[np.int64] | None
    recorded: Recorded = field(default_factory=lambda: Recorded(options=None))

    def require_owners(self, what: str) -> NDArray[np.int64]:
        """Return the trace of each record; raises CannotCheck if the owners of the records are not known."""
        if self.traces is None:
            raise CannotCheck(f"{what} needs the private audit file, which says whose record is whose: give `audit`")
        return self.traces


def open_pairs(
    original: Input | Traces,
    release: str | Path | Release,
    *,
    audit: str | Path | pa.Table | None = None,
    run_record: str | Path | None = None,
    options: ReadOptions | None = None,
    run: Run = LOCAL,
) -> Pairs:
    """Read an original (with the reading options of the release) and a release, of boxes or points.

    Options that are not given come from the private `run_record`, which is found by itself beside the release or the
    audit file. Raises CannotCheck if the release has no points in degrees, if the audit is of another release or
    original, or if the times of both seem to be read in different time zones.
    """
    with brought(release, run) as at_hand, run.stage("reading the release"):
        recorded = recorded_reading(original, at_hand, options, run_record=run_record, audit=audit)
        seen = open_release(at_hand)
        uids, track = seen.track()
    if audit is None:
        audit = seen.audit
    traces, users, labels = _traces(original, recorded.options, run)
    recorded.require_same_zone(traces.seconds, track.seconds)
    of = None if audit is None else _traces_of(traces, users, track, _owners(audit, uids, labels, run))
    return Pairs(traces, track, of, recorded)


def _traces(
    original: Input | Traces, options: ReadOptions | None, run: Run
) -> tuple[Traces | Track, NDArray[np.int64], Any]:
    """Return the original traces, the user of each trace, and the labels of the users."""
    if isinstance(original, Traces):
        return original, original.users, original.labels
    opened = open_fixes(original, options, keep=True, spill=True, run=run)
    fixes = opened.columns
    if fixes is None or not fixes.fixes:
        raise CannotCheck("no user of the original is left; lower `min_samples` or `min_active_days`")
    if options is None or options.split_gap is None:
        return fixes, np.arange(len(fixes)), opened.labels
    gaps = np.flatnonzero(np.diff(fixes.ms) >= 1000 * options.split_gap) + 1
    starts = np.union1d(fixes.offsets[:-1], gaps)
    users = np.searchsorted(fixes.offsets, starts, side="right") - 1
    return replace(fixes, offsets=np.append(starts, fixes.fixes)), users, opened.labels


def _owners(audit: str | Path | pa.Table, uids: NDArray[np.int64], labels: Any, run: Run) -> NDArray[np.int64]:
    """Return the owner (index of a label) of each record."""
    table = audit_rows(audit, run)
    wrong = CannotCheck("the audit does not belong to this release and original; give the one written with it")
    if not {"record", "owner"} <= set(table.column_names):
        raise wrong
    table = table.filter(pc.is_valid(table["record"]))
    record = places_among(table["record"].cast(pa.int64()), to_arrow_array(uids))
    owner = places_among(table["owner"].cast(pa.large_string()), labels.cast(pa.large_string()))
    owners = np.full(len(uids), -1, np.int64)
    owners[record] = owner
    if (record < 0).any() or (owners < 0).any():
        raise wrong
    return owners


def _traces_of(
    traces: Traces | Track, users: NDArray[np.int64], track: Track, owners: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the trace of each record: its owner's last trace that begins before the middle of the record's time."""
    first = traces.ms[traces.offsets[:-1]]
    middle = (track.ms[track.offsets[:-1]] + track.ms[track.offsets[1:] - 1]) // 2
    # Sort traces and records together by (user, time): the trace before each record is its owner's.
    is_record = np.repeat([False, True], [len(traces), len(track)])
    order = np.lexsort((is_record, np.concatenate([first, middle]), np.concatenate([users, owners])))
    before = np.empty(len(order), np.int64)
    before[order] = np.cumsum(~is_record[order]) - 1
    return np.maximum(before[len(traces) :], np.searchsorted(users, owners))
