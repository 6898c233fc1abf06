"""Several methods on the same people, side by side: the recipe behind `shoal compare`."""

from __future__ import annotations

import gc
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.attacks.poi import poi_scores
from shoal.errors import SettingsError
from shoal.interrupt import raise_if_asked
from shoal.measure.precision import Precision, precision
from shoal.memory import require_memory
from shoal.methods import METHODS
from shoal.reading import read, read_traces
from shoal.run import LOCAL
from shoal.seen.pairs import Pairs, Track, open_pairs
from shoal.tables import save_rows
from shoal.traces import Traces
from shoal.trajectories import Trajectories
from shoal.utility import evaluate_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from shoal.methods import Method
    from shoal.progress import Progress
    from shoal.reading.options import ReadOptions
    from shoal.run import Run

__all__ = ["RAW", "Compared", "ComparedPoints", "Contest", "compare", "contests", "read_for", "save_table"]

RAW = "raw"  # fixes as they are, the control of point methods
_FEW_TRACES = 20  # to warm up with
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
    def takes(self) -> str:
        """The kind of data that the run works on: samples or fixes."""
        return "fixes" if self.method is None else self.method.takes


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One line of the table of box methods: the claim, the precision, the time and the memory of one run.

    `peak_memory_bytes` is that of the whole process; None if the system does not report it.
    """

    method: str
    k: int | None
    claim: str
    precision: Precision
    seconds: float
    peak_memory_bytes: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the line as it is saved: aggregates only."""
        named = {"method": self.method, "k": self.k, "claim": self.claim}
        return {**named, **asdict(self.precision), "seconds": self.seconds, "peak_memory_bytes": self.peak_memory_bytes}


@dataclass(frozen=True, kw_only=True)
class ComparedPoints:
    """One line of the table of point methods: privacy (places that are found again), utility, size and time of one run.

    See `shoal.Evaluation` and the attack `poi`. `seconds` is the time of `anonymize` alone, without reading, writing
    and verifying. The scores are None if nobody stays anywhere.
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
        raise SettingsError("name at least one method and one k: --methods shoal,k-scale --k 2,5")
    runs = [Contest(name, _method(name, k)) for k in dict.fromkeys(ks) for name in dict.fromkeys(names)]
    if len({contest.takes for contest in runs}) > 1:
        points = [name for name, method in METHODS.items() if method.takes == "fixes"]
        raise SettingsError(
            f"methods of points ({', '.join(points)}, {RAW}) and of boxes are judged by different figures; "
            "compare them one after the other"
        )
    return list({(contest.name, contest.k): contest for contest in runs}.values())


def read_for(
    runs: Sequence[Contest], source: Sequence[str | Path], options: ReadOptions, *, run: Run = LOCAL
) -> Trajectories | Traces:
    """Read what the methods of a comparison work on."""
    reader = read_traces if runs[0].takes == "fixes" else read
    return reader(list(source), options=options, run=run)


def compare(
    people: Trajectories | Traces,
    runs: Sequence[Contest] | Sequence[str],
    *,
    k: Sequence[int] = (2,),
    queries: int = 1000,
    seed: int = 0,
    run: Run = LOCAL,
) -> list[Compared] | list[ComparedPoints]:
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
    list of Compared or ComparedPoints
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
    chosen = _chosen(runs, k)
    for contest in chosen:
        if contest.method is None:
            continue
        contest.method.require(people)
        needed = contest.method.estimate(people, run=run).memory_bytes
        require_memory(needed, contest.name, "leave it out of --methods or compare fewer people", limit=run.memory)
    lines: list[Any] = []
    with run.stage("runs", len(chosen)) as advance:
        for contest in chosen:
            within = replace(run, progress=_Prefixed(run.progress, f"{contest.name}, k = {contest.k}: "))
            if isinstance(people, Traces):
                lines.append(_measured_points(contest, people, queries, seed, run))
            else:
                lines.append(_measured(contest, people, within))
            raise_if_asked()
            advance(1)
    return lines


def save_table(lines: Sequence[Compared] | Sequence[ComparedPoints], path: Path, *, overwrite: bool = False) -> None:
    """Save the table as CSV, JSON or Parquet, by its ending; the file appears whole or not at all."""
    kinds = {"peak_memory_bytes": int} if isinstance(lines[0], Compared) else {}
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


def _measured(contest: Contest, people: Trajectories, run: Run) -> Compared:
    method = contest.method
    if method is None:
        raise SettingsError(f"{RAW} is compared with methods of points only")
    method.anonymize(_few(people, method.among or 2), run=replace(run, progress=LOCAL.progress))
    gc.collect()
    peak_known = _forget_peak()
    started = time.perf_counter()
    release = method.anonymize(people, run=run)
    seconds = time.perf_counter() - started
    return Compared(
        method=contest.name,
        k=contest.k,
        claim=str(release.claim),
        precision=precision(release),
        seconds=seconds,
        peak_memory_bytes=_peak_bytes() if peak_known else None,
    )


def _measured_points(contest: Contest, traces: Traces, queries: int, seed: int, run: Run) -> ComparedPoints:
    pairs = Pairs(traces, Track(traces.offsets, traces.ms, traces.lng, traces.lat), np.arange(len(traces)))
    claim, seconds = "none", None
    quiet = replace(run, progress=LOCAL.progress)
    if contest.method is not None:
        contest.method.anonymize(_few_traces(traces), run=quiet)
        started = time.perf_counter()
        release = contest.method.anonymize(traces, run=quiet)
        seconds = time.perf_counter() - started
        pairs, claim = open_pairs(traces, release), str(release.claim)
    found = evaluate_pairs(pairs, queries=queries, seed=seed, run=quiet)
    return ComparedPoints(
        method=contest.name,
        claim=claim,
        **poi_scores(pairs, run=quiet).means(),
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


def _few(people: Trajectories, k: int) -> Trajectories:
    """Return the first 3·k people."""
    n = min(len(people), 3 * k)
    end = int(people.offsets[n])
    columns = (people.t[:end], people.x[:end], people.y[:end])
    return Trajectories(people.offsets[: n + 1], *columns, people.frame, people.labels[:n])


def _few_traces(traces: Traces) -> Traces:
    """Return the first traces."""
    n = min(len(traces), _FEW_TRACES)
    end = int(traces.offsets[n])
    columns = traces.ms[:end], traces.lng[:end], traces.lat[:end]
    people = int(traces.users[n - 1]) + 1
    return Traces(traces.offsets[: n + 1], *columns, traces.users[:n], traces.labels[:people], traces.frame)


def _forget_peak() -> bool:
    """Reset the system's record of this process's peak memory; return whether that worked (Linux only)."""
    try:
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
