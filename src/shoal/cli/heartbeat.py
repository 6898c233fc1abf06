"""Progress in a pipe: a plain line every few seconds that says which step is under way, how far, and for how long."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING

from shoal.cli.output import to_standard_error
from shoal.interrupt import undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["COMPILING", "EVERY_S", "Spoken", "clock_text", "heartbeat"]

EVERY_S = 8.0  # so that something new is said every ten seconds, also on a busy machine
COMPILING = "compiling, once (about a minute; later runs start at once)"
_TELLING = 0.02  # the share of a step that must be done before the rest can be estimated
_GRACE_S = 1.0  # to wait for a line that is being written


@dataclass
class _Stage:
    name: str
    total: float | None
    began: float
    done: float = 0.0


def clock_text(seconds: float) -> str:
    """Return a duration as minutes and seconds, with hours if there are any.

    >>> clock_text(70), clock_text(3671)
    ('1:10', '1:01:11')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Spoken:
    """A progress that can say in a line what is under way; `since` is when the command began."""

    def __init__(self, since: float) -> None:
        self._since = since
        self._open: list[_Stage] = []
        self._compiling = 0
        self._compiled = 0
        self._told = 0

    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        """Open a stage, as `shoal.progress.Progress` says."""
        stage = _Stage(name, total, time.monotonic())

        def advance(amount: float) -> None:
            stage.done += amount

        self._open.append(stage)
        try:
            yield advance
        finally:
            self._open.remove(stage)

    def compiling(self, change: int) -> None:
        """Note that the compiler starts (1) or ends (-1) with a kernel."""
        self._compiling += change
        self._compiled += change < 0

    def line(self, now: float) -> str:
        """Return what to say: the step that was begun last, how far it is, the time since the start and what is left.

        >>> spoken = Spoken(since=time.monotonic())
        >>> with spoken.stage("partners", 200) as advance:
        ...     advance(50)
        ...     spoken.line(time.monotonic() + 30.5)
        'shoal: partners: 25 %, 0:30 elapsed, about 1:31 left in this step'
        """
        stage = next(iter(self._open[-1:]), None)
        said = "working" if stage is None else stage.name + _share(stage)
        if self._compiling or self._compiled > self._told:
            said = f"{COMPILING}: {self._compiled} kernels so far; {said}"
        self._told = self._compiled
        left = None if stage is None else _left(stage, now)
        rest = "" if left is None else f", about {clock_text(left)} left in this step"
        return f"shoal: {said}, {clock_text(now - self._since)} elapsed{rest}"


def _share(stage: _Stage) -> str:
    return f": {100 * min(stage.done / stage.total, 1):.0f} %" if stage.total else ""


def _left(stage: _Stage, now: float) -> float | None:
    """Return the seconds until a stage ends if it goes on as it did; None if that can't be said."""
    if not stage.total or stage.done < _TELLING * stage.total:
        return None
    return (now - stage.began) * max(stage.total - stage.done, 0) / stage.done


@contextmanager
def heartbeat(
    line: Callable[[], str], *, wait: Callable[[], bool] | None = None, write: Callable[[str], None] = to_standard_error
) -> Iterator[None]:
    """Write `line()` every few seconds while the block runs, and nothing after it.

    `wait` waits for `EVERY_S` and returns whether the block has ended. The thread is a daemon and holds no lock that
    the block needs: Ctrl-C works at any moment. A `SimpleQueue` ends the wait, for the reason `shoal.parallel` gives.
    """
    ended: SimpleQueue[None] = SimpleQueue()

    def waited() -> bool:
        try:
            ended.get(timeout=EVERY_S)
        except Empty:
            return False
        return True

    waiting = wait or waited

    def beat() -> None:
        while not waiting():
            write(line())

    thread = Thread(target=beat, daemon=True, name="shoal-heartbeat")
    with undisturbed():
        thread.start()
    try:
        yield
    finally:
        ended.put(None)
        with undisturbed():
            thread.join(_GRACE_S)
