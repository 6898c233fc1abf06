"""Polyline: the distance of points from the line through a trace's fixes (Promesse, Sec. V-C)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.geodesy import EARTH_M, Vector, across, arc_m, upward

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.tracks import SpaceTracks

__all__ = ["line_distances"]

_BLOCK = 16  # segments that share a bounding ball


class _View(NamedTuple):
    """A point, and the unit vectors up, east and north at it."""

    at: Vector
    up: Vector
    east: Vector
    north: Vector


@jit
def _view_from(at: Vector) -> _View:
    up = upward(at)
    east, north = across(up)
    return _View(at, up, east, north)


@jit
def _dot(a: Vector, b: Vector) -> float:
    return a.x * b.x + a.y * b.y + a.z * b.z


@jit
def _to_arc(view: _View, a: Vector, b: Vector) -> float:
    """Return the distance from a point to the arc between two others, on the map seen from the Earth's centre.

    That map (gnomonic, on the tangent plane at the point) shows great circles as straight lines, so that an arc does
    not dip below the surface as its chord does.
    """
    p = view.at
    height = _dot(p, view.up)
    up_a, up_b = _dot(a, view.up), _dot(b, view.up)
    if up_a < 0.01 * height or up_b < 0.01 * height:  # a quarter of the Earth away: not on this map
        near_a = (a.x - p.x) ** 2 + (a.y - p.y) ** 2 + (a.z - p.z) ** 2
        near_b = (b.x - p.x) ** 2 + (b.y - p.y) ** 2 + (b.z - p.z) ** 2
        return arc_m(math.sqrt(min(near_a, near_b)))
    far_a, far_b = height / up_a, height / up_b
    on_a = Vector(a.x * far_a - p.x, a.y * far_a - p.y, a.z * far_a - p.z)
    on_b = Vector(b.x * far_b - p.x, b.y * far_b - p.y, b.z * far_b - p.z)
    au, av = _dot(on_a, view.east), _dot(on_a, view.north)
    bu, bv = _dot(on_b, view.east), _dot(on_b, view.north)
    du, dv = bu - au, bv - av
    length = du * du + dv * dv
    at = 0.0 if length == 0.0 else min(max(-(au * du + av * dv) / length, 0.0), 1.0)
    return EARTH_M * math.atan(math.sqrt((au + at * du) ** 2 + (av + at * dv) ** 2) / EARTH_M)


@jit
def _balls(line: SpaceTracks, begin: int, end: int, block: int) -> Floats:
    """Return centre and radius of balls around the segments of a trace, `block` at a time, arcs included."""
    x, y, z = line.x, line.y, line.z
    segments = max(end - begin - 1, 1)
    balls = np.empty(((segments + block - 1) // block, 4))
    for n in range(len(balls)):
        first, last = begin + n * block, min(begin + (n + 1) * block, end - 1)
        cx = cy = cz = 0.0
        for i in range(first, last + 1):
            cx, cy, cz = cx + x[i], cy + y[i], cz + z[i]
        size = last - first + 1
        cx, cy, cz = cx / size, cy / size, cz / size
        radius = longest = 0.0
        for i in range(first, last + 1):
            radius = max(radius, (x[i] - cx) ** 2 + (y[i] - cy) ** 2 + (z[i] - cz) ** 2)
            if i > first:
                longest = max(longest, (x[i] - x[i - 1]) ** 2 + (y[i] - y[i - 1]) ** 2 + (z[i] - z[i - 1]) ** 2)
        bulge = longest / (4.0 * EARTH_M)  # twice as high as an arc is above its chord
        balls[n, 0], balls[n, 1], balls[n, 2], balls[n, 3] = cx, cy, cz, math.sqrt(radius) + bulge
    return balls


@jit
def _gap(ball: Floats, p: Vector) -> float:
    """Return the distance of a point from a ball; negative inside it."""
    away = math.sqrt((ball[0] - p.x) ** 2 + (ball[1] - p.y) ** 2 + (ball[2] - p.z) ** 2)
    return float(away - ball[3])


@jit
def _point(tracks: SpaceTracks, i: int) -> Vector:
    return Vector(tracks.x[i], tracks.y[i], tracks.z[i])


@jit
def line_distances(
    lines: SpaceTracks, points: SpaceTracks, traces: Ints, first: int, last: int, metres: Floats
) -> None:
    """Fill the distance of each point of the records first…last-1 to the line through the fixes of the record's trace.

    traces[r] is the trace of record r. The segment that was nearest to the point before is tried first, then those of
    the nearest ball, others only where their ball is nearer than what was found.
    """
    for record in range(first, last):
        begin, end = lines.offsets[traces[record]], lines.offsets[traces[record] + 1]
        balls, single = _balls(lines, begin, end, _BLOCK), _balls(lines, begin, end, 1)
        gaps = np.empty(len(balls))
        nearest = begin
        for point in range(points.offsets[record], points.offsets[record + 1]):
            p = _point(points, point)
            view = _view_from(p)
            best = _to_arc(view, _point(lines, nearest), _point(lines, min(nearest + 1, end - 1)))
            front = 0
            for n in range(len(balls)):
                gaps[n] = _gap(balls[n], p)
                if gaps[n] < gaps[front]:
                    front = n
            for turn in range(-1, len(balls)):
                n = front if turn < 0 else turn
                if gaps[n] >= best or turn == front:
                    continue
                for i in range(begin + n * _BLOCK, min(begin + (n + 1) * _BLOCK, max(end - 1, begin + 1))):
                    if _gap(single[i - begin], p) >= best:
                        continue
                    distance = _to_arc(view, _point(lines, i), _point(lines, min(i + 1, end - 1)))
                    if distance < best:
                        best, nearest = distance, i
            metres[point] = best
