"""Noise: planar Laplace around places, in the tangent plane of each (Andrés et al. 2013, Sec. 4)."""

from __future__ import annotations

import math
from typing import Any

from shoal.jit import jit
from shoal.kernels.geodesy import EARTH_M, across, geocentric, move, place, upward

__all__ = ["laplace_radius", "shift_places"]

_TINY = 2.0**-54


@jit
def laplace_radius(q: Any) -> Any:
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
def shift_places(lng: Any, lat: Any, epsilon: Any, angles: Any, tails: Any, out_lng: Any, out_lat: Any) -> None:
    """Shift each place by a planar Laplace draw of `epsilon` per metre.

    `angles` and `tails` are uniform in [0, 1): the direction, and how rarely the radius is exceeded.
    """
    for i in range(len(lng)):
        turn = 2.0 * math.pi * angles[i]
        radius = laplace_radius(tails[i] + _TINY) / epsilon
        x, y, z = geocentric(lng[i], lat[i])
        up_x, up_y, up_z = upward(x, y, z)
        e_x, e_y, e_z, n_x, n_y, n_z = across(up_x, up_y, up_z)
        c, s = math.cos(turn), math.sin(turn)
        arc = radius / EARTH_M
        ahead, down = EARTH_M * math.sin(arc), EARTH_M * (1.0 - math.cos(arc))
        dx, dy, dz = c * e_x + s * n_x, c * e_y + s * n_y, c * e_z + s * n_z
        out_lng[i], out_lat[i] = place(*move(x, y, z, dx, dy, dz, ahead, down))
