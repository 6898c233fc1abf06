"""Parts: read any number of rows within a limit of memory, one part of the users at a time."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import TooLarge
from shoal.folders import private_folder
from shoal.lists import offsets_of
from shoal.memory import human_bytes
from shoal.reading.engine import FEWER, ROW_BYTES, memory_limit, rows_within
from shoal.reading.events import Events, collect, name_columns, to_events
from shoal.reading.inputs import as_input
from shoal.reading.rules import Rows
from shoal.reading.spill import SpillFile, spill_files
from shoal.reading.spread import Spread
from shoal.reading.stream import Input, OpenRows, finish, kept_rows, open_rows, refuse_bad_rows
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.reading.account import Account
    from shoal.reading.options import ReadOptions

__all__ = ["EventParts", "event_parts"]

_COLUMNS = {"users": "i4", "ms": "i8", "a": "f8", "b": "f8"}
_DISK_BYTES = 52  # of a row: 28 here, twice 12 for the samples that reading makes of it


@dataclass(frozen=True, eq=False)
class EventParts:
    """Everybody's events, in parts: each holds all rows of its users, who are a contiguous range of `labels`.

    `account` is complete (row rules), `labels` are all that have rows, sorted, `rows` counts the rows that are kept.
    Iterate for the parts, in the order of labels, as often as needed: each is loaded when its turn comes, with the
    whole account and its own slice of the labels. `spread` is None if everything is in memory, as one part.
    """

    account: Account
    labels: pa.Array
    rows: int
    spread: Spread | None
    _sizes: tuple[int, ...]
    _whole: list[Events] = field(repr=False)
    _spilled: _Spilled | None = field(repr=False)

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self) -> Iterator[Events]:
        if self._spilled is None:
            yield from self._whole
            return
        first = 0
        for part, size in zip(self._spilled.parts, self._sizes, strict=True):
            yield _load(self._spilled, part, self.labels.slice(first, size), self.account)
            first += size

    def take(self) -> Events:
        """Return the only part and forget it here, so that the caller can free its memory."""
        return self._whole.pop()


@dataclass(frozen=True, eq=False)
class _Spilled:
    """Rows in files: part p has `filled[p]` rows from `starts[p]` on, and its users start at `bounds[p]`."""

    rows: OpenRows
    files: list[SpillFile]
    bounds: NDArray[np.int64]
    starts: NDArray[np.int64]
    filled: NDArray[np.int64]
    spread: Spread

    @property
    def parts(self) -> list[int]:
        """The parts that have rows."""
        return np.flatnonzero(self.filled).tolist()


@contextmanager
def event_parts(source: Input, options: ReadOptions, *, run: Run = LOCAL) -> Iterator[EventParts]:
    """Read and clean rows from files or a table that may be larger than memory.

    Input: a file, folder, glob, list of them, or an Arrow table; `memory` is what the whole process may take for this
    work, in bytes (None: what is available now). Half a gigabyte is the least that can be kept: libraries and the
    engine take that.
    Output: EventParts. Guarantee: the same rows for any order, split or kind of file, any number of threads and any
    limit; each dropped row is counted under one rule. What fits is one part in memory. Otherwise the input is read
    once, rows go to a private folder in `work_dir`, which is gone on any exit but SIGKILL, and each part and what
    `read` makes of it take half of the limit at most, but for users who need more.
    Raises InputError and its kinds, SettingsError, and TooLarge where one user's rows alone exceed the limit or the
    disk is too small. Cost: about a second for 10 million rows of Parquet, five for CSV; 28 bytes a row, besides the
    engine's share. When spilled: a quarter more time, 28 bytes of disk a row, some 20 of memory a user.

    >>> import pyarrow as pa
    >>> from shoal.reading.options import ReadOptions
    >>> table = pa.table({"uid": [7, 8, 7], "time": [0, 60, 0], "lat": [39.9] * 3, "lng": [116.4] * 3})
    >>> with event_parts(table, ReadOptions(), run=Run(memory=200)) as parts:
    ...     [(part.labels.to_pylist(), len(part)) for part in parts]
    [([7], 2), ([8], 1)]
    """
    source = as_input(source)
    limit = memory_limit(run.memory)
    folder = run.scratch

    def check(rows: int) -> None:
        if rows > rows_within(limit):
            _require_disk(rows, limit, folder)

    with ExitStack() as stack:
        with open_rows(source, options, memory=limit, check=check, threads=run.threads, work_dir=run.scratch) as rows:
            if rows.total <= rows_within(limit):
                columns = collect(rows, run)
                spilled = None
            else:
                _require_users(rows, limit)
                files = stack.enter_context(spill_files(stack.enter_context(private_folder(folder)), _COLUMNS))
                spilled = _spill(rows, files, limit, run)
            refuse_bad_rows(rows)
        if spilled is not None:
            yield _in_parts(spilled)
            return
        parts = _in_memory(columns, rows)
        del columns
        yield parts


def _in_memory(columns: Rows, rows: OpenRows) -> EventParts:
    events = name_columns(columns, rows)
    return EventParts(events.account, events.labels, len(events), None, (len(events.labels),), [events], None)


def _in_parts(spilled: _Spilled) -> EventParts:
    labels, account = finish(spilled.rows)
    users = offsets_of(spilled.rows.used)[spilled.bounds]
    sizes = tuple(int(users[part + 1] - users[part]) for part in spilled.parts)
    return EventParts(account, labels, int(spilled.filled.sum()), spilled.spread, sizes, [], spilled)


def _require_disk(rows: int, limit: int, folder: Path) -> None:
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return  # making the private folder reports what is wrong
    if rows * _DISK_BYTES > free:
        raise TooLarge(
            f"reading {rows:,} rows within {human_bytes(limit)} of memory would take about "
            f"{human_bytes(rows * _DISK_BYTES)} of disk, more than the {human_bytes(free)} free; "
            f"make room, choose another `work_dir`, or {FEWER}"
        )


def _require_users(rows: OpenRows, limit: int) -> None:
    most = int(rows.counts.max(initial=0))
    if most > rows_within(limit):
        raise TooLarge(
            f"the rows of one user alone would take about {human_bytes(most * ROW_BYTES)} of memory, too much for "
            f"{human_bytes(limit)}; check the column of users, read a shorter `period`, or use a larger machine"
        )


def _bounds(counts: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Cut users into ranges with at most `most` rows each, or of a single user."""
    ends = np.cumsum(counts)
    bounds = [0]
    while bounds[-1] < len(counts):
        first = bounds[-1]
        before = int(ends[first - 1]) if first else 0
        bounds.append(max(first + 1, int(np.searchsorted(ends, before + most, side="right"))))
    return np.array(bounds, dtype=np.int64)


