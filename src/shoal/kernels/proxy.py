"""The Dice proxy of k-scale (Sec. III-B, Eq. 6-7) and its nearest neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints

__all__ = ["nearest_by_proxy", "proxy_distance", "symmetric_pairs"]


@jit
def proxy_distance(ax: float, ay: float, a_half: float, bx: float, by: float, b_half: float) -> float:
    """Return D of two squares with centres (ax, ay), (bx, by) and half sides: m in [0, 1) if they overlap.

    Otherwise 1 + the Manhattan distance of the centres, so that all overlapping pairs come first. The Dice
    coefficient c = 2|A∩B| / (|A|+|B|) replaces the paper's 2|A∩B| / |A∪B|, which would leave [0, 1].
    """
    wide = min(ax + a_half, bx + b_half) - max(ax - a_half, bx - b_half)
    high = min(ay + a_half, by + b_half) - max(ay - a_half, by - b_half)
    if wide <= 0.0 or high <= 0.0:
        return 1.0 + abs(ax - bx) + abs(ay - by)
    c = 2.0 * wide * high / (4.0 * a_half * a_half + 4.0 * b_half * b_half)
    return (1.0 - c) / (1.0 + c)


@jit
def _sift_down(key: Floats, index: Ints, size: int) -> None:
    """Restore the order of a max-heap of (key, index) whose root was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        right = child + 1
        if right < size and (key[right] > key[child] or (key[right] == key[child] and index[right] > index[child])):
            child = right
        if key[child] < key[at] or (key[child] == key[at] and index[child] < index[at]):
            return
        key[at], key[child] = key[child], key[at]
        index[at], index[child] = index[child], index[at]
        at = child


@jit
def nearest_by_proxy(x: Floats, y: Floats, half: Floats, start: int, stop: int, nearest: Ints) -> None:
    """Fill nearest[u], for users start…stop-1, with the indices of the K others at least D, ascending by index.

    Exact; ties at the border go to the lower index. O(users) per row, K = nearest.shape[1] <= users - 1.
    """
    n_users = len(x)
    size = nearest.shape[1]
    key = np.empty(size, np.float64)
    index = np.empty(size, np.int64)
    for u in range(start, stop):
        key[:] = np.inf
        index[:] = n_users
        for v in range(n_users):
            if v == u:
                continue
            d = proxy_distance(x[u], y[u], half[u], x[v], y[v], half[v])
            if d < key[0]:  # users come in ascending order, so an equal key never replaces
                key[0] = d
                index[0] = v
                _sift_down(key, index, size)
        nearest[u] = np.sort(index)


@jit
def symmetric_pairs(nearest: Ints) -> tuple[Ints, Ints]:
    """Return all pairs i < j of which one is in the other's row of `nearest` (rows ascending), sorted; linear."""
    n_users, size = nearest.shape
    # Who has i in their row, and comes after i: ascending, since rows are scanned in order.
    offsets = np.zeros(n_users + 1, np.int64)
    for j in range(n_users):
        for p in range(size):
            if nearest[j, p] < j:
                offsets[nearest[j, p] + 1] += 1
    for i in range(n_users):
        offsets[i + 1] += offsets[i]
    later = np.empty(offsets[-1], np.int64)
    filled = offsets[:-1].copy()
    for j in range(n_users):
        for p in range(size):
            i = nearest[j, p]
            if i < j:
                later[filled[i]] = j
                filled[i] += 1
    first = np.empty(n_users * size, np.int64)
    second = np.empty(n_users * size, np.int64)
    n = 0
    for i in range(n_users):
        p = 0
        q = offsets[i]
        while p < size and nearest[i, p] < i:
            p += 1
        while p < size or q < offsets[i + 1]:
            own = nearest[i, p] if p < size else n_users
            others = later[q] if q < offsets[i + 1] else n_users
            first[n] = i
            second[n] = min(own, others)
            n += 1
            p += own <= others
            q += others <= own
    return first[:n].copy(), second[:n].copy()
