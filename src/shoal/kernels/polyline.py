"""Polyline: how far points lie from the line through a trace's fixes (004, Sec. V-C)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.jit import jit
from shoal.kernels.geodesy import EARTH_M, across, arc_m, upward

__all__ = ["line_distances"]

_BLOCK = 16  # segments that share a bounding ball


@jit
def _to_arc(p: Any, frame: Any, ax: Any, ay: Any, az: Any, bx: Any, by: Any, bz: Any) -> Any:
    """Return the distance from a point to the arc between two others, on the map seen from the Earth's centre.

    That map (gnomonic, on the tangent plane at the point) shows great circles as straight lines, so that an arc does
    not dip below the surface as its chord does. `frame` holds the unit vectors up, east and north at the point.
    """
    height = p[0] * frame[0] + p[1] * frame[1] + p[2] * frame[2]
    up_a, up_b = ax * frame[0] + ay * frame[1] + az * frame[2], bx * frame[0] + by * frame[1] + bz * frame[2]
    if up_a < 0.01 * height or up_b < 0.01 * height:  # a quarter of the Earth away: not on this map
        near_a = (ax - p[0]) ** 2 + (ay - p[1]) ** 2 + (az - p[2]) ** 2
        near_b = (bx - p[0]) ** 2 + (by - p[1]) ** 2 + (bz - p[2]) ** 2
        return arc_m(math.sqrt(min(near_a, near_b)))
    a, b = height / up_a, height / up_b
    ax, ay, az = ax * a - p[0], ay * a - p[1], az * a - p[2]
    bx, by, bz = bx * b - p[0], by * b - p[1], bz * b - p[2]
    au, av = ax * frame[3] + ay * frame[4] + az * frame[5], ax * frame[6] + ay * frame[7] + az * frame[8]
    bu, bv = bx * frame[3] + by * frame[4] + bz * frame[5], bx * frame[6] + by * frame[7] + bz * frame[8]
    du, dv = bu - au, bv - av
    length = du * du + dv * dv
    at = 0.0 if length == 0.0 else min(max(-(au * du + av * dv) / length, 0.0), 1.0)
    return EARTH_M * math.atan(math.sqrt((au + at * du) ** 2 + (av + at * dv) ** 2) / EARTH_M)


@jit
def _balls(x: Any, y: Any, z: Any, begin: Any, end: Any, block: Any) -> Any:
    """Return centre and radius of balls around the segments of a trace, `block` at a time, arcs included."""
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
def _gap(ball: Any, p: Any) -> float:
    """Return how far a point is from a ball; less than zero inside it."""
    away = math.sqrt((ball[0] - p[0]) ** 2 + (ball[1] - p[1]) ** 2 + (ball[2] - p[2]) ** 2)
    return float(away - ball[3])


@jit
def line_distances(
    offsets: Any,
    x: Any,
    y: Any,
    z: Any,
    records: Any,
    traces: Any,
    px: Any,
    py: Any,
    pz: Any,
    first: Any,
    last: Any,
    metres: Any,
) -> None:
    """Write the distance of each point of some records to the line through the fixes of the record's trace.

    Coordinates are geocentric. The segment that was nearest to the point before is tried first, then those of the
    nearest ball, others only where their ball is nearer than what was found.
    """
    p, frame = np.empty(3), np.empty(9)
    for record in range(first, last):
        begin, end = offsets[traces[record]], offsets[traces[record] + 1]
        balls, single = _balls(x, y, z, begin, end, _BLOCK), _balls(x, y, z, begin, end, 1)
        gaps = np.empty(len(balls))
        nearest = begin
        for point in range(records[record], records[record + 1]):
            p[0], p[1], p[2] = px[point], py[point], pz[point]
            frame[0], frame[1], frame[2] = upward(p[0], p[1], p[2])
            frame[3], frame[4], frame[5], frame[6], frame[7], frame[8] = across(frame[0], frame[1], frame[2])
            i, j = nearest, min(nearest + 1, end - 1)
            best = _to_arc(p, frame, x[i], y[i], z[i], x[j], y[j], z[j])
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
                    j = min(i + 1, end - 1)
                    distance = _to_arc(p, frame, x[i], y[i], z[i], x[j], y[j], z[j])
                    if distance < best:
                        best, nearest = distance, i
            metres[point] = best
