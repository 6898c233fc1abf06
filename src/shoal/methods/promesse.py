"""Promesse: points at equal distances and equal times along every trace, so that nobody is seen to stop (004)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from shoal.kernels.smooth import PointColumns, most_points, smooth_traces
from shoal.kernels.tracks import tracks_of
from shoal.lists import even_ranges, offsets_of
from shoal.methods.protocol import Estimate, PointMethod
from shoal.points import PointRelease
from shoal.release import Claim, Members
from shoal.run import LOCAL, Run
from shoal.units import Metres  # noqa: TC001  pydantic needs it

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.traces import Traces

__all__ = ["Promesse"]

# Measured on one core: a fix walked over, a point made. In memory: a point.
_FIX_NS, _POINT_NS, _POINT_BYTES = 60.0, 100.0, 24
_BLOCK = 1 << 20  # points, at most, between two looks at Ctrl-C
_COLUMNS = (np.int64, np.float64, np.float64)


class Promesse(PointMethod):
    """Publish every trace as points a fixed distance and a fixed time apart (004, Sec. IV, Fig. 2).

    Parameters
    ----------
    step_m
        The distance between successive points; places that are smaller are hidden. Text with a unit is taken too.

    A point lies wherever the distance from the last one reaches `step_m`, on the straight line from it to the current
    fix. The first and the last are dropped, and times spread evenly over the rest. Traces of two points or fewer are
    discarded, and counted. Guarantee: the claim is `none`; successive points of a record are the same distance apart
    to 2 cm (of a hundred kilometres, to a millionth) and the same time to a millisecond. Not guaranteed: that stops
    can't be guessed from what is known of a place, or people from where they went: that is not hidden at all.
    Distances are true on the ellipsoid everywhere, across the antimeridian and the poles.
    Cost: linear, millions of fixes a second on a core. Memory: 24 bytes a point.

    >>> import shoal
    >>> table = shoal.synthesize(users=5, kind="gps", scene="town", days=1, seed=1)
    >>> Promesse(step_m="200m").anonymize(shoal.read_traces(table, split_gap_s="4h"))
    PointRelease(... records, ... points, promesse, claim none)
    """

    name: ClassVar[str] = "promesse"
    step_m: Annotated[Metres, Field(gt=0, le=100_000, description="metres, e.g. 200m")] = 200

    def anonymize(
        self,
        traces: Traces,
        *,
        seed: int | None = None,  # noqa: ARG002  nothing is left to chance
        run: Run = LOCAL,
    ) -> PointRelease:
        """Return one record for every trace that has more than two points; see the class for what it guarantees."""
        counts, (ms, lng, lat) = self._walked(traces, run)
        kept = np.flatnonzero(counts)
        owners = traces.users[kept]
        return PointRelease(
            offsets=offsets_of(counts[kept]),
            ms=ms,
            lng=lng,
            lat=lat,
            frame=traces.frame,
            method=self.name,
            parameters=self.model_dump(),
            claim=self.claim,
            suppressed=int(traces.counts[counts == 0].sum()),
            created=len(ms),
            discarded=len(traces) - len(kept),
            members=Members(owners, np.arange(len(kept) + 1), owners, traces),
        )

    @property
    def claim(self) -> Claim:
        """What its releases promise."""
        return Claim("none")

    def estimate(self, traces: Traces, *, run: Run = LOCAL) -> Estimate:
        """Return what `anonymize` would take, by the length of everybody's way: a bound from above."""
        points = int(self._most(traces, run).sum())
        seconds = (_FIX_NS * traces.fixes + _POINT_NS * points) / 1e9 / run.workers
        return Estimate(_POINT_BYTES * points + 24 * _BLOCK * run.workers, seconds)

    def _most(self, traces: Traces, run: Run) -> NDArray[np.int64]:
        """Return how many points each trace can have at most."""
        most = np.empty(len(traces), np.int64)
        tracks, step_m = tracks_of(traces), float(self.step_m)
        run.ranges(lambda a, b: most_points(tracks, step_m, a, b, most), even_ranges(traces.counts, _BLOCK))
        return most

    def _walked(self, traces: Traces, run: Run) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
        """Walk all traces; give how many points each has, and the points: ms, lng, lat, trace after trace."""
        most, counts = self._most(traces, run), np.empty(len(traces), np.int64)
        starts = offsets_of(most)
        columns: list[NDArray[Any]] = [np.empty(starts[-1], kind) for kind in _COLUMNS]  # untouched memory is not taken
        ranges = even_ranges(most + traces.counts // 4, _BLOCK)

        def walk(first: int, last: int) -> None:
            room = slice(starts[first], starts[last])
            points = PointColumns(*(column[room] for column in columns))
            smooth_traces(tracks_of(traces), float(self.step_m), first, last, counts, points)

        with run.stage("smooth", len(traces)) as advance:
            run.ranges(walk, ranges, advance=advance)
        end = 0
        for first, last in ranges:  # closes the gaps that the bound has left
            start, size = int(starts[first]), int(counts[first:last].sum())
            for column in columns:
                column[end : end + size] = column[start : start + size]
            end += size
        return counts, [column[:end] for column in columns]
