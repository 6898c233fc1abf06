"""Check that points are what Promesse makes of its step (Promesse, Fig. 2): equally far apart, along the route.

The file alone shows the distances and the times. With the owner of each record, their fixes show that the points lie on
their route, and that both ends are cut. Nothing here is shared with the code that makes such releases.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.lists import offsets_of, ranges_of
from shoal.seen.arrays import fresh, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints
    from shoal.run import Run
    from shoal.seen.findings import Findings
    from shoal.seen.fixes import OriginalFixes
    from shoal.seen.point_scan import PointScan

__all__ = ["check_routes", "check_steps"]

_A, _E2 = 6_378_137.0, 0.0066943799901413165  # WGS84
_R = 6_371_000.0
_RADIANS = math.pi / 180
_EXACT_M, _EXACT = 0.02, 1e-6  # what seven decimals of a degree, and the shape of the Earth, may change of a step
_OFF_M, _OFF = 0.05, 1e-3  # how far a point may lie beside the line, in metres and as a share of the step
_HALF_MS = 0.501  # times are rounded to milliseconds
_ROWS, _RECORDS = 1 << 16, 256
_END, _START, _BESIDE = 1, 2, 3  # what is wrong with a record: the last point, the first one, or the route
_WAYS = 16


class _Places(NamedTuple):
    """Places of people, or of records: list n is rows offsets[n] to offsets[n+1]."""

    offsets: Ints
    ms: Ints
    lng: Floats
    lat: Floats


class _Line(NamedTuple):
    """The places of one person, or of one record, in the order of time."""

    ms: Ints
    lng: Floats
    lat: Floats


class _Point(NamedTuple):
    """A point in metres from the Earth's centre."""

    x: float
    y: float
    z: float


def check_steps(findings: Findings, scan: PointScan, step_m: int, run: Run) -> None:
    """Check in the file that successive points are one step apart, and that times are spread evenly.

    Cost: linear.
    """
    if scan.columns is None or not len(scan):
        return
    ms, lng, lat = scan.columns
    record, starts = spread(scan.counts), offsets_of(scan.counts)[:-1]
    begun, ended, _, _ = scan.edges
    wrong_m, wrong_ms = np.zeros(len(ms), dtype=bool), np.zeros(len(ms), dtype=bool)

    def work(first: int, last: int) -> None:
        here = slice(max(first - 1, 0), last)
        apart = _geodesic(np.diff(_in_space(lng[here], lat[here]), axis=1))
        follows = ~fresh(record[here])[1:]
        off = np.abs(apart - step_m) > _EXACT_M + _EXACT * step_m
        wrong_m[here.start + 1 : last] = off & follows
        mine = record[first:last]
        share = (np.arange(first, last) - starts[mine]) / np.maximum(scan.counts[mine] - 1, 1)
        even = begun[mine] + (ended - begun)[mine] * share
        wrong_ms[first:last] = np.abs(ms[first:last] - even) > _HALF_MS

    run.ranges(work, ranges_of(len(ms), _ROWS))
    findings.fail_if(int(wrong_m.sum()), "steps/distances")
    findings.fail_if(int(wrong_ms.sum()), "steps/times")


def check_routes(
    findings: Findings,
    scan: PointScan,
    owners: NDArray[np.int64],
    fixes: OriginalFixes,
    step_m: int,
    *,
    split: bool,
    run: Run,
) -> None:
    """Check that each record follows its owner's fixes, begins one step after a trace does and ends before it does.

    The first and the last time of a record are those of fixes. `split` says that a person may have several traces, so
    that one may begin at any fix. Cost: a walk through the fixes of each record.
    """
    if scan.columns is None or fixes.columns is None or not len(scan):
        return
    there = fixes.columns
    routes = _Places(there.offsets, there.ms, there.lng, there.lat)
    points = _Places(offsets_of(scan.counts), *scan.columns)
    found = np.zeros(len(scan), np.int64)

    def work(first: int, last: int) -> None:
        some = points._replace(offsets=points.offsets[first : last + 1])
        _follow(routes, some, owners[first:last], float(step_m), split, found[first:last])

    run.ranges(work, ranges_of(len(scan), _RECORDS))
    beside, start, end = (int((found == fault).sum()) for fault in (_BESIDE, _START, _END))
    findings.fail_if(beside, "steps/beside-route")
    findings.fail_if(start, "steps/first-point")
    findings.fail_if(end, "steps/last-point")


