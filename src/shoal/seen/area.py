"""Who was ever in the area of a box, at whatever time: compiled searches, shared with nothing that makes releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.seen.records import boxes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Granules, Ints
    from shoal.seen.original import Original
    from shoal.seen.records import RecordBoxes, Records

__all__ = ["count_visits"]


class _Places(NamedTuple):
    """Where everybody was at some time: user u at the places from offsets[u] to offsets[u+1]."""

    x: Granules
    y: Granules
    offsets: Ints


@jit
def _visit(people: _Places, records: RecordBoxes, users: Ints, record: Ints, counts: Ints, visits: Ints) -> None:
    """Count for each pair the boxes whose area has a sample of the user, and for each box the pairs that do."""
    x, y, offsets = people
    first, boxes = records.offsets, records.boxes
    for n in range(len(users)):
        start, stop = offsets[users[n]], offsets[users[n] + 1]
        counts[n], at = 0, start
        for b in range(first[record[n]], first[record[n] + 1]):
            _, _, x0, x1, y0, y1 = boxes[b]
            for _ in range(stop - start):  # from where the last one was: areas that follow each other overlap
                if x0 <= x[at] <= x1 and y0 <= y[at] <= y1:
                    counts[n] += 1
                    if len(visits):
                        visits[b] += 1
                    break
                at = at + 1 if at + 1 < stop else start


def count_visits(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    record: NDArray[np.int64],
    visits: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return for each pair how many boxes of `record[p]` cover an area in which `users[p]` was at some time.

    For each box, the number of such pairs is added to `visits`, if it is given. Cost: at most the samples times the
    boxes of each pair, and little more than the larger of them where people stay in the same area.
    """
    counts = np.empty(len(users), np.int64)
    places = _Places(people.x, people.y, people.offsets)
    _visit(places, boxes_of(records), users, record, counts, np.empty(0, np.int64) if visits is None else visits)
    return counts
