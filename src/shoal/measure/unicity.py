"""Unicity: count the people who are singled out by a few of their points."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import SettingsError
from shoal.intervals import wilson
from shoal.kernels.samples import samples_of
from shoal.kernels.unicity import Coarse, PointTable, draw_points, fill_slots, held_prefixes
from shoal.lists import even_ranges
from shoal.run import LOCAL, Run
from shoal.trajectories import require_trajectories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["MOST_POINTS", "POINTS", "Resolution", "Unicity", "resolution_text", "unicity"]

Resolution = tuple[int, int]  # metres, seconds

POINTS = tuple(range(1, 11))
MOST_POINTS = 64
_HOUR_AND_KILOMETRE: Resolution = (1000, 3600)
_TOGETHER = 20_000  # people whose points are looked up in one pass
_SAMPLES_PER_RANGE = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Unicity:
    """How many of `people`, drawn at random, are unique given `points` of their points at one resolution.

    `unique` is that number, and `share` is `unique / people`. `fewer` people have fewer distinct points than `points`;
    all their points are known.
    """

    points: int
    space_m: int
    time_s: int
    people: int
    unique: int
    fewer: int

    @property
    def share(self) -> float:
        """The share of people who are unique."""
        return self.unique / self.people

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % Wilson interval of the share."""
        return wilson(self.unique, self.people)

    def to_dict(self) -> dict[str, Any]:
        """Return the form that `--json` prints and tables hold."""
        low, high = self.interval
        return {**vars(self), "share": self.share, "low": low, "high": high}


def unicity(
    people: Trajectories,
    *,
    points: int | Sequence[int] = POINTS,
    resolutions: Sequence[Resolution] = (_HOUR_AND_KILOMETRE,),
    sample: int = 1000,
    seed: int = 0,
    run: Run = LOCAL,
) -> tuple[Unicity, ...]:
    """Count the people who are unique given a few random points, each a place and a time (de Montjoye et al. 2013).

    A person is unique if nobody else was at all of these places at these times.

    Parameters
    ----------
    people
        The samples of everybody.
    points
        How many points the adversary knows: one number or several.
    resolutions
        How exactly the points are known, as pairs of metres and seconds; none finer than the grid.
    sample, seed
        How many people to draw, and the seed of all draws. Each person drawn is compared with everybody.
    run
        Threads, memory and the folder for temporary files.

    Returns
    -------
    tuple of Unicity
        One for each resolution and number of points, in the order asked for.

    Guarantee: the share is exact for the people drawn. A person's points are distinct at the resolution, and every set
    of them is equally likely. A person's p points are among their p + 1 points, so the share never falls with p. The
    result is the same for the same seed, with any number of threads.

    Cost: one pass over all samples for each resolution and 20,000 people drawn, about 30 ns a sample. Little memory.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=200, days=14, seed=1))
    >>> one, four = unicity(people, points=(1, 4))
    >>> one.share <= four.share, four.interval[0] < four.share
    (True, True)
    """
    require_trajectories(people, "shoal.unicity")
    asked = [points] if isinstance(points, int) else list(points)
    _refuse(people, asked, resolutions, sample, seed)
    drawn = np.sort(np.random.default_rng(seed).permutation(len(people))[:sample])
    found: list[Unicity] = []
    for space_m, time_s in resolutions:
        frame = people.frame
        coarse = Coarse(frame.origin_slot, frame.slot_s, time_s, frame.cell_m, space_m)
        with run.stage(f"points of {resolution_text(space_m, time_s)}", len(people)) as advance:
            blocks = [drawn[start : start + _TOGETHER] for start in range(0, len(drawn), _TOGETHER)]

            def told(amount: float, advance: Any = advance, parts: int = len(blocks)) -> None:
                advance(amount / parts)

            parts = [_candidates(people, coarse, block, max(asked), seed, run, told) for block in blocks]
        counts, candidates = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        for p in asked:
            unique = int((candidates[np.arange(len(drawn)), np.minimum(p, counts) - 1] == 1).sum())
            known = {"points": p, "space_m": space_m, "time_s": time_s}
            found.append(Unicity(**known, people=len(drawn), unique=unique, fewer=int((counts < p).sum())))
    return tuple(found)


def resolution_text(space_m: int, time_s: int) -> str:
    """Write a resolution in the usual units.

    >>> resolution_text(1000, 3600), resolution_text(250, 90)
    ('1 km / 1 h', '250 m / 90 s')
    """
    space = f"{space_m // 1000} km" if space_m % 1000 == 0 else f"{space_m} m"
    unit, name = next((u, n) for u, n in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")) if time_s % u == 0)
    return f"{space} / {time_s // unit} {name}"


def _refuse(
    people: Trajectories, points: Sequence[int], resolutions: Sequence[Resolution], sample: int, seed: int
) -> None:
    if not points or not all(1 <= p <= MOST_POINTS for p in points):
        raise SettingsError(f"points must be whole numbers from 1 to {MOST_POINTS}")
    if sample < 1 or seed < 0:
        raise SettingsError("the sample must be at least 1, the seed a whole number from 0 on")
    frame = people.frame
    if not resolutions:
        raise SettingsError("name a resolution, e.g. 1km/1h")
    if any(space_m < frame.cell_m or time_s < frame.slot_s for space_m, time_s in resolutions):
        raise SettingsError(
            f"a resolution can't be finer than the grid ({frame.cell_m} m, {frame.slot_s} s); "
            "give a coarser one, or read with a finer grid"
        )


def _candidates(
    people: Trajectories, coarse: Coarse, drawn: NDArray[np.int64], most: int, seed: int, run: Run, told: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many points are known of each person drawn, and for p = 1…most the users who hold the first p.

    Beyond the points a person has, the number is that of all their points (these columns are never asked for).
    """
    samples = samples_of(people)
    counts, points = draw_points(samples, coarse, drawn, most, seed)
    known = _known(counts, points)
    exactly = np.zeros((len(drawn), most + 1), np.int64)
    lock = threading.Lock()

    def count(start: int, stop: int) -> None:
        part = held_prefixes(samples, coarse, known, len(drawn), most, (start, stop))
        with lock:
            np.add(exactly, part, out=exactly)

    run.ranges(count, even_ranges(people.counts, _SAMPLES_PER_RANGE), advance=told)
    at_least = np.cumsum(exactly[:, ::-1], axis=1)[:, ::-1]
    return counts, at_least[:, 1:]


def _known(counts: NDArray[np.int64], points: NDArray[np.int64]) -> PointTable:
    """Put the points of everybody drawn into a hash table, each distinct one once."""
    person = np.repeat(np.arange(len(counts)), counts)
    bit = np.arange(len(person)) - np.repeat(np.cumsum(counts) - counts, counts)
    t, x, y = points[person, bit].T
    order = np.lexsort((y, x, t))
    person, bit, t, x, y = person[order], bit[order], t[order], x[order], y[order]
    first = np.append(True, (np.diff(t) != 0) | (np.diff(x) != 0) | (np.diff(y) != 0))
    starts = np.flatnonzero(first)
    slots = np.full(1 << (2 * len(starts)).bit_length(), -1, np.int64)
    fill_slots(t[starts], x[starts], y[starts], slots)
    return PointTable(t[starts], x[starts], y[starts], np.append(starts, len(person)), person, bit, slots)
