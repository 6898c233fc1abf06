"""Fixes: sort rows of any order into each user's fixes, by time and place, without exact repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints, Ints32

__all__ = ["Fixes", "close_up", "group_fixes", "sort_fixes"]


class Fixes(NamedTuple):
    """Fixes as columns: milliseconds since 1970, longitude and latitude in degrees."""

    ms: Ints
    lng: Floats
    lat: Floats


def group_fixes(users: Ints32, fixes: Fixes, n_users: int) -> tuple[Ints, Fixes]:
    """Group the rows by user: return offsets and fixes. The columns are returned as they are if already grouped.

    >>> fixes = Fixes(np.array([5, 6]), np.array([0.5, 1]), np.zeros(2))
    >>> group_fixes(np.array([1, 0], np.int32), fixes, 2)[1].ms.tolist()
    [6, 5]
    """
    offsets = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=n_users))])
    if (users[1:] >= users[:-1]).all():
        return offsets, fixes
    grouped = Fixes(np.empty_like(fixes.ms), np.empty_like(fixes.lng), np.empty_like(fixes.lat))
    _scatter(users, fixes, offsets[:-1].copy(), grouped)
    return offsets, grouped


@jit
def _scatter(users: Ints32, fixes: Fixes, at: Ints, grouped: Fixes) -> None:
    ms, lng, lat = fixes
    to_ms, to_lng, to_lat = grouped
    for row in range(len(users)):
        place = at[users[row]]
        to_ms[place], to_lng[place], to_lat[place] = ms[row], lng[row], lat[row]
        at[users[row]] = place + 1


@jit
def _before(ms: Ints, lng: Floats, lat: Floats, i: int, j: int) -> bool:
    if ms[i] != ms[j]:
        return bool(ms[i] < ms[j])
    if lng[i] != lng[j]:
        return bool(lng[i] < lng[j])
    return bool(lat[i] < lat[j])


@jit
def _sort(ms: Ints, lng: Floats, lat: Floats, start: int, end: int) -> None:
    """Sort the rows start…end-1: a merge sort of their numbers, then one copy."""
    size = end - start
    order, spare = np.arange(start, end), np.empty(size, np.int64)
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            i, j = low, middle
            for out in range(low, high):
                if j >= high or (i < middle and not _before(ms, lng, lat, order[j], order[i])):
                    spare[out] = order[i]
                    i += 1
                else:
                    spare[out] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    some_ms, some_lng, some_lat = np.empty(size, np.int64), np.empty(size), np.empty(size)
    for i in range(size):
        some_ms[i], some_lng[i], some_lat[i] = ms[order[i]], lng[order[i]], lat[order[i]]
    for i in range(size):
        ms[start + i], lng[start + i], lat[start + i] = some_ms[i], some_lng[i], some_lat[i]


@jit
def sort_fixes(offsets: Ints, fixes: Fixes, first: int, last: int, counts: Ints) -> None:
    """Sort the rows of users first…last-1 in place by (ms, lng, lat); move distinct ones to the front, count them."""
    ms, lng, lat = fixes
    for user in range(first, last):
        start, end = offsets[user], offsets[user + 1]
        for row in range(start + 1, end):
            if _before(ms, lng, lat, row, row - 1):
                _sort(ms, lng, lat, start, end)
                break
        kept = start
        for row in range(start, end):
            if row > start and ms[row] == ms[kept - 1] and lng[row] == lng[kept - 1] and lat[row] == lat[kept - 1]:
                continue
            if row != kept:
                ms[kept], lng[kept], lat[kept] = ms[row], lng[row], lat[row]
            kept += 1
        counts[user] = kept - start


@jit
def close_up(offsets: Ints, counts: Ints, fixes: Fixes) -> None:
    """Move the first `counts[u]` rows of every user to the front, in place, without gaps."""
    ms, lng, lat = fixes
    end = 0
    for user in range(len(counts)):
        start = offsets[user]
        for row in range(start, start + counts[user]):
            if row != end:
                ms[end], lng[end], lat[end] = ms[row], lng[row], lat[row]
            end += 1
