"""The candidates of k-scale: the K nearest by the Dice proxy of everyone's square (Sec. III-B/C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.kernels.proxy import nearest_by_proxy, symmetric_pairs
from shoal.lists import ranges_of
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["Signatures", "proxy_candidates", "signatures"]

_PAIRS_PER_RANGE = 20_000_000  # about a tenth of a second of proxy distances


class Signatures(NamedTuple):
    """Everyone's square: its centre and half its side, in cells."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    half: NDArray[np.float64]


def signatures(people: Trajectories) -> Signatures:
    """Return everyone's square: centre of mass and radius of gyration (k-scale, footnote 5), at least one cell wide.

    The centre is the mean of positions. The radius weighs a sample by its dwell time, half the gap to each of
    its neighbours in time; where nobody dwells (a single slot), all samples weigh the same. Cost: linear.
    """
    starts, counts = people.offsets[:-1], people.counts
    owner = np.repeat(np.arange(len(people)), counts)

    def per_user(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.add.reduceat(values, starts)

    x = per_user(people.x.astype(np.float64)) / counts
    y = per_user(people.y.astype(np.float64)) / counts
    gaps = np.diff(people.t, append=people.t[-1:]).astype(np.float64)
    gaps[people.offsets[1:] - 1] = 0.0
    before = np.roll(gaps, 1)  # the first sample of a user follows the last of another, whose gap is 0
    dwell = (gaps + before) / 2
    nobody_dwells = per_user(dwell) == 0
    dwell[nobody_dwells[owner]] = 1.0
    square = (people.x - x[owner]) ** 2 + (people.y - y[owner]) ** 2
    radius = np.sqrt(per_user(dwell * square) / per_user(dwell))
    return Signatures(x, y, np.maximum(radius, 0.5))


def proxy_candidates(squares: Signatures, n: int, *, run: Run = LOCAL) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all pairs (i < j) of which one is among the other's n nearest by the proxy, sorted.

    Exact, O(users²) cheap operations. The relation is symmetric: if v is a candidate of u, u is one of v.
    """
    n_users = len(squares.x)
    n = min(n, n_users - 1)
    nearest = np.empty((n_users, n), np.int64)
    rows = max(1, _PAIRS_PER_RANGE // n_users)
    ranges = ranges_of(n_users, rows)
    with run.stage("candidates", n_users) as advance:
        run.ranges(lambda start, stop: nearest_by_proxy(*squares, start, stop, nearest), ranges, advance=advance)
    return symmetric_pairs(nearest)
