"""Which records hold a sample, and how many samples up to it each has held, sample after sample. Compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from shoal.jit import jit
from shoal.seen.index import _cell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Granules, Ints, Ints32
    from shoal.seen.index import BoxIndex

__all__ = ["Holders", "find_holders", "no_holders"]

_AT_ONCE = 256  # boxes looked at together


class Searched(Protocol):
    """What is looked through: everybody's samples, the grid of boxes, and of each entry its record and its box."""

    @property
    def t(self) -> Granules: ...
    @property
    def x(self) -> Granules: ...
    @property
    def y(self) -> Granules: ...
    @property
    def grid(self) -> BoxIndex: ...
    @property
    def record(self) -> Ints32: ...
    @property
    def around(self) -> Granules: ...
    @property
    def weights(self) -> Ints: ...


class Holders(NamedTuple):
    """The `at[1]` records that hold sample `at[0]` - 1, and the box of each that does.

    `run[r]` is how many samples up to `latest[r]` record r has held without a break, of those looked at.
    """

    at: Ints
    record: Ints
    row: Ints
    latest: Ints
    run: Ints
    inside: NDArray[np.uint8]


@jit
def no_holders(n_records: int) -> Holders:
    """Return room for holders among so many records; no sample was looked at."""
    return Holders(
        np.zeros(2, np.int64),
        np.empty(n_records, np.int64),
        np.empty(n_records, np.int64),
        np.full(n_records, -2, np.int64),  # not even the sample before the first
        np.zeros(n_records, np.int64),
        np.zeros(_AT_ONCE, np.uint8),
    )


# more than six arguments: one sample as plain numbers, so that the loop over boxes needs no branch and no lookup
@jit
def _mark_inside(around: Granules, first: int, stop: int, t: int, x: int, y: int, inside: NDArray[np.uint8]) -> None:
    """Mark which of the boxes first…stop-1 hold a sample; without a branch, so that many are looked at together."""
    t0, t1 = around[0, first:stop], around[1, first:stop]
    x0, x1 = around[2, first:stop], around[3, first:stop]
    y0, y1 = around[4, first:stop], around[5, first:stop]
    for e in range(len(t0)):
        inside[e] = (t0[e] <= t) & (t <= t1[e]) & (x0[e] <= x) & (x <= x1[e]) & (y0[e] <= y) & (y <= y1[e])


@jit
def find_holders(task: Searched, p: int, holders: Holders) -> None:
    """Find the records that hold sample p; the one before was looked at before, or is in no window with it."""
    sizes, starts, entry, rows, _, _, _, _ = task.grid
    latest, run, inside = holders.latest, holders.run, holders.inside
    eights = inside.view(np.uint64)
    t, x, y = task.t[p], task.x[p], task.y[p]
    n = 0
    for size in range(len(sizes)):
        cell = _cell(sizes[size, 0], sizes[size, 1], t, x, y, len(starts) - 2)
        for first in range(starts[cell], starts[cell + 1], _AT_ONCE):
            stop = min(first + _AT_ONCE, starts[cell + 1])
            _mark_inside(task.around, first, stop, t, x, y, inside)
            for word in range((stop - first + 7) >> 3):
                if eights[word] == 0:
                    continue
                for e in range(first + 8 * word, min(first + 8 * word + 8, stop)):
                    r = task.record[e]
                    if not inside[e - first] or latest[r] == p or task.weights[r] == 0:
                        continue
                    run[r] = run[r] + 1 if latest[r] == p - 1 else 1
                    latest[r] = p
                    holders.record[n], holders.row[n] = r, rows[entry[e]]
                    n += 1
    holders.at[0], holders.at[1] = p + 1, n
