"""The attack `poi`: look in the release for the places where people stay (Promesse, Sec. V-B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.attacks.knowledge import percent
from shoal.attacks.outcome import Attack, Outcome, rate, register
from shoal.errors import CannotCheck
from shoal.kernels.geodesy import in_space
from shoal.kernels.stays import FoundStays, StayRule, find_stays, match_places, merge_stays
from shoal.kernels.tracks import SpaceTracks
from shoal.lists import even_ranges, offsets_of, take_lists
from shoal.run import LOCAL, Run
from shoal.settings import Settings, setting
from shoal.units import Metres, Seconds  # noqa: TC001  pydantic needs them

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.seen.pairs import Pairs, Track
    from shoal.traces import Traces

__all__ = ["POI", "StayPlaces", "places_of", "poi_attack", "poi_scores", "stays_of"]

DIAMETER_M, STAY_S, MATCH_M = 200, 900, 100
_BLOCK = 1 << 20  # fixes between two checks for Ctrl-C


@dataclass(frozen=True, eq=False)
class StayPlaces:
    """Places in space (metres from the Earth's centre); those of trace t are offsets[t]…offsets[t+1]-1."""

    offsets: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    z: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.x)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of places of each trace."""
        return np.diff(self.offsets)

    @property
    def tracks(self) -> SpaceTracks:
        """The places in the form that kernels take."""
        return SpaceTracks(self.offsets, self.x, self.y, self.z)


def poi_attack(
    pairs: Pairs,
    *,
    victims: int = 1000,  # noqa: ARG001  all traces are attacked: it is cheap
    seed: int = 0,  # noqa: ARG001  nothing is drawn
    diameter: int = DIAMETER_M,
    stay: int = STAY_S,
    match: int = MATCH_M,
    run: Run = LOCAL,
) -> Outcome:
    """Look in the release for the places where people stay.

    A stay is a run of fixes within `diameter` metres for at least `stay` seconds; stays near each other are one place.
    Places found in a record are matched with those of the trace it was made of, within `match` metres. Output:
    precision, recall and F-score (Promesse, Def. 2-4), the mean over traces that have places. `success` is the share of
    these traces for which at least one place was found. The control finds all places: it is the same extraction on the
    raw data.
    Guarantee: deterministic. Cost: linear in the number of fixes.
    """
    settings = {"diameter_m": diameter, "stay_s": stay, "match_m": match}
    scores = poi_scores(pairs, **settings, run=run)
    with_places = scores.real > 0
    n = int(with_places.sum())
    if not n:
        raise CannotCheck("nobody stays anywhere in the original: there are no places that could be found")
    found = int((scores.matched[with_places] > 0).sum())
    row: dict[str, Any] = {**settings, "victims": n, **rate("success", found, n), **scores.means()}
    row |= {"places": int(scores.real.sum()), "places_published": int(scores.published.sum())}
    row |= {"places_found": int(scores.matched.sum()), **rate("control", n, n)}
    said = (
        f"Of {row['places']:,} places where people stay, {row['places_found']:,} were found again, among "
        f"{row['places_published']:,} that seem to be such; F-score {percent(row['fscore'])} on average over traces."
    )
    return Outcome("poi", settings, n, [row], {"traces": len(pairs.original)}, (said,))


@dataclass(frozen=True, eq=False)
class Scores:
    """Numbers of places per trace: real ones, those found in the release, and real ones matched by these."""

    real: NDArray[np.int64]
    published: NDArray[np.int64]
    matched: NDArray[np.int64]

    def means(self) -> dict[str, float | None]:
        """Return precision, recall and F-score, the mean over traces that have places; None if no trace has."""
        some = self.real > 0
        matched, real, published = self.matched[some], self.real[some], self.published[some]
        if not len(real):
            return dict.fromkeys(("precision", "recall", "fscore"))
        return {
            "precision": float((matched / np.maximum(published, 1)).mean()),
            "recall": float((matched / real).mean()),
            "fscore": float((2 * matched / (real + published)).mean()),
        }


def poi_scores(
    pairs: Pairs, *, diameter_m: int = DIAMETER_M, stay_s: int = STAY_S, match_m: int = MATCH_M, run: Run = LOCAL
) -> Scores:
    """Count for each original trace its places, the places found in the release, and those that match."""
    traces = pairs.require_owners("the attack poi")
    with run.stage("find places", pairs.original.fixes + len(pairs.published.ms)) as advance:
        how: dict[str, Any] = {"diameter_m": diameter_m, "stay_s": stay_s, "run": run, "advance": advance}
        real = places_of(pairs.original, **how)
        seen = places_of(pairs.published, **how)
    # Put the records of a trace together, in the order of the traces.
    order = np.argsort(traces, kind="stable")
    _, rows = take_lists(seen.offsets, order)
    per_trace = np.bincount(traces, weights=seen.counts, minlength=len(pairs.original)).astype(np.int64)
    found = StayPlaces(offsets_of(per_trace), seen.x[rows], seen.y[rows], seen.z[rows])
    matched = np.empty(len(pairs.original), np.int64)
    match_places(real.tracks, found.tracks, float(match_m), matched)
    return Scores(real.counts, found.counts, matched)


def places_of(
    traces: Traces | Track,
    *,
    diameter_m: float = DIAMETER_M,
    stay_s: float = STAY_S,
    run: Run = LOCAL,
    advance: Callable[[float], None] = lambda _: None,
) -> StayPlaces:
    """Return the places where traces stay; stays within half the diameter of each other are one place."""
    x, y, z = in_space(traces.lng, traces.lat, run_ranges=run.ranges)
    counts, starts, stops = stays_of(
        traces.offsets, traces.ms, x, y, z, diameter_m=diameter_m, stay_s=stay_s, run=run, advance=advance
    )
    x, y, z = (_means(column, starts, stops) for column in (x, y, z))
    merged = np.empty(len(counts), np.int64)
    end = merge_stays(SpaceTracks(offsets_of(counts), x, y, z), diameter_m / 2, merged)
    return StayPlaces(offsets_of(merged), x[:end], y[:end], z[:end])


def stays_of(
    offsets: NDArray[np.int64],
    ms: NDArray[np.int64],
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    z: NDArray[np.float64],
    *,
    diameter_m: float,
    stay_s: float,
    flat: bool = False,
    run: Run = LOCAL,
    advance: Callable[[float], None] = lambda _: None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of stays of each trace, and the first row and the row after the last of each stay.

    Coordinates are geocentric metres or, if `flat`, those of a plane with z = 0.

    >>> at = np.array([0.0, 500.0, 510.0, 505.0, 900.0])
    >>> zero = np.zeros(5)
    >>> found = stays_of(np.array([0, 5]), np.arange(5) * 600_000, at, zero, zero, diameter_m=50, stay_s=900, flat=True)
    >>> [column.tolist() for column in found]
    [[1], [1], [4]]
    """
    counts = np.empty(len(offsets) - 1, np.int64)
    found: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}
    points, rule = SpaceTracks(offsets, x, y, z), StayRule(float(diameter_m), int(1000 * stay_s), flat)

    def work(first: int, last: int) -> None:
        room = int(offsets[last] - offsets[first]) // 2 + 1
        starts, stops = np.empty(room, np.int64), np.empty(room, np.int64)
        n = find_stays(points, ms, rule, first, last, FoundStays(counts, starts, stops))
        found[first] = starts[:n].copy(), stops[:n].copy()
        advance(int(offsets[last] - offsets[first]))

    run.ranges(work, even_ranges(np.diff(offsets), _BLOCK))
    none = np.empty(0, np.int64)
    starts, stops = (np.concatenate([none, *(found[first][n] for first in sorted(found))]) for n in (0, 1))
    return counts, starts, stops


def _means(column: NDArray[np.float64], starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the mean of each run of rows, start…stop-1."""
    if not len(starts):
        return np.empty(0)
    offsets = offsets_of(stops - starts)
    rows = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], stops - starts)
    means: NDArray[np.float64] = np.add.reduceat(column[rows], offsets[:-1]) / (stops - starts)
    return means


class PoiSettings(Settings):
    """The settings of the attack `poi`."""

    diameter: Metres = setting(DIAMETER_M, unit="m", help="The largest extent of a stay; by default 200m.", gt=0)
    stay: Seconds = setting(STAY_S, unit="s", help="The shortest duration of a stay; by default 15min.", gt=0)
    match: Metres = setting(
        MATCH_M, unit="m", help="How near to a real place a found one must be to count; by default 100m.", gt=0
    )


POI = register(
    Attack(
        "poi",
        poi_attack,
        "nothing, and looks for places where people stay",
        PoiSettings,
        layouts=("points", "boxes"),
        on_traces=True,
    )
)
