"""Unicity: how many people are singled out by a few points known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import SettingsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["unicity"]


def unicity(
    people: Trajectories, *, points: int = 4, space_m: int = 1000, time_s: int = 3600, sample: int = 1000, seed: int = 0
) -> float:
    """Give the share of users of whom `points` random (place, time) points fit nobody else.

    Input: the resolution of the adversary's knowledge in metres and seconds, and how many users to draw. A user
    with fewer points is known by all of them. Deterministic for a seed. Cost: one sort of all points, then a few
    binary searches and intersections per drawn user.

    >>> import shoal
    >>> unicity(shoal.from_arrow(shoal.synthesize(users=200, days=14, seed=1))) > 0.8
    True
    """
    if min(points, space_m, time_s, sample) < 1:
        raise SettingsError("points, space_m, time_s and sample must be at least 1")
    users, point, holders, ends = _who_was_where(people, space_m, time_s)
    rng = np.random.default_rng(seed)
    drawn = np.sort(rng.permutation(len(people))[:sample])
    first, last = np.searchsorted(users, drawn, "left"), np.searchsorted(users, drawn, "right")
    alone = 0
    for start, stop in zip(first, last, strict=True):
        known = rng.choice(point[start:stop], min(points, stop - start), replace=False)
        lists = sorted((holders[ends[p] : ends[p + 1]] for p in known), key=len)
        candidates = lists[0]
        for others in lists[1:]:
            candidates = np.intersect1d(candidates, others, assume_unique=True)
        alone += len(candidates) == 1
    return alone / len(drawn)


def _who_was_where(
    people: Trajectories, space_m: int, time_s: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Give (user, point) sorted by user, and for each point its users: holders[ends[p]:ends[p+1]]."""
    frame = people.frame
    coarse = np.stack(
        [
            frame.epoch_s(people.t) // time_s,
            people.x.astype(np.int64) * frame.cell_m // space_m,
            people.y.astype(np.int64) * frame.cell_m // space_m,
        ]
    )
    coarse -= coarse.min(axis=1, keepdims=True)
    spans = coarse.max(axis=1) + 1
    packed = (coarse[0] * spans[1] + coarse[1]) * spans[2] + coarse[2]
    _, point = np.unique(packed, return_inverse=True)
    n_points = int(point.max()) + 1
    pairs = np.unique(np.repeat(np.arange(len(people)), people.counts) * n_points + point)
    users, point = np.divmod(pairs, n_points)
    order = np.argsort(point, kind="stable")
    return users, point, users[order], np.searchsorted(point[order], np.arange(n_points + 1))
