"""Read traces: everybody's fixes from files, with real places and times, for point methods."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.arrow import to_arrow_array
from shoal.errors import InputError, SettingsError
from shoal.folders import private_folder
from shoal.frame import transformer
from shoal.lists import even_ranges, offsets_of
from shoal.reading.account import FEW_DAYS, FEW_SAMPLES, LATER_DAY, SAME_FIX
from shoal.reading.days import aligned, day_numbers
from shoal.reading.granules import choose_crs, make_frame
from shoal.reading.options import ReadOptions, read_options
from shoal.reading.parts import event_parts
from shoal.reading.sanity import require_sane, warn_of_naive_times
from shoal.reading.screen import Lost, complete
from shoal.reading.spill import spill_files
from shoal.reading.spread import spread_of
from shoal.run import LOCAL, Run
from shoal.traces import Traces

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.reading.events import Events, Input
    from shoal.reading.parts import EventParts
    from shoal.reading.spread import Spread

__all__ = ["read_traces"]

_SORTED = 1 << 20  # fixes between two looks at Ctrl-C


class _Part(NamedTuple):
    """The fixes of some users, user after user."""

    users: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ms: NDArray[np.int64]
    lng: NDArray[np.float64]
    lat: NDArray[np.float64]


def read_traces(source: Input, *, options: ReadOptions | None = None, run: Run = LOCAL, **fields: Any) -> Traces:
    """Read traces with exact places and times, for point methods; `read` puts the same data on the grid.

    Parameters
    ----------
    source, options, run, **fields
        As for `read`. Two options are for traces only. `split_gap="4h"` splits a trace where nothing is logged for four
        hours or longer. `align_days=20` moves everyone's first 20 days with data to the same start, as Promesse does.

    Returns
    -------
    Traces
        Everybody's fixes, with an account of the rows that were dropped. Only exact repetitions of a fix are merged.

    Raises
    ------
    InputError, SettingsError, TooLarge, OutputError
        As `read`; also SettingsError for grid cells without geography.

    Guarantee: the result does not depend on the order of rows, on how they are split into files, on the kind of files,
    or on threads and memory.

    Cost: that of reading, and of a sort if the rows are not in order; 24 bytes a fix.

    >>> import pyarrow as pa
    >>> table = pa.table({"uid": [7, 7, 8], "time": [0, 86_400, 60], "lat": [39.9] * 3, "lng": [116.4] * 3})
    >>> read_traces(table, split_gap="4h")
    Traces(2 users, 3 traces, 3 fixes)
    """
    chosen = read_options(options, **fields)
    lost = Lost()
    with event_parts(source, chosen, run=run) as parts:
        warn_of_naive_times(parts.account, chosen)
        if parts.spread is not None:
            return _mapped(parts, parts.spread, chosen, lost, run)
        events = parts.take()
    spread, labels = spread_of(events), events.labels
    frame = make_frame(choose_crs(spread, chosen), spread.first_ms, spread.last_ms, chosen)
    account = require_sane(events.account, spread, chosen)
    with run.stage("sort"):
        part = _sorted_part(events, chosen, lost, run)
        del events
        part = _screened(part, chosen, lost, spread.first_ms)
    return _traces(part, labels, frame, chosen, complete(account, lost))


def _mapped(parts: EventParts, spread: Spread, options: ReadOptions, lost: Lost, run: Run) -> Traces:
    """Make Traces from parts, with fixes in mapped files; the result is the same as from all rows at once."""
    known = require_sane(parts.account, spread, options)
    frame = make_frame(choose_crs(spread, options), spread.first_ms, spread.last_ms, options)
    users, counts, end, before = [], [], 0, 0
    with (
        private_folder(run.scratch) as private,
        spill_files(private, {"ms": "i8", "lng": "f8", "lat": "f8"}) as files,
        run.stage("sort", parts.rows) as advance,
    ):
        for events in parts:
            rows, people = len(events), len(events.labels)
            part = _screened(_sorted_part(events, options, lost, run), options, lost, spread.first_ms)
            for file, column in zip(files, (part.ms, part.lng, part.lat), strict=True):
                file.write(column, end)
            users.append(part.users + before)
            counts.append(np.diff(part.offsets))
            end, before = end + len(part.ms), before + people
            del events, part, column  # before the next part is loaded
            if len(users) == 1:
                gc.collect()  # the first use compiles kernels, which leaves cycles that hold everything around it
            advance(rows)
        account = complete(known, lost)
        columns = (file.map() for file in files)
        whole = _Part(np.concatenate(users), offsets_of(np.concatenate(counts)), *columns)
    return _traces(whole, parts.labels, frame, options, account)


def _sorted_part(events: Events, options: ReadOptions, lost: Lost, run: Run) -> _Part:
    """Return the fixes of events, sorted and distinct; the arrays of the events are overwritten."""
    from shoal.kernels.fixes import Fixes, close_up, group_fixes, sort_fixes

    lng, lat = _degrees(events, options)
    rows, n_users = len(events), len(events.labels)
    offsets, fixes = group_fixes(events.users, Fixes(events.epoch_ms, lng, lat), n_users)
    counts = np.empty(n_users, np.int64)
    ranges = even_ranges(np.diff(offsets), _SORTED)
    run.ranges(lambda a, b: sort_fixes(offsets, fixes, a, b, counts), ranges)
    kept = int(counts.sum())
    lost.rows[SAME_FIX] += rows - kept
    if kept < rows:
        close_up(offsets, counts, fixes)
    return _Part(np.arange(n_users), offsets_of(counts), fixes.ms[:kept], fixes.lng[:kept], fixes.lat[:kept])


def _degrees(events: Events, options: ReadOptions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if events.lng is not None and events.lat is not None:
        return events.lng, events.lat
    if options.crs is None:
        raise SettingsError("point methods need geography: give degrees, or x and y in metres with their `crs`")
    lng, lat = transformer(options.crs).transform(events.east, events.north, direction="INVERSE")
    if not (np.isfinite(lng).all() and np.isfinite(lat).all()):
        raise InputError("the CRS has no place for some of the metres; leave them out or choose another `crs`")
    return np.ascontiguousarray(lng), np.ascontiguousarray(lat)


def _screened(part: _Part, options: ReadOptions, lost: Lost, first_ms: int) -> _Part:
    """Leave out users with too few fixes or days, and align days, if the options ask for it."""
    counts = np.diff(part.offsets)
    few = counts < options.min_samples
    idle = np.zeros(len(counts), np.bool_)
    if options.min_active_days > 1:
        _, before = day_numbers(part.offsets, part.ms, options.tz)
        idle = (before[part.offsets[1:] - 1] + 1 < options.min_active_days) & ~few
    for rule, users in ((FEW_SAMPLES, few), (FEW_DAYS, idle)):
        lost.rows[rule] += int(counts[users].sum())
        lost.users[rule] += int(users.sum())
    if (few | idle).any():
        part = _kept(part, np.repeat(~(few | idle), counts))
    if options.align_days:
        ms, kept = aligned(part.offsets, part.ms, options.align_days, first_ms, options.tz)
        lost.rows[LATER_DAY] += int((~kept).sum())
        part = _kept(part._replace(ms=ms), kept)
    return part


def _kept(part: _Part, rows: NDArray[np.bool_]) -> _Part:
    """Return some of the fixes, and the users who have any."""
    offsets = offsets_of(rows)[part.offsets]
    some = np.diff(offsets) > 0
    return _Part(part.users[some], offsets_of(np.diff(offsets)[some]), part.ms[rows], part.lng[rows], part.lat[rows])


def _traces(part: _Part, labels: Any, frame: Frame, options: ReadOptions, account: Any) -> Traces:
    """Split traces at gaps; people without a fix are left out."""
    starts, users = part.offsets[:-1], np.arange(len(part.users))
    if options.split_gap is not None:
        breaks = np.flatnonzero(np.diff(part.ms) >= 1000 * options.split_gap) + 1
        starts = np.union1d(starts, breaks)
        users = np.searchsorted(part.offsets, starts, side="right") - 1
    offsets = np.append(starts, part.offsets[-1]).astype(np.int64)
    if len(part.users) < len(labels):
        labels = labels.take(to_arrow_array(part.users))
    return Traces(offsets, part.ms, part.lng, part.lat, users, labels, frame, account)