def _in_space(lng: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points in space, (3, n), of places in degrees."""
    north, east = lat * _RADIANS, lng * _RADIANS
    sine, cosine = np.sin(north), np.cos(north)
    radius = _A / np.sqrt(1 - _E2 * sine * sine)
    return np.stack([radius * cosine * np.cos(east), radius * cosine * np.sin(east), radius * (1 - _E2) * sine])


def _geodesic(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lengths on the surface of straight lines through the Earth."""
    chord = np.sqrt((vectors * vectors).sum(axis=0))
    return np.asarray(2 * _R * np.arcsin(np.minimum(chord / (2 * _R), 1.0)))


@jit
def _point(lng: float, lat: float) -> _Point:
    """Return the point in space of a place in degrees."""
    north, east = lat * _RADIANS, lng * _RADIANS
    sine, cosine = math.sin(north), math.cos(north)
    radius = _A / math.sqrt(1.0 - _E2 * sine * sine)
    return _Point(radius * cosine * math.cos(east), radius * cosine * math.sin(east), radius * (1.0 - _E2) * sine)


@jit
def _line(places: _Places, n: int) -> _Line:
    first, last = places.offsets[n], places.offsets[n + 1]
    return _Line(places.ms[first:last], places.lng[first:last], places.lat[first:last])


@jit
def _at(line: _Line, row: int) -> _Point:
    return _point(line.lng[row], line.lat[row])


@jit
def _apart(a: _Point, b: _Point) -> float:
    """Return the length on the surface of the line between two points."""
    chord = math.sqrt((a.x - b.x) ** 2 + (a.y - b.y) ** 2 + (a.z - b.z) ** 2)
    return 2.0 * _R * math.asin(min(chord / (2.0 * _R), 1.0))


@jit
def _is_towards(here: _Point, lat: float, lng: float, to: _Point, new: _Point, step_m: float) -> bool:
    """Return whether a point lies one step from here (a place in degrees, too) on the line to another."""
    north, east = lat * _RADIANS, lng * _RADIANS
    up = _Point(math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north))
    dx, dy, dz = to.x - here.x, to.y - here.y, to.z - here.z
    rise = dx * up.x + dy * up.y + dz * up.z
    dx, dy, dz = dx - rise * up.x, dy - rise * up.y, dz - rise * up.z
    size = math.sqrt(dx * dx + dy * dy + dz * dz)
    if size == 0.0:
        return False
    ahead, down = _R * math.sin(step_m / _R) / size, _R * (1.0 - math.cos(step_m / _R))
    expected = _Point(
        here.x + dx * ahead - down * up.x, here.y + dy * ahead - down * up.y, here.z + dz * ahead - down * up.z
    )
    return bool(_apart(expected, new) <= _OFF_M + _OFF * step_m)


@jit
def _begins(route: _Line, i: int, new: _Point, step_m: float, split: bool) -> bool:
    """Return whether a trace that begins at some fix before fix i has its second point, on the way to fix i, here."""
    slack = _EXACT_M + _EXACT * step_m
    nearest_m = 2.0 * step_m + 4.0 * slack
    for s in range(i - 1, -1, -1):
        start = _at(route, s)
        away = _apart(start, new)
        if away > nearest_m:
            return False  # no trace that begins before came here without a point on the way
        if not split and s > 0:
            continue
        if abs(away - step_m) <= 2.0 * slack and _apart(start, _at(route, i)) >= step_m - slack:
            if not _is_towards(start, route.lat[s], route.lng[s], _at(route, i), new, step_m):
                continue
            before = True
            for between in range(s + 1, i):
                if _apart(start, _at(route, between)) > step_m + slack:
                    before = False
                    break
            if before:
                return True
    return False


@jit
def _walked(route: _Line, i: int, points: _Line, step_m: float) -> tuple[Ints, int]:
    """Walk from a record's first point, set on the way to fix i; return the fixes that the last one may be set at.

    A fix almost exactly one step away may have been reached or not, as rounding had it: both ways are walked.
    """
    slack = _EXACT_M + _EXACT * step_m
    ways, others = np.empty(_WAYS, np.int64), np.empty(_WAYS, np.int64)
    ways[0], n_ways = i, 1
    for p in range(1, len(points.ms)):
        here, new = _at(points, p - 1), _at(points, p)
        n_others = seen = 0
        for way in range(n_ways):
            if ways[way] < seen:  # the way before came by here
                continue
            for at in range(ways[way], len(route.ms)):
                to, seen = _at(route, at), at + 1
                away = _apart(here, to)
                if away < step_m - slack:
                    continue
                before = others[n_others - 1] if n_others > 0 else at
                stayed = before < at and route.lng[before] == route.lng[at] and route.lat[before] == route.lat[at]
                if stayed or n_others == _WAYS:
                    continue
                if _is_towards(here, points.lat[p - 1], points.lng[p - 1], to, new, step_m):
                    others[n_others] = at
                    n_others += 1
                if away > step_m + slack:
                    break
        ways, others, n_ways = others, ways, n_others
    return ways, n_ways


@jit
def _goes_on(route: _Line, i: int, here: _Point, step_m: float) -> bool:
    """Return whether some fix from fix i on is one step or more away: there the point was that is dropped."""
    for n in range(i, len(route.ms)):  # noqa: SIM110  numba knows no any()
        if _apart(here, _at(route, n)) >= step_m - _EXACT_M - _EXACT * step_m:
            return True
    return False


@jit
def _fault(route: _Line, points: _Line, step_m: float, split: bool) -> int:
    """Return what is wrong with a record of the person whose fixes are the route; 0 if nothing is."""
    begun, ended = points.ms[0], points.ms[-1]
    i = np.searchsorted(route.ms, begun)
    worst = _BESIDE
    while i < len(route.ms) and route.ms[i] == begun:
        begins = _begins(route, i, _at(points, 0), step_m, split)
        ways, n_ways = _walked(route, i, points, step_m)
        for at in ways[:n_ways]:
            if not begins:
                worst = min(worst, _START)
            elif route.ms[at] == ended:
                if _goes_on(route, at, _at(points, len(points.ms) - 1), step_m):
                    return 0
                worst = min(worst, _END)
        i += 1
    return worst


@jit
def _follow(routes: _Places, points: _Places, owners: Ints, step_m: float, split: bool, found: Ints) -> None:
    """Fill what is wrong with some records."""
    for r in range(len(owners)):
        found[r] = _fault(_line(routes, owners[r]), _line(points, r), step_m, split)
