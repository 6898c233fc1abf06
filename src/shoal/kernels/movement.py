"""Properties of people's movements: range, distance travelled, regularity of samples, and overlap with others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.samples import Samples

__all__ = ["count_overlaps", "movements"]


@jit
def movements(samples: Samples, start: int, stop: int, out: Floats) -> None:
    """Fill centre x and y, radius of gyration, distance travelled (cells) and spread of gaps (slots) of some users.

    The users are start…stop-1. The spread is the standard deviation of the times between one sample and the next;
    0 for fewer than two of them.
    """
    t, x, y, offsets = samples
    for u in range(start, stop):
        first = offsets[u]
        n = offsets[u + 1] - first
        centre_x = centre_y = travelled = 0.0
        for p in range(first, first + n):
            centre_x += x[p]
            centre_y += y[p]
        centre_x /= n
        centre_y /= n
        square = 0.0
        for p in range(first, first + n):
            square += (x[p] - centre_x) ** 2 + (y[p] - centre_y) ** 2
            if p > first:
                travelled += np.hypot(float(x[p]) - x[p - 1], float(y[p]) - y[p - 1])
        spread = 0.0
        if n > 2:
            mean = (float(t[first + n - 1]) - t[first]) / (n - 1)
            for p in range(first + 1, first + n):
                spread += (float(t[p]) - t[p - 1] - mean) ** 2
            spread = np.sqrt(spread / (n - 1))
        out[u, 0] = centre_x
        out[u, 1] = centre_y
        out[u, 2] = np.sqrt(square / n)
        out[u, 3] = travelled
        out[u, 4] = spread


@jit
def count_overlaps(moved: Floats, users: Ints, counts: Ints) -> None:
    """Count, for some users, the others whose circle (centre, radius of gyration) meets theirs."""
    for q in range(len(users)):
        u = users[q]
        found = 0
        for v in range(len(moved)):
            dx = moved[v, 0] - moved[u, 0]
            dy = moved[v, 1] - moved[u, 1]
            reach = moved[v, 2] + moved[u, 2]
            if dx * dx + dy * dy <= reach * reach:
                found += 1
        counts[q] = found - 1
