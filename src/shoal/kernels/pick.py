"""Sparse pair costs as neighbour lists, and the cheapest entries of each list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels._jit import jit

if TYPE_CHECKING:
    from shoal.kernels._jit import Floats, Ints

__all__ = ["least_costs", "neighbour_lists"]


@jit
def neighbour_lists(
    n_users: int, first: Ints, second: Ints, cost_first: Floats, cost_second: Floats
) -> tuple[Ints, Ints, Floats, Floats]:
    """Turn sorted pairs first < second with their two costs into neighbour lists (offsets, other, own, others).

    User u's list is other[offsets[u]:offsets[u+1]], ascending; own[p] is the cost to u of the merge with
    other[p], others[p] the cost to other[p].
    """
    offsets = np.zeros(n_users + 1, np.int64)
    for p in range(len(first)):
        offsets[first[p] + 1] += 1
        offsets[second[p] + 1] += 1
    for u in range(n_users):
        offsets[u + 1] += offsets[u]
    filled = offsets[:-1].copy()
    other = np.empty(offsets[-1], np.int64)
    own = np.empty(offsets[-1], np.float64)
    others = np.empty(offsets[-1], np.float64)
    for p in range(len(first)):  # sorted by first: lists come out ascending, lower neighbours first
        i = first[p]
        j = second[p]
        other[filled[i]] = j
        own[filled[i]] = cost_first[p]
        others[filled[i]] = cost_second[p]
        filled[i] += 1
        other[filled[j]] = i
        own[filled[j]] = cost_second[p]
        others[filled[j]] = cost_first[p]
        filled[j] += 1
    return offsets, other, own, others


@jit
def least_costs(offsets: Ints, other: Ints, cost: Floats, n: int) -> Ints:
    """Give, for every list, the n neighbours at least cost (ties: lower index), cheapest first, as (users, n)."""
    n_users = len(offsets) - 1
    chosen = np.empty((n_users, n), np.int64)
    best = np.empty(n, np.float64)
    for u in range(n_users):
        best[:] = np.inf
        chosen[u] = -1
        for p in range(offsets[u], offsets[u + 1]):
            c = cost[p]
            if not c < best[n - 1]:
                continue
            at = n - 1
            while at > 0 and c < best[at - 1]:
                best[at] = best[at - 1]
                chosen[u, at] = chosen[u, at - 1]
                at -= 1
            best[at] = c
            chosen[u, at] = other[p]
    return chosen
