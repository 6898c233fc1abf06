"""Console output: progress bars on a terminal, tables, and plain lines in a pipe."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.run import Run
from shoal.settings import with_flags

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from rich.progress import Progress as RichProgress

    from shoal.cli.options import Running
    from shoal.reading.account import Account

_WORTH_SEEING_S = 1  # shorter stages leave no line

__all__ = ["show", "show_account", "show_columns", "show_json", "show_notes", "show_table", "working"]


@contextmanager
def working(running: Running) -> Iterator[Run]:
    """Start a run with these flags; draw progress on standard error if that is a terminal and the run is not quiet."""
    run = Run(threads=running.threads, memory=running.memory, work_dir=running.work_dir)
    if running.quiet or running.json or not sys.stderr.isatty():
        yield run
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield replace(run, progress=_Bars(bars))


class _Bars:
    """Draws stages as rich progress bars, one below the other."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars

    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
        task = self._bars.add_task(name, total=total)
        yield lambda amount: self._bars.advance(task, amount)
        if (self._bars.tasks[self._bars.task_ids.index(task)].elapsed or 0) < _WORTH_SEEING_S:
            self._bars.remove_task(task)
        else:
            self._bars.update(task, total=total or 1, completed=total or 1)


def show(text: str = "") -> None:
    """Write a line to standard output, with settings named as flags."""
    _write(with_flags(text))


def _write(text: str) -> None:
    """Write a line to standard output; a closed pipe is ignored, so that the work continues."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_json(value: dict[str, Any]) -> None:
    """Write JSON to standard output."""
    _write(json.dumps(value, indent=2, ensure_ascii=False))


def show_table(title: str, rows: Sequence[tuple[str, Any]]) -> None:
    """Write a table of two columns: name and value (right-aligned)."""
    cells = [(what, f"{value:,}" if isinstance(value, int) else str(value)) for what, value in rows]
    left = max(len(what) for what, _ in cells)
    right = max(len(value) for _, value in cells)
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
