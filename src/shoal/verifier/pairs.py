"""Pairs of a user and a record: whether the record holds the user's samples, and each of its boxes one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.verifier.original import Original
    from shoal.verifier.records import Records

__all__ = ["Held", "blocks", "hold", "two_way"]

ROWS = 2_000_000
_GOLDEN = 0.6180339887498949
_PROBES, _LEAST_PROBES = 64, 6


class Held(NamedTuple):
    """Per pair: how many of the user's samples the record holds, and how many of its boxes hold one of them."""

    samples: NDArray[np.int64]
    boxes: NDArray[np.int64]
    tally: NDArray[np.int64]
    """Per sample: how many of the pairs' records hold it."""


def blocks(sizes: NDArray[np.int64], rows: int = ROWS) -> Iterator[slice]:
    """Cut a list of sizes into consecutive blocks of at most `rows` together (or a single larger one)."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + rows, side="right")))
        yield slice(start, end)
        start = end


def hold(people: Original, records: Records, users: NDArray[np.int64], record: NDArray[np.int64]) -> Held:
    """Count what is held, for each pair of `users[p]` and `record[p]`.

    Cost: one binary search for each sample of each pair, in blocks of about two million.
    """
    samples, boxes = np.zeros(len(users), dtype=np.int64), np.zeros(len(users), dtype=np.int64)
    tally = np.zeros(len(people.t), dtype=np.int64)
    for part in blocks(people.counts[users]):
        pair, sample = _rows(people, users[part])
        box = records.find(record[part][pair], people.t[sample], people.x[sample], people.y[sample])
        inside = box >= 0
        pair, box = pair[inside], box[inside]
        size = part.stop - part.start
        samples[part] = np.bincount(pair, minlength=size)
        # A user's samples are sorted in time and so are the boxes: equal boxes are neighbours.
        fresh = np.ones(len(box), dtype=bool)
        fresh[1:] = (np.diff(box) != 0) | (np.diff(pair) != 0)
        boxes[part] = np.bincount(pair[fresh], minlength=size)
        np.add.at(tally, sample[inside], 1)
    return Held(samples, boxes, tally)


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


def _rows(people: Original, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    counts = people.counts[users]
    pair = np.repeat(np.arange(len(users)), counts)
    starts = np.cumsum(counts) - counts
    return pair, np.arange(len(pair)) + np.repeat(people.offsets[users] - starts, counts)
