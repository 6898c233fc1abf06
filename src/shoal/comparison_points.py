"""Point methods on the same traces, side by side: Tables II to VI of 004 in one."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.attacks.poi import poi_scores
from shoal.errors import SettingsError
from shoal.interrupt import raise_if_asked
from shoal.memory import require_memory
from shoal.methods import METHODS, PointMethod
from shoal.run import LOCAL, Run
from shoal.seen.pairs import Pairs, Track, open_pairs
from shoal.traces import Traces
from shoal.utility import evaluate_pairs

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["ComparedPoints", "PointContest", "are_points", "compare_points", "point_contests"]

RAW = "raw"
# The setting that a value after the colon stands for.
_SETTING = {"promesse": "step_m", "geo-indistinguishability": "epsilon"}
_FEW = 20  # traces to warm up with


@dataclass(frozen=True)
class PointContest:
    """One run of a comparison: what it was called, and the method with its settings; None for raw data."""

    name: str
    method: PointMethod | None


@dataclass(frozen=True, kw_only=True)
class ComparedPoints:
    """One line of the table: privacy (places found again), utility, size and time; see `Evaluation` and `poi`.

    `seconds` is `anonymize` alone, without reading, writing and verifying. Scores are None where nobody stays anywhere.
    """

    method: str
    claim: str
    fscore: float | None
    precision: float | None
    recall: float | None
    spatial_error_m: float | None
    query_distortion: float
    query_distortion_low: float
    query_distortion_high: float
    compression: float
    seconds: float | None
    traces: int
    records: int
    points: int

    def to_dict(self) -> dict[str, Any]:
        """Return the line as it is saved: aggregates only."""
        return asdict(self)


def are_points(names: Sequence[str]) -> bool:
    """Return whether methods publish points; raises SettingsError if some do and others do not."""
    some = [name.partition(":")[0] in (RAW, *_SETTING) for name in names]
    if any(some) and not all(some):
        raise SettingsError(
            f"methods of points ({', '.join(_SETTING)}, {RAW}) and of boxes are judged by different figures; "
            "compare them one after the other"
        )
    return bool(some) and all(some)


def point_contests(names: Sequence[str]) -> list[PointContest]:
    """Return a contest for every method; a name is a method's, with its setting after a colon.

    >>> [one.name for one in point_contests(["raw", "promesse:200m", "geo-indistinguishability:ln(4)/200"])]
    ['raw', 'promesse:200m', 'geo-indistinguishability:ln(4)/200']
    """
    return [PointContest(name, _method(name)) for name in dict.fromkeys(names)]


def compare_points(
    traces: Traces, runs: Sequence[PointContest], *, queries: int = 1000, seed: int = 0, run: Run = LOCAL
) -> list[ComparedPoints]:
    """Run every method on the same traces and measure what it makes of them; nothing is published.

    Output: a line for each run, in its order. `seed` is that of the range queries; noise is the system's. Raises
    TooLarge before any run if one of them would not fit into memory. Cost: that of the runs and of measuring them.

    >>> import shoal
    >>> table = shoal.synthesize(users=5, kind="gps", scene="town", days=1, seed=1)
    >>> lines = compare_points(shoal.read_traces(table), point_contests(["raw", "promesse:100m"]))
    >>> lines[0].fscore, lines[1].fscore < 0.5
    (1.0, True)
    """
    for contest in runs:
        needed = 0 if contest.method is None else contest.method.estimate(traces, run=run).memory_bytes
        require_memory(needed, contest.name, "leave it out of --methods or compare fewer people", limit=run.memory)
    lines = []
    with run.stage("runs", len(runs)) as advance:
        for contest in runs:
            lines.append(_measured(contest, traces, queries, seed, run))
            raise_if_asked()
            advance(1)
    return lines


def _method(name: str) -> PointMethod | None:
    plain, colon, value = name.partition(":")
    if name == RAW:
        return None
    if plain not in _SETTING:
        raise SettingsError(f"no such method of points; choose among: {', '.join((RAW, *_SETTING))}")
    method = METHODS[plain](**({_SETTING[plain]: value} if colon else {}))
    if not isinstance(method, PointMethod):
        raise SettingsError(f"{plain} does not publish points")
    return method


def _measured(contest: PointContest, traces: Traces, queries: int, seed: int, run: Run) -> ComparedPoints:
    pairs = Pairs(traces, Track(traces.offsets, traces.ms, traces.lng, traces.lat), np.arange(len(traces)))
    claim, seconds = "none", None
    if contest.method is not None:
        contest.method.anonymize(_few(traces), run=run)
        started = time.perf_counter()
        release = contest.method.anonymize(traces, run=run)
        seconds = time.perf_counter() - started
        pairs, claim = open_pairs(traces, release), str(release.claim)
    found = evaluate_pairs(pairs, queries=queries, seed=seed, run=run)
    return ComparedPoints(
        method=contest.name,
        claim=claim,
        **poi_scores(pairs, run=run).means(),
        spatial_error_m=found.spatial_error_m,
        query_distortion=found.query_distortion,
        query_distortion_low=found.query_distortion_low,
        query_distortion_high=found.query_distortion_high,
        compression=found.compression,
        seconds=seconds,
        traces=len(traces),
        records=found.records,
        points=found.points,
    )


def _few(traces: Traces) -> Traces:
    """Return the first traces."""
    n = min(len(traces), _FEW)
    end = int(traces.offsets[n])
    columns = traces.ms[:end], traces.lng[:end], traces.lat[:end]
    people = int(traces.users[n - 1]) + 1
    return Traces(traces.offsets[: n + 1], *columns, traces.users[:n], traces.labels[:people], traces.frame)
