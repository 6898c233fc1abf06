"""A case, and how it may end: a typed error or a normal return, with nothing told, nothing left and little taken."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import shoal
from shoal.errors import NaiveTimes
from shoal.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY = 1 << 29  # the limit that every case is given; half a gigabyte is the least that can be kept
OVER = 2 * MEMORY
SECONDS = 20  # of processor time
FIXED = 2_000  # the cases of `make test`; later numbers may start from a seed, too
SEEDS = Path(__file__).parent / "seeds"

# Values planted in the files, which no message may repeat.
CANARY = "canary7319"
LAT, LNG, CLOCK = "39.731973", "116.731973", "07:31:37"
CANARIES = (CANARY, LAT, LNG, CLOCK)


class Broken(Exception):
    """A case that ended as none may end: `what` is one word for the table."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        super().__init__(f"{what}: {why}")


@dataclass(frozen=True)
class Case:
    """The files of a case, the first being the one to open, and what else it is called with (plain JSON)."""

    files: dict[str, bytes]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def first(self) -> str:
        return next(iter(self.files))


@dataclass(frozen=True)
class Kind:
    """A kind of input: `draw` makes a case of random numbers, `act` uses its files.

    `act` returns everything that was said, in which no canary may be; it raises `Broken` for a wrong result.
    """

    name: str
    draw: Callable[[Random], Case]
    act: Callable[[Case, Path], Any]


def case_of(kind: Kind, number: int) -> Case:
    """Return the case of a number, the same each time."""
    draw = Random(f"{kind.name} {number}")
    seeds = seeds_of(kind) if number >= FIXED and number % 10 == 0 else []
    if seeds:
        from tests.fuzz.mutate import any_bytes

        case = load(draw.choice(seeds))
        name = draw.choice(list(case.files))
        return Case({**case.files, name: any_bytes(draw, case.files[name])}, case.options)
    return kind.draw(draw)


def outcome(kind: Kind, case: Case) -> str:
    """Run a case; return "returned" or the name of its typed error. Raises Broken, or whatever was not caught."""
    with Scratch() as scratch:
        for name, data in case.files.items():
            path = scratch.data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o600)
        before = peak_reset()
        started = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", NaiveTimes)
                said = kind.act(case, scratch.data)
            ended = "returned"
        except shoal.ShoalError as error:
            said, ended = f"{error} {error.args}", type(error).__name__
        taken, seconds = peak() - before, time.process_time() - started
        _require_silence(case, said)
        scratch.require_clean(case)
    if taken > OVER:
        raise Broken("memory", f"{taken >> 20} MB were taken")
    if seconds > SECONDS:
        raise Broken("time", f"it took {seconds:.0f} s")
    return ended


def _require_silence(case: Case, said: Any) -> None:
    text = said if isinstance(said, str) else json.dumps(said, default=str, ensure_ascii=False)
    told = [canary for canary in CANARIES if canary in text]
    if told:
        raise Broken("told", f"{', '.join(told)} in: {text[:2000]}")


class Scratch:
    """A private folder with a folder for the data and one for everything temporary."""

    def __enter__(self) -> Scratch:
        self.folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        self.data, self.temporary = self.folder / "data", self.folder / "tmp"
        self.data.mkdir()
        self.temporary.mkdir()
        self._before = tempfile.tempdir
        tempfile.tempdir = str(self.temporary)
        return self

    def __exit__(self, *_: object) -> None:
        tempfile.tempdir = self._before
        shutil.rmtree(self.folder, ignore_errors=True)

    def require_clean(self, case: Case) -> None:
        """Raise Broken if anything is left but the files of the case."""
        there = {str(path.relative_to(self.data)) for path in self.data.rglob("*") if not path.is_dir()}
        left = [*sorted(there - set(case.files)), *sorted(path.name for path in self.temporary.iterdir())]
        if left:
            raise Broken("left", ", ".join(left))


def run_in(folder: Path) -> Run:
    """Return how every case is run: one thread, little memory, temporary files in its own folder."""
    return Run(threads=1, memory=MEMORY, work_dir=folder.parent / "tmp")


def peak_reset() -> int:
    """Forget the peak of memory; return what is taken now, in bytes (0 where it can't be known)."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> int:
    """Return the largest memory since the last reset, in bytes (0 where it can't be known)."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def seeds_of(kind: Kind) -> list[Path]:
    """Return the folders of the seeds of a kind, sorted."""
    return sorted(path for path in (SEEDS / kind.name).glob("*") if path.is_dir())


def load(seed: Path) -> Case:
    """Return a seed as a case: its files in the order of `case.json`, with its options."""
    about = json.loads((seed / "case.json").read_text())
    return Case({name: (seed / name).read_bytes() for name in about["files"]}, about["options"])


def save(case: Case, seed: Path) -> None:
    """Write a case as a seed."""
    seed.mkdir(parents=True)
    for name, data in case.files.items():
        (seed / name).parent.mkdir(parents=True, exist_ok=True)
        (seed / name).write_bytes(data)
    (seed / "case.json").write_text(json.dumps({"files": list(case.files), "options": case.options}, indent=1) + "\n")
