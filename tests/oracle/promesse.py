"""Promesse, fix by fix, with geodesics: slow and obvious (Promesse, Fig. 2)."""

from pyproj import Geod

GEOD = Geod(ellps="WGS84")


def smooth(fixes, step_m):
    """Return the published points of a trace, (ms, lng, lat), and how near a distance came to the step (line 9).

    Where it came very near, rounding decides whether there is a point.
    """
    points, margin = [], float("inf")
    prev = None
    for ms, lng, lat in fixes:  # line 3
        if prev is None:
            points.append((ms, lng, lat))
            prev = lng, lat
            continue
        angle, _, d = GEOD.inv(*prev, lng, lat)  # line 8
        while d >= step_m:
            margin = min(margin, d - step_m)
            there_lng, there_lat, _ = GEOD.fwd(*prev, angle, step_m)  # line 10
            points.append((ms, there_lng, there_lat))
            prev = there_lng, there_lat
            angle, _, d = GEOD.inv(*prev, lng, lat)
        margin = min(margin, step_m - d)
    if len(points) <= 2:  # line 18
        return [], margin
    points = points[1:-1]  # lines 22, 23
    first, last = min(p[0] for p in points), max(p[0] for p in points)  # lines 25, 26
    interval = (last - first) / (len(points) - 1) if len(points) > 1 else 0
    return [(first + n * interval, lng, lat) for n, (_, lng, lat) in enumerate(points)], margin
