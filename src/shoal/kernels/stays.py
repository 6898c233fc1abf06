"""Stays: where a trace remains within a diameter for some time, and the places that its stays make up.

The greedy extraction of Hariharan and Toyama (2004), as 004 uses it (Sec. V-B). Coordinates are in space (geocentric,
or flat with z = 0), so that distances are true anywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.jit import jit
from shoal.kernels.geodesy import across, upward

__all__ = ["find_stays", "match_places", "merge_stays"]

_MANY = 256  # points that a fix is compared with before those inside their hull are forgotten


@jit
def _hull(u: Any, v: Any, n: Any, kept: Any) -> int:
    """Write the corners of the convex hull of points, one after the other around it; give how many."""
    start = 0
    for i in range(1, n):
        if u[i] < u[start] or (u[i] == u[start] and v[i] < v[start]):
            start = i
    here, count = start, 0
    while True:
        kept[count] = here
        count += 1
        ahead, most = here, 0.0
        for i in range(n):
            du, dv = u[i] - u[here], v[i] - v[here]
            length = du * du + dv * dv
            if length == 0.0:
                continue
            turn = (u[ahead] - u[here]) * dv - (v[ahead] - v[here]) * du
            if most == 0.0 or turn < 0.0 or (turn == 0.0 and length > most):
                ahead, most = i, length
        here = ahead
        if count >= n or (u[here] == u[start] and v[here] == v[start]):
            return count


@jit
def _forget_inner(x: Any, y: Any, z: Any, far: Any, n: Any, flat: Any) -> int:
    """Keep only the corners of the hull among rows `far`, seen from above the first; none else can be farthest."""
    o = far[0]
    if flat:
        e_x, e_y, e_z, n_x, n_y, n_z = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0
    else:
        up_x, up_y, up_z = upward(x[o], y[o], z[o])
        e_x, e_y, e_z, n_x, n_y, n_z = across(up_x, up_y, up_z)
    u, v, kept = np.empty(n), np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        dx, dy, dz = x[far[i]] - x[o], y[far[i]] - y[o], z[far[i]] - z[o]
        u[i], v[i] = dx * e_x + dy * e_y + dz * e_z, dx * n_x + dy * n_y + dz * n_z
    count = _hull(u, v, n, kept)
    for i in range(count):
        kept[i] = far[kept[i]]
    for i in range(count):
        far[i] = kept[i]
    return count


@jit
def find_stays(
    offsets: Any,
    ms: Any,
    x: Any,
    y: Any,
    z: Any,
    flat: Any,
    diameter_m: Any,
    least_ms: Any,
    first: Any,
    last: Any,
    counts: Any,
    starts: Any,
    stops: Any,
) -> int:
    """Write the stays of some traces as rows start…stop-1, and how many each trace has; give how many in all.

    A stay is a run of fixes, the first that begins as early as possible and then as long as possible, no two of which
    are more than `diameter_m` apart and which lasts `least_ms` at least. `starts` and `stops` need room for half the
    fixes. Linear: a fix is compared with those of the last `least_ms` at most, or with the corners of a longer stay.
    """
    limit = diameter_m * diameter_m
    longest = 0
    for trace in range(first, last):
        longest = max(longest, offsets[trace + 1] - offsets[trace])
    far = np.empty(longest, np.int64)
    found = 0
    for trace in range(first, last):
        begin, end = offsets[trace], offsets[trace + 1]
        before = found
        low, n_far, most = begin, 0, _MANY  # the run is low…i-1; `far` its outer points, once it lasts long enough
        x0 = x1 = y0 = y1 = z0 = z1 = 0.0
        for i in range(begin, end + 1):
            long = i > low + 1 and ms[i - 1] - ms[low] >= least_ms
            if i == end:
                if long:
                    starts[found], stops[found] = low, i
                    found += 1
                break
            if i == begin:
                x0, x1, y0, y1, z0, z1 = x[i], x[i], y[i], y[i], z[i], z[i]
                continue
            a, b, c = max(x1, x[i]) - min(x0, x[i]), max(y1, y[i]) - min(y0, y[i]), max(z1, z[i]) - min(z0, z[i])
            outside = -1  # the latest fix of the run that is too far away
            if long and n_far == 0:
                for j in range(low, i):
                    far[n_far] = j
                    n_far += 1
            if a * a + b * b + c * c > limit:
                if long:
                    for k in range(n_far):
                        j = far[k]
                        if (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 + (z[j] - z[i]) ** 2 > limit:
                            outside = j
                            break
                else:
                    for j in range(i - 1, low - 1, -1):
                        if (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 + (z[j] - z[i]) ** 2 > limit:
                            outside = j
                            break
            if outside < 0:
                x0, x1, y0, y1 = min(x0, x[i]), max(x1, x[i]), min(y0, y[i]), max(y1, y[i])
                z0, z1 = min(z0, z[i]), max(z1, z[i])
                if long:
                    if n_far >= most:
                        n_far = _forget_inner(x, y, z, far, n_far, flat)
                        most = max(_MANY, 2 * n_far)
                    far[n_far] = i
                    n_far += 1
                continue
            if long:
                starts[found], stops[found] = low, i
                found += 1
                low = i
            else:
                low = outside + 1
            n_far, most = 0, _MANY
            x0, x1, y0, y1, z0, z1 = x[i], x[i], y[i], y[i], z[i], z[i]
            for j in range(low, i):
                x0, x1, y0, y1 = min(x0, x[j]), max(x1, x[j]), min(y0, y[j]), max(y1, y[j])
                z0, z1 = min(z0, z[j]), max(z1, z[j])
        counts[trace] = found - before
    return found


@jit
def merge_stays(offsets: Any, x: Any, y: Any, z: Any, radius_m: Any, counts: Any) -> int:
    """Merge each trace's stays into places, in place: a stay joins the nearest one within `radius_m`, or is a new one.

    A place is at the mean of its stays. Gives how many places there are in all; `counts` those of each trace.
    """
    end = 0
    weights = np.zeros(len(x))
    for trace in range(len(offsets) - 1):
        start = end
        for i in range(offsets[trace], offsets[trace + 1]):
            best, nearest = radius_m * radius_m, -1
            for j in range(start, end):
                away = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2 + (z[i] - z[j]) ** 2
                if away <= best and (nearest < 0 or away < best):
                    best, nearest = away, j
            if nearest < 0:
                x[end], y[end], z[end], weights[end] = x[i], y[i], z[i], 1.0
                end += 1
            else:
                w = weights[nearest]
                x[nearest] += (x[i] - x[nearest]) / (w + 1.0)
                y[nearest] += (y[i] - y[nearest]) / (w + 1.0)
                z[nearest] += (z[i] - z[nearest]) / (w + 1.0)
                weights[nearest] = w + 1.0
        counts[trace] = end - start
    return end


@jit
def match_places(
    offsets: Any, x: Any, y: Any, z: Any, other: Any, to_x: Any, to_y: Any, to_z: Any, limit_m: Any, matched: Any
) -> None:
    """Write, for each trace, how many of its places are the nearest one, within `limit_m`, to a place of the other.

    004, Definition 1; `other` are the offsets of the places that were found in what was published of each trace.
    """
    hit = np.zeros(len(x), np.bool_)
    for trace in range(len(offsets) - 1):
        for q in range(other[trace], other[trace + 1]):
            best, nearest = math.inf, -1
            for p in range(offsets[trace], offsets[trace + 1]):
                away = (x[p] - to_x[q]) ** 2 + (y[p] - to_y[q]) ** 2 + (z[p] - to_z[q]) ** 2
                if away < best:
                    best, nearest = away, p
            if nearest >= 0 and best <= limit_m * limit_m:
                hit[nearest] = True
        found = 0
        for p in range(offsets[trace], offsets[trace + 1]):
            found += hit[p]
        matched[trace] = found
