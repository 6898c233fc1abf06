"""The original fixes that points are compared with, computed here from events with NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.errors import CannotCheck, InputError, TooLarge
from shoal.folders import private_folder
from shoal.lists import offsets_of
from shoal.memory import available_bytes
from shoal.seen.arrays import fresh
from shoal.seen.grid import Grid
from shoal.seen.recorded import unreadable
from shoal.seen.track import Track
from shoal.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from shoal.reading.events import Events, Input
    from shoal.reading.options import ReadOptions
    from shoal.run import Run
    from shoal.seen.witness import Witness

__all__ = ["OriginalFixes", "open_fixes", "rows_of"]

_ROW_BYTES = 80  # of a kept fix while it is sorted
_READING = 0.6  # the share of the memory that may be used


@dataclass(frozen=True, eq=False)
class OriginalFixes:
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
    original: Input | Traces,
    options: ReadOptions | None,
    *,
    keep: bool,
    run: Run,
    spill: bool = False,
    witness: Witness | None = None,
) -> OriginalFixes:
    """Read the original: with `keep` all fixes, else only the number of fixes and the times of each user.

    Input: files, parsed by the common reader with the reading options of the release, or Traces. Fixes that do not fit
    into memory are kept in private files with `spill`, else they raise TooLarge. Raises CannotCheck if the original
    can't be read. A `witness` hears what was read.
    Cost: reading, and a sort where fixes are kept or counted, if they are not in order.
    """
    if isinstance(original, Traces):
        return _of_traces(original, keep=keep)
    from shoal.reading.options import ReadOptions
    from shoal.reading.parts import event_parts

    chosen = options or ReadOptions()
    room = available_bytes() if run.memory is None else run.memory
    whole = keep or chosen.min_samples > 1 or chosen.min_active_days > 1 or chosen.align_days > 0
    try:
        with event_parts(original, chosen, run=run.within(int(room * _READING))) as events:
            if keep and not spill and events.rows * _ROW_BYTES > room:
                raise TooLarge("the fixes do not fit into memory, which checking noise needs; allow more: `memory`")
            account = events.account
            first_ms = events.spread.first_ms if events.spread else None
            if witness is not None:
                witness.begin(chosen, account)
            heard = events if witness is None else witness.overhear(events)
            made = (_of_events(part, chosen, first_ms, whole=whole, keep=keep) for part in heard)
            parts, spilled = _spilled(made, run) if spill and events.spread else (list(made), [])
    except InputError as error:
        raise CannotCheck(unreadable(error)) from None
    return _joined(parts, spilled, dict(account.users_dropped), dict(account.dropped))


def _of_traces(traces: Traces, *, keep: bool) -> OriginalFixes:
    counts = np.bincount(traces.users, weights=traces.counts, minlength=len(traces.labels)).astype(np.int64)
    starts = offsets_of(counts)
    columns = Track(starts, traces.ms, traces.lng, traces.lat) if keep else None
    return OriginalFixes(traces.labels, counts, traces.ms[starts[:-1]], traces.ms[starts[1:] - 1], columns)


def _of_events(events: Events, options: ReadOptions, first_ms: int | None, *, whole: bool, keep: bool) -> OriginalFixes:
    """Return the fixes of a part's users; with `whole`, repeated fixes are left out and users are screened."""
    n_users = len(events.labels)
    if not whole:
        counts = np.bincount(events.users, minlength=n_users)
        if (events.users[1:] >= events.users[:-1]).all():
            starts = offsets_of(counts)[:-1]
            first, last = (edge.reduceat(events.epoch_ms, starts) for edge in (np.minimum, np.maximum))
        else:
            first, last = np.full(n_users, 2**62), np.full(n_users, -(2**62))
            np.minimum.at(first, events.users, events.epoch_ms)
            np.maximum.at(last, events.users, events.epoch_ms)
        return OriginalFixes(events.labels, counts, first, last)
    lng, lat = _degrees(events, options)
    users, ms, lng, lat = _in_order(events.users, events.epoch_ms, lng, lat)
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
            offsets_of(np.bincount(users, minlength=n_users)), ms, options.align_days, begun, options.tz
        )
        rows_outside["later days"] = int((~early).sum())
        users, ms, lng, lat = users[early], moved[early], lng[early], lat[early]
    counts = np.bincount(users, minlength=n_users)
    there = np.flatnonzero(counts)
    starts = offsets_of(counts[there])
    labels = events.labels.take(to_arrow_array(there))
    columns = Track(starts, ms, lng, lat) if keep else None
    return OriginalFixes(labels, counts[there], ms[starts[:-1]], ms[starts[1:] - 1], columns, outside, rows_outside)


def _in_order(*columns: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the columns sorted by user, time, longitude and latitude; sort by less where that is enough."""
    users, ms, lng, lat = found = columns
    for keys in ((users,), (ms, users), (lat, lng, ms, users)):
        if _is_sorted(*found):
            break
        order = np.lexsort(keys)
        found = tuple(column[order] for column in columns)
    return found


def _is_sorted(*columns: NDArray[Any]) -> bool:
    """Return whether rows are sorted by the columns, the first one first."""
    later = np.ones(max(len(columns[0]) - 1, 0), dtype=bool)
    for column in reversed(columns):
        later &= column[1:] == column[:-1]
        later |= column[1:] > column[:-1]
    return bool(later.all())


def _degrees(events: Events, options: ReadOptions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if events.lng is not None and events.lat is not None:
        return events.lng, events.lat
    if events.east is None or events.north is None:
        raise CannotCheck("the original has no places; give the columns it was read with")
    lng, lat = Grid(options.crs, options.cell, options.slot).degrees(events.east, events.north)
    if not (np.isfinite(lng).all() and np.isfinite(lat).all()):
        raise CannotCheck("the CRS has no place for some metres of the original; give the release's CRS: `crs`")
    return lng, lat


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


def _spilled(parts: Iterable[OriginalFixes], run: Run) -> tuple[list[OriginalFixes], list[NDArray[Any]]]:
    """Write the fixes of each part to files; return the parts without them, and the files as mapped arrays."""
    from shoal.reading.spill import spill_files

    kept, end = [], 0
    with (
        private_folder(run.scratch) as folder,
        spill_files(folder, {"ms": "i8", "lng": "f8", "lat": "f8"}) as files,
    ):
        for part in parts:
            if part.columns is not None:
                for file, column in zip(files, (part.columns.ms, part.columns.lng, part.columns.lat), strict=True):
                    file.write(column, end)
                end += part.columns.fixes
            kept.append(replace(part, columns=None))
        columns = [file.map() for file in files] if end else []
    return kept, columns


def _joined(
    parts: list[OriginalFixes], spilled: list[NDArray[Any]], outside: dict[str, int], rows_outside: dict[str, int]
) -> OriginalFixes:
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
        columns = Track(offsets_of(counts), ms, lng, lat)
    elif spilled:
        ms, lng, lat = spilled
        columns = Track(offsets_of(counts), ms, lng, lat)
    labels = pa.concat_arrays([part.labels for part in parts])
    given = ({rule: count for rule, count in total.items() if count} for total in (outside, rows_outside))
    return OriginalFixes(labels, counts, first, last, columns, *given)


def rows_of(fixes: Track, users: NDArray[np.int64], first_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each user's first fix at or after a time."""
    starts = [
        start + int(np.searchsorted(fixes.ms[start:stop], ms))
        for start, stop, ms in zip(
            fixes.offsets[users].tolist(), fixes.offsets[users + 1].tolist(), first_ms.tolist(), strict=True
        )
    ]
    return np.array(starts, dtype=np.int64)
