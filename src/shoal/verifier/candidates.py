"""Which records can cover a user at all: strong necessary conditions, found through a space-time index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.verifier.arrays import distinct
from shoal.verifier.pairs import ROWS, blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.verifier.original import Original
    from shoal.verifier.records import Records

__all__ = ["one_way_candidates", "partial_candidates", "two_way_candidates"]

# Looking points up takes memory for points times grids of boxes.
_USERS = 50_000
_SAMPLES = 200_000


def two_way_candidates(
    people: Original, records: Records, users: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give, block by block of users, every pair (user, record) that can be two-way cover, sorted by user.

    If every box of a record holds a sample of the user and the record holds them all, then its first box holds
    the user's earliest sample, its last box the latest, and its bounds hold the user's.
    """
    first, last, _ = records.ends
    indexes = _Index(first), _Index(last)
    mine = _bounds(people)
    for start in range(0, len(users), _USERS):
        yield from _look_up(people, records, users[start : start + _USERS], mine, indexes)


def _look_up(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    mine: NDArray[np.int64],
    indexes: tuple[_Index, _Index],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    first, last, bounds = records.ends
    early = _points(people, people.offsets[users])
    late = _points(people, people.offsets[users + 1] - 1)
    ways = [indexes[0].look(early), indexes[1].look(late)]
    fewer = ways[1].total < ways[0].total
    totals = np.where(fewer, ways[1].total, ways[0].total)
    for part in blocks(totals):
        chunks = []
        for way, chosen in zip(ways, (~fewer, fewer), strict=True):
            rows, record = way.pairs(np.arange(part.start, part.stop)[chosen[part]])
            keep = records.sound[record] & _holds(first[record], early[rows]) & _holds(last[record], late[rows])
            rows, record = rows[keep], record[keep]
            inside = _contains(bounds[record], mine[users[rows]])
            chunks.append(rows[inside] * len(records) + record[inside])
        both = distinct(np.concatenate(chunks))
        yield users[both // len(records)], both % len(records)


def partial_candidates(people: Original, records: Records) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give, block by block of users, every pair with a sample of the user in the record's first and last box."""
    first, last, _ = records.ends
    ways = [(boxes, _Index(boxes)) for boxes in (first, last)]
    owners = people.owners
    for part in blocks(people.counts, _SAMPLES):
        samples = np.arange(people.offsets[part.start], people.offsets[part.stop])
        points = _points(people, samples)
        found = []
        for boxes, index in ways:
            look = index.look(points)
            chunks = [np.empty(0, dtype=np.int64)]
            for turn in blocks(look.total):
                row, record = look.pairs(np.arange(turn.start, turn.stop))
                keep = records.sound[record] & _holds(boxes[record], points[row])
                chunks.append(distinct(owners[samples[row[keep]]] * len(records) + record[keep]))
            found.append(distinct(np.concatenate(chunks)))
        both = np.intersect1d(found[0], found[1], assume_unique=True)
        yield both // len(records), both % len(records)


def one_way_candidates(
    people: Original, records: Records, users: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give, block by block of users, every pair whose record's bounds hold the user's, sorted by user."""
    if not len(records):
        return
    bounds, mine = records.ends[2], _bounds(people)
    for part in blocks(np.full(len(users), len(records), dtype=np.int64), ROWS * 2):
        box = mine[users[part], None, :]
        inside = np.broadcast_to(records.sound, (part.stop - part.start, len(records))).copy()
        for low in (0, 2, 4):
            inside &= (bounds[None, :, low] <= box[:, :, low]) & (bounds[None, :, low + 1] >= box[:, :, low + 1])
        row, record = np.nonzero(inside)
        yield users[part][row], record


class _Index:
    """Boxes by cell, on as many grids as there are sizes of boxes; a box touches at most 8 cells of its grid.

    Cells are hashed: a collision gives a candidate too many, never one too few.
    """

    def __init__(self, boxes: NDArray[np.int64]) -> None:
        full = np.flatnonzero(boxes[:, 0] <= boxes[:, 1])
        boxes = boxes[full]
        long = _bits(boxes[:, 1] - boxes[:, 0])
        wide = _bits(np.maximum(boxes[:, 3] - boxes[:, 2], boxes[:, 5] - boxes[:, 4]))
        keys = np.stack(
            [
                _hash(long, wide, boxes[:, 0 + t] >> long, boxes[:, 2 + x] >> wide, boxes[:, 4 + y] >> wide)
                for t in (0, 1)
                for x in (0, 1)
                for y in (0, 1)
            ],
            axis=1,
        )
        keys.sort(axis=1)
        once = np.ones(keys.shape, dtype=bool)
        once[:, 1:] = keys[:, 1:] != keys[:, :-1]
        box, _ = np.nonzero(once)
        order = np.argsort(keys[once], kind="stable")
        self.keys, self.box = keys[once][order], full[box[order]]
        self.sizes = np.stack(np.divmod(distinct(long * 128 + wide), 128), axis=1)

    def look(self, points: NDArray[np.int64]) -> _Look:
        """Find, for each point (t, x, y), where its cells are, one on each grid."""
        starts = np.empty((len(points), len(self.sizes)), dtype=np.int64)
        ends = np.empty_like(starts)
        for column, (long, wide) in enumerate(self.sizes):
            key = _hash(long, wide, points[:, 0] >> long, points[:, 1] >> wide, points[:, 2] >> wide)
            starts[:, column] = np.searchsorted(self.keys, key, side="left")
            ends[:, column] = np.searchsorted(self.keys, key, side="right")
        return _Look(starts, ends - starts, self.box)


class _Look:
    """Where the candidates of each point are."""

    def __init__(self, starts: NDArray[np.int64], counts: NDArray[np.int64], box: NDArray[np.int64]) -> None:
        self.starts, self.counts, self.box = starts, counts, box
        self.total: NDArray[np.int64] = counts.sum(axis=1)

    def pairs(self, points: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Give (point, box) for every box in the cells of these points."""
        starts, counts = self.starts[points].ravel(), self.counts[points].ravel()
        before = np.cumsum(counts) - counts
        place = np.arange(int(counts.sum())) + np.repeat(starts - before, counts)
        return np.repeat(points, self.total[points]), self.box[place]


def _bits(length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the least b with length < 2**b."""
    return np.frexp(length.astype(np.float64))[1].astype(np.int64)


def _hash(*parts: NDArray[np.int64] | np.int64) -> NDArray[np.uint64]:
    mixed = np.zeros(np.broadcast_shapes(*(np.shape(part) for part in parts)), dtype=np.uint64)
    for part in parts:
        mixed = (mixed ^ np.asarray(part).astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _points(people: Original, samples: NDArray[np.int64]) -> NDArray[np.int64]:
    samples = np.clip(samples, 0, max(0, len(people.t) - 1))
    return np.stack([people.t[samples], people.x[samples], people.y[samples]], axis=1)


def _bounds(people: Original) -> NDArray[np.int64]:
    """Give each user's least and greatest t, x and y; users without samples get bounds that nothing holds."""
    far = np.iinfo(np.int64).max
    bounds = np.tile(np.array([-far, far] * 3, dtype=np.int64), (len(people), 1))
    some = people.counts > 0
    starts = people.offsets[:-1][some]
    if len(starts):
        for column, values in ((0, people.t), (2, people.x), (4, people.y)):
            bounds[some, column] = np.minimum.reduceat(values, starts)
            bounds[some, column + 1] = np.maximum.reduceat(values, starts)
    return bounds


def _holds(boxes: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.all((boxes[:, 0::2] <= points) & (boxes[:, 1::2] >= points), axis=1)
    return inside


def _contains(outer: NDArray[np.int64], inner: NDArray[np.int64]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.all((outer[:, 0::2] <= inner[:, 0::2]) & (outer[:, 1::2] >= inner[:, 1::2]), axis=1)
    return inside
