"""The original samples of some users on the declared grid, computed here from their events with NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, to_arrow_array
from shoal.errors import CannotCheck
from shoal.lists import offsets_of, ranges_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks, distinct, fresh, narrow, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.reading.events import Events
    from shoal.reading.options import ReadOptions
    from shoal.seen.grid import Grid
    from shoal.trajectories import Trajectories

__all__ = ["NO_PLACE", "Original", "from_events", "from_trajectories"]

NO_PLACE = "no place in the CRS"  # the reasons why rows and users may be outside the claim

_FAR = 2.0**31
_CHUNK = 1 << 17


@dataclass(frozen=True, eq=False)
class Original:
    """Some users inside the claim: distinct samples, user after user, each user's sorted by (t, x, y).

    Granules are absolute (slots since the epoch), int32 where they fit. `outside` and `rows_outside` count the
    users and the rows that the grid and the screening removed.
    """

    labels: Any
    offsets: NDArray[np.int64]
    t: NDArray[Any]
    x: NDArray[Any]
    y: NDArray[Any]
    outside: dict[str, int] = field(default_factory=dict)
    rows_outside: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of samples of each user."""
        return np.diff(self.offsets)

    def keep(self, samples: NDArray[np.bool_]) -> Original:
        """Return the same users with some samples only."""
        offsets = np.searchsorted(np.flatnonzero(samples), self.offsets)
        return replace(self, offsets=offsets, t=self.t[samples], x=self.x[samples], y=self.y[samples])


def from_trajectories(people: Trajectories, grid: Grid, run: Run) -> Original:
    """Return the samples of Trajectories on the release's grid, sorted and made distinct where needed."""
    frame = people.frame
    if (frame.crs, frame.cell_m, frame.slot_s) != (grid.crs, grid.cell_m, grid.slot_s):
        raise CannotCheck(
            "the trajectories are on another grid than the release (CRS, cell or slot differ); "
            "read them again with the release's grid, or give the original files"
        )
    t = narrow(people.t + np.int64(frame.origin_slot)) if frame.origin_slot else people.t
    if (np.diff(people.offsets) > 0).all() and _is_sorted(people.offsets, t, people.x, people.y):
        return Original(people.labels, people.offsets, t, people.x, people.y)
    return arranged(spread(people.counts), t, people.x, people.y, people.labels, run=run)


