"""Run: how work is carried out. Nothing in it changes a result."""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import TooLarge
from shoal.memory import left_bytes, require_memory
from shoal.parallel import LOCAL_ENGINE, cores, run_ranges, thread_count
from shoal.progress import SILENT
from shoal.settings import Settings, setting
from shoal.store import NOTHING_KEPT
from shoal.units import Bytes  # noqa: TC001  pydantic needs it

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from shoal.parallel import Engine
    from shoal.progress import Progress
    from shoal.store import Arrays, Store

__all__ = ["LOCAL", "Limits", "Run"]


class Limits(Settings):
    """The settings of a run that people give: in Python as arguments of `Run`, on the command line as flags."""

    threads: int | None = setting(
        None, help="The number of threads, at most one for each core; by default all cores.", ge=1
    )
    memory: Bytes | None = setting(
        None, help="The most memory to use, e.g. 8GB; by default what is free.", unit="B", ge=1
    )
    work_dir: Path | None = setting(None, help="The folder for private temporary files; by default beside the output.")


@dataclass(frozen=True, init=False, repr=False)
class Run:
    """How work is carried out. Every function with long work takes such an object as `run`.

    Parameters
    ----------
    threads
        The number of threads; None for all cores that the process may use. There are never more threads than these
        cores: a larger number is lowered, and the logger `shoal` says so.
    memory
        The most memory that the process may take: text such as `"8GB"`, or a number of bytes; None for what is free.
    work_dir
        The folder for private temporary files; None for the folder of the output, or the system's temporary folder.
    progress
        The object that draws the progress of the work; by default nothing is drawn.
    store
        The object that keeps finished parts, so that an interrupted run can continue; by default nothing is kept.
    engine
        The object that carries out the parts of `map`; by default threads of this process.

    Guarantee: these settings never change a result, not even a byte of it. Raises SettingsError if threads, memory or
    the folder make no sense.

    >>> run = Run(threads=1, memory="8GB")
    >>> run.workers, run.memory
    (1, 8000000000)
    """

    threads: int | None
    memory: int | None
    work_dir: Path | None
    progress: Progress
    store: Store
    engine: Engine

    def __init__(
        self,
        *,
        threads: int | str | None = None,
        memory: int | str | None = None,
        work_dir: str | Path | None = None,
        progress: Progress = SILENT,
        store: Store = NOTHING_KEPT,
        engine: Engine = LOCAL_ENGINE,
    ) -> None:
        given: dict[str, Any] = {"threads": threads, "memory": memory, "work_dir": work_dir}
        limits = Limits(**given)
        vars(self).update(dict(limits), threads=_within_cores(limits.threads))
        vars(self).update(progress=progress, store=store, engine=engine)

    def __repr__(self) -> str:
        limits = {"threads": self.threads, "memory": self.memory, "work_dir": self.work_dir}
        return f"Run({', '.join(f'{name}={value!r}' for name, value in limits.items() if value is not None)})"

    @property
    def scratch(self) -> Path:
        """The folder for private spill files."""
        return Path(self.work_dir or tempfile.gettempdir())

    @property
    def workers(self) -> int:
        """How many threads work at the same time."""
        return thread_count(self.threads)

    def within(self, memory: int | None) -> Run:
        """Return the same run with another limit of memory; raises TooLarge if nothing is left."""
        if memory is not None and memory < 1:
            raise TooLarge('the limit of memory leaves no room for this work; allow more, e.g. `memory="8GB"`')
        return replace(self, memory=memory)

    def room(self, held: int = 0) -> int:
        """Return the bytes that work may take now, beside the libraries and `held` bytes of data.

        >>> Run(memory="1GB").room()
        731564544
        """
        return left_bytes(self.memory, held)

    def require_room(self, needed: int, what: str, advice: str, *, held: int = 0) -> None:
        """Check that `what` can take `needed` bytes beside `held` bytes of data; raises TooLarge with the advice.

        >>> Run(memory="1GB").require_room(800_000_000, "the attack", "attack fewer people")
        Traceback (most recent call last):
        shoal.errors.TooLarge: the attack would take about 800.0 MB of memory, more than the 731.6 MB left; ...
        """
        require_memory(needed, what, advice, left=self.room(held))

    def stage(self, name: str, total: float | None = None) -> AbstractContextManager[Callable[[float], None]]:
        """Open a stage of `total` units (None: unknown); the context is a function that advances it."""
        return self.progress.stage(name, total)

    def ranges(
        self,
        work: Callable[[int, int], object],
        ranges: Iterable[tuple[int, int]],
        *,
        advance: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Call `work(start, stop)` for every range on the threads of this run; see `shoal.parallel.run_ranges`."""
        run_ranges(work, ranges, threads=self.threads, advance=advance)

    def map(
        self, name: str, function: Callable[[Any], Arrays], parts: Iterable[Any], *, sizes: Sequence[int]
    ) -> list[Arrays]:
        """Return `function(part)` for every part, in order; parts that the store holds are not computed again.

        `function` is a module-level function, or a `functools.partial` of one with plain settings. A part is a
        NamedTuple of arrays and holds all that the function needs, so that an engine may carry it out elsewhere.
        Parts are taken from `parts` only as workers become free. `sizes` are what the progress of the stage `name`
        counts.

        >>> import numpy as np
        >>> def squares(numbers):
        ...     return {"squares": numbers**2}
        >>> parts = [np.arange(3), np.arange(2)]
        >>> [done["squares"].tolist() for done in LOCAL.map("squares", squares, parts, sizes=[3, 2])]
        [[0, 1, 4], [0, 1]]
        """
        results: list[Arrays] = [{} for _ in sizes]
        with self.stage(name, sum(sizes)) as advance:

            def unfinished() -> Iterator[tuple[int, Any]]:
                for number, part in enumerate(parts):
                    kept = self.store.load(f"{name}-{number}")
                    if kept is None:
                        yield number, part
                    else:
                        results[number] = kept
                        advance(sizes[number])

            for number, done in self.engine.map(function, unfinished(), workers=self.workers):
                self.store.save(f"{name}-{number}", done)
                results[number] = done
                advance(sizes[number])
        return results


def _within_cores(threads: int | None) -> int | None:
    """Return the threads that a run uses, at most one for each core."""
    if threads is None or threads <= cores():
        return threads
    _say_lowered(cores())
    return cores()


@cache
def _say_lowered(most: int) -> None:
    """Log, once, that there are fewer threads than asked for."""
    logging.getLogger("shoal").warning(
        "this process may use %d cores, so there are at most %d threads; results are the same", most, most
    )


LOCAL = Run()
