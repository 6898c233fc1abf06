"""Range queries: count the people who cross a square during some time, in the original and in the release."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from shoal.errors import SettingsError
from shoal.figures import Figure
from shoal.intervals import Z95
from shoal.kernels.queries import Queries, TrackBounds, count_crossing, track_bounds
from shoal.kernels.tracks import tracks_of
from shoal.lists import ranges_of
from shoal.run import LOCAL, Run
from shoal.streams import Stream, draw_from
from shoal.utility.metrics import Drawn, Metric, register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.pairs import Pairs, Track
    from shoal.traces import Traces

__all__ = ["Queries", "RangeQueries", "count_queries", "draw_queries", "query_distortions"]

_HOUR_MS = 3_600_000
_BLOCK = 8  # queries between two checks for Ctrl-C
_A, _E2 = 6_378_137.0, 0.00669437999014


@register
class RangeQueries(Metric):
    """The relative error of range queries."""

    name: ClassVar[str] = "range queries"
    definition: ClassVar[str] = (
        "Error of range queries (Promesse, Def. 5). A range query asks how many different traces have a point in a "
        "square during some time. The answer is Q(D) in the original data D and Q(D′) in the release D′; the error is "
        "|Q(D) − Q(D′)| / Q(D). Mean with its 95 % interval, and median, over the number of queries given by "
        "`queries` (1,000)."
    )
    better: ClassVar[Literal["lower", "higher"]] = "lower"
    figures: ClassVar[tuple[Figure, ...]] = (
        Figure("queries"),
        Figure("query_distortion", "range queries, mean distortion", "{:.1%}".format, interval=True),
        Figure("query_distortion_low"),
        Figure("query_distortion_high"),
        Figure("query_distortion_median", "range queries, median", "{:.1%}".format),
    )
    compared: ClassVar[tuple[Figure, ...]] = (
        Figure("query_distortion", "range queries", "{:.1%}".format),
        Figure("query_distortion_low"),
        Figure("query_distortion_high"),
    )

    def measure(self, pairs: Pairs, drawn: Drawn, run: Run) -> dict[str, Any]:
        """Return the number of queries, and the mean and median of their errors."""
        distortions = query_distortions(pairs, queries=drawn.queries, seed=drawn.seed, run=run)
        mean = float(distortions.mean())
        spread = Z95 * float(distortions.std()) / np.sqrt(len(distortions))
        return {
            "queries": len(distortions),
            "query_distortion": mean,
            "query_distortion_low": max(0.0, mean - float(spread)),
            "query_distortion_high": mean + float(spread),
            "query_distortion_median": float(np.median(distortions)),
        }


def query_distortions(pairs: Pairs, *, queries: int = 1000, seed: int = 0, run: Run = LOCAL) -> NDArray[np.float64]:
    """Return the relative error of random range queries (Promesse, Def. 5): |Q(D) - Q(D')| / Q(D) for each.

    Each query is around a random fix of the original, so that its answer is never zero.
    """
    drawn = draw_queries(pairs.original, queries, seed)
    before, after = (count_queries(part, drawn, run=run) for part in (pairs.original, pairs.published))
    distortions: NDArray[np.float64] = np.abs(before - after) / before
    return distortions


def draw_queries(original: Traces | Track, queries: int, seed: int) -> Queries:
    """Draw queries around fixes: 2 to 8 hours, squares of a half-diagonal of 500 to 5,000 m (Promesse, Sec. V-C)."""
    if queries < 1 or seed < 0:
        raise SettingsError("at least one query is needed, and a seed from 0 on; give e.g. `queries=1000` and `seed=1`")
    chance = draw_from(seed, Stream.RANGE_QUERIES)
    fix = chance.integers(0, len(original.ms), queries)
    lasts = (chance.uniform(2, 8, queries) * _HOUR_MS).astype(np.int64)
    side = chance.uniform(500, 5000, queries) / math.sqrt(2)
    begun = original.ms[fix] - lasts // 2
    sine = np.sin(np.radians(original.lat[fix]))
    bend = np.sqrt(1 - _E2 * sine**2)
    north = np.degrees(side / (_A * (1 - _E2) / bend**3))
    east = np.degrees(side / np.maximum(_A / bend * np.sqrt(1 - sine**2), 1.0))
    where = np.stack([original.lng[fix], original.lat[fix], np.minimum(east, 180.0), north], axis=1)
    return Queries(np.stack([begun, begun + lasts], axis=1), where)


def count_queries(traces: Traces | Track, queries: Queries, *, run: Run = LOCAL) -> NDArray[np.int64]:
    """Count the different traces that have a point in each query."""
    tracks, size = tracks_of(traces), len(traces.offsets) - 1
    bounds = TrackBounds(np.empty((size, 2), np.int64), np.empty((size, 2)))
    track_bounds(tracks, bounds)
    counts = np.empty(len(queries.when), np.int64)
    run.ranges(lambda a, b: count_crossing(tracks, bounds, queries, a, b, counts), ranges_of(len(counts), _BLOCK))
    return counts