def _is_sorted(offsets: NDArray[np.int64], t: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> bool:
    """Return whether every user's samples are in order and distinct."""
    ahead = np.zeros(len(t), dtype=bool)
    ahead[offsets[:-1]] = True
    for start in range(1, len(t), _CHUNK):
        here, before = slice(start, start + _CHUNK), slice(start - 1, min(start - 1 + _CHUNK, len(t) - 1))
        later = (x[here] > x[before]) | ((x[here] == x[before]) & (y[here] > y[before]))
        ahead[here] |= (t[here] > t[before]) | ((t[here] == t[before]) & later)
    return bool(ahead.all())


def from_events(events: Events, options: ReadOptions, grid: Grid, run: Run) -> Original:
    """Put events on the grid, leave out repeated samples, and screen the users. Cost: a sort of one number per row."""
    t, x, y, lost = _granules(events, grid, run)
    users = events.users
    unplaced = int(lost.sum())
    if unplaced:
        users, t, x, y = users[~lost], t[~lost], x[~lost], y[~lost]
    everyone = arranged(users, t, x, y, events.labels, run=run)
    few = everyone.counts < options.min_samples
    idle = np.zeros(len(everyone), dtype=bool)
    if options.min_active_days > 1:
        idle = _active_days(everyone, grid.slot_s, options.tz) < options.min_active_days
    outside = {
        NO_PLACE: len(events.labels) - len(everyone),
        "min_samples": int(few.sum()),
        "min_active_days": int((idle & ~few).sum()),
    }
    kept = _select(everyone, ~(few | idle))
    return replace(kept, outside=outside, rows_outside={NO_PLACE: unplaced})


def _granules(
    events: Events, grid: Grid, run: Run
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]:
    """Return (t, x, y) of every event, and which events the CRS can't hold."""
    lng, lat, east, north = events.lng, events.lat, events.east, events.north
    ends = [events.epoch_ms.min(), events.epoch_ms.max()] if len(events) else []
    t = np.empty(len(events), dtype=narrow(grid.slots(np.array(ends, dtype=np.int64))).dtype)
    x, y = np.empty(len(events), dtype=np.int32), np.empty(len(events), dtype=np.int32)
    lost = np.zeros(len(events), dtype=bool)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        t[part] = grid.slots(events.epoch_ms[part])
        if lng is not None and lat is not None:
            column, row = grid.cells(lng[part], lat[part])
        elif east is not None and north is not None:
            column, row = np.floor(east[part] / grid.cell_m), np.floor(north[part] / grid.cell_m)
        else:
            raise CannotCheck("the original has no places that can be put on the grid")
        lost[part] = ~((np.abs(column) < _FAR) & (np.abs(row) < _FAR))
        if lost[part].any():
            column, row = (np.where(lost[part], 0.0, values) for values in (column, row))
        x[part], y[part] = column, row

    run.ranges(work, ranges_of(len(events), _CHUNK))
    return t, x, y, lost


def arranged(
    users: NDArray[Any], t: NDArray[Any], x: NDArray[Any], y: NDArray[Any], labels: Any, *, run: Run = LOCAL
) -> Original:
    """Sort rows by user and sample, and leave out repeated rows and labels without rows.

    Each row is packed into one number if it fits.
    """
    columns = (users, t, x, y)
    lows = [0, *(int(column.min()) if len(column) else 0 for column in columns[1:])]
    highs = [int(column.max()) if len(column) else 0 for column in columns]
    bits = [(high - low).bit_length() for high, low in zip(highs, lows, strict=True)]
    if sum(bits) > 63:
        order = np.lexsort(columns[::-1])
        ordered = [column[order] for column in columns]
        once = fresh(*ordered)
        users, t, x, y = (column[once] for column in ordered)
        offsets = np.searchsorted(users, np.arange(len(labels) + 1))
    else:
        packed = _packed(columns, lows, bits, run)
        present = np.arange(highs[0] + 1 if len(users) else 0, dtype=np.int64)
        offsets = np.full(len(labels) + 1, len(packed), dtype=np.int64)
        offsets[: len(present)] = np.searchsorted(packed, present << sum(bits[1:]))
        t, x, y = _unpacked(packed, columns[1:], lows[1:], bits[1:], run)
    full = np.diff(offsets) > 0
    offsets = np.append(offsets[:-1][full], len(t)).astype(np.int64)
    return Original(labels if full.all() else labels.filter(to_arrow_array(full)), offsets, t, x, y)


def _packed(columns: tuple[NDArray[Any], ...], lows: list[int], bits: list[int], run: Run) -> NDArray[np.int64]:
    """Return the distinct rows in order, each as one number."""
    packed = np.zeros(len(columns[0]), dtype=np.int64)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        for column, low, size in zip(columns, lows, bits, strict=True):
            packed[part] <<= size
            packed[part] |= column[part] - np.int64(low)

    run.ranges(work, ranges_of(len(packed), _CHUNK))
    packed.sort()
    once = fresh(packed)
    return packed if once.all() else packed[once]


def _unpacked(
    packed: NDArray[np.int64], like: tuple[NDArray[Any], ...], lows: list[int], bits: list[int], run: Run
) -> list[NDArray[Any]]:
    """Return the last columns of packed rows, of the same types as before."""
    columns = [np.empty(len(packed), dtype=column.dtype) for column in like]

    def work(start: int, stop: int) -> None:
        rest = packed[start:stop]
        for column, low, size in zip(columns[::-1], lows[::-1], bits[::-1], strict=True):
            column[start:stop] = (rest & ((1 << size) - 1)) + low
            rest = rest >> size

    run.ranges(work, ranges_of(len(packed), _CHUNK))
    return columns


def _active_days(people: Original, slot_s: int, tz: str) -> NDArray[np.int64]:
    """Count the local days on which a slot of each user starts."""
    active = np.zeros(len(people), dtype=np.int64)
    for part in blocks(people.counts):
        t = people.t[people.offsets[part.start] : people.offsets[part.stop]].astype(np.int64)
        instants: Any = to_arrow_array(t * slot_s * 1000).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", tz))
        days = from_arrow_array(pc.local_timestamp(instants).cast(pa.int64())) // 86_400_000
        days -= days.min()
        width = int(days.max()) + 1
        seen = distinct(spread(people.counts[part]) * width + days) // width
        active[part] = np.bincount(seen, minlength=part.stop - part.start)
    return active


def _select(people: Original, users: NDArray[np.bool_]) -> Original:
    if users.all():
        return people
    kept = people.keep(np.repeat(users, people.counts))
    return replace(kept, labels=people.labels.filter(to_arrow_array(users)), offsets=offsets_of(people.counts[users]))
