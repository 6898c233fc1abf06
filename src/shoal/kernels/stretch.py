"""Stretch efforts (GLOVE, Sec. 4): what it costs to cover one sample by another, one trajectory by another.

All costs are whole numbers, so that nothing depends on the order of sums: one cell costs `space`, one slot `time`, each
part at most its cap, and the sum of the caps stands for an effort of 1 (`whole`). On boxes with weights n_a, n_b
everything is n_a + n_b times as much.

Samples are sorted by time. From where a sample would stand among the others, the search goes out to both sides and
stops when time alone costs as much as the best; only if the best costs more than any time can, everybody is looked
at. Of several at the same effort the first is the nearest.

Trajectory a is compared with trajectory b. Equations are those of GLOVE.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.samples import Samples

__all__ = [
    "TIE",
    "NearestBoxes",
    "RowRange",
    "Scale",
    "StretchedBoxes",
    "Weights",
    "any_sample",
    "box_effort",
    "box_reach",
    "effort_sum",
    "first_is_longer",
    "near_sample",
    "nearest_boxes",
    "nearest_parts",
]

TIE = 1e-12  # efforts this close are equal


class Scale(NamedTuple):
    """The cost of a cell and of a slot, and the most that space and time cost."""

    space: int
    time: int
    space_cap: int
    time_cap: int


class RowRange(NamedTuple):
    """The rows of one trajectory, start…stop-1, among the samples or boxes of all."""

    start: int
    stop: int


class Weights(NamedTuple):
    """How many people the trajectories a and b stand for: n_a and n_b of the paper."""

    a: int
    b: int


class StretchedBoxes(NamedTuple):
    """Trajectories of boxes: `edges` are t0, t1, x0, x1, y0, y1 of each, sorted; `reach` is what `box_reach` fills."""

    edges: Ints32
    reach: Ints32


class NearestBoxes(NamedTuple):
    """For each box of a, which row of b is at the least effort, and the parts of space and of time in that effort."""

    at: Ints
    space: Floats
    time: Floats


@jit
def _between(a0: int, a1: int, b0: int, b1: int) -> int:
    """Return the distance between two ranges; 0 if they touch or overlap."""
    return max(0, b0 - a1, a0 - b1)


@jit
def near_sample(samples: Samples, i: int, b: RowRange, j: int, scale: Scale, away: int) -> tuple[int, int]:
    """Return the least effort from sample i to those of b nearer than the cap of time, and which; else the caps, -1.

    j is the first of b that is not before sample i; no sample of b costs less than `away` by space alone.
    """
    t, x, y = samples.t, samples.x, samples.y
    best = scale.space_cap + scale.time_cap
    at = -1
    for r in range(j, b.stop):
        late = scale.time * (int(t[r]) - t[i])
        if late + away >= best or late >= scale.time_cap:
            break
        apart = abs(int(x[r]) - x[i]) + abs(int(y[r]) - y[i])
        cost = late + min(scale.space * apart, scale.space_cap)
        if cost < best:
            best = cost
            at = r
    for r in range(j - 1, b.start - 1, -1):
        early = scale.time * (int(t[i]) - t[r])
        if early + away > best or early >= scale.time_cap:
            break
        apart = abs(int(x[r]) - x[i]) + abs(int(y[r]) - y[i])
        cost = early + min(scale.space * apart, scale.space_cap)
        if cost <= best:
            best = cost
            at = r
    return best, at


@jit
def any_sample(samples: Samples, i: int, b: RowRange, scale: Scale) -> tuple[int, int]:
    """Return the least effort from sample i to any of b, and the first of b at it."""
    t, x, y = samples.t, samples.x, samples.y
    best = scale.space_cap + scale.time_cap + 1
    at = -1
    for r in range(b.start, b.stop):
        apart = abs(int(x[r]) - x[i]) + abs(int(y[r]) - y[i])
        cost = min(scale.time * abs(int(t[r]) - t[i]), scale.time_cap)
        cost += min(scale.space * apart, scale.space_cap)
        if cost < best:
            best = cost
            at = r
    return best, at


@jit
def effort_sum(samples: Samples, a: RowRange, b: RowRange, scale: Scale, most: int) -> int:
    """Return the sum of the least efforts from the samples of a to those of b; stop as soon as it is above `most`."""
    t, x, y = samples.t, samples.x, samples.y
    x_low = x_high = y_low = y_high = 0
    enclosed = False
    total = 0
    j = b.start
    for i in range(a.start, a.stop):
        while j < b.stop and t[j] < t[i]:
            j += 1
        best, _ = near_sample(samples, i, b, j, scale, 0)
        if best > scale.time_cap:
            if not enclosed:
                x_low = x_high = int(x[b.start])
                y_low = y_high = int(y[b.start])
                for r in range(b.start + 1, b.stop):
                    x_low, x_high = min(x_low, int(x[r])), max(x_high, int(x[r]))
                    y_low, y_high = min(y_low, int(y[r])), max(y_high, int(y[r]))
                enclosed = True
            apart = _between(x[i], x[i], x_low, x_high) + _between(y[i], y[i], y_low, y_high)
            if scale.time_cap + scale.space * apart < best:
                best, _ = any_sample(samples, i, b, scale)
        total += best
        if total > most:
            break
    return total


@jit
def nearest_parts(samples: Samples, a: RowRange, b: RowRange, scale: Scale, space: Ints, time: Ints) -> None:
    """Fill, for each sample of a, the parts of space and of time in the least effort to b (of the first of b at it)."""
    j = b.start
    for i in range(a.start, a.stop):
        while j < b.stop and samples.t[j] < samples.t[i]:
            j += 1
        best, at = near_sample(samples, i, b, j, scale, 0)
        if best >= scale.time_cap:  # an earlier one beyond the cap may cost no more
            best, at = any_sample(samples, i, b, scale)
        time[i - a.start] = min(scale.time * abs(int(samples.t[at]) - samples.t[i]), scale.time_cap)
        space[i - a.start] = best - time[i - a.start]


@jit
def box_reach(boxes: StretchedBoxes, start: int, stop: int) -> None:
    """Fill `reach` for the boxes start…stop-1 of one trajectory: the latest end of each box and of those before it."""
    latest = boxes.edges[start, 1]
    for b in range(start, stop):
        latest = max(latest, boxes.edges[b, 1])
        boxes.reach[b] = latest


@jit
def _space_of(edges: Ints32, i: int, j: int, weights: Weights, scale: Scale) -> int:
    """Return the part of space in the effort of box i (of a) and box j (of b), n_a + n_b times (Eq. 2, 4-6)."""
    of_a = of_b = 0
    for low in (2, 4):
        left = int(edges[i, low]) - int(edges[j, low])
        right = int(edges[j, low + 1]) - int(edges[i, low + 1])
        of_a += max(0, left) + max(0, right)
        of_b += max(0, -left) + max(0, -right)
    return min(scale.space * (of_a * weights.a + of_b * weights.b), scale.space_cap * (weights.a + weights.b))


@jit
def _time_of(edges: Ints32, i: int, j: int, weights: Weights, scale: Scale) -> int:
    """Return the part of time in the effort of box i (of a) and box j (of b), n_a + n_b times (Eq. 3, 7-9)."""
    left = int(edges[i, 0]) - int(edges[j, 0])
    right = int(edges[j, 1]) - int(edges[i, 1])
    of_a = max(0, left) + max(0, right)
    of_b = max(0, -left) + max(0, -right)
    return min(scale.time * (of_a * weights.a + of_b * weights.b), scale.time_cap * (weights.a + weights.b))


@jit
def _near_box(boxes: StretchedBoxes, i: int, b: RowRange, j: int, weights: Weights, scale: Scale) -> tuple[int, int]:
    """Return the least effort from box i to those of b nearer than the cap of time, and which; else the caps, -1.

    j is the first of b that does not start before box i.
    """
    edges, n_a, n_b = boxes.edges, weights.a, weights.b
    time_cap = scale.time_cap * (n_a + n_b)
    best = scale.space_cap * (n_a + n_b) + time_cap
    at = -1
    first = int(edges[i, 0])
    last = int(edges[i, 1])
    for r in range(j, b.stop):  # these start no earlier: a reaches out to them, and they back to a
        begin = edges[r, 0]
        if scale.time * (n_b * (begin - first) + n_a * max(0, begin - last)) >= min(best, time_cap):
            break
        cost = _time_of(edges, i, r, weights, scale) + _space_of(edges, i, r, weights, scale)
        if cost < best:
            best = cost
            at = r
    for r in range(j - 1, b.start - 1, -1):  # these start earlier, and none of them or before them ends after `reach`
        least = scale.time * (n_a * (first - edges[r, 0]) + n_b * max(0, last - boxes.reach[r]))
        if least > best or least >= time_cap:
            break
        cost = _time_of(edges, i, r, weights, scale) + _space_of(edges, i, r, weights, scale)
        if cost <= best:
            best = cost
            at = r
    return best, at


@jit
def _any_box(edges: Ints32, i: int, b: RowRange, weights: Weights, scale: Scale) -> tuple[int, int]:
    """Return the least effort from box i to any of b, and the first of b at it."""
    best = (scale.space_cap + scale.time_cap) * (weights.a + weights.b) + 1
    at = -1
    for r in range(b.start, b.stop):
        cost = _time_of(edges, i, r, weights, scale) + _space_of(edges, i, r, weights, scale)
        if cost < best:
            best = cost
            at = r
    return best, at


@jit
def _box_sum(boxes: StretchedBoxes, a: RowRange, b: RowRange, weights: Weights, scale: Scale, most: float) -> int:
    """Return the sum of the least efforts from the boxes of a to those of b; stop as soon as it is above `most`."""
    edges, people = boxes.edges, weights.a + weights.b
    x_low = x_high = y_low = y_high = 0
    enclosed = False
    total = 0
    j = b.start
    for i in range(a.start, a.stop):
        while j < b.stop and edges[j, 0] < edges[i, 0]:
            j += 1
        best, _ = _near_box(boxes, i, b, j, weights, scale)
        if best > scale.time_cap * people:
            if not enclosed:
                x_low, x_high = int(edges[b.start, 2]), int(edges[b.start, 3])
                y_low, y_high = int(edges[b.start, 4]), int(edges[b.start, 5])
                for r in range(b.start + 1, b.stop):
                    x_low, x_high = min(x_low, int(edges[r, 2])), max(x_high, int(edges[r, 3]))
                    y_low, y_high = min(y_low, int(edges[r, 4])), max(y_high, int(edges[r, 5]))
                enclosed = True
            apart = _between(edges[i, 2], edges[i, 3], x_low, x_high)
            apart += _between(edges[i, 4], edges[i, 5], y_low, y_high)
            if (scale.time_cap + scale.space * apart) * people < best:
                best, _ = _any_box(edges, i, b, weights, scale)
        total += best
        if total > most:
            break
    return total


@jit
def first_is_longer(edges: Ints32, a: RowRange, b: RowRange) -> bool:
    """Return whether efforts are averaged over a: it has more boxes, or as many and is the smaller list of them."""
    if a.stop - a.start != b.stop - b.start:
        return a.stop - a.start > b.stop - b.start
    for p in range(a.stop - a.start):
        for c in range(6):
            if edges[a.start + p, c] != edges[b.start + p, c]:
                return bool(edges[a.start + p, c] < edges[b.start + p, c])
    return True


@jit
def box_effort(boxes: StretchedBoxes, a: RowRange, b: RowRange, weights: Weights, scale: Scale, most: float) -> float:
    """Return the stretch effort of two trajectories of boxes (Eq. 10), from 0 to 1; inf as soon as it is above `most`.

    The effort is symmetric: which of the two is the longer is found here. Efforts that equal `most` to TIE are returned
    as they are, not as inf.
    """
    if not first_is_longer(boxes.edges, a, b):
        a, b = b, a
        weights = Weights(weights.b, weights.a)
    whole = float(scale.space_cap + scale.time_cap) * (weights.a + weights.b) * (a.stop - a.start)
    limit = (most + TIE) * whole
    total = _box_sum(boxes, a, b, weights, scale, limit)
    return np.inf if total > limit else total / whole


@jit
def nearest_boxes(
    boxes: StretchedBoxes, a: RowRange, b: RowRange, weights: Weights, scale: Scale, nearest: NearestBoxes
) -> None:
    """Fill, for each box of a, which of b is at the least effort, and its part of space and of time.

    Of several at the same effort, the first. The roles are as given: a need not be the longer.
    """
    edges, people = boxes.edges, weights.a + weights.b
    whole = float(scale.space_cap + scale.time_cap) * people
    j = b.start
    for i in range(a.start, a.stop):
        while j < b.stop and edges[j, 0] < edges[i, 0]:
            j += 1
        best, found = _near_box(boxes, i, b, j, weights, scale)
        if best >= scale.time_cap * people:  # an earlier one beyond the cap may cost no more
            best, found = _any_box(edges, i, b, weights, scale)
        nearest.at[i - a.start] = found
        nearest.space[i - a.start] = _space_of(edges, i, found, weights, scale) / whole
        nearest.time[i - a.start] = _time_of(edges, i, found, weights, scale) / whole
