"""Stretch efforts (000, Sec. 4): what it costs to cover one sample by another, one trajectory by another.

All in whole numbers, so that nothing depends on the order of sums: one cell costs `space`, one slot `time`, each part
at most its cap, and the sum of the caps stands for an effort of 1 (`whole`). On boxes with weights n_a, n_b everything
is n_a + n_b times as much.

Samples are sorted by time. From where a sample would stand among the others, the search goes out to both sides and
stops when time alone costs as much as the best; only if the best costs more than any time can, everybody is looked
at. Of several at the same effort the first is the nearest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints, Ints32

__all__ = [
    "TIE",
    "Scale",
    "box_effort",
    "box_reach",
    "effort_sum",
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


@jit
def _between(a0: int, a1: int, b0: int, b1: int) -> int:
    """Return how far apart two ranges are, 0 if they touch or overlap."""
    return max(0, b0 - a1, a0 - b1)


@jit
def near_sample(
    t: Ints32, x: Ints32, y: Ints32, i: int, b0: int, b1: int, j: int, scale: Scale, away: int
) -> tuple[int, int]:
    """Return the least effort from sample i to those of b nearer than the cap of time, and which; else the caps, -1.

    j is the first of b that is not before sample i; none of b is known to cost less than `away` by space alone.
    """
    best = scale.space_cap + scale.time_cap
    at = -1
    for r in range(j, b1):
        late = scale.time * (int(t[r]) - t[i])
        if late + away >= best or late >= scale.time_cap:
            break
        apart = abs(int(x[r]) - x[i]) + abs(int(y[r]) - y[i])
        cost = late + min(scale.space * apart, scale.space_cap)
        if cost < best:
            best = cost
            at = r
    for r in range(j - 1, b0 - 1, -1):
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
def any_sample(t: Ints32, x: Ints32, y: Ints32, i: int, b0: int, b1: int, scale: Scale) -> tuple[int, int]:
    """Return the least effort from sample i to any of b, and the first of b at it."""
    best = scale.space_cap + scale.time_cap + 1
    at = -1
    for r in range(b0, b1):
        apart = abs(int(x[r]) - x[i]) + abs(int(y[r]) - y[i])
        cost = min(scale.time * abs(int(t[r]) - t[i]), scale.time_cap)
        cost += min(scale.space * apart, scale.space_cap)
        if cost < best:
            best = cost
            at = r
    return best, at


@jit
def effort_sum(t: Ints32, x: Ints32, y: Ints32, a0: int, a1: int, b0: int, b1: int, scale: Scale, most: int) -> int:
    """Add up the least efforts from the samples a0…a1 to the samples b0…b1; leave off as soon as it is above `most`."""
    x_low = x_high = y_low = y_high = 0
    enclosed = False
    total = 0
    j = b0
    for i in range(a0, a1):
        while j < b1 and t[j] < t[i]:
            j += 1
        best, _ = near_sample(t, x, y, i, b0, b1, j, scale, 0)
        if best > scale.time_cap:
            if not enclosed:
                x_low = x_high = int(x[b0])
                y_low = y_high = int(y[b0])
                for r in range(b0 + 1, b1):
                    x_low, x_high = min(x_low, int(x[r])), max(x_high, int(x[r]))
                    y_low, y_high = min(y_low, int(y[r])), max(y_high, int(y[r]))
                enclosed = True
            apart = _between(x[i], x[i], x_low, x_high) + _between(y[i], y[i], y_low, y_high)
            if scale.time_cap + scale.space * apart < best:
                best, _ = any_sample(t, x, y, i, b0, b1, scale)
        total += best
        if total > most:
            break
    return total


@jit
def nearest_parts(
    t: Ints32, x: Ints32, y: Ints32, a0: int, a1: int, b0: int, b1: int, scale: Scale, space: Ints, time: Ints
) -> None:
    """Fill the part of space and of time of the first of b0…b1 at the least effort from each of the samples a0…a1."""
    j = b0
    for i in range(a0, a1):
        while j < b1 and t[j] < t[i]:
            j += 1
        best, at = near_sample(t, x, y, i, b0, b1, j, scale, 0)
        if best >= scale.time_cap:  # an earlier one beyond the cap may cost no more
            best, at = any_sample(t, x, y, i, b0, b1, scale)
        time[i - a0] = min(scale.time * abs(int(t[at]) - t[i]), scale.time_cap)
        space[i - a0] = best - time[i - a0]


@jit
def box_reach(boxes: Ints32, start: int, stop: int, reach: Ints32) -> None:
    """Fill, for each box of a trajectory (start…stop), the latest end of it and of those before it."""
    latest = boxes[start, 1]
    for b in range(start, stop):
        latest = max(latest, boxes[b, 1])
        reach[b] = latest


@jit
def _space_of(boxes: Ints32, i: int, j: int, n_a: int, n_b: int, scale: Scale) -> int:
    """Return the part of space in the effort of box i (of a) and box j (of b), n_a + n_b times (Eq. 2, 4-6)."""
    of_a = of_b = 0
    for low in (2, 4):
        left = int(boxes[i, low]) - int(boxes[j, low])
        right = int(boxes[j, low + 1]) - int(boxes[i, low + 1])
        of_a += max(0, left) + max(0, right)
        of_b += max(0, -left) + max(0, -right)
    return min(scale.space * (of_a * n_a + of_b * n_b), scale.space_cap * (n_a + n_b))


@jit
def _time_of(boxes: Ints32, i: int, j: int, n_a: int, n_b: int, scale: Scale) -> int:
    """Return the part of time in the effort of box i (of a) and box j (of b), n_a + n_b times (Eq. 3, 7-9)."""
    left = int(boxes[i, 0]) - int(boxes[j, 0])
    right = int(boxes[j, 1]) - int(boxes[i, 1])
    of_a = max(0, left) + max(0, right)
    of_b = max(0, -left) + max(0, -right)
    return min(scale.time * (of_a * n_a + of_b * n_b), scale.time_cap * (n_a + n_b))


@jit
def _near_box(
    boxes: Ints32, reach: Ints32, i: int, b0: int, b1: int, j: int, n_a: int, n_b: int, scale: Scale
) -> tuple[int, int]:
    """Return the least effort from box i to those of b nearer than the cap of time, and which; else the caps, -1."""
    time_cap = scale.time_cap * (n_a + n_b)
    best = scale.space_cap * (n_a + n_b) + time_cap
    at = -1
    first = int(boxes[i, 0])
    last = int(boxes[i, 1])
    for r in range(j, b1):  # these start no earlier: a reaches out to them, and they back to a
        begin = boxes[r, 0]
        if scale.time * (n_b * (begin - first) + n_a * max(0, begin - last)) >= min(best, time_cap):
            break
        cost = _time_of(boxes, i, r, n_a, n_b, scale) + _space_of(boxes, i, r, n_a, n_b, scale)
        if cost < best:
            best = cost
            at = r
    for r in range(j - 1, b0 - 1, -1):  # these start earlier, and none of them or before them ends after `reach`
        least = scale.time * (n_a * (first - boxes[r, 0]) + n_b * max(0, last - reach[r]))
        if least > best or least >= time_cap:
            break
        cost = _time_of(boxes, i, r, n_a, n_b, scale) + _space_of(boxes, i, r, n_a, n_b, scale)
        if cost <= best:
            best = cost
            at = r
    return best, at


@jit
def _any_box(boxes: Ints32, i: int, b0: int, b1: int, n_a: int, n_b: int, scale: Scale) -> tuple[int, int]:
    """Return the least effort from box i to any of b, and the first of b at it."""
    best = (scale.space_cap + scale.time_cap) * (n_a + n_b) + 1
    at = -1
    for r in range(b0, b1):
        cost = _time_of(boxes, i, r, n_a, n_b, scale) + _space_of(boxes, i, r, n_a, n_b, scale)
        if cost < best:
            best = cost
            at = r
    return best, at


@jit
def _box_sum(
    boxes: Ints32, reach: Ints32, a0: int, a1: int, b0: int, b1: int, n_a: int, n_b: int, scale: Scale, most: float
) -> int:
    """Add up the least efforts from the boxes a0…a1 to the boxes b0…b1; leave off as soon as it is above `most`."""
    x_low = x_high = y_low = y_high = 0
    enclosed = False
    total = 0
    j = b0
    for i in range(a0, a1):
        while j < b1 and boxes[j, 0] < boxes[i, 0]:
            j += 1
        best, _ = _near_box(boxes, reach, i, b0, b1, j, n_a, n_b, scale)
        if best > scale.time_cap * (n_a + n_b):
            if not enclosed:
                x_low, x_high = int(boxes[b0, 2]), int(boxes[b0, 3])
                y_low, y_high = int(boxes[b0, 4]), int(boxes[b0, 5])
                for r in range(b0 + 1, b1):
                    x_low, x_high = min(x_low, int(boxes[r, 2])), max(x_high, int(boxes[r, 3]))
                    y_low, y_high = min(y_low, int(boxes[r, 4])), max(y_high, int(boxes[r, 5]))
                enclosed = True
            apart = _between(boxes[i, 2], boxes[i, 3], x_low, x_high)
            apart += _between(boxes[i, 4], boxes[i, 5], y_low, y_high)
            if (scale.time_cap + scale.space * apart) * (n_a + n_b) < best:
                best, _ = _any_box(boxes, i, b0, b1, n_a, n_b, scale)
        total += best
        if total > most:
            break
    return total


@jit
def first_is_longer(boxes: Ints32, a0: int, a1: int, b0: int, b1: int) -> bool:
    """Tell whether efforts are averaged over a: it has more boxes, or as many and is the smaller list of them."""
    if a1 - a0 != b1 - b0:
        return a1 - a0 > b1 - b0
    for p in range(a1 - a0):
        for c in range(6):
            if boxes[a0 + p, c] != boxes[b0 + p, c]:
                return bool(boxes[a0 + p, c] < boxes[b0 + p, c])
    return True


@jit
def box_effort(
    boxes: Ints32, reach: Ints32, a0: int, a1: int, b0: int, b1: int, n_a: int, n_b: int, scale: Scale, most: float
) -> float:
    """Return the stretch effort of two trajectories of boxes (Eq. 10), from 0 to 1; inf as soon as it is above `most`.

    Trajectory a is boxes[a0:a1] (t0, t1, x0, x1, y0, y1), sorted, and stands for n_a people; b likewise. Which is the
    longer is found here: the effort is symmetric. Efforts that equal `most` to TIE are given, never inf.
    """
    if not first_is_longer(boxes, a0, a1, b0, b1):
        a0, a1, b0, b1 = b0, b1, a0, a1
        n_a, n_b = n_b, n_a
    whole = float(scale.space_cap + scale.time_cap) * (n_a + n_b) * (a1 - a0)
    limit = (most + TIE) * whole
    total = _box_sum(boxes, reach, a0, a1, b0, b1, n_a, n_b, scale, limit)
    return np.inf if total > limit else total / whole


@jit
def nearest_boxes(
    boxes: Ints32,
    reach: Ints32,
    a0: int,
    a1: int,
    b0: int,
    b1: int,
    n_a: int,
    n_b: int,
    scale: Scale,
    at: Ints,
    space: Floats,
    time: Floats,
) -> None:
    """Fill, for each of the boxes a0…a1, which of b0…b1 is at the least effort, and its part of space and of time.

    Of several at the same effort, the first. The roles are as given: a need not be the longer.
    """
    whole = float(scale.space_cap + scale.time_cap) * (n_a + n_b)
    j = b0
    for i in range(a0, a1):
        while j < b1 and boxes[j, 0] < boxes[i, 0]:
            j += 1
        best, found = _near_box(boxes, reach, i, b0, b1, j, n_a, n_b, scale)
        if best >= scale.time_cap * (n_a + n_b):  # an earlier one beyond the cap may cost no more
            best, found = _any_box(boxes, i, b0, b1, n_a, n_b, scale)
        at[i - a0] = found
        space[i - a0] = _space_of(boxes, i, found, n_a, n_b, scale) / whole
        time[i - a0] = _time_of(boxes, i, found, n_a, n_b, scale) / whole
