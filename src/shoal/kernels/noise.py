"""Noise: add planar Laplace noise to places, in the tangent plane of each (Andrés et al. 2013, Sec. 4)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from shoal.jit import jit
from shoal.kernels.geodesy import EARTH_M, Vector, across, geocentric, move, place, upward

if TYPE_CHECKING:
    from shoal.jit import Floats

__all__ = ["LaplaceDraws", "laplace_radius", "shift_places"]

_TINY = 2.0**-54


class LaplaceDraws(NamedTuple):
    """Two uniform numbers in [0, 1) for each place: the direction, and the probability that the radius is exceeded."""

    angles: Floats
    tails: Floats


@jit
def laplace_radius(q: float) -> float:
    """Return the radius, in units of 1/ε, that is exceeded with probability q: the s ≥ 0 with (1 + s) exp(-s) = q.

    That is -1 - W₋₁(-q/e), the inverse of the distribution function by the lower branch of Lambert's W; found by
    Halley's steps from its two expansions, to the last digits of a double.
    """
    if q >= 1.0:
        return 0.0
    if q > 0.7:
        near = math.sqrt(2.0 * (1.0 - q))  # (1 + s) exp(-s) = 1 - s²/2 + s³/3 …
        s = near + near * near / 3.0
    else:
        w = 1.0 - math.log(q)
        s = w - 1.0 + math.log(w)
    for _ in range(20):
        # g(s) = log(1 + s) - s - log q: smooth, concave, one root beyond zero.
        value = math.log1p(s) - s - math.log(q)
        slope = -s / (1.0 + s)
        bend = -1.0 / ((1.0 + s) * (1.0 + s))
        step = value / (slope - 0.5 * value * bend / slope)
        s -= step
        if abs(step) <= 1e-14 * s:
            break
    return max(s, 0.0)


@jit
def shift_places(
    lng: Floats, lat: Floats, epsilon: float, draws: LaplaceDraws, out_lng: Floats, out_lat: Floats
) -> None:
    """Shift each place by a planar Laplace draw of `epsilon` per metre."""
    for i in range(len(lng)):
        turn = 2.0 * math.pi * draws.angles[i]
        radius = laplace_radius(draws.tails[i] + _TINY) / epsilon
        at = geocentric(lng[i], lat[i])
        east, north = across(upward(at))
        c, s = math.cos(turn), math.sin(turn)
        arc = radius / EARTH_M
        ahead, down = EARTH_M * math.sin(arc), EARTH_M * (1.0 - math.cos(arc))
        course = Vector(c * east.x + s * north.x, c * east.y + s * north.y, c * east.z + s * north.z)
        out_lng[i], out_lat[i] = place(move(at, course, ahead, down))
