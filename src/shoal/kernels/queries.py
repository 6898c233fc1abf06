"""Queries: count the traces that cross a square during some time (Promesse, Sec. V-C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.tracks import Tracks

__all__ = ["Queries", "TrackBounds", "count_crossing", "track_bounds"]


class Queries(NamedTuple):
    """Range queries: their times in milliseconds, `when` (first, last), and their squares, `where`.

    A square is its middle (lng, lat) and half its sides, in degrees of longitude and latitude.
    """

    when: Ints
    where: Floats


class TrackBounds(NamedTuple):
    """Each track's first and last time, and its southernmost and northernmost latitude."""

    times: Ints
    lats: Floats


@jit
def track_bounds(tracks: Tracks, bounds: TrackBounds) -> None:
    """Fill the bounds of each track."""
    offsets, ms, _, lat = tracks
    for track in range(len(offsets) - 1):
        begin, end = offsets[track], offsets[track + 1]
        south, north = 91.0, -91.0
        for i in range(begin, end):
            south, north = min(south, lat[i]), max(north, lat[i])
        bounds.times[track, 0], bounds.times[track, 1] = ms[begin], ms[end - 1]
        bounds.lats[track, 0], bounds.lats[track, 1] = south, north


@jit
def count_crossing(tracks: Tracks, bounds: TrackBounds, queries: Queries, first: int, last: int, counts: Ints) -> None:
    """Fill how many tracks have a point in the square of a query during its time, for the queries first…last-1."""
    offsets, ms, lng, lat = tracks
    times, lats = bounds
    when, where = queries
    for query in range(first, last):
        begun, ended = when[query, 0], when[query, 1]
        middle_lng, middle_lat, half_lng, half_lat = where[query]
        found = 0
        for track in range(len(offsets) - 1):
            if times[track, 0] > ended or times[track, 1] < begun:
                continue
            if lats[track, 0] > middle_lat + half_lat or lats[track, 1] < middle_lat - half_lat:
                continue
            low, high = offsets[track], offsets[track + 1]
            while low < high:
                half = (low + high) // 2
                if ms[half] < begun:
                    low = half + 1
                else:
                    high = half
            for i in range(low, offsets[track + 1]):
                if ms[i] > ended:
                    break
                if abs(lat[i] - middle_lat) <= half_lat:
                    turn = abs(lng[i] - middle_lng)
                    if min(turn, 360.0 - turn) <= half_lng:
                        found += 1
                        break
        counts[query] = found
