"""The original fixes that points are checked against, computed here from events with NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.errors import CannotCheck, InputError, TooLarge
from shoal.memory import available_bytes
from shoal.seen.arrays import fresh, starts_of
from shoal.seen.grid import Grid
from shoal.seen.track import Track
from shoal.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.reading.events import Events
    from shoal.reading.options import ReadOptions
    from shoal.run import Run

__all__ = ["Fixes", "open_fixes", "rows_of"]

_ROW_BYTES = 80  # of a kept fix while it is sorted
_READING = 0.6  # the share of the memory that may be used


@dataclass(frozen=True, eq=False)
class Fixes:
    """Everybody inside the claim: labels, and each user's number of fixes, first time and last time.

    `columns` are all fixes, if they are kept: user after user, sorted by (ms, lng, lat) and distinct.
    """

    labels: Any
    counts: NDArray[np.int64]
    first_ms: NDArray[np.int64]
    last_ms: NDArray[np.int64]
    columns: Track | None = None
    outside: dict[str, int] = field(default_factory=dict)
    rows_outside: dict[str, int] = field(default_factory=dict)


def open_fixes(
    original: str | Path | Sequence[str | Path] | Traces, options: ReadOptions | None, *, keep: bool, run: Run
) -> Fixes:
    """Read the original: with `keep` all fixes, else only the number of fixes and the times of each user.

    Input: files, parsed by the common reader with the reading options of the release, or Traces. Raises CannotCheck if
    they can't be read, TooLarge if they can't be kept. Cost: reading, and a sort where fixes are kept or counted.
    """
    if isinstance(original, Traces):
        return _of_traces(original, keep=keep)
    from shoal.reading.options import ReadOptions
    from shoal.reading.parts import event_parts

    chosen = options or ReadOptions()
    room = available_bytes() if run.memory is None else run.memory
    whole = keep or chosen.min_samples > 1 or chosen.min_active_days > 1 or chosen.align_days > 0
    parts: list[Fixes] = []
    try:
        with event_parts(original, chosen, run=run.within(int(room * _READING))) as events:
            if keep and events.rows * _ROW_BYTES > room:
                raise TooLarge("the fixes do not fit into memory, which checking noise needs; allow more: --memory")
            account = events.account
            first_ms = events.spread.first_ms if events.spread else None
            parts += (_of_events(part, chosen, first_ms, whole=whole, keep=keep) for part in events)
    except InputError as error:
        raise CannotCheck(f"the original can't be read: {error}") from None
    return _joined(parts, dict(account.users_dropped), dict(account.dropped))


def _of_traces(traces: Traces, *, keep: bool) -> Fixes:
    counts = np.bincount(traces.users, weights=traces.counts, minlength=len(traces.labels)).astype(np.int64)
    starts = starts_of(counts)
    columns = Track(starts, traces.ms, traces.lng, traces.lat) if keep else None
    return Fixes(traces.labels, counts, traces.ms[starts[:-1]], traces.ms[starts[1:] - 1], columns)


def _of_events(events: Events, options: ReadOptions, first_ms: int | None, *, whole: bool, keep: bool) -> Fixes:
    """Return the fixes of a part's users; with `whole`, repeated fixes are left out and users are screened."""
    n_users = len(events.labels)
    if not whole:
        counts = np.bincount(events.users, minlength=n_users)
        if (events.users[1:] >= events.users[:-1]).all():
            starts = starts_of(counts)[:-1]
            first, last = (edge.reduceat(events.epoch_ms, starts) for edge in (np.minimum, np.maximum))
        else:
            first, last = np.full(n_users, 2**62), np.full(n_users, -(2**62))
            np.minimum.at(first, events.users, events.epoch_ms)
            np.maximum.at(last, events.users, events.epoch_ms)
        return Fixes(events.labels, counts, first, last)
    lng, lat = _degrees(events, options)
    order = np.lexsort((lat, lng, events.epoch_ms, events.users))
    users, ms, lng, lat = events.users[order], events.epoch_ms[order], lng[order], lat[order]
    kept = fresh(users, ms, lng, lat)
    users, ms, lng, lat = users[kept], ms[kept], lng[kept], lat[kept]
    few, idle = _screened(users, ms, n_users, options)
    stays = ~(few | idle)[users]
    outside = {"min_samples": int(few.sum()), "min_active_days": int(idle.sum())}
    rows_outside = {"repeated": int((~kept).sum()), "of users left out": int((~stays).sum())}
    users, ms, lng, lat = users[stays], ms[stays], lng[stays], lat[stays]
    if options.align_days:
        from shoal.reading.days import aligned

        begun = int(events.epoch_ms.min()) if first_ms is None else first_ms
        moved, early = aligned(
            starts_of(np.bincount(users, minlength=n_users)), ms, options.align_days, begun, options.tz
        )
        rows_outside["later days"] = int((~early).sum())
        users, ms, lng, lat = users[early], moved[early], lng[early], lat[early]
    counts = np.bincount(users, minlength=n_users)
    there = np.flatnonzero(counts)
    starts = starts_of(counts[there])
    labels = events.labels.take(to_arrow_array(there))
    columns = Track(starts, ms, lng, lat) if keep else None
    return Fixes(labels, counts[there], ms[starts[:-1]], ms[starts[1:] - 1], columns, outside, rows_outside)


def _degrees(events: Events, options: ReadOptions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if events.lng is not None and events.lat is not None:
        return events.lng, events.lat
    if events.east is None or events.north is None:
        raise CannotCheck("the original has no places; give the columns it was read with")
    return Grid(options.crs, options.cell, options.slot).degrees(events.east, events.north)


def _screened(
    users: NDArray[np.int32], ms: NDArray[np.int64], n_users: int, options: ReadOptions
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which users have too few fixes, and which of the others have too few active days."""
    few = np.bincount(users, minlength=n_users) < options.min_samples
    idle = np.zeros(n_users, dtype=bool)
    if options.min_active_days > 1:
        from shoal.reading.times import zone

        days = zone(options.tz).to_local(ms) // 86_400_000
        idle = np.bincount(users[fresh(users, days)], minlength=n_users) < options.min_active_days
    return few, idle & ~few


def _joined(parts: list[Fixes], outside: dict[str, int], rows_outside: dict[str, int]) -> Fixes:
    for part in parts:
        for total, more in ((outside, part.outside), (rows_outside, part.rows_outside)):
            for rule, number in more.items():
                total[rule] = total.get(rule, 0) + number
    counts, first, last = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("counts", "first_ms", "last_ms")
    )
    kept = [part.columns for part in parts if part.columns is not None]
    columns = None
    if kept:
        ms, lng, lat = (np.concatenate([getattr(some, name) for some in kept]) for name in ("ms", "lng", "lat"))
        columns = Track(starts_of(counts), ms, lng, lat)
    labels = pa.concat_arrays([part.labels for part in parts])
    given = ({rule: count for rule, count in total.items() if count} for total in (outside, rows_outside))
    return Fixes(labels, counts, first, last, columns, *given)


def rows_of(fixes: Track, users: NDArray[np.int64], first_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each user's first fix at or after a time."""
    starts = [
        start + int(np.searchsorted(fixes.ms[start:stop], ms))
        for start, stop, ms in zip(
            fixes.offsets[users].tolist(), fixes.offsets[users + 1].tolist(), first_ms.tolist(), strict=True
        )
    ]
    return np.array(starts, dtype=np.int64)
