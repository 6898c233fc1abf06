"""Smooth: place points at equal distances along a trace (Promesse, Fig. 2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.geodesy import EARTH_M, Vector, chord_m, geocentric, move, place_after, toward

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.tracks import Tracks

__all__ = ["PointColumns", "most_points", "smooth_traces"]

_RADIANS = math.pi / 180
_DEGREE_M = 111_700.0  # more than any degree of latitude or longitude is long
_LARGEST_M = 6_400_000.0  # the largest radius of curvature
_SCALE = 1e7  # published degrees have seven decimals


class PointColumns(NamedTuple):
    """Arrays for the points of some traces, one after the other."""

    ms: Ints
    lng: Floats
    lat: Floats


@jit
def _squared_m(at: Vector, to: Vector) -> float:
    """Return the squared distance of two points in space."""
    return (to.x - at.x) ** 2 + (to.y - at.y) ** 2 + (to.z - at.z) ** 2


@jit
def most_points(traces: Tracks, step_m: float, first: int, last: int, most: Ints) -> None:
    """Fill an upper bound of the number of points for the traces first…last-1, from the length of each polyline."""
    offsets, lng, lat = traces.offsets, traces.lng, traces.lat
    for trace in range(first, last):
        length = 0.0
        for i in range(offsets[trace] + 1, offsets[trace + 1]):
            turn = abs(lng[i] - lng[i - 1])
            turn = min(turn, 360.0 - turn)
            narrow = math.cos(min(abs(lat[i]), abs(lat[i - 1])) * _RADIANS)
            east, north = turn * narrow, lat[i] - lat[i - 1]
            angle = math.sqrt(east * east + north * north) * _RADIANS
            # The sphere's own law: sin(d/2) is at most angle/2.
            length += angle * 1.001 if angle < 0.1 else min(angle * 1.58, 3.16)
        most[trace] = int(length * _LARGEST_M / step_m) + 2


@jit
def smooth_traces(traces: Tracks, step_m: float, first: int, last: int, counts: Ints, points: PointColumns) -> int:
    """Walk the traces first…last-1; fill their points and the number of points of each; return the total.

    Per trace: the first fix is the first point; a point is given wherever the distance from the last one reaches
    `step_m`, on the line from it to the current fix. Nothing is left of a trace with two points or fewer; else the
    first and the last are dropped and the times of the others spread evenly from the least to the greatest.
    Room for `most_points` a trace is needed.
    """
    offsets, ms, lng, lat = traces
    chord2 = chord_m(step_m) ** 2
    ahead, down = EARTH_M * math.sin(step_m / EARTH_M), EARTH_M * (1.0 - math.cos(step_m / EARTH_M))
    near = step_m / _DEGREE_M * 0.999
    end = 0
    for trace in range(first, last):
        begin, stop = offsets[trace], offsets[trace + 1]
        counts[trace] = 0
        if stop - begin < 2:
            continue
        here_lng, here_lat = lng[begin], lat[begin]
        here = geocentric(here_lng, here_lat)
        found = 0  # points after the first
        first_ms = last_ms = before_ms = ms[begin]
        for i in range(begin + 1, stop):
            if abs(lng[i] - here_lng) + abs(lat[i] - here_lat) < near:
                continue  # surely too near, without asking the sines
            to = geocentric(lng[i], lat[i])
            while _squared_m(here, to) >= chord2:
                new = move(here, toward(here, to), ahead, down)
                here_lng, here_lat = place_after(here_lng, here_lat, here, new)
                here = new
                points.lng[end + found] = np.rint(here_lng * _SCALE) / _SCALE
                points.lat[end + found] = np.rint(here_lat * _SCALE) / _SCALE
                found += 1
                if found == 1:
                    first_ms = ms[i]
                before_ms, last_ms = last_ms, ms[i]
        kept = found - 1  # the last one is dropped; the first fix was never written
        if kept < 1:
            continue
        for j in range(kept):
            points.ms[end + j] = first_ms + math.floor((before_ms - first_ms) * (j / max(kept - 1, 1)) + 0.5)
        counts[trace] = kept
        end += kept
    return end
