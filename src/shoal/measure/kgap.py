"""The k-gap: how much precision it costs to hide a person among k (k-gap, Eq. 5; GLOVE, Eq. 11)."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import SettingsError, TooFewUsers
from shoal.kernels.kgap import MOST_PLACES, Floors, SpaceOrder, fill_gaps, fill_places, mean_parts, nearest_users
from shoal.kernels.samples import samples_of
from shoal.lists import even_ranges, offsets_of
from shoal.measure.stretch import Stretch
from shoal.notebook import Displayed
from shoal.parts import even_parts
from shoal.run import LOCAL, Run
from shoal.search import homes
from shoal.trajectories import require_trajectories

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.kernels.stretch import Scale
    from shoal.trajectories import Trajectories

__all__ = ["Gaps", "floors_of", "k_gap"]

_STEPS = 255  # of a gap in time, from 0 to the cap
_BINS_PER_CAP = 96
_GAP_BYTES, _GAP_SHARE = 500_000_000, 0.3  # at most, and of the memory there is
_MOST_BINS = 2**16
_SAMPLES_PER_RANGE = 500_000
_WORK_PER_RANGE = 50_000_000  # samples of everybody × users looked for


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Gaps(Displayed):
    """The k-gaps of people: how hard they are to hide. There is a row for each of `users` and a column for each `k`.

    `gap` is the k-gap, from 0 (already the same as k-1 others) to 1 (nothing in common). `space` and `time` are its two
    parts. `near` holds the nearest other users, nearest first, and `effort` their efforts. `begun` is the number of
    efforts that were computed, in whole or in part.
    """

    people: Trajectories
    users: NDArray[np.int64]
    k: tuple[int, ...]
    gap: NDArray[np.float64]
    space: NDArray[np.float64]
    time: NDArray[np.float64]
    near: NDArray[np.int64]
    effort: NDArray[np.float64]
    begun: int
    stretch: Stretch

    def summary(self) -> list[tuple[str, Any]]:
        """Return the median k-gap for every k."""
        medians = [(f"median gap, k = {k}", float(np.median(self.gap[:, n]))) for n, k in enumerate(self.k)]
        return [("users", len(self.users)), *medians]

    def table(self) -> pa.Table:
        """Return `uid, k, gap, space, time`, a row for each user and k. As private as the input: it names people."""
        import pyarrow as pa

        from shoal.arrow import to_arrow_array

        columns = {
            "uid": self.people.labels.take(to_arrow_array(np.repeat(self.users, len(self.k)))),
            "k": to_arrow_array(np.tile(np.array(self.k, np.int64), len(self.users))),
        }
        figures = {"gap": self.gap, "space": self.space, "time": self.time}
        return pa.table(columns | {name: to_arrow_array(values.ravel()) for name, values in figures.items()})


def k_gap(
    people: Trajectories,
    k: int | Sequence[int] = 2,
    *,
    sample: int | None = None,
    seed: int = 0,
    stretch: Stretch | None = None,
    run: Run = LOCAL,
) -> Gaps:
    """Measure how hard people are to hide among k: the mean stretch effort to the k-1 nearest others.

    Parameters
    ----------
    people
        The samples of everybody.
    k
        One k or several, each at least 2.
    sample, seed
        Draw this many people at random and compare each of them with everybody; None for all people.
    stretch
        The cost of a stretch; by default as in the paper.
    run
        Threads, memory and the folder for temporary files.

    Returns
    -------
    Gaps
        The k-gaps, people in canonical order.

    Raises
    ------
    TooFewUsers
        There are fewer people than k.

    Guarantee: the result is exact, as if everybody were compared with everybody. Lower bounds of the effort exclude
    only people who can't be among the nearest. Ties (efforts equal to 1e-12) are broken by canonical order. The result
    is the same for any number of threads.

    Cost: some nanoseconds for most pairs of people, up to some microseconds for the rest. Memory: 3 bytes a
    sample, a byte for each person and part of time (up to 500 MB, less if memory is short), and 20 bytes for each of up
    to 32 places a person. Raises TooLarge if this does not fit into the memory of the run.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=60, days=7, seed=1))
    >>> gaps = k_gap(people, [2, 5])
    >>> gaps.gap.shape, bool((gaps.gap[:, 0] <= gaps.gap[:, 1]).all())
    ((60, 2), True)
    """
    require_trajectories(people, "shoal.k_gap")
    asked = tuple(int(one) for one in ([k] if isinstance(k, int | np.integer) else k))
    _refuse(people, asked, sample, seed)
    terms = stretch or Stretch()
    scale = terms.scale(people.frame)
    users = np.arange(len(people))
    if sample is not None:
        users = np.sort(np.random.default_rng(seed).permutation(users)[:sample])
    near, effort, begun = _nearest(people, users, max(asked) - 1, scale, run)
    space, time = _parts(people, users, near, scale, run)
    each = {"gap": effort, "space": space, "time": time}
    means = {name: np.stack([values[:, : k - 1].mean(axis=1) for k in asked], axis=1) for name, values in each.items()}
    return Gaps(people=people, users=users, k=asked, **means, near=near, effort=effort, begun=begun, stretch=terms)


def _refuse(people: Trajectories, asked: Sequence[int], sample: int | None, seed: int) -> None:
    if not asked or not all(k >= 2 for k in asked):
        raise SettingsError("k must be a whole number from 2 on, or several of them")
    if (sample is not None and sample < 1) or seed < 0:
        raise SettingsError("the sample must be at least 1, the seed a whole number from 0 on")
    if len(people) < max(asked):
        raise TooFewUsers(f"{len(people):,} people can't be hidden among {max(asked):,}; lower k or give more people")


def _nearest(
    people: Trajectories, users: NDArray[np.int64], kept: int, scale: Scale, run: Run
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Find everybody's nearest others and their efforts, and count the efforts that were begun."""
    floors, _ = floors_of(people, scale, run)
    by_space = homes(people, run=run).order
    order = SpaceOrder(by_space, np.empty_like(by_space))
    order.rank[by_space] = np.arange(len(by_space))
    turn = np.argsort(order.rank[users])  # neighbours one after the other, while their data is in the cache
    near, effort = np.empty((len(users), kept), np.int64), np.empty((len(users), kept))
    counts, lock = np.zeros(3, np.int64), threading.Lock()

    def find(start: int, stop: int) -> None:
        rows = turn[start:stop]
        part, efforts, of_part = near[rows], effort[rows], np.zeros(3, np.int64)
        nearest_users(floors, users[rows], order, part, efforts, of_part)
        with lock:
            near[rows], effort[rows] = part, efforts
            np.add(counts, of_part, out=counts)

    together = min(256, max(1, _WORK_PER_RANGE // people.samples))
    with run.stage("nearest people", len(users)) as advance:
        run.ranges(find, even_parts(len(users), together), advance=advance)
    return near, effort, int(counts[0])


def floors_of(people: Trajectories, scale: Scale, run: Run = LOCAL) -> tuple[Floors, int]:
    """Prepare the data for floors of the effort; return it with the slots per bin of time. Linear in samples."""
    first, last = int(people.t.min()), int(people.t.max())
    gap_bytes = min(_GAP_BYTES, int(_GAP_SHARE * run.room(people.nbytes)))
    most_bins = min(_MOST_BINS, max(1, gap_bytes // len(people)))
    width = max(-(-scale.time_cap // (scale.time * _BINS_PER_CAP)), -(-(last - first + 1) // most_bins))
    bins = (last - first) // width + 1
    places = offsets_of(np.minimum(people.counts, MOST_PLACES))
    need = len(people) * (bins + 40) + people.samples * 3 + int(places[-1]) * 20
    run.require_room(need, "the k-gap", "measure fewer people (`bbox`, `period`)", held=people.nbytes)
    floors = Floors(
        samples=samples_of(people),
        scale=scale,
        place=np.empty(people.samples, np.uint8),
        bin=np.empty(people.samples, np.uint16),
        places=places,
        n_places=np.empty(len(people), np.int32),
        box=np.empty((int(places[-1]), 4), np.int32),
        weight=np.empty(int(places[-1]), np.int32),
        hull=np.empty((len(people), 4), np.int32),
        gaps=np.empty((len(people), bins), np.uint8),
        step=-(-scale.time_cap // _STEPS),
    )

    def fill(start: int, stop: int) -> None:
        fill_gaps(floors, first, width, start, stop)
        fill_places(floors, start, stop)

    run.ranges(fill, even_ranges(people.counts, _SAMPLES_PER_RANGE))
    return floors, width


def _parts(
    people: Trajectories, users: NDArray[np.int64], near: NDArray[np.int64], scale: Scale, run: Run
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split efforts into space and time."""
    space, time = np.empty(near.shape), np.empty(near.shape)
    samples = samples_of(people)

    def fill(start: int, stop: int) -> None:
        mean_parts(samples, scale, users[start:stop], near[start:stop], space[start:stop], time[start:stop])

    together = people.counts[users] + people.counts[near].sum(axis=1)
    run.ranges(fill, even_ranges(together, _SAMPLES_PER_RANGE))
    return space, time
