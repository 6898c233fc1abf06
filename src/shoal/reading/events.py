"""Events: all usable rows as columns. Reading and verifying share this parsing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.reading.rules import Rows
from shoal.reading.stream import Input, OpenRows, finish, kept_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.reading.account import Account
    from shoal.run import Run

__all__ = ["Events", "Input", "collect", "name_columns", "to_events"]


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
