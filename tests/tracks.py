"""Traces made up for tests of point methods."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyproj import Geod

import shoal

GEOD = Geod(ellps="WGS84")
# Where the Earth is awkward: the equator, mid-latitudes, the antimeridian, and both poles.
CORNERS = [(0.0, 0.0), (116.4, 39.9), (179.9995, 60.0), (-179.999, -45.0), (10.0, 89.999), (77.0, -89.9995)]


def around(corner, east, north):
    """Return degrees of metres east and north of a corner."""
    east, north = np.atleast_1d(np.asarray(east, float)), np.atleast_1d(np.asarray(north, float))
    angle, metres = np.degrees(np.arctan2(east, north)), np.hypot(east, north)
    lng, lat, _ = GEOD.fwd(np.full(len(east), corner[0]), np.full(len(east), corner[1]), angle, metres)
    return np.asarray(lng), np.asarray(lat)


def table_of(people):
    """Rows of people, {label: [(ms, lng, lat), …]}, as a table that shoal reads."""
    rows = [(label, *fix) for label, fixes in people.items() for fix in fixes]
    uid, ms, lng, lat = zip(*rows, strict=True)
    times = pa.array(ms, pa.int64()).cast(pa.timestamp("ms", "UTC"))
    return pa.table({"uid": list(uid), "datetime": times, "lat": list(lat), "lng": list(lng)})


def traces_of(people, **options):
    """Read such a table; made-up people may be anywhere."""
    return shoal.read_traces(table_of(people), confirm="swapped,zero-zero", **options)


def walk(seed, *, corner=(116.4, 39.9), fixes=60, pace_m=80.0, gap_ms=10_000, start=1_700_000_000_000):
    """One random walk around a corner, as fixes (ms, lng, lat)."""
    chance = np.random.default_rng(seed)
    east, north = chance.normal(0, pace_m, (2, fixes)).cumsum(axis=1)
    lng, lat = around(corner, east, north)
    ms = start + np.cumsum(chance.integers(1, gap_ms, fixes))
    return list(zip(ms.tolist(), lng.tolist(), lat.tolist(), strict=True))


def records_of(release):
    """The records of a release in memory, as lists of (ms, lng, lat)."""
    places = getattr(release, "points", release)  # or what was published, or traces
    rows = list(zip(places.ms.tolist(), places.lng.tolist(), places.lat.tolist(), strict=True))
    return [rows[a:b] for a, b in pairwise(release.offsets.tolist())]


def planted(seed, *, stays=5, corner=(116.4, 39.9), noise_m=10.0):
    """A day between places 2 km or more apart: half an hour or more at each, a fix a minute, half that on the way.

    Gives the fixes and the places (lng, lat).
    """
    chance = np.random.default_rng(seed)
    spots = [np.array([2500.0 * n, 2500.0 * chance.integers(0, 3)]) for n in chance.permutation(stays)]
    s, at, rows = 1_700_000_000, spots[0], []
    for n, spot in enumerate(spots):
        while n and np.hypot(*(spot - at)) > 1:
            step = (spot - at) * min(1.0, 300.0 / np.hypot(*(spot - at)))
            at, s = at + step, s + 30
            rows.append((s, *at))
        for _ in range(int(chance.integers(30, 90))):
            s += 60
            rows.append((s, *(spot + chance.normal(0, noise_m, 2))))
    seconds, east, north = map(np.array, zip(*rows, strict=True))
    lng, lat = around(corner, east, north)
    places = np.stack(around(corner, *np.array(spots).T), axis=1)
    fixes = list(zip((seconds * 1000).astype(int).tolist(), lng.tolist(), lat.tolist(), strict=True))
    return fixes, [tuple(map(float, place)) for place in places]
