"""Stays: find where a trace remains within a diameter for some time, and merge its stays into places.

The greedy extraction of Hariharan and Toyama (2004), as Promesse's paper uses it (Sec. V-B). Coordinates are in space
(geocentric, or flat with z = 0), so that distances are true anywhere.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.geodesy import Vector, across, upward

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.tracks import SpaceTracks

__all__ = ["FoundStays", "StayRule", "find_stays", "match_places", "merge_stays"]

_MANY = 256  # points that a fix is compared with before those inside their hull are forgotten


class StayRule(NamedTuple):
    """What a stay is: its diameter, how long it lasts at least; `flat`: coordinates are those of a plane with z = 0."""

    diameter_m: float
    least_ms: int
    flat: bool


class FoundStays(NamedTuple):
    """Stays: how many each trace has; the rows start…stop-1 of each stay, with room for half the fixes."""

    counts: Ints
    starts: Ints
    stops: Ints


class _Bounds(NamedTuple):
    """The box around some points."""

    x0: float
    x1: float
    y0: float
    y1: float
    z0: float
    z1: float


@jit
def _bounds_at(points: SpaceTracks, i: int) -> _Bounds:
    x, y, z = points.x[i], points.y[i], points.z[i]
    return _Bounds(x, x, y, y, z, z)


@jit
def _widened(box: _Bounds, points: SpaceTracks, i: int) -> _Bounds:
    """Return the box around a box and a point."""
    x, y, z = points.x[i], points.y[i], points.z[i]
    return _Bounds(min(box.x0, x), max(box.x1, x), min(box.y0, y), max(box.y1, y), min(box.z0, z), max(box.z1, z))


@jit
def _squared_diagonal(box: _Bounds) -> float:
    a, b, c = box.x1 - box.x0, box.y1 - box.y0, box.z1 - box.z0
    return a * a + b * b + c * c


@jit
def _hull(u: Floats, v: Floats, n: int, kept: Ints) -> int:
    """Fill the corners of the convex hull of points, one after the other around it; return how many."""
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
def _forget_inner(points: SpaceTracks, far: Ints, n: int, flat: bool) -> int:
    """Keep only the corners of the hull among the rows `far`, projected at the first; no other row can be farthest."""
    x, y, z = points.x, points.y, points.z
    o = far[0]
    if flat:
        east, north = Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0)
    else:
        east, north = across(upward(Vector(x[o], y[o], z[o])))
    u, v, kept = np.empty(n), np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        dx, dy, dz = x[far[i]] - x[o], y[far[i]] - y[o], z[far[i]] - z[o]
        u[i] = dx * east.x + dy * east.y + dz * east.z
        v[i] = dx * north.x + dy * north.y + dz * north.z
    count = _hull(u, v, n, kept)
    for i in range(count):
        kept[i] = far[kept[i]]
    for i in range(count):
        far[i] = kept[i]
    return count


@jit
def _far_off(points: SpaceTracks, i: int, limit: float, far: Ints, n_far: int) -> int:
    """Return the first of the rows `far` whose squared distance from row i is above the limit; -1 if there is none."""
    x, y, z = points.x, points.y, points.z
    for k in range(n_far):
        j = far[k]
        if (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 + (z[j] - z[i]) ** 2 > limit:
            return int(j)
    return -1


@jit
def _last_off(points: SpaceTracks, i: int, limit: float, low: int) -> int:
    """Return the last of the rows low…i-1 whose squared distance from row i is above the limit; -1 if there is none."""
    x, y, z = points.x, points.y, points.z
    for j in range(i - 1, low - 1, -1):
        if (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2 + (z[j] - z[i]) ** 2 > limit:
            return j
    return -1


@jit
def find_stays(points: SpaceTracks, ms: Ints, rule: StayRule, first: int, last: int, stays: FoundStays) -> int:
    """Fill the stays of the traces first…last-1; return their total number.

    A stay is a run of fixes, the first that begins as early as possible and then as long as possible, no two of which
    are more than the diameter apart and which lasts `least_ms` at least.
    Linear: a fix is compared with those of the last `least_ms` at most, or with the corners of a longer stay.
    """
    offsets = points.offsets
    starts, stops = stays.starts, stays.stops
    limit = rule.diameter_m * rule.diameter_m
    longest = 0
    for trace in range(first, last):
        longest = max(longest, offsets[trace + 1] - offsets[trace])
    far = np.empty(longest, np.int64)
    found = 0
    for trace in range(first, last):
        begin, end = offsets[trace], offsets[trace + 1]
        before = found
        low, n_far, most = begin, 0, _MANY  # the run is low…i-1; `far` its outer points, once it lasts long enough
        box = _Bounds(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # around the run
        for i in range(begin, end + 1):
            long = i > low + 1 and ms[i - 1] - ms[low] >= rule.least_ms
            if i == end:
                if long:
                    starts[found], stops[found] = low, i
                    found += 1
                break
            if i == begin:
                box = _bounds_at(points, i)
                continue
            wider = _widened(box, points, i)
            outside = -1  # a fix of the run that is too far away: the latest, unless the run already is a stay
            if long and n_far == 0:
                for j in range(low, i):
                    far[n_far] = j
                    n_far += 1
            if _squared_diagonal(wider) > limit:
                outside = _far_off(points, i, limit, far, n_far) if long else _last_off(points, i, limit, low)
            if outside < 0:
                box = wider
                if long:
                    if n_far >= most:
                        n_far = _forget_inner(points, far, n_far, rule.flat)
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
            box = _bounds_at(points, i)
            for j in range(low, i):
                box = _widened(box, points, j)
        stays.counts[trace] = found - before
    return found


@jit
def merge_stays(stays: SpaceTracks, radius_m: float, counts: Ints) -> int:
    """Merge each trace's stays into places: a stay joins the nearest place within `radius_m`, or makes a new one.

    A place is at the mean of its stays. Places are written over the stays, from the first row on. Return how many
    there are in all; `counts` gets those of each trace.
    """
    offsets, x, y, z = stays
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
def match_places(real: SpaceTracks, found: SpaceTracks, limit_m: float, matched: Ints) -> None:
    """Fill, for each trace, how many of its real places are the nearest one, within `limit_m`, to a place found.

    Promesse, Definition 1; `found` are the places in what was published of each trace.
    """
    offsets, x, y, z = real
    hit = np.zeros(len(x), np.bool_)
    for trace in range(len(offsets) - 1):
        for q in range(found.offsets[trace], found.offsets[trace + 1]):
            best, nearest = math.inf, -1
            for p in range(offsets[trace], offsets[trace + 1]):
                away = (x[p] - found.x[q]) ** 2 + (y[p] - found.y[q]) ** 2 + (z[p] - found.z[q]) ** 2
                if away < best:
                    best, nearest = away, p
            if nearest >= 0 and best <= limit_m * limit_m:
                hit[nearest] = True
        hits = 0
        for p in range(offsets[trace], offsets[trace + 1]):
            hits += hit[p]
        matched[trace] = hits
