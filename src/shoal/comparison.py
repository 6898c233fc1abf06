"""Several methods on the same people, side by side: the recipe behind `shoal compare`."""

from __future__ import annotations

import gc
import re
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import SettingsError
from shoal.interrupt import raise_if_asked
from shoal.measure.precision import Precision, precision
from shoal.memory import require_memory
from shoal.methods import METHODS, BoxMethod, CrowdMethod
from shoal.run import LOCAL, Run
from shoal.tables import refuse_table, save_rows
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from shoal.progress import Progress


__all__ = ["Compared", "Contest", "compare", "contests", "refuse_table", "save_table"]

# The words that may follow a method's name, and what they stand for.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "shoal": {effort: {"effort": effort} for effort in ("quick", "normal", "thorough")},
    "k-scale": {
        **{constraint: {"constraint": constraint} for constraint in ("nu-k-pick", "k-pick", "full")},
        "marginal": {"picking": "marginal"},
    },
    "glove": {**{merge: {"merge": merge} for merge in ("k-merge", "two-stage")}, "loose": {"variant": "loose"}},
    "uniform": {
        f"{cell}/{slot}": {"cell_m": cell, "slot_s": slot}
        for cell, slot in (("1km", "1h"), ("2km", "2h"), ("5km", "4h"), ("20km", "8h"))
    },
    "kte-hide": {span: {"tau": span, "epsilon": span} for span in ("10min", "30min", "60min", "2h", "4h")},
}
_CLEAR_PEAK, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True)
class Contest:
    """One run of a comparison: what it was called, and the method with its parameters."""

    name: str
    method: BoxMethod


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One line of the table. `peak_memory_bytes` is the whole process's, None where the system does not tell."""

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


def contests(names: Sequence[str], ks: Sequence[int]) -> list[Contest]:
    """Return a contest for every k and method; a name is a method's, alone or with a variant: `k-scale:full`.

    Raises SettingsError, with the choices, for what is not known.

    Methods without a k run once.

    >>> [(one.name, one.method.among) for one in contests(["shoal", "k-scale:full"], [2, 5])]
    [('shoal', 2), ('k-scale:full', 2), ('shoal', 5), ('k-scale:full', 5)]
    """
    if not names or not ks:
        raise SettingsError("name at least one method and one k: --methods shoal,k-scale --k 2,5")
    runs = [Contest(name, _method(name, k)) for k in dict.fromkeys(ks) for name in dict.fromkeys(names)]
    return list({(contest.name, contest.method.among): contest for contest in runs}.values())


def compare(people: Trajectories, runs: Sequence[Contest], *, run: Run = LOCAL) -> list[Compared]:
    """Run every method on the same people and measure what it makes of them; nothing is published.

    Output: a line for each run, in its order. `seconds` is `anonymize` alone, without reading, writing and verifying;
    each method first runs on a few people, so that nothing is compiled in it. Raises TooFewUsers, and TooLarge before
    any run if one of them would not fit into memory. Cost: that of the runs, one after the other.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> [str(line.claim) for line in compare(people, contests(["shoal", "k-scale"], [3]))]
    ['k-anonymity(3)', 'cover(3)']
    """
    for contest in runs:
        contest.method.require_enough(people)
        needed = contest.method.estimate(people, run=run).memory_bytes
        require_memory(needed, contest.name, "leave it out of --methods or compare fewer people", limit=run.memory)
    lines = []
    with run.stage("runs", len(runs)) as advance:
        for contest in runs:
            lines.append(_measured(contest, people, _named(run, f"{contest.name}, k = {contest.method.among}: ")))
            raise_if_asked()
            advance(1)
    return lines


def save_table(lines: Sequence[Compared], path: Path, *, overwrite: bool = False) -> None:
    """Save the table as CSV, JSON or Parquet, by its ending; it is there whole or not at all."""
    save_rows([line.to_dict() for line in lines], path, kinds={"peak_memory_bytes": int}, overwrite=overwrite)


def _method(name: str, k: int) -> BoxMethod:
    plain, colon, variant = name.partition(":")
    kind = METHODS.get(plain)
    if kind is None or not issubclass(kind, BoxMethod):
        raise SettingsError(f"no such method; choose among: {', '.join(_choices())}")
    known = VARIANTS.get(plain, {})
    if colon and variant not in known:
        also = [choice for choice in _choices() if choice.partition(":")[0] == plain]
        raise SettingsError(f"no such variant of {plain}; choose among: {', '.join(also)}")
    given = known.get(variant, {})
    return kind(k=k, **given) if issubclass(kind, CrowdMethod) else kind(**given)


def _choices() -> list[str]:
    """Return everything that can be compared."""
    boxes = [plain for plain, kind in METHODS.items() if issubclass(kind, BoxMethod)]
    return [name for plain in boxes for name in (plain, *(f"{plain}:{word}" for word in VARIANTS.get(plain, {})))]


def _measured(contest: Contest, people: Trajectories, run: Run) -> Compared:
    contest.method.anonymize(_few(people, contest.method.among or 2), run=run)
    gc.collect()
    peak_known = _forget_peak()
    started = time.perf_counter()
    release = contest.method.anonymize(people, run=run)
    seconds = time.perf_counter() - started
    peak = _peak_bytes() if peak_known else None
    return Compared(
        method=contest.name,
        k=contest.method.among,
        claim=str(release.claim),
        precision=precision(release),
        seconds=seconds,
        peak_memory_bytes=peak,
    )


def _few(people: Trajectories, k: int) -> Trajectories:
    """Return the first 3·k people."""
    n = min(len(people), 3 * k)
    end = int(people.offsets[n])
    columns = (people.t[:end], people.x[:end], people.y[:end])
    return Trajectories(people.offsets[: n + 1], *columns, people.frame, people.labels[:n])


def _forget_peak() -> bool:
    """Let the system begin a new peak of this process's memory; say whether it did (Linux only)."""
    try:
        _CLEAR_PEAK.write_text("5")
    except OSError:
        return False
    return True


def _peak_bytes() -> int | None:
    peak = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return int(peak[1]) * 1024 if peak else None


def _named(run: Run, prefix: str) -> Run:
    return replace(run, progress=_Named(run.progress, prefix))


class _Named:
    """Progress whose stages say which run they belong to."""

    def __init__(self, progress: Progress, prefix: str) -> None:
        self._progress, self._prefix = progress, prefix

    def stage(self, name: str, total: float | None = None) -> AbstractContextManager[Callable[[float], None]]:
        return self._progress.stage(self._prefix + name, total)
