"""Sparse pair costs as neighbour lists, and the cheapest entries of each list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints

__all__ = ["capped_entries", "cheapest_entries", "holds", "join_clusters", "neighbour_lists"]


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
def cheapest_entries(offsets: Ints, other: Ints, cost: Floats, n: int) -> Ints:
    """Return the positions of the n least costs of every list, cheapest first (ties: the earlier), as (lists, n).

    A list with fewer entries is filled up with -1.
    """
    n_users = len(offsets) - 1
    chosen = np.full((n_users, n), -1, np.int64)
    nobody = np.zeros(n_users, np.bool_)
    for u in range(n_users):
        _cheapest(offsets[u], offsets[u + 1], other, cost, nobody, chosen[u])
    return chosen


@jit
def capped_entries(offsets: Ints, other: Ints, cost: Floats, order: Ints, n: int, most: int) -> Ints:
    """Return the same as `cheapest_entries`, but choose every neighbour at most `most` times, lists in this order."""
    n_users = len(offsets) - 1
    chosen = np.full((n_users, n), -1, np.int64)
    times = np.zeros(n_users, np.int64)
    full = np.zeros(n_users, np.bool_)
    for u in order:
        for q in range(_cheapest(offsets[u], offsets[u + 1], other, cost, full, chosen[u])):
            v = other[chosen[u, q]]
            times[v] += 1
            full[v] = times[v] >= most
    return chosen


@jit
def join_clusters(offsets: Ints, other: Ints, cost: Floats, order: Ints, k: int) -> Ints:
    """Return everybody's cluster, numbered by one of its members; every cluster has at least k members.

    In this order, whoever has none takes their k-1 cheapest free neighbours; who finds fewer joins the cluster of
    their cheapest neighbour that has one, or, if no neighbour ever gets one, the first cluster of all.
    """
    n_users = len(offsets) - 1
    cluster = np.full(n_users, -1, np.int64)
    taken = np.zeros(n_users, np.bool_)
    chosen = np.empty(k - 1, np.int64)
    first = -1
    for u in order:
        if taken[u] or _cheapest(offsets[u], offsets[u + 1], other, cost, taken, chosen) < k - 1:
            continue
        cluster[u] = u
        taken[u] = True
        for p in chosen:
            cluster[other[p]] = u
            taken[other[p]] = True
        first = u if first < 0 else min(first, u)
    left = n_users - taken.sum()
    while left > 0:  # a round may place users whose neighbours had no cluster before
        before = left
        for u in order:
            if not taken[u] and _cheapest(offsets[u], offsets[u + 1], other, cost, ~taken, chosen[:1]) > 0:
                cluster[u] = cluster[other[chosen[0]]]
                taken[u] = True
                left -= 1
        if left == before:
            cluster[~taken] = first
            break
    return cluster


@jit
def _cheapest(start: int, stop: int, other: Ints, cost: Floats, without: NDArray[np.bool_], chosen: Ints) -> int:
    """Fill `chosen` with the cheapest entries of one list, some neighbours left out; return their number."""
    found = 0
    for p in range(start, stop):
        if without[other[p]]:
            continue
        at = found
        if found == len(chosen):
            at -= 1
            if not cost[p] < cost[chosen[at]]:
                continue
        else:
            found += 1
        while at > 0 and cost[p] < cost[chosen[at - 1]]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = p
    return found


@jit
def holds(values: Ints, n: int, value: int) -> bool:
    """Return whether a value is among the first n values."""
    for i in range(n):
        if values[i] == value:
            return True
    return False
