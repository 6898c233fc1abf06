"""Promesse: publish points at equal distances and equal times along every trace, which hides stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.claim import Claim
from shoal.kernels.smooth import PointColumns, most_points, smooth_traces
from shoal.kernels.tracks import tracks_of
from shoal.layouts import Points
from shoal.lists import even_ranges, offsets_of
from shoal.methods.protocol import Estimate, PointMethod
from shoal.methods.registry import register
from shoal.release import Members, Release
from shoal.run import LOCAL, Run
from shoal.settings import setting
from shoal.units import Metres  # noqa: TC001  pydantic needs it

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.traces import Traces

__all__ = ["Promesse"]

# Measured on one core: a fix walked over, a point made. In memory: a point.
_FIX_NS, _POINT_NS, _POINT_BYTES = 60.0, 100.0, 24
_BLOCK = 1 << 20  # points, at most, between two checks for Ctrl-C
_COLUMNS = (np.int64, np.float64, np.float64)


@register
class Promesse(PointMethod):
    """Publish every trace as points that are equally far apart in space and in time (Promesse, Sec. IV, Fig. 2).

    Parameters
    ----------
    step
        The distance between successive points. Stops at places smaller than this are hidden. A number is metres; text
        has a unit: `"200m"`.

    A point is set wherever the distance from the last point reaches `step`, on the straight line from the last point to
    the current fix. The first and the last point are dropped, and times are spread evenly over the rest. Traces of two
    points or fewer are discarded and counted.

    Guarantee: the claim is `none`. Successive points of a record are one step apart to within 2 cm (for steps of many
    kilometres, to within a millionth) and equally far apart in time to within a millisecond. Distances are true on the
    ellipsoid everywhere, also across the antimeridian and the poles.

    Not guaranteed: routes are published as they are, so people can be found by where they went. Somebody who knows a
    place may still guess that a person stopped there.

    Cost: linear, millions of fixes a second on a core. Memory: 24 bytes a point.

    >>> import shoal
    >>> table = shoal.synthesize(users=5, kind="gps", scene="town", days=1, seed=1)
    >>> Promesse(step="200m").anonymize(shoal.read_traces(table, split_gap="4h"))
    Release(... records, ... points, promesse, claim none)
    """

    name: ClassVar[str] = "promesse"
    about: ClassVar[str] = "Publish points at equal distances and equal times along every trace, which hides stops."
    citation: ClassVar[str] = "Promesse, Sec. IV (docs/papers/promesse.md)"
    value_setting: ClassVar[str | None] = "step"
    examples: ClassVar[dict[str, Any]] = {"step": "200m"}
    less_loss: ClassVar[str] = "every trace is too short for the step; give a smaller `step`"
    less_memory: ClassVar[str] = "use a larger `step`, a shorter `period` or a smaller `bbox`"

    step: Metres = setting(
        200, unit="m", help="The distance between successive points, e.g. 200m.", public="step_m", gt=0, le=100_000
    )

    def make(self, traces: Traces, *, run: Run) -> Release:
        """Return one record for every trace that has more than two points; see the class for what it guarantees."""
        counts, (ms, lng, lat) = self._walked(traces, run)
        kept = np.flatnonzero(counts)
        owners = traces.users[kept]
        return Release(
            offsets=offsets_of(counts[kept]),
            layout=Points(ms, lng, lat),
            frame=traces.frame,
            method=self.name,
            parameters=self.parameters,
            claim=self.claim,
            samples=len(ms),
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
        """Return an upper bound of the time and memory of `anonymize`, from the lengths of the traces."""
        points = int(self._most(traces, run).sum())
        seconds = (_FIX_NS * traces.fixes + _POINT_NS * points) / 1e9 / run.workers
        return Estimate(_POINT_BYTES * points + 24 * _BLOCK * run.workers, seconds)

    def _most(self, traces: Traces, run: Run) -> NDArray[np.int64]:
        """Return how many points each trace can have at most."""
        most = np.empty(len(traces), np.int64)
        tracks, step_m = tracks_of(traces), float(self.step)
        run.ranges(lambda a, b: most_points(tracks, step_m, a, b, most), even_ranges(traces.counts, _BLOCK))
        return most

    def _walked(self, traces: Traces, run: Run) -> tuple[NDArray[np.int64], list[NDArray[Any]]]:
        """Walk all traces; return how many points each has, and the points (ms, lng, lat), trace after trace."""
        most, counts = self._most(traces, run), np.empty(len(traces), np.int64)
        starts = offsets_of(most)
        columns: list[NDArray[Any]] = [np.empty(starts[-1], kind) for kind in _COLUMNS]  # untouched memory is not taken
        ranges = even_ranges(most + traces.counts // 4, _BLOCK)

        def walk(first: int, last: int) -> None:
            room = slice(starts[first], starts[last])
            points = PointColumns(*(column[room] for column in columns))
            smooth_traces(tracks_of(traces), float(self.step), first, last, counts, points)

        with run.stage("smooth", len(traces)) as advance:
            run.ranges(walk, ranges, advance=advance)
        end = 0
        for first, last in ranges:  # closes the gaps that the bound has left
            start, size = int(starts[first]), int(counts[first:last].sum())
            for column in columns:
                column[end : end + size] = column[start : start + size]
            end += size
        return counts, [column[:end] for column in columns]
