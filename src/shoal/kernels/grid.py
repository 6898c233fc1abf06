"""Grid: count places by whole degree and times by day, and interpolate cells in a table of a smooth projection."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints, Ints32

__all__ = ["Nodes", "day_counts", "interpolate_cells", "place_counts"]


class Nodes(NamedTuple):
    """A projection on a grid: metres[i, j] is (east, north) at west + j / per_degree and south + i / per_degree."""

    metres: Floats
    west: float
    south: float
    per_degree: float


def place_counts(lng: Floats, lat: Floats) -> Ints:
    """Count places by rounded degree: (181, 361), latitudes from -90 and longitudes from -180. Linear, 2 ns each.

    >>> np.argwhere(place_counts(np.array([-180.0]), np.array([89.6]))).tolist()
    [[180, 0]]
    """
    counts = np.zeros((181, 361), dtype=np.int64)
    _count_places(lng, lat, counts)
    return counts


def day_counts(ms: Ints, days: int) -> Ints:
    """Count times by day since 1970; there are at most `days`. Linear, 1 ns each.

    >>> day_counts(np.array([0, 86_399_999, 86_400_000]), 3).tolist()
    [2, 1, 0]
    """
    counts = np.zeros(days, dtype=np.int64)
    _count_days(ms, counts)
    return counts


@jit
def _count_places(lng: Floats, lat: Floats, counts: Ints) -> None:
    for i in range(len(lng)):
        counts[int(np.rint(lat[i])) + 90, int(np.rint(lng[i])) + 180] += 1


@jit
def _count_days(ms: Ints, counts: Ints) -> None:
    for i in range(len(ms)):
        counts[ms[i] // 86_400_000] += 1


@jit
def interpolate_cells(
    lng: Floats, lat: Floats, nodes: Nodes, cell_m: float, guard_m: float, cells: tuple[Ints | Ints32, Ints | Ints32]
) -> Ints:
    """Write the cells of points into (x, y); return the indices of those within guard_m of the edge of a cell.

    There is a node to spare on each side. Cubic in both directions: the error falls with the fourth power of the
    step.
    """
    metres, west, south, per_degree = nodes
    x, y = cells
    unsure = np.empty(len(lng), dtype=np.int64)
    n_unsure = 0
    for point in range(len(lng)):
        u, v = (lng[point] - west) * per_degree, (lat[point] - south) * per_degree
        j, i = int(u), int(v)
        f, g = u - j, v - i
        p0, p1 = -f * (f - 1) * (f - 2) / 6, (f + 1) * (f - 1) * (f - 2) / 2
        p2, p3 = -(f + 1) * f * (f - 2) / 2, (f + 1) * f * (f - 1) / 6
        q0, q1 = -g * (g - 1) * (g - 2) / 6, (g + 1) * (g - 1) * (g - 2) / 2
        q2, q3 = -(g + 1) * g * (g - 2) / 2, (g + 1) * g * (g - 1) / 6
        east = north = 0.0
        for row, q in ((i - 1, q0), (i, q1), (i + 1, q2), (i + 2, q3)):
            a, b, c, d = metres[row, j - 1], metres[row, j], metres[row, j + 1], metres[row, j + 2]
            east += q * (p0 * a[0] + p1 * b[0] + p2 * c[0] + p3 * d[0])
            north += q * (p0 * a[1] + p1 * b[1] + p2 * c[1] + p3 * d[1])
        cell_x, cell_y = np.floor(east / cell_m), np.floor(north / cell_m)
        x[point], y[point] = int(cell_x), int(cell_y)
        from_west, from_south = east - cell_x * cell_m, north - cell_y * cell_m
        if min(from_west, from_south, cell_m - from_west, cell_m - from_south) < guard_m:
            unsure[n_unsure] = point
            n_unsure += 1
    return unsure[:n_unsure]
