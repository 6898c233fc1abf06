"""Geodesy: metres on the WGS84 ellipsoid without a map, the same at the equator, the poles and the antimeridian.

Places are turned into geocentric coordinates, in which a distance is that of two points in space. Up to 100 km it is
the geodesic to a part in 10^7 once the chord is bent to an arc, and a step along the surface is one in the tangent
plane, bent down by the mean radius of the Earth.
"""

from __future__ import annotations

import math
from typing import Any

from shoal.jit import jit

__all__ = [
    "EARTH_M",
    "across",
    "arc_m",
    "chord_m",
    "geocentric",
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


@jit
def geocentric(lng: Any, lat: Any) -> Any:
    """Return the place of degrees in space, in metres from the centre of the Earth."""
    phi, lam = lat * _RADIANS, lng * _RADIANS
    s, c = math.sin(phi), math.cos(phi)
    n = _A / math.sqrt(1.0 - _E2 * s * s)
    return n * c * math.cos(lam), n * c * math.sin(lam), n * (1.0 - _E2) * s


@jit
def place(x: Any, y: Any, z: Any) -> Any:
    """Return the degrees (lng, lat) of a point of the surface; exact for points of the ellipsoid."""
    return math.atan2(y, x) * _DEGREES, math.atan2(z, (1.0 - _E2) * math.sqrt(x * x + y * y)) * _DEGREES


@jit
def place_after(lng: Any, lat: Any, x: Any, y: Any, z: Any, to_x: Any, to_y: Any, to_z: Any) -> Any:
    """Return the degrees of a point of the surface, quickly if the point before it, of known degrees, is near.

    Each time an error of up to 3e-14 degrees is added to that of the point before.
    """
    turn = x * to_y - y * to_x, x * to_x + y * to_y
    level, to_level = math.sqrt(x * x + y * y), math.sqrt(to_x * to_x + to_y * to_y)
    rise = level * to_z - z * to_level, (1.0 - _E2) * level * to_level + z * to_z / (1.0 - _E2)
    if not (abs(turn[0]) < 1e-3 * turn[1] and abs(rise[0]) < 1e-3 * rise[1]):
        return place(to_x, to_y, to_z)
    lng += _small_angle(turn[0] / turn[1])
    if abs(lng) > 180.0:
        lng -= math.copysign(360.0, lng)
    return lng, lat + _small_angle(rise[0] / rise[1])


@jit
def _small_angle(t: Any) -> Any:
    """Return the arc tangent in degrees, exact below a thousandth."""
    return t * (1.0 - t * t * (1.0 / 3.0 - t * t * 0.2)) * _DEGREES


@jit
def places(lng: Any, lat: Any, x: Any, y: Any, z: Any) -> None:
    """Write the geocentric coordinates of many places."""
    for i in range(len(lng)):
        x[i], y[i], z[i] = geocentric(lng[i], lat[i])


@jit
def upward(x: Any, y: Any, z: Any) -> Any:
    """Return the unit vector upwards at a point of the surface."""
    w = z / (1.0 - _E2)
    length = math.sqrt(x * x + y * y + w * w)
    return x / length, y / length, w / length


@jit
def across(up_x: Any, up_y: Any, up_z: Any) -> Any:
    """Return the unit vectors eastwards and northwards; at a pole, those of longitude 0."""
    level = math.sqrt(up_x * up_x + up_y * up_y)
    if level < 1e-12:
        return 0.0, 1.0, 0.0, -math.copysign(1.0, up_z), 0.0, 0.0
    east_x, east_y = -up_y / level, up_x / level
    return east_x, east_y, 0.0, -up_z * east_y, up_z * east_x, level


@jit
def chord_m(arc: Any) -> Any:
    """Return the straight distance through the Earth that an arc of this length spans."""
    return 2.0 * EARTH_M * math.sin(min(arc / (2.0 * EARTH_M), math.pi / 2))


@jit
def arc_m(chord: Any) -> Any:
    """Return the length of the arc over a straight distance."""
    return 2.0 * EARTH_M * math.asin(min(chord / (2.0 * EARTH_M), 1.0))


@jit
def move(x: Any, y: Any, z: Any, dx: Any, dy: Any, dz: Any, ahead: Any, down: Any) -> Any:
    """Go from a point of the surface in a direction (a unit vector of the tangent plane); give the point below.

    `ahead` and `down` are R sin(s/R) and R (1 - cos(s/R)) of the distance s to go.
    """
    up_x, up_y, up_z = upward(x, y, z)
    x, y, z = x + ahead * dx - down * up_x, y + ahead * dy - down * up_y, z + ahead * dz - down * up_z
    scale = _A / math.sqrt(x * x + y * y + z * z / (1.0 - _E2))
    return x * scale, y * scale, z * scale


@jit
def toward(x: Any, y: Any, z: Any, to_x: Any, to_y: Any, to_z: Any) -> Any:
    """Return the direction along the surface from one point to another; any, if they are opposite."""
    up_x, up_y, up_z = upward(x, y, z)
    dx, dy, dz = to_x - x, to_y - y, to_z - z
    rise = dx * up_x + dy * up_y + dz * up_z
    dx, dy, dz = dx - rise * up_x, dy - rise * up_y, dz - rise * up_z
    length = math.sqrt(dx * dx + dy * dy + dz * dz)
    if length < 1e-6:
        east_x, east_y, east_z, _, _, _ = across(up_x, up_y, up_z)
        return east_x, east_y, east_z
    return dx / length, dy / length, dz / length
