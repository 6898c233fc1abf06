"""Console output: progress (bars on a terminal, now and then a line in a pipe) and tables."""

from __future__ import annotations

import codecs
import json
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.cli.heartbeat import COMPILING, Spoken, heartbeat
from shoal.names import with_flags

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from shoal.cli.options import Running
    from shoal.reading.account import Account
    from shoal.run import Run

_WORTH_SEEING_S = 1  # shorter stages leave no line
_SHORT = 24  # characters; values are aligned up to this length

__all__ = ["show", "show_account", "show_columns", "show_json", "show_notes", "show_table", "working"]


@contextmanager
def working(running: Running, *, since: float | None = None) -> Iterator[Run]:
    """Start a run with these flags, and tell people on standard error how far it is.

    On a terminal there are bars. In a pipe there is a line every few seconds. With `--quiet` or `--json` there is
    nothing. `since` is when the command began (by `time.monotonic`), if that was earlier.
    """
    from shoal.run import Run

    run = Run(threads=running.threads, memory=running.memory, work_dir=running.work_dir)
    with _arrow_threads(run):
        if running.quiet or running.json or sys.stderr is None:
            yield run
        elif sys.stderr.isatty():
            with _drawn(run) as drawn:
                yield drawn
        else:
            from shoal.jit import watch_compiling

            spoken = Spoken(time.monotonic() if since is None else since)
            with watch_compiling(spoken.compiling), heartbeat(lambda: spoken.line(time.monotonic())):
                yield replace(run, progress=spoken)


@contextmanager
def _arrow_threads(run: Run) -> Iterator[None]:
    """Let the threads of Arrow be no more than those of the run; it has one pool for the whole process."""
    import pyarrow as pa

    before = pa.cpu_count()
    pa.set_cpu_count(min(before, run.workers))
    try:
        yield
    finally:
        pa.set_cpu_count(before)


@contextmanager
def _drawn(run: Run) -> Iterator[Run]:
    """Draw the stages of a run as bars, and one more while kernels are compiled."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from shoal.jit import watch_compiling

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        drawn = _Bars(bars)
        with watch_compiling(drawn.compiling):
            yield replace(run, progress=drawn)


class _Bars:
    """Draws stages as rich progress bars, one below the other."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._compiled: TaskID | None = None

    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        task = self._bars.add_task(name, total=total)
        yield lambda amount: self._bars.advance(task, amount)
        if (self._bars.tasks[self._bars.task_ids.index(task)].elapsed or 0) < _WORTH_SEEING_S:
            self._bars.remove_task(task)
        else:
            self._bars.update(task, total=total or 1, completed=total or 1)

    def compiling(self, change: int) -> None:
        """Count the kernels that are compiled, on a bar of their own."""
        if self._compiled is None:
            self._compiled = self._bars.add_task(COMPILING, total=None)
        if change < 0:
            self._bars.advance(self._compiled)


def show(text: str = "") -> None:
    """Write a line to standard output, with settings named as flags."""
    _write(with_flags(text))


def _write(text: str) -> None:
    """Write a line to standard output, if there is one."""
    if sys.stdout is not None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def show_json(value: dict[str, Any]) -> None:
    """Write JSON to standard output; in an encoding that has not all characters, they are written as escapes."""
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    _write(json.dumps(value, indent=2, ensure_ascii=encoding != "utf-8"))


def show_table(title: str, rows: Sequence[tuple[str, Any]]) -> None:
    """Write a table of two columns: name and value (right-aligned; long values, such as a CRS, move no others)."""
    cells = [(what, f"{value:,}" if isinstance(value, int) else str(value)) for what, value in rows]
    left = max(len(what) for what, _ in cells)
    right = max((len(value) for _, value in cells if len(value) <= _SHORT), default=0)
    show(title)
    for what, value in cells:
        show(f"  {what:<{left}}  {value:>{right}}")


def show_notes(account: Account | None) -> None:
    """Write the notes on reading."""
    for note in account.notes if account else ():
        show(f"note: {note}")


def show_account(account: Account) -> None:
    """Write which column became what, the notes, and how many rows were read and dropped."""
    show(f"Columns: {account.roles}")
    show_notes(account)
    show_table("Read", account.table())


def show_columns(rows: Sequence[Sequence[str]], *, left: Collection[str] = (), indent: str = "") -> None:
    """Write rows of text, the first is the header; columns are right-aligned, except those named in `left`."""
    header = rows[0]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(header, row, widths, strict=True)
        aligned = (f"{cell:<{width}}" if name in left else f"{cell:>{width}}" for name, cell, width in cells)
        show((indent + "  ".join(aligned)).rstrip())