def _spill(rows: OpenRows, files: list[SpillFile], limit: int, run: Run) -> _Spilled:
    """Write the kept rows to files, each part's rows together."""
    bounds = _bounds(rows.counts, rows_within(limit) // 2)
    starts = offsets_of(rows.counts)[bounds]
    filled = np.zeros(len(bounds) - 1, dtype=np.int64)
    spread = Spread(degrees=rows.has_degrees)
    number = np.min_scalar_type(len(filled))  # small ones are sorted fastest
    part_of = np.repeat(np.arange(len(filled), dtype=number), np.diff(bounds))
    with run.stage("read", rows.total) as advance:
        for batch in kept_rows(rows, advance):
            spread.add(batch)
            filled += _append(batch, part_of[batch.users], files, starts[:-1] + filled)
    return _Spilled(rows, files, bounds, starts, filled, spread)


def _append(batch: Rows, part: NDArray[Any], files: list[SpillFile], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Append some rows to their parts; return how many rows each part got."""
    counts = np.bincount(part, minlength=len(ends))
    stops = np.cumsum(counts)
    got = np.flatnonzero(counts).tolist()
    order = np.argsort(part, kind="stable") if len(got) > 1 else slice(None)
    columns: list[NDArray[Any]] = [batch.users, batch.ms, batch.a, batch.b]
    for file, column in zip(files, columns, strict=True):
        ordered = column[order]
        for p in got:
            file.write(ordered[stops[p] - counts[p] : stops[p]], int(ends[p]))
    return counts


def _load(spilled: _Spilled, part: int, labels: pa.Array, account: Account) -> Events:
    start, count = int(spilled.starts[part]), int(spilled.filled[part])
    columns = Rows(*(file.read(start, count) for file in spilled.files))
    first, last = int(spilled.bounds[part]), int(spilled.bounds[part + 1])
    numbers = np.cumsum(spilled.rows.used[first:last], dtype=np.int32) - np.int32(1)
    return to_events(numbers[columns.users - np.int32(first)], columns, labels, account, spilled.rows)
