"""The original people, from their events to the samples of the declared grid, computed here with NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import CannotCheck, InputError
from shoal.trajectories import Trajectories
from shoal.verifier.arrays import distinct, fresh

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.io.events import Events
    from shoal.io.options import ReadOptions
    from shoal.progress import Progress
    from shoal.verifier.grid import Grid

__all__ = ["Original", "read_original"]

_FAR = 2.0**31


@dataclass(frozen=True, eq=False)
class Original:
    """Everybody inside the claim: distinct samples, user after user, each user's sorted by (t, x, y).

    Granules are absolute (slots since the epoch). `outside` and `rows_outside` count the users and
    the rows that the reading rules took out.
    """

    labels: Any
    offsets: NDArray[np.int64]
    t: NDArray[np.int64]
    x: NDArray[np.int64]
    y: NDArray[np.int64]
    outside: dict[str, int] = field(default_factory=dict)
    rows_outside: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many samples each user has."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> NDArray[np.int64]:
        """The user of each sample."""
        return np.repeat(np.arange(len(self)), self.counts)

    def keep(self, samples: NDArray[np.bool_]) -> Original:
        """Give the same users with some samples only."""
        counts = np.bincount(self.owners[samples], minlength=len(self))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return replace(self, offsets=offsets, t=self.t[samples], x=self.x[samples], y=self.y[samples])


def read_original(
    original: str | Path | Sequence[str | Path] | Trajectories,
    options: ReadOptions | None,
    grid: Grid,
    *,
    threads: int | None,
    work_dir: Path | None,
    progress: Progress,
) -> Original:
    """Give the people inside the claim on the grid of the release.

    Input: files (parsed by the common reader, with the reading options of the release) or Trajectories that are
    already on that grid. Guarantee: projection, cells, slots, de-duplication and screening are done here.
    """
    if isinstance(original, Trajectories):
        return _from_trajectories(original, grid)
    from shoal.io.events import read_events
    from shoal.io.options import ReadOptions

    chosen = options or ReadOptions()
    chosen = chosen.model_copy(update={"crs": grid.crs, "cell_m": grid.cell_m, "slot_s": grid.slot_s})
    try:
        events = read_events(original, chosen, threads=threads, work_dir=work_dir, progress=progress)
    except InputError as error:
        raise CannotCheck(f"the original can't be read: {error}") from None
    return _from_events(events, chosen, grid)


def _from_trajectories(people: Trajectories, grid: Grid) -> Original:
    frame = people.frame
    if (frame.crs, frame.cell_m, frame.slot_s) != (grid.crs, grid.cell_m, grid.slot_s):
        raise CannotCheck(
            "the trajectories are on another grid than the release (CRS, cell or slot differ); "
            "read them again with the release's grid, or give the original files"
        )
    users = np.repeat(np.arange(len(people)), people.counts)
    t = people.t.astype(np.int64) + frame.origin_slot
    return _distinct(users, t, people.x.astype(np.int64), people.y.astype(np.int64), people.labels)


def _from_events(events: Events, options: ReadOptions, grid: Grid) -> Original:
    t = grid.slots(events.epoch_ms)
    if events.lng is not None and events.lat is not None:
        x, y = grid.cells(events.lng, events.lat)
    elif events.east is not None and events.north is not None:
        x, y = np.floor(events.east / grid.cell_m), np.floor(events.north / grid.cell_m)
    else:
        raise CannotCheck("the original has no places that can be put on the grid")
    users, t, x, y, unplaced = _placed(events.users, t, x, y)
    everyone = _distinct(users, t, x, y, events.labels)
    few = everyone.counts < options.min_samples
    idle = np.zeros(len(everyone), dtype=bool)
    if options.min_active_days > 1:
        idle = _active_days(everyone, grid.slot_s, options.tz) < options.min_active_days
    outside = {
        **events.account.users_dropped,
        "no place in the CRS": len(distinct(events.users)) - len(everyone),
        "min_samples": int(few.sum()),
        "min_active_days": int((idle & ~few).sum()),
    }
    kept = _select(everyone, ~(few | idle))
    rows = {**events.account.dropped, "no place in the CRS": unplaced}
    return replace(kept, outside=_positive(outside), rows_outside=_positive(rows))


def _positive(counts: dict[str, int]) -> dict[str, int]:
    return {rule: int(count) for rule, count in counts.items() if count}


def _placed(users: Any, t: Any, x: Any, y: Any) -> tuple[Any, Any, Any, Any, int]:
    """Leave out the rows that the CRS can't hold."""
    fits = (np.abs(x) < _FAR) & (np.abs(y) < _FAR)
    lost = int((~fits).sum())
    if lost:
        users, t, x, y = users[fits], t[fits], x[fits], y[fits]
    return users, t, x.astype(np.int64), y.astype(np.int64), lost


def _distinct(users: Any, t: Any, x: Any, y: Any, labels: Any) -> Original:
    users, t, x, y = _sorted_distinct(users, t, x, y)
    starts = np.flatnonzero(fresh(users))
    offsets = np.append(starts, len(users)).astype(np.int64)
    return Original(labels.take(pa.array(users[starts])), offsets, t, x, y)


def _sorted_distinct(*columns: Any) -> list[Any]:
    """Sort rows by their columns and leave out repeated ones; packed into one number wherever that has room."""
    lows = [int(column.min(initial=0)) for column in columns]
    bits = [(int(column.max(initial=0)) - low).bit_length() for column, low in zip(columns, lows, strict=True)]
    if sum(bits) > 63:
        order = np.lexsort(columns[::-1])
        ordered = [column[order] for column in columns]
        once = fresh(*ordered)
        return [column[once] for column in ordered]
    packed = np.zeros(len(columns[0]), dtype=np.int64)
    for column, low, size in zip(columns, lows, bits, strict=True):
        packed = (packed << size) | (column.astype(np.int64) - low)
    packed = distinct(packed)
    unpacked = []
    for low, size in zip(lows[::-1], bits[::-1], strict=True):
        unpacked.append((packed & ((1 << size) - 1)) + low)
        packed = packed >> size
    return unpacked[::-1]


def _active_days(people: Original, slot_s: int, tz: str) -> NDArray[np.int64]:
    """Count the local days on which a slot of each user starts."""
    starts: Any = pa.array(people.t * slot_s * 1000).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", tz))
    local_ms = pc.local_timestamp(starts).cast(pa.int64()).to_numpy(zero_copy_only=False)
    days = local_ms // 86_400_000
    days -= days.min(initial=0)
    width = int(days.max(initial=0)) + 1
    return np.bincount(distinct(people.owners * width + days) // width, minlength=len(people))


def _select(people: Original, users: NDArray[np.bool_]) -> Original:
    kept = people.keep(users[people.owners])
    offsets = np.concatenate([[0], np.cumsum(people.counts[users])]).astype(np.int64)
    return replace(kept, labels=people.labels.filter(pa.array(users)), offsets=offsets)
