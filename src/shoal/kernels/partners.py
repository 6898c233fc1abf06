"""Partners: the candidates with the least exact cost of merging. Also everybody's home cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit
from shoal.kernels.merge import pair_owner_costs, pair_scratch

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.price import Price
    from shoal.kernels.samples import Samples

__all__ = ["cheapest_partners", "home_cells", "sampling_gaps"]


@jit
def home_cells(samples: Samples, home_x: Ints32, home_y: Ints32) -> None:
    """Fill the (lower) median of each user's cells, one coordinate at a time."""
    _, x, y, offsets = samples
    for u in range(len(offsets) - 1):
        middle = (offsets[u + 1] - offsets[u] - 1) // 2
        home_x[u] = np.sort(x[offsets[u] : offsets[u + 1]])[middle]
        home_y[u] = np.sort(y[offsets[u] : offsets[u + 1]])[middle]


@jit
def sampling_gaps(samples: Samples, users: Ints) -> Ints32:
    """Return the time from each sample to the next of the same user, of some users."""
    t, _, _, offsets = samples
    n = 0
    for u in users:
        n += offsets[u + 1] - offsets[u] - 1
    gaps = np.empty(n, np.int32)
    n = 0
    for u in users:
        for p in range(offsets[u] + 1, offsets[u + 1]):
            gaps[n] = t[p] - t[p - 1]
            n += 1
    return gaps


@jit
def _insert(other: Ints, cost: Floats, user: int, partner: int, c: float) -> None:
    """Insert a partner in the order of costs; of equal costs, the lower index comes first."""
    p = cost.shape[1] - 1
    if c > cost[user, p] or (c == cost[user, p] and partner > other[user, p]):
        return
    while p > 0 and (c < cost[user, p - 1] or (c == cost[user, p - 1] and partner < other[user, p - 1])):
        cost[user, p] = cost[user, p - 1]
        other[user, p] = other[user, p - 1]
        p -= 1
    cost[user, p] = c
    other[user, p] = partner


@jit
def _seen_before(nearest: Ints, start: int, user: int, rank: int, partner: int) -> bool:
    """Return whether the pair was seen already in the partner's own row: at a lower rank, or before at the same."""
    row = partner - start
    if row < 0 or row >= len(nearest):
        return False
    last = rank + 1 if partner < user else rank
    for r in range(last):
        if nearest[row, r] == user:
            return True
    return False


@jit
def cheapest_partners(samples: Samples, nearest: Ints, start: int, price: Price, other: Ints, cost: Floats) -> int:
    """Fill, for users start…, the candidates in `nearest` (by rank) with the least cost: both owner costs added.

    Every pair is merged once and serves both users; a merge is abandoned as soon as it can't enter either list.
    Lists come ascending by (cost, index); `other` is -1 where there are fewer. Return the number of pairs merged.
    """
    offsets = samples.offsets
    n_users, n_ranks = nearest.shape
    longest = 0
    for u in range(len(offsets) - 1):
        longest = max(longest, 2 * (offsets[u + 1] - offsets[u]))
    for row in range(n_users):
        for r in range(cost.shape[1]):
            other[row, r] = -1
            cost[row, r] = np.inf
    scratch = pair_scratch(longest, price)
    last = cost.shape[1] - 1
    merged = 0
    for rank in range(n_ranks):
        for row in range(n_users):
            u = start + row
            v = nearest[row, rank]
            if _seen_before(nearest, start, u, rank, v):
                continue
            own = start <= v < start + n_users
            bound = max(cost[row, last], cost[v - start, last] if own else 0.0)
            a, b = pair_owner_costs(samples, u, v, bound, bound, scratch)
            merged += 1
            _insert(other, cost, row, v, a + b)
            if own:
                _insert(other, cost, v - start, u, a + b)
    return merged
