"""The Dice proxy of k-scale (paper 003, Sec. III-B, Eq. 6-7) and its nearest neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels._jit import jit

if TYPE_CHECKING:
    from shoal.kernels._jit import Floats, Ints

__all__ = ["nearest_by_proxy", "proxy_distance"]


@jit
def proxy_distance(ax: float, ay: float, a_half: float, bx: float, by: float, b_half: float) -> float:
    """Give D of two squares with centres (ax, ay), (bx, by) and half sides: m in [0, 1) if they overlap.

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
    """Restore a max-heap of (key, index) whose root was replaced."""
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
