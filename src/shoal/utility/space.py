"""Spatial error: the distance of published points from the path really taken (Promesse, Sec. V-C)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels.geodesy import places
from shoal.kernels.polyline import line_distances
from shoal.kernels.tracks import SpaceTracks
from shoal.lists import even_ranges
from shoal.run import LOCAL, Run
from shoal.streams import Stream, draw_from

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.pairs import Pairs

__all__ = ["spatial_errors"]

_BLOCK = 1 << 18  # points between two checks for Ctrl-C


def spatial_errors(pairs: Pairs, *, most: int = 1_000_000, seed: int = 0, run: Run = LOCAL) -> NDArray[np.float64]:
    """Return the distance in metres of published points to the polyline of the trace they were made of.

    The polyline joins the fixes by arcs; times do not matter. If there are more than `most` points, so many are drawn
    at random, by the seed. Raises CannotCheck if the owners of the records are not known.
    Cost: for each point a sixteenth of the trace's segments, or more for points that lie far from it.
    """
    traces = pairs.require_owners("the spatial error")
    original, published = pairs.original, pairs.published
    offsets, lng, lat = published.offsets, published.lng, published.lat
    if len(lng) > most:
        drawn = np.sort(draw_from(seed, Stream.SPATIAL_ERROR).choice(len(lng), most, replace=False))
        offsets, lng, lat = np.searchsorted(drawn, offsets), lng[drawn], lat[drawn]
    lines = SpaceTracks(original.offsets, *_in_space(original.lng, original.lat, run))
    points = SpaceTracks(offsets, *_in_space(lng, lat, run))
    metres = np.empty(len(lng))

    def work(first: int, last: int) -> None:
        line_distances(lines, points, traces, first, last, metres)

    run.ranges(work, even_ranges(np.diff(offsets), _BLOCK))
    return metres


def _in_space(
    lng: NDArray[np.float64], lat: NDArray[np.float64], run: Run
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    x, y, z = np.empty(len(lng)), np.empty(len(lng)), np.empty(len(lng))
    ranges = [(start, min(start + _BLOCK, len(lng))) for start in range(0, len(lng), _BLOCK)]
    run.ranges(lambda a, b: places(lng[a:b], lat[a:b], x[a:b], y[a:b], z[a:b]), ranges)
    return x, y, z
