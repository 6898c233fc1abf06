"""Everybody's partners: the users who are cheapest to be merged with, found by time sketches, part by part."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.interrupt import raise_if_asked
from shoal.kernels.partners import cheapest_partners, home_cells, sampling_gaps
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import Samples, samples_of
from shoal.kernels.sketch import LANES, Sketching, fill_sketches, nearest_by_sketch
from shoal.lists import ranges_of, take_lists
from shoal.parts import even_parts, halo, space_order
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.kernels.price import Price
    from shoal.store import Arrays
    from shoal.trajectories import Trajectories

__all__ = [
    "Homes",
    "Neighbourhood",
    "Partners",
    "Sketching",
    "cheapest",
    "homes",
    "neighbourhood",
    "partners_in",
    "sketch_candidates",
    "sketching",
]

_SLOTS = 64
_NEAR = 10.0  # cells; as far apart as makes no difference between partners
_FLOOR = 0.05  # least weight of a slot, of an even share: users who are silent at the same time are alike too
_SAMPLED = 20_000  # users whose sampling is looked at
_PART, _HALO = 8192, 8192
_USERS_PER_RANGE = 256  # some hundredths of a second
_USERS_PER_HOME_RANGE = 20_000


class Homes(NamedTuple):
    """Everybody's home, the median cell, and the order of homes in space."""

    x: NDArray[np.int64]
    y: NDArray[np.int64]
    order: NDArray[np.int64]


class Partners(NamedTuple):
    """User u's partners other[u], cheapest first (-1: no more), and what merging with each costs both owners."""

    other: NDArray[np.int32]
    cost: NDArray[np.float64]


def homes(people: Trajectories, *, run: Run = LOCAL) -> Homes:
    """Return everybody's median cell, and an order in which neighbours are close. Cost: linear."""
    n_users = len(people)
    x, y = np.empty(n_users, np.int32), np.empty(n_users, np.int32)

    def fill(start: int, stop: int) -> None:
        part = Samples(people.t, people.x, people.y, people.offsets[start : stop + 1])
        home_cells(part, x[start:stop], y[start:stop])

    run.ranges(fill, ranges_of(n_users, _USERS_PER_HOME_RANGE))
    wide_x, wide_y = x.astype(np.int64), y.astype(np.int64)
    return Homes(wide_x, wide_y, space_order(wide_x, wide_y))


def sketching(people: Trajectories, price: Price = PAPERS) -> Sketching:
    """Fit sketches to the data and a price: slots over its duration, the usual time between samples as `soon`."""
    users = np.unique(np.linspace(0, len(people) - 1, _SAMPLED).astype(np.int64))
    gaps = sampling_gaps(samples_of(people), users)
    first, last = int(people.t.min()), int(people.t.max())
    slots = min(_SLOTS, last - first + 1)
    soon = float(np.median(gaps)) if len(gaps) else 1.0
    return Sketching(float(first), (last - first + 1) / slots, slots, _NEAR, max(1.0, soon), price)


def _sketches(samples: Samples, how: Sketching) -> NDArray[np.float32]:
    n_users = len(samples.offsets) - 1
    sketches = np.zeros((-(-n_users // LANES), how.slots, 4, LANES), np.float32)
    fill_sketches(samples, np.arange(n_users), how, _FLOOR / how.slots, sketches)
    return sketches


def sketch_candidates(people: Trajectories, n: int, *, run: Run = LOCAL) -> NDArray[np.int64]:
    """Return everybody's n nearest users by sketch, nearest first, of all users at once. O(users²) cheap steps."""
    how, order = sketching(people), homes(people, run=run).order
    offsets, rows = take_lists(people.offsets, order)
    sketches = _sketches(Samples(people.t[rows], people.x[rows], people.y[rows], offsets), how)
    nearest = np.empty((len(people), min(n, len(people) - 1)), np.int64)

    def fill(start: int, stop: int) -> None:
        nearest_by_sketch(sketches, len(people), how, start, nearest[start:stop])

    run.ranges(fill, even_parts(len(people), _USERS_PER_RANGE))
    candidates = np.empty_like(nearest)
    candidates[order] = order[nearest]
    return candidates


def cheapest(
    people: Trajectories, where: Homes, *, candidates: int, kept: int, price: Price = PAPERS, run: Run = LOCAL
) -> Partners:
    """Find everybody's `kept` cheapest partners among the `candidates` nearest by sketch.

    Users are searched part by part, each with as many others around it. Guarantee: costs are exact, the search is
    exact within a part and its halo, and the same whatever the threads. Cost: 16,384 sketch distances and about
    `candidates` half-finished merges a user; memory of a part, and 12 bytes for each partner kept.
    """
    how = sketching(people, price)
    rank = np.empty(len(people), np.int64)
    rank[where.order] = np.arange(len(people))

    ranges = even_parts(len(people), _PART)
    parts = run.map(
        "partners",
        partial(partners_in, candidates=candidates, kept=kept, how=how),
        (_neighbourhood(people, where, rank, start, stop) for start, stop in ranges),
        sizes=[stop - start for start, stop in ranges],
    )
    other, cost = np.empty((len(people), kept), np.int32), np.empty((len(people), kept))
    other[where.order] = np.concatenate([part["other"] for part in parts])
    cost[where.order] = np.concatenate([part["cost"] for part in parts])
    return Partners(other, cost)


class Neighbourhood(NamedTuple):
    """A part of the users with those around it: their numbers and samples; the part's own begin at `first`."""

    users: NDArray[np.int64]
    samples: Samples
    first: int
    own: int


def _neighbourhood(people: Trajectories, where: Homes, rank: NDArray[np.int64], start: int, stop: int) -> Neighbourhood:
    """Return the users start…stop of the order in space, and as many around them, with their samples."""
    own = where.order[start:stop]
    users = np.concatenate([own, halo(where.x, where.y, own, _HALO)])
    users = users[np.argsort(rank[users])]
    return neighbourhood(people, users, int(np.searchsorted(rank[users], start)), stop - start)


def neighbourhood(people: Trajectories, users: NDArray[np.int64], first: int, own: int) -> Neighbourhood:
    """Return some users with their samples."""
    offsets, rows = take_lists(people.offsets, users)
    samples = Samples(people.t[rows], people.x[rows], people.y[rows], offsets)
    return Neighbourhood(users, samples, first, own)


def partners_in(part: Neighbourhood, *, candidates: int, kept: int, how: Sketching) -> Arrays:
    """Search one part: return its own users' partners and what merging with them costs."""
    raise_if_asked()
    users, samples, first, own = part
    nearest = np.empty((own, min(candidates, len(users) - 1)), np.int64)
    sketches = _sketches(samples, how)
    for at, upto in ranges_of(own, _USERS_PER_RANGE):
        raise_if_asked()
        nearest_by_sketch(sketches, len(users), how, first + at, nearest[at:upto])
    other, cost = np.empty((own, kept), np.int64), np.empty((own, kept))
    cheapest_partners(samples, nearest, first, how.price, other, cost)
    return {"other": np.where(other >= 0, users[other], -1).astype(np.int32), "cost": cost}
