"""Find the records that cover a user. Two-way: the record holds all their samples, and each box holds one of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.lists import take_lists
from shoal.run import LOCAL, Run
from shoal.seen.arrays import spread
from shoal.seen.index import covering, holders, index_boxes, index_rarest

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.seen.original import Original
    from shoal.seen.records import Records

__all__ = ["LEAST_MEMBERS", "complete_reach", "count_cover", "cover_pairs", "tally_cover"]

_USERS = 100_000  # users whose pairs are in memory at once
# The loosest method (nu-k-pick) merges everybody with at least one other.
LEAST_MEMBERS = 2


def count_cover(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    *,
    stop_at: int | None = None,
    boxes_too: bool = True,
    run: Run = LOCAL,
) -> NDArray[np.int64]:
    """Count for each of `users` (ascending) the people published as records that cover the user.

    Identical records count as no more people than they cover two-way: the rest are copies and hide nobody.
    Guarantee: a count below `stop_at` is exact, any other is at least `stop_at`; without it all counts are exact.
    `boxes_too=False` counts one-way cover, by every record. Cost: the candidates times the samples of their users.
    """
    return tally_cover(people, records, users, stop_at=stop_at, boxes_too=boxes_too, run=run)[0]


def tally_cover(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    *,
    stop_at: int | None = None,
    boxes_too: bool = True,
    run: Run = LOCAL,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of `count_cover`, and how many of `users` each distinct record was seen to cover meanwhile."""
    unique = records.distinct()
    if boxes_too:
        unique = _without_copies(people, unique, run)
    counts, reach = np.zeros(len(people), dtype=np.int64), np.zeros(len(unique), dtype=np.int64)
    find = _finder(people, unique, stop_at=stop_at, boxes_too=boxes_too, run=run)
    for start in range(0, len(users), _USERS):
        user, record = find(users[start : start + _USERS])
        np.add.at(counts, user, unique.weights[record])
        reach += np.bincount(record, minlength=len(unique))
    return counts[users], reach


def complete_reach(
    people: Original, records: Records, reach: NDArray[np.int64], *, run: Run = LOCAL
) -> NDArray[np.int64]:
    """Complete the counts of `reach` that are below two: count all users whom these distinct records cover."""
    thin = np.flatnonzero(reach < LEAST_MEMBERS)
    complete = reach.copy()
    _, record = cover_pairs(people, records.distinct().take(thin), np.arange(len(people)), run=run)
    complete[thin] = np.bincount(record, minlength=len(thin))
    return complete


def _without_copies(people: Original, unique: Records, run: Run) -> Records:
    """Return the records, each weighing at most as many people as it covers."""
    heavy = np.flatnonzero(unique.weights > 1)
    if not len(heavy):
        return unique
    _, record = cover_pairs(people, unique.take(heavy), np.arange(len(people)), run=run)
    weights = unique.weights.copy()
    weights[heavy] = np.minimum(weights[heavy], np.bincount(record, minlength=len(heavy)))
    return replace(unique, weights=weights)


def cover_pairs(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    *,
    stop_at: int | None = None,
    boxes_too: bool = True,
    run: Run = LOCAL,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs (user, record) where the record covers the user, by user; at most `stop_at` for each user."""
    return _finder(people, records, stop_at=stop_at, boxes_too=boxes_too, run=run)(users)


def _finder(
    people: Original, records: Records, *, stop_at: int | None, boxes_too: bool, run: Run
) -> Callable[[NDArray[np.int64]], tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return a function that finds the pairs of given users."""
    if boxes_too:
        rarest = index_rarest(records, people, run=run)
        return lambda users: covering(people, rarest, users, stop_at=stop_at, run=run)[:2]
    index = index_boxes(records)

    def one_way(users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        offsets, rows = take_lists(people.offsets, users)
        points = people.t[rows], people.x[rows], people.y[rows]
        ends, record = holders(index, offsets, *points, stop_at=stop_at, run=run)
        return users[spread(np.diff(ends))], record

    return one_way
