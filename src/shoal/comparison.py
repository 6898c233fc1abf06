"""Several methods on the same people, side by side: the recipe behind `shoal compare`."""

from __future__ import annotations

import gc
import re
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.attacks.poi import poi_scores
from shoal.coredumps import open_to_itself
from shoal.errors import SettingsError
from shoal.figures import Figure, Figured
from shoal.interrupt import raise_if_asked
from shoal.measure.precision import precision
from shoal.memory import human_bytes
from shoal.methods import METHODS, PointMethod
from shoal.run import LOCAL
from shoal.seen.pairs import Pairs, Track, open_pairs
from shoal.tables import save_rows
from shoal.traces import Traces
from shoal.utility import METRICS, Drawn, evaluate_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from shoal.methods import Method
    from shoal.progress import Progress
    from shoal.reading.options import ReadOptions
    from shoal.release import Release
    from shoal.run import Run
    from shoal.trajectories import Trajectories

__all__ = ["RAW", "Compared", "Contest", "compare", "contests", "read_for", "save_comparison"]

RAW = "raw"  # fixes as they are, the control of point methods
_FEW = 20  # people or traces to warm up with, and at least three times k
_CLEAR_PEAK, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True)
class Contest:
    """One run of a comparison: the name as given, and the method with its settings (None for raw data)."""

    name: str
    method: Method | None

    @property
    def k(self) -> int | None:
        """Among how many everyone is hidden; None for methods without a k."""
        return None if self.method is None else self.method.among

    @property
    def kind(self) -> type[Method]:
        """The class of the method; raw data are read as point methods read them."""
        return PointMethod if self.method is None else type(self.method)

    @property
    def takes(self) -> str:
        """The kind of data that the run works on: samples or fixes."""
        return self.kind.takes

    def require(self, people: Trajectories | Traces, run: Run) -> None:
        """Check that the run can work on these people, and fits into memory; raises otherwise."""
        if self.method is None:
            if not isinstance(people, Traces):
                raise SettingsError(f"{RAW} is compared with methods of points only; read the data with read_traces")
            return
        self.method.require(people)
        needed = self.method.estimate(people, run=run).memory_bytes
        run.require_room(needed, self.name, "leave it out of `methods` or compare fewer people", held=people.nbytes)


