"""Spatial error: the distance of published points from the path really taken (Promesse, Sec. V-C)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from shoal.figures import Figure
from shoal.kernels.geodesy import in_space
from shoal.kernels.polyline import line_distances
from shoal.kernels.tracks import SpaceTracks
from shoal.lists import even_ranges
from shoal.run import LOCAL, Run
from shoal.streams import Stream, draw_from
from shoal.utility.metrics import Drawn, Metric, register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.pairs import Pairs

__all__ = ["SpatialError", "spatial_errors"]

_BLOCK = 1 << 18  # points between two checks for Ctrl-C


@register
class SpatialError(Metric):
    """The distance of published points from the path really taken."""

    name: ClassVar[str] = "spatial error"
    definition: ClassVar[str] = (
        "Distance from a published point to the line through the fixes of its own trace (Promesse, Sec. V-C); times "
        "are ignored. Mean, median and 95 % quantile over all points. If there are more than a million points, a "
        "million are drawn by `seed`."
    )
    unit: ClassVar[str] = "m"
    better: ClassVar[Literal["lower", "higher"]] = "lower"
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("spatial_error_m", "spatial error, mean", "{:,.2f} m".format),
        Figure("spatial_error_m_median", "spatial error, median", "{:,.2f} m".format),
        Figure("spatial_error_m_95", "spatial error, 95 %", "{:,.2f} m".format),
    )
    compared: ClassVar[tuple[Figure, ...]] = (Figure("spatial_error_m", "spatial error", "{:,.1f} m".format),)
    needs_owners: ClassVar[bool] = True
    fix_bytes: ClassVar[int] = 32
    point_bytes: ClassVar[int] = 16

    def measure(self, pairs: Pairs, drawn: Drawn, run: Run) -> dict[str, Any]:
        """Return the mean, the median and the 95 % quantile of the distances."""
        metres = spatial_errors(pairs, seed=drawn.seed, run=run)
        return {
            "spatial_error_m": float(metres.mean()),
            "spatial_error_m_median": float(np.median(metres)),
            "spatial_error_m_95": float(np.quantile(metres, 0.95)),
        }


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
    lines = SpaceTracks(original.offsets, *in_space(original.lng, original.lat, run_ranges=run.ranges))
    points = SpaceTracks(offsets, *in_space(lng, lat, run_ranges=run.ranges))
    metres = np.empty(len(lng))

    def work(first: int, last: int) -> None:
        line_distances(lines, points, traces, first, last, metres)

    run.ranges(work, even_ranges(np.diff(offsets), _BLOCK))
    return metres
