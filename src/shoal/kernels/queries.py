"""Queries: how many traces cross a square during some time (004, Sec. V-C)."""

from __future__ import annotations

from typing import Any

from shoal.jit import jit

__all__ = ["count_crossing", "trace_bounds"]


@jit
def trace_bounds(offsets: Any, ms: Any, lat: Any, times: Any, lats: Any) -> None:
    """Write each trace's first and last time, and its southernmost and northernmost latitude."""
    for trace in range(len(offsets) - 1):
        begin, end = offsets[trace], offsets[trace + 1]
        south, north = 91.0, -91.0
        for i in range(begin, end):
            south, north = min(south, lat[i]), max(north, lat[i])
        times[trace, 0], times[trace, 1] = ms[begin], ms[end - 1]
        lats[trace, 0], lats[trace, 1] = south, north


@jit
def count_crossing(
    offsets: Any,
    ms: Any,
    lng: Any,
    lat: Any,
    times: Any,
    lats: Any,
    when: Any,
    where: Any,
    first: Any,
    last: Any,
    out: Any,
) -> None:
    """Write how many traces have a fix in the square of each of some queries during its time.

    A query is `when` (first and last millisecond) and `where` (lng, lat of the middle, half the sides in degrees of
    longitude and latitude). Bounds of the traces are those of `trace_bounds`.
    """
    for query in range(first, last):
        begun, ended = when[query, 0], when[query, 1]
        middle_lng, middle_lat, half_lng, half_lat = where[query]
        found = 0
        for trace in range(len(offsets) - 1):
            if times[trace, 0] > ended or times[trace, 1] < begun:
                continue
            if lats[trace, 0] > middle_lat + half_lat or lats[trace, 1] < middle_lat - half_lat:
                continue
            low, high = offsets[trace], offsets[trace + 1]
            while low < high:
                half = (low + high) // 2
                if ms[half] < begun:
                    low = half + 1
                else:
                    high = half
            for i in range(low, offsets[trace + 1]):
                if ms[i] > ended:
                    break
                if abs(lat[i] - middle_lat) <= half_lat:
                    turn = abs(lng[i] - middle_lng)
                    if min(turn, 360.0 - turn) <= half_lng:
                        found += 1
                        break
        out[query] = found