@dataclass(frozen=True, kw_only=True)
class Compared(Figured):
    """One line of a comparison: the claim, the time and the figures of one run.

    `figures` depend on what is compared: the precision of boxes (see `shoal.measure.Precision`), or the scores of the
    attack `poi` and the utility of points (see `shoal.Evaluation`). Each is an attribute too, e.g. `span_km_mean`.
    `columns` say which of the values are saved and printed, and how. `seconds` is the time of `anonymize` alone; None
    for raw data. `peak_memory_bytes` is that of the whole process; None if the system does not report it.
    """

    method: str
    k: int | None
    claim: str
    figures: Mapping[str, Any]
    seconds: float | None
    peak_memory_bytes: int | None
    columns: tuple[Figure, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the line as it is saved: aggregates only."""
        return {column.name: getattr(self, column.name) for column in self.columns}

    def printed(self) -> list[tuple[str, str]]:
        """Return the line as it is printed: the header and the text of each column."""
        values = self.to_dict()
        return [(column.label, column.text(values)) for column in self.columns if column.label]


class Judging(NamedTuple):
    """How runs on one kind of data are judged: the columns of their table, and the function that measures a release.

    `measure(people, release, drawn, run)` returns the figures of a run; the release is None for raw data.
    """

    columns: Callable[[], tuple[Figure, ...]]
    measure: Callable[[Any, Any, Drawn, Run], dict[str, Any]]


def _box_columns() -> tuple[Figure, ...]:
    return (
        Figure("method", "method"),
        Figure("k", "k"),
        Figure("claim", "claim"),
        Figure("owner_cost", "owner cost", "{:,.0f}".format),
        Figure("span_km_mean", "span", "{:.2f} km".format),
        Figure("span_km_median", "median", "{:.2f} km".format),
        Figure("duration_min_mean", "duration", "{:,.0f} min".format),
        Figure("duration_min_median", "median", "{:,.0f} min".format),
        Figure("suppressed", "suppressed", "{:.1%}".format),
        Figure("seconds", "time", "{:.1f} s".format),
        Figure("peak_memory_bytes", "peak memory", human_bytes, kind=int),
    )


def _point_columns() -> tuple[Figure, ...]:
    return (
        Figure("method", "method"),
        Figure("claim"),
        Figure("fscore", "F-score", "{:.2%}".format),
        Figure("precision", "precision", "{:.1%}".format),
        Figure("recall", "recall", "{:.1%}".format),
        *(figure for metric in reversed(METRICS.values()) for figure in metric.compared),  # the last first, as ever
        Figure("seconds"),  # saved here, but printed last
        Figure("traces"),
        Figure("records", "records", "{:,}".format),
        Figure("points"),
        Figure("seconds", "time", "{:.2f} s".format),
    )


def _box_figures(_people: Trajectories, release: Release, _drawn: Drawn, _run: Run) -> dict[str, Any]:
    return asdict(precision(release))


def _point_figures(traces: Traces, release: Release | None, drawn: Drawn, run: Run) -> dict[str, Any]:
    if release is None:
        pairs = Pairs(traces, Track(traces.offsets, traces.ms, traces.lng, traces.lat), np.arange(len(traces)))
    else:
        pairs = open_pairs(traces, release)
    found = evaluate_pairs(pairs, queries=drawn.queries, seed=drawn.seed, run=run)
    sizes = {"traces": found.traces, "records": found.records, "points": found.points}
    return {**poi_scores(pairs, run=run).means(), **found.figures, **sizes}


# How runs are judged, by what they work on.
_JUDGED: dict[str, Judging] = {
    "samples": Judging(_box_columns, _box_figures),
    "fixes": Judging(_point_columns, _point_figures),
}


def contests(names: Sequence[str], ks: Sequence[int] = (2,)) -> list[Contest]:
    """Return a run for each method and each k; a method without a k runs once.

    A name is a method's, alone or with a variant or a value after a colon: `k-scale:full`, `promesse:200m`; `raw` are
    fixes as they are. Raises SettingsError for unknown names, with the choices, and for methods of samples and of fixes
    together: they are judged by different figures.

    >>> [(one.name, one.k) for one in contests(["shoal", "k-scale:full"], [2, 5])]
    [('shoal', 2), ('k-scale:full', 2), ('shoal', 5), ('k-scale:full', 5)]
    >>> [one.name for one in contests(["raw", "promesse:200m", "geo-indistinguishability:ln(4)/200"])]
    ['raw', 'promesse:200m', 'geo-indistinguishability:ln(4)/200']
    """
    if not names or not ks:
        raise SettingsError('name at least one method and one k: `methods="shoal,k-scale"` and `k="2,5"`')
    runs = [Contest(name, _method(name, k)) for k in dict.fromkeys(ks) for name in dict.fromkeys(names)]
    if len({contest.takes for contest in runs}) > 1:
        points = [name for name, method in METHODS.items() if method.takes == PointMethod.takes]
        raise SettingsError(
            f"methods of points ({', '.join(points)}, {RAW}) and of boxes are judged by different figures; "
            "compare them one after the other"
        )
    return list({(contest.name, contest.k): contest for contest in runs}.values())


def read_for(
    runs: Sequence[Contest], source: Sequence[str | Path], options: ReadOptions, *, run: Run = LOCAL
) -> Trajectories | Traces:
    """Read what the methods of a comparison work on."""
    return runs[0].kind.read(list(source), options=options, run=run)


def compare(
    people: Trajectories | Traces,
    runs: Sequence[Contest] | Sequence[str],
    *,
    k: Sequence[int] = (2,),
    queries: int = 1000,
    seed: int = 0,
    run: Run = LOCAL,
) -> list[Compared]:
    """Run every method on the same people and measure the results; nothing is published.

    Parameters
    ----------
    people
        The data as the methods take it: from `shoal.read`, or for point methods from `shoal.read_traces`.
    runs
        Names of methods, such as `"shoal"`, `"k-scale:full"` or `"promesse:200m"`; or the result of `contests(...)`.
    k
        Every method that has a k runs once for each of these.
    queries, seed
        For point methods: how many range queries to draw, and their seed. Noise is always the operating system's.
    run
        Threads, memory and the folder for temporary files.

    Returns
    -------
    list of Compared
        One line for each run, in the order of the runs. `seconds` is the time of `anonymize` alone, without reading,
        writing and verifying. Each method first runs on a few people, so that compiling is not part of it.

    Raises
    ------
    TooFewUsers, TooLarge
        There are fewer people than k; or a run would not fit into memory, which is checked before the first run.

    Cost: that of the runs, one after the other.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> [str(line.claim) for line in compare(people, ["shoal", "k-scale"], k=[3])]
    ['k-anonymity(3)', 'cover(3)']
    >>> table = shoal.synthesize(users=5, kind="gps", scene="town", days=1, seed=1)
    >>> lines = compare(shoal.read_traces(table), ["raw", "promesse:100m"])
    >>> lines[0].fscore, lines[1].fscore < 0.5
    (1.0, True)
    """
    chosen, drawn = _chosen(runs, k), Drawn(queries, seed)
    for contest in chosen:
        contest.require(people, run)
    lines = []
    with run.stage("runs", len(chosen)) as advance:
        for contest in chosen:
            named = contest.name if contest.k is None else f"{contest.name}, k = {contest.k}"
            lines.append(
                _measured(contest, people, drawn, replace(run, progress=_Prefixed(run.progress, f"{named}: ")))
            )
            raise_if_asked()
            advance(1)
    return lines


def save_comparison(lines: Sequence[Compared], path: Path, *, overwrite: bool = False) -> None:
    """Save the table as CSV, JSON or Parquet, by its ending; the file appears whole or not at all."""
    kinds = {column.name: column.kind for column in lines[0].columns if column.kind}
    save_rows([line.to_dict() for line in lines], path, kinds=kinds, overwrite=overwrite)


def _chosen(runs: Sequence[Contest] | Sequence[str], k: Sequence[int]) -> list[Contest]:
    named = [one for one in runs if isinstance(one, str)]
    return contests(named, k) if named else [one for one in runs if isinstance(one, Contest)]


def _method(name: str, k: int) -> Method | None:
    """Return the method of that name, with the settings of its variant."""
    plain, colon, variant = name.partition(":")
    if name == RAW:
        return None
    if plain not in METHODS:
        raise SettingsError(f"no such method; choose among: {', '.join(_choices())}")
    kind = METHODS[plain]
    given: dict[str, Any] = {"k": k} if "k" in kind.model_fields else {}
    if not colon:
        return kind(**given)
    if variant in kind.variants:
        return kind(**given, **kind.variants[variant])
    if kind.value_setting is not None:
        return kind(**given, **{kind.value_setting: variant})
    also = [choice for choice in _choices() if choice.partition(":")[0] == plain]
    raise SettingsError(f"no such variant of {plain}; choose among: {', '.join(also)}")


def _choices() -> list[str]:
    """Return everything that can be compared."""
    return [RAW, *(name for plain, kind in METHODS.items() for name in (plain, *_variants(plain, kind)))]


def _variants(plain: str, kind: type[Method]) -> list[str]:
    return [f"{plain}:{word}" for word in kind.variants]


def _measured(contest: Contest, people: Trajectories | Traces, drawn: Drawn, run: Run) -> Compared:
    judging, method = _JUDGED[contest.takes], contest.method
    release = seconds = peak = None
    if method is not None:
        few = people.first(max(_FEW, 3 * (method.among or 0)))
        method.anonymize(few, run=replace(run, progress=LOCAL.progress))
        gc.collect()
        peak_known = _forget_peak()
        started = time.perf_counter()
        release = method.anonymize(people, run=run)
        seconds = time.perf_counter() - started
        peak = _peak_bytes() if peak_known else None
    return Compared(
        method=contest.name,
        k=contest.k,
        claim="none" if release is None else str(release.claim),
        figures=judging.measure(people, release, drawn, run),
        seconds=seconds,
        peak_memory_bytes=peak,
        columns=judging.columns(),
    )


def _forget_peak() -> bool:
    """Reset the system's record of this process's peak memory; return whether that worked (Linux only)."""
    try:
        with open_to_itself():
            _CLEAR_PEAK.write_text("5")
    except OSError:
        return False
    return True


def _peak_bytes() -> int | None:
    peak = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return int(peak[1]) * 1024 if peak else None


class _Prefixed:
    """Draws stages with the name of their run in front."""

    def __init__(self, progress: Progress, prefix: str) -> None:
        self._progress, self._prefix = progress, prefix

    def stage(self, name: str, total: float | None = None) -> AbstractContextManager[Callable[[float], None]]:
        return self._progress.stage(self._prefix + name, total)
