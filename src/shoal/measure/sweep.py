"""Uniform generalization: the effect of coarser grids on the k-gap (k-gap, Fig. 4; GLOVE, Fig. 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import SettingsError
from shoal.frame import Frame
from shoal.measure.kgap import k_gap
from shoal.run import LOCAL, Run
from shoal.trajectories import build

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.measure.stretch import Stretch
    from shoal.measure.unicity import Resolution
    from shoal.trajectories import Trajectories

__all__ = ["LEVELS", "Level", "coarser", "sweep"]

# From the grid of the papers to a city and a third of a day: metres, seconds.
LEVELS: tuple[Resolution, ...] = (
    (100, 60),
    (500, 600),
    (1000, 1800),
    (2500, 3600),
    (5000, 7200),
    (10_000, 14_400),
    (20_000, 28_800),
)


_TOGETHER = 1 << 20  # values snapped at a time


@dataclass(frozen=True, kw_only=True)
class Level:
    """The result at a resolution: the share of people who are the same as k-1 others, and k-gaps of those drawn."""

    space_m: int
    time_s: int
    k: int
    people: int
    hidden: int
    gap: NDArray[np.float64] = field(repr=False, compare=False)

    @property
    def share(self) -> float:
        """The share of people who are already hidden among k."""
        return self.hidden / self.people

    def to_dict(self) -> dict[str, Any]:
        """Return the form that `--json` prints."""
        figures: dict[str, Any] = {"space_m": self.space_m, "time_s": self.time_s, "k": self.k, "people": self.people}
        figures |= {"hidden": self.hidden, "share": self.share}
        return figures | {"gap_median": float(np.median(self.gap)) if len(self.gap) else None}


def sweep(
    people: Trajectories,
    *,
    levels: Sequence[Resolution] = LEVELS,
    k: int = 2,
    sample: int = 0,
    seed: int = 0,
    stretch: Stretch | None = None,
    run: Run = LOCAL,
) -> tuple[Level, ...]:
    """Snap everybody to coarser and coarser grids, and count the people who are the same as k-1 others.

    Input: levels (metres, seconds); those finer than the grid are left out. Output: a `Level` for each. Who is hidden
    is counted among everybody; k-gaps are measured for `sample` people drawn by `seed` (none unless asked for),
    against everybody.
    Guarantee: exact. Cost: a sort of the samples for each level, and the k-gap of those drawn.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=60, days=2, seed=1))
    >>> fine, coarse = sweep(people, levels=[(100, 60), (20_000, 28_800)])
    >>> fine.share <= coarse.share
    True
    """
    if k < 2 or sample < 0:
        raise SettingsError("k must be at least 2, the sample not negative")
    grid = people.frame
    found = []
    for space_m, time_s in levels:
        if space_m < grid.cell_m or time_s < grid.slot_s:
            continue
        snapped = coarser(people, space_m, time_s)
        gap = np.empty(0)
        if sample:
            measured = k_gap(snapped, k, sample=sample, seed=seed, stretch=stretch, run=run)
            gap = measured.gap[:, 0]
        hidden = _same_as_others(snapped, k)
        level = {"space_m": space_m, "time_s": time_s, "k": k, "people": len(people)}
        found.append(Level(**level, hidden=hidden, gap=gap))
    return tuple(found)


def coarser(people: Trajectories, space_m: int, time_s: int) -> Trajectories:
    """Snap everybody to a grid of larger cells and slots; samples that fall together are one."""
    grid = people.frame
    if (space_m, time_s) == (grid.cell_m, grid.slot_s):
        return people
    origin = (int(people.t.min()) + grid.origin_slot) * grid.slot_s // time_s
    frame = Frame(crs=grid.crs, cell_m=space_m, slot_s=time_s, origin_slot=origin, tz=grid.tz)
    t = _snapped(people.t, grid.origin_slot, grid.slot_s, time_s, origin)
    x, y = (_snapped(side, 0, grid.cell_m, space_m, 0) for side in (people.x, people.y))
    users = np.repeat(np.arange(len(people), dtype=np.int32), people.counts)
    return build(users, t, x, y, labels=people.labels, frame=frame, reuse=True)


def _snapped(values: NDArray[np.int32], shift: int, size: int, to: int, origin: int) -> NDArray[np.int32]:
    """Return (value + shift) · size // to - origin, some values at a time, so that large numbers are few."""
    snapped = np.empty_like(values)
    for start in range(0, len(values), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        snapped[part] = (values[part].astype(np.int64) + shift) * size // to - origin
    return snapped


def _same_as_others(people: Trajectories, k: int) -> int:
    """Count the people who are the same as at least k-1 others; in canonical order they are next to each other."""
    counts, offsets = people.counts, people.offsets
    sizes = [0]
    for user in range(len(people)):
        same = user > 0 and counts[user] == counts[user - 1]
        if same:
            here, before = (slice(offsets[one], offsets[one + 1]) for one in (user, user - 1))
            same = all(np.array_equal(column[here], column[before]) for column in (people.t, people.x, people.y))
        if same:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return sum(size for size in sizes if size >= k)
