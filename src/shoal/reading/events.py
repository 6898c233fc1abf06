"""Events: all usable rows as columns. Reading and verifying share this parsing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import TooLarge
from shoal.memory import human_bytes
from shoal.reading.engine import FEWER, ROW_BYTES, memory_limit, rows_within
from shoal.reading.rules import Rows
from shoal.reading.stream import Input, OpenRows, finish, kept_rows, open_rows
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.reading.account import Account
    from shoal.reading.options import ReadOptions

__all__ = ["Events", "Input", "collect", "name_columns", "read_events", "to_events"]


@dataclass(frozen=True, eq=False)
class Events:
    """The rows that survive the row rules, in no particular order, duplicates included.

    `users` index into `labels` (distinct original labels, sorted; integers stay integers, others are text).
    `epoch_ms` is UTC. Places are `lng`, `lat` in degrees, or `east`, `north` in metres: of the CRS, or
    cell number × cell_m for gridded data without one.
    """

    users: NDArray[np.int32]
    labels: pa.Array
    epoch_ms: NDArray[np.int64]
    lng: NDArray[np.float64] | None
    lat: NDArray[np.float64] | None
    east: NDArray[np.float64] | None
    north: NDArray[np.float64] | None
    account: Account

    def __len__(self) -> int:
        return len(self.users)


def read_events(source: Input, options: ReadOptions, *, run: Run = LOCAL) -> Events:
    """Read and clean rows from files or a table into memory; use `event_parts` for more rows than fit.

    Input: a file, folder, glob, list of them, or an Arrow table; `memory` is what the work may take (None: what is
    available). Output: Events. Guarantee: the same rows for any order, split or kind of file and any number of
    threads; each dropped row is counted under one rule. Raises InputError and its kinds, SettingsError, TooLarge.
    Cost: about a second for 10 million rows of Parquet, five for CSV; 28 bytes a row, besides the engine's share.

    >>> import pyarrow as pa
    >>> from shoal.reading.options import ReadOptions
    >>> table = pa.table({"uid": [7, 7], "time": [0, 60], "lat": [39.9, 91.0], "lng": [116.4, 116.4]})
    >>> events = read_events(table, ReadOptions())
    >>> len(events), events.account.dropped
    (1, {'coordinates out of range': 1})
    """
    limit = memory_limit(run.memory)

    def check(rows: int) -> None:
        if rows > rows_within(limit):
            raise TooLarge(
                f"reading {rows:,} rows would take about {human_bytes(rows * ROW_BYTES)} of memory, more than "
                f"{human_bytes(limit)}; {FEWER}"
            )

    with open_rows(source, options, memory=limit, check=check, threads=run.threads, work_dir=run.scratch) as rows:
        columns = collect(rows, run)
    return name_columns(columns, rows)


def collect(rows: OpenRows, run: Run) -> Rows:
    """Copy the rows that are kept into arrays."""
    size = rows.total
    kept = Rows(np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size), np.empty(size))
    end = 0
    with run.stage("read", size) as advance:
        for batch in kept_rows(rows, advance):
            start, end = end, end + len(batch.users)
            kept.users[start:end], kept.ms[start:end] = batch.users, batch.ms
            kept.a[start:end], kept.b[start:end] = batch.a, batch.b
    return Rows(kept.users[:end], kept.ms[:end], kept.a[:end], kept.b[:end])


def name_columns(columns: Rows, rows: OpenRows) -> Events:
    """Finish the reading: make the account, check everything, and leave out labels without rows."""
    labels, account = finish(rows)
    users = columns.users
    if len(labels) < len(rows.labels):
        users = (np.cumsum(rows.used, dtype=np.int32) - np.int32(1))[users]
    return to_events(users, columns, labels, account, rows)


def to_events(users: NDArray[np.int32], columns: Rows, labels: pa.Array, account: Account, rows: OpenRows) -> Events:
    """Return the rows as Events; cell numbers become metres, in place."""
    if rows.has_degrees:
        return Events(users, labels, columns.ms, columns.a, columns.b, None, None, account)
    if rows.cell_m is not None:
        np.multiply(columns.a, rows.cell_m, out=columns.a)
        np.multiply(columns.b, rows.cell_m, out=columns.b)
    return Events(users, labels, columns.ms, None, None, columns.a, columns.b, account)
