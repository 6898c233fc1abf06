"""Which records can cover a user at all: strong necessary conditions, found through a space-time index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.verifier.arrays import ROWS, blocks, distinct, spread

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
    for start in range(0, len(users), _USERS):
        yield from _look_up(people, records, users[start : start + _USERS])


def _look_up(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    early = _points(people, people.offsets[users])
    late = _points(people, people.offsets[users + 1] - 1)
    tests = [
        (outer.T.copy(), inner.T.copy())
        for outer, inner in zip(records.ends, (_as_box(early), _as_box(late), _bounds(people, users)), strict=True)
    ]
    ways = [index.look(points) for index, points in zip(records.indexes, (early, late), strict=True)]
    fewer = ways[1].total < ways[0].total
    totals = np.where(fewer, ways[1].total, ways[0].total)
    for part in blocks(totals):
        chunks = []
        # The boxes of the other end first: those of this end were found by their cell, and mostly fit.
        for way, chosen, order in zip(ways, (~fewer, fewer), ((1, 2, 0), (0, 2, 1)), strict=True):
            rows, record = way.pairs(np.arange(part.start, part.stop)[chosen[part]])
            for test in order:
                rows, record = _sift(rows, record, *tests[test])
            sound = records.sound[record]
            chunks.append(rows[sound] * len(records) + record[sound])
        both = distinct(np.concatenate(chunks))
        yield users[both // len(records)], both % len(records)


def partial_candidates(people: Original, records: Records) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give, block by block of users, every pair with a sample of the user in the record's first and last box."""
    ways = list(zip(records.ends[:2], records.indexes, strict=True))
    for part in blocks(people.counts, _SAMPLES):
        samples = np.arange(people.offsets[part.start], people.offsets[part.stop])
        points, owners = _points(people, samples), part.start + spread(people.counts[part])
        found = []
        for boxes, index in ways:
            look = index.look(points)
            chunks = [np.empty(0, dtype=np.int64)]
            for turn in blocks(look.total):
                row, record = look.pairs(np.arange(turn.start, turn.stop))
                keep = records.sound[record] & _holds(boxes[record], points[row])
                chunks.append(distinct(owners[row[keep]] * len(records) + record[keep]))
            found.append(distinct(np.concatenate(chunks)))
        both = np.intersect1d(found[0], found[1], assume_unique=True)
        yield both // len(records), both % len(records)


def one_way_candidates(
    people: Original, records: Records, users: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give, block by block of users, every pair whose record's bounds hold the user's, sorted by user."""
    if not len(records):
        return
    bounds, mine = records.ends[2], _bounds(people, users)
    for part in blocks(np.full(len(users), len(records), dtype=np.int64), ROWS * 2):
        box = mine[part, None, :]
        inside = np.broadcast_to(records.sound, (part.stop - part.start, len(records))).copy()
        for low in (0, 2, 4):
            inside &= (bounds[None, :, low] <= box[:, :, low]) & (bounds[None, :, low + 1] >= box[:, :, low + 1])
        row, record = np.nonzero(inside)
        yield users[part][row], record


def _points(people: Original, samples: NDArray[np.int64]) -> NDArray[np.int64]:
    samples = np.clip(samples, 0, max(0, len(people.t) - 1))
    return np.stack([people.t[samples], people.x[samples], people.y[samples]], axis=1)


def _bounds(people: Original, users: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the least and greatest t, x and y of users who have samples."""
    bounds = np.empty((len(users), 6), dtype=np.int64)
    # From each start to its end, and from there to the next start, which is left out.
    edges = np.stack([people.offsets[users], people.offsets[users + 1]], axis=1).ravel()[: 2 * len(users) - 1]
    for column, values in ((0, people.t), (2, people.x), (4, people.y)):
        if len(users):
            ours = values[: people.offsets[users[-1] + 1]]
            bounds[:, column] = np.minimum.reduceat(ours, edges)[::2]
            bounds[:, column + 1] = np.maximum.reduceat(ours, edges)[::2]
    return bounds


def _holds(boxes: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = np.all((boxes[:, 0::2] <= points) & (boxes[:, 1::2] >= points), axis=1)
    return inside


def _as_box(points: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.repeat(points, 2, axis=1)


def _sift(
    rows: NDArray[np.int64], record: NDArray[np.int64], outer: NDArray[np.int64], inner: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Keep the pairs in which the record's box holds that of the row; boxes come as six columns."""
    for low in (0, 2, 4):
        keep = outer[low].take(record) <= inner[low].take(rows)
        keep &= outer[low + 1].take(record) >= inner[low + 1].take(rows)
        rows, record = rows[keep], record[keep]
    return rows, record
