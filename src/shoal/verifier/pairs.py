"""Pairs of a user and a record: whether the record holds the user's samples, and each of its boxes one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.verifier.arrays import blocks, spread, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verifier.original import Original
    from shoal.verifier.records import Records

__all__ = ["Held", "hold", "two_way"]

_GOLDEN = 0.6180339887498949
_PROBES, _LEAST_PROBES = 64, 6


class Held(NamedTuple):
    """Per pair: how many of the user's samples the record holds, and how many of its boxes hold one of them."""

    samples: NDArray[np.int64]
    boxes: NDArray[np.int64]


def hold(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    record: NDArray[np.int64],
    *,
    tally: NDArray[np.int32] | None = None,
) -> Held:
    """Count what is held, for each pair of `users[p]` and `record[p]`.

    With `tally`, one number for each sample from that of `users[0]` on, users ascending: the number of records
    that hold a sample is added to it. Cost: two binary searches for each box of each pair, and a comparison for
    each sample in its time; in blocks of about a million.
    """
    samples, boxes = np.zeros(len(users), dtype=np.int64), np.zeros(len(users), dtype=np.int64)
    base = int(people.offsets[users[0]]) if len(users) else 0
    for part in blocks(people.counts[users] + records.counts[record]):
        rows = _rows(people, users[part])
        held, inside = _look(people, records, people.counts[users[part]], rows, record[part])
        samples[part], boxes[part] = held
        if tally is None:
            continue
        if isinstance(rows, slice):
            tally[rows.start - base : rows.stop - base][inside] += 1
        else:
            tally += np.bincount(rows[inside] - base, minlength=len(tally)).astype(np.int32)
    return Held(samples, boxes)


def _look(
    people: Original,
    records: Records,
    counts: NDArray[np.int64],
    rows: slice | NDArray[np.int64],
    record: NDArray[np.int64],
) -> tuple[Held, Any]:
    """Give what one block of pairs holds, and which of its `rows` of samples are held.

    A user's samples are sorted in time and the boxes of a sound record are disjoint, so the samples in the time
    of a box are a run of their own.
    """
    t, x, y = people.t[rows], people.x[rows], people.y[rows]
    sizes = np.where(records.sound[record], records.counts[record], 0)
    own = np.flatnonzero(sizes)
    pair = own.take(spread(sizes[own]))
    boxes = records.boxes.take(records.rows(record[own]), axis=0)
    low = int(t.min()) if len(t) else 0
    span = (int(t.max()) if len(t) else 0) - low + 3
    keys = spread(counts) * span + (t - np.int64(low - 1))
    begin, end = (pair * span + np.clip(boxes[:, edge] - np.int64(low - 1), 0, span - 1) for edge in (0, 1))
    first, last = np.searchsorted(keys, begin), np.searchsorted(keys, end, side="right")
    starts = starts_of(last - first)
    which = spread(last - first)
    if len(which) < len(t):  # some samples are in the time of no box
        row = np.arange(len(which)) + (first - starts[:-1]).take(which)
        x, y = x[row], y[row]
    inside = (x >= boxes[:, 2].take(which)) & (x <= boxes[:, 3].take(which))
    inside &= (y >= boxes[:, 4].take(which)) & (y <= boxes[:, 5].take(which))
    per_box = np.diff(starts_of(inside)[starts])
    edges = starts_of(sizes)
    held = Held(np.diff(starts_of(per_box)[edges]), np.diff(starts_of(per_box > 0)[edges]))
    return held, inside if len(which) == len(t) else row[inside]


def two_way(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    record: NDArray[np.int64],
    *,
    boxes_too: bool = True,
) -> NDArray[np.bool_]:
    """Say for each pair whether the record holds every sample of the user and every box of it holds one.

    With `boxes_too=False` only the former: one-way cover, the papers' notion. Single samples are tried first, far
    apart, as long as that still finds pairs that fail: most do after a few.
    """
    alive = np.arange(len(users))
    counts = people.counts
    for probe in range(_PROBES):
        mine = users[alive]
        sample = people.offsets[mine] + (counts[mine] * (probe * _GOLDEN % 1)).astype(np.int64)
        found = records.find(record[alive], people.t[sample], people.x[sample], people.y[sample])
        before, alive = len(alive), alive[found >= 0]
        if probe >= _LEAST_PROBES and len(alive) > 0.98 * before:
            break
    held = hold(people, records, users[alive], record[alive])
    good = held.samples == counts[users[alive]]
    if boxes_too:
        good &= held.boxes == records.counts[record[alive]]
    answer = np.zeros(len(users), dtype=bool)
    answer[alive[good]] = True
    return answer


def _rows(people: Original, users: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Give the samples of some users, one user after the other; a slice if they are neighbours."""
    if (np.diff(users) == 1).all():
        return slice(int(people.offsets[users[0]]), int(people.offsets[users[-1] + 1]))
    counts = people.counts[users]
    which = spread(counts)
    return np.arange(len(which)) + (people.offsets[:-1][users] - starts_of(counts)[:-1]).take(which)
