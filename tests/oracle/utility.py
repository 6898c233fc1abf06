"""Spatial error and range queries, point by point: slow and obvious (Promesse, Sec. V-C)."""

import math
from itertools import pairwise

from pyproj import Transformer


def line_distance(point, fixes):
    """Distance of a place (lng, lat) to the line through others, on a map around the place."""
    lng, lat = point
    to = Transformer.from_crs("OGC:CRS84", f"+proj=aeqd +lat_0={lat!r} +lon_0={lng!r} +datum=WGS84", always_xy=True)
    flat = [to.transform(*fix) for fix in fixes]
    if len(flat) == 1:
        return math.hypot(*flat[0])
    return min(_segment(a, b) for a, b in pairwise(flat))


def _segment(a, b):
    (ax, ay), (bx, by) = a, b
    dx, dy = bx - ax, by - ay
    at = -(ax * dx + ay * dy) / (dx * dx + dy * dy) if (dx, dy) != (0, 0) else 0
    at = min(max(at, 0), 1)
    return math.hypot(ax + at * dx, ay + at * dy)


def crossing(traces, when, where):
    """Count the traces, lists of (ms, lng, lat), with a fix in a square during some time."""
    first, last = when
    lng, lat, east, north = where
    count = 0
    for fixes in traces:
        inside = [
            first <= ms <= last and abs(y - lat) <= north and abs((x - lng + 180) % 360 - 180) <= east
            for ms, x, y in fixes
        ]
        count += any(inside)
    return count
