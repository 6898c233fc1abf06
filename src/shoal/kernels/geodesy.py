"""Geodesy: metres on the WGS84 ellipsoid without a map, the same at the equator, the poles and the antimeridian.

Places are turned into geocentric coordinates, in which a distance is that of two points in space. Up to 100 km it is
the geodesic to a part in 10^7 once the chord is bent to an arc, and a step along the surface is one in the tangent
plane, bent down by the mean radius of the Earth.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats
    from shoal.kernels.order import Ranges

__all__ = [
    "EARTH_M",
    "Vector",
    "across",
    "arc_m",
    "chord_m",
    "geocentric",
    "in_space",
    "move",
    "place",
    "place_after",
    "places",
    "toward",
    "upward",
]

EARTH_M = 6_371_008.8  # the mean radius
_A = 6_378_137.0
_F = 1 / 298.257223563
_E2 = _F * (2 - _F)
_RADIANS = math.pi / 180
_DEGREES = 180 / math.pi
_PLACES = 1 << 18  # between two checks for Ctrl-C


class Vector(NamedTuple):
    """A point in space, in metres from the centre of the Earth, or a direction as a unit vector."""

    x: float
    y: float
    z: float


@jit
def geocentric(lng: float, lat: float) -> Vector:
    """Return the point in space of a place in degrees."""
    phi, lam = lat * _RADIANS, lng * _RADIANS
    s, c = math.sin(phi), math.cos(phi)
    n = _A / math.sqrt(1.0 - _E2 * s * s)
    return Vector(n * c * math.cos(lam), n * c * math.sin(lam), n * (1.0 - _E2) * s)


@jit
def place(at: Vector) -> tuple[float, float]:
    """Return the degrees (lng, lat) of a point of the surface; exact for points of the ellipsoid."""
    level = math.sqrt(at.x * at.x + at.y * at.y)
    return math.atan2(at.y, at.x) * _DEGREES, math.atan2(at.z, (1.0 - _E2) * level) * _DEGREES


@jit
def place_after(lng: float, lat: float, at: Vector, to: Vector) -> tuple[float, float]:
    """Return the degrees of the surface point `to`; fast if the point `at`, whose degrees are known, is near.

    Each time an error of up to 3e-14 degrees is added to that of the point before.
    """
    turn = at.x * to.y - at.y * to.x, at.x * to.x + at.y * to.y
    level, to_level = math.sqrt(at.x * at.x + at.y * at.y), math.sqrt(to.x * to.x + to.y * to.y)
    rise = level * to.z - at.z * to_level, (1.0 - _E2) * level * to_level + at.z * to.z / (1.0 - _E2)
    if not (abs(turn[0]) < 1e-3 * turn[1] and abs(rise[0]) < 1e-3 * rise[1]):
        return place(to)
    lng += _small_angle(turn[0] / turn[1])
    if abs(lng) > 180.0:
        lng -= math.copysign(360.0, lng)
    return lng, lat + _small_angle(rise[0] / rise[1])


@jit
def _small_angle(t: float) -> float:
    """Return the arc tangent in degrees, exact below a thousandth."""
    return t * (1.0 - t * t * (1.0 / 3.0 - t * t * 0.2)) * _DEGREES


def in_space(lng: Floats, lat: Floats, *, run_ranges: Ranges) -> tuple[Floats, Floats, Floats]:
    """Return the geocentric coordinates x, y, z of many places; `run_ranges` may use threads."""
    x, y, z = np.empty(len(lng)), np.empty(len(lng)), np.empty(len(lng))
    ranges = ((start, min(start + _PLACES, len(lng))) for start in range(0, len(lng), _PLACES))
    run_ranges(lambda a, b: places(lng[a:b], lat[a:b], x[a:b], y[a:b], z[a:b]), ranges)
    return x, y, z


@jit
def places(lng: Floats, lat: Floats, x: Floats, y: Floats, z: Floats) -> None:
    """Fill the geocentric coordinates of many places."""
    for i in range(len(lng)):
        x[i], y[i], z[i] = geocentric(lng[i], lat[i])


@jit
def upward(at: Vector) -> Vector:
    """Return the unit vector upwards at a point of the surface."""
    w = at.z / (1.0 - _E2)
    length = math.sqrt(at.x * at.x + at.y * at.y + w * w)
    return Vector(at.x / length, at.y / length, w / length)


@jit
def across(up: Vector) -> tuple[Vector, Vector]:
    """Return the unit vectors eastwards and northwards; at a pole, those of longitude 0."""
    level = math.sqrt(up.x * up.x + up.y * up.y)
    if level < 1e-12:
        return Vector(0.0, 1.0, 0.0), Vector(-math.copysign(1.0, up.z), 0.0, 0.0)
    east_x, east_y = -up.y / level, up.x / level
    return Vector(east_x, east_y, 0.0), Vector(-up.z * east_y, up.z * east_x, level)


@jit
def chord_m(arc: float) -> float:
    """Return the straight distance through the Earth that an arc of this length spans."""
    return 2.0 * EARTH_M * math.sin(min(arc / (2.0 * EARTH_M), math.pi / 2))


@jit
def arc_m(chord: float) -> float:
    """Return the length of the arc over a straight distance."""
    return 2.0 * EARTH_M * math.asin(min(chord / (2.0 * EARTH_M), 1.0))


@jit
def move(at: Vector, course: Vector, ahead: float, down: float) -> Vector:
    """Return the surface point below the end of a step from `at` along a course (in the tangent plane).

    `ahead` and `down` are R sin(s/R) and R (1 - cos(s/R)) of the distance s to go.
    """
    up = upward(at)
    x = at.x + ahead * course.x - down * up.x
    y = at.y + ahead * course.y - down * up.y
    z = at.z + ahead * course.z - down * up.z
    scale = _A / math.sqrt(x * x + y * y + z * z / (1.0 - _E2))
    return Vector(x * scale, y * scale, z * scale)


@jit
def toward(at: Vector, to: Vector) -> Vector:
    """Return the direction along the surface from one point to another; any direction if they are opposite."""
    up = upward(at)
    dx, dy, dz = to.x - at.x, to.y - at.y, to.z - at.z
    rise = dx * up.x + dy * up.y + dz * up.z
    dx, dy, dz = dx - rise * up.x, dy - rise * up.y, dz - rise * up.z
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length < 1e-6:
        east, _ = across(up)
        return east
    return Vector(dx / length, dy / length, dz / length)
