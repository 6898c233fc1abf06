"""Merge two trajectories as GLOVE does (GLOVE, Sec. 6.2): `mergeTrajectories` and `reshapeTrajectory`.

A trajectory is an array of boxes t0, t1, x0, x1, y0, y1 (inclusive granules), sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit
from shoal.kernels.stretch import (
    NearestBoxes,
    RowRange,
    StretchedBoxes,
    Weights,
    box_reach,
    first_is_longer,
    nearest_boxes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Ints, Ints32
    from shoal.kernels.samples import Samples
    from shoal.kernels.stretch import Scale

__all__ = ["merge_two_stage", "reshape", "two_stage"]


@jit
def _before(boxes: Ints32, i: int, j: int) -> bool:
    for c in range(6):
        if boxes[i, c] != boxes[j, c]:
            return bool(boxes[i, c] < boxes[j, c])
    return False


@jit
def _sort(boxes: Ints32, n: int) -> None:
    """Sort the first n boxes by insertion, which is fast because they are nearly sorted."""
    for i in range(1, n):
        j = i
        while j > 0 and _before(boxes, j, j - 1):
            for c in range(6):
                boxes[j, c], boxes[j - 1, c] = boxes[j - 1, c], boxes[j, c]
            j -= 1


@jit
def _cover(boxes: Ints32, at: int, others: Ints32, other: int) -> None:
    """Stretch a box until it covers another (Eq. 12-13)."""
    for c in range(0, 6, 2):
        boxes[at, c] = min(boxes[at, c], others[other, c])
        boxes[at, c + 1] = max(boxes[at, c + 1], others[other, c + 1])


@jit
def _nearest(edges: Ints32, size: int, weights: Weights, scale: Scale) -> Ints:
    """Return, for each of the first `size` boxes, the index of the other box at the least effort."""
    boxes = StretchedBoxes(edges, np.empty(len(edges), np.int32))
    box_reach(boxes, size, len(edges))
    parts = np.empty((2, size), np.float64)
    nearest = NearestBoxes(np.empty(size, np.int64), parts[0], parts[1])
    nearest_boxes(boxes, RowRange(0, size), RowRange(size, len(edges)), weights, scale, nearest)
    return nearest.at - size


@jit
def two_stage(a: Ints32, b: Ints32, weights: Weights, scale: Scale) -> Ints32:
    """Return the boxes of `mergeTrajectories`, sorted; they may overlap in time.

    Stage A joins every box of the longer to the box of the shorter at least effort (the first of several). Stage B
    joins what is left of the shorter to the box of stage A at least effort, which stands for the people of both. In
    both stages, all matches are found before anything is stretched.
    """
    both = np.concatenate((a, b))
    if not first_is_longer(both, RowRange(0, len(a)), RowRange(len(a), len(both))):
        both = np.concatenate((b, a))
        weights = Weights(weights.b, weights.a)
        a, b = b, a
    at = _nearest(both, len(a), weights, scale)
    joined = b.copy()
    matched = np.zeros(len(b), np.bool_)
    for i in range(len(a)):
        _cover(joined, at[i], a, i)
        matched[at[i]] = True
    left = b[~matched]
    joined = joined[matched]
    _sort(joined, len(joined))
    if len(left) > 0:
        of_stages = Weights(weights.b, weights.a + weights.b)
        at = _nearest(np.concatenate((left, joined)), len(left), of_stages, scale)
        for i in range(len(left)):
            _cover(joined, at[i], left, i)
        _sort(joined, len(joined))
    return joined


@jit
def reshape(boxes: Ints32) -> Ints32:
    """Resolve overlaps in time: a stretch of time that the same boxes cover becomes one box that holds them all.

    Guarantee: the result is sorted and disjoint in time, covers the same slots, and whatever was in a box is in one.
    At most two boxes for one of the sorted ones given. Cost: linear, times how many overlap.
    """
    n = len(boxes)
    cuts = np.empty(2 * n, np.int64)
    for i in range(n):
        cuts[2 * i] = boxes[i, 0]
        cuts[2 * i + 1] = np.int64(boxes[i, 1]) + 1
    cuts.sort()
    out = np.empty((2 * n, 6), np.int32)
    there = np.empty(n, np.int64)  # the boxes that cover the slot at hand
    n_there = n_out = following = 0
    for c in range(2 * n - 1):
        start = cuts[c]
        if cuts[c + 1] == start:
            continue
        while following < n and boxes[following, 0] <= start:
            there[n_there] = following
            n_there += 1
            following += 1
        still = 0
        for p in range(n_there):
            if boxes[there[p], 1] >= start:
                there[still] = there[p]
                still += 1
        n_there = still
        if n_there == 0:
            continue
        out[n_out] = boxes[there[0]]
        for p in range(1, n_there):
            _cover(out, n_out, boxes, there[p])
        out[n_out, 0] = start
        out[n_out, 1] = cuts[c + 1] - 1
        n_out += 1
    return out[:n_out]


@jit
def _with_samples(boxes: Ints32, samples: Samples, members: Ints) -> NDArray[np.bool_]:
    """Return which boxes, sorted and disjoint in time, have a sample of some member in their time."""
    t, offsets = samples.t, samples.offsets
    some = np.zeros(len(boxes), np.bool_)
    for m in members:
        b = 0
        for s in range(offsets[m], offsets[m + 1]):
            while b < len(boxes) and boxes[b, 1] < t[s]:
                b += 1
            if b == len(boxes):
                break
            if boxes[b, 0] <= t[s]:
                some[b] = True
    return some


@jit
def merge_two_stage(a: Ints32, b: Ints32, weights: Weights, scale: Scale, samples: Samples, members: Ints) -> Ints32:
    """Return the boxes of two merged trajectories, which stand for the `members`, whose samples are given.

    Reshaping may leave pieces that nobody was in: these are left out. Guarantee: sorted, disjoint in time, every sample
    of a member in exactly one box, and in every box a sample of some member.
    """
    boxes = reshape(two_stage(a, b, weights, scale))
    return boxes[_with_samples(boxes, samples, members)]
