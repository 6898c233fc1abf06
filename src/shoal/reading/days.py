"""Days: move everyone's days with data so that they follow each other from the first (Promesse, Sec. V-A)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.reading.times import zone

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["aligned", "day_numbers"]

_DAY_MS = 86_400_000


def day_numbers(offsets: NDArray[np.int64], ms: NDArray[np.int64], tz: str) -> tuple[NDArray[np.int64], ...]:
    """Return the local day of each fix, and the number of earlier days with data of its user.

    Input: fixes of user u at offsets[u]…offsets[u+1]-1, in order of time.

    >>> days, before = day_numbers(np.array([0, 3]), np.array([0, 1, 3]) * 86_400_000, "UTC")
    >>> days.tolist(), before.tolist()
    ([0, 1, 3], [0, 1, 2])
    """
    days = zone(tz).to_local(ms) // _DAY_MS
    new = np.zeros(len(ms), np.int64)
    new[1:] = days[1:] != days[:-1]
    starts = offsets[:-1][np.diff(offsets) > 0]
    new[starts] = 0
    number = np.cumsum(new)
    return days, number - np.repeat(number[starts], np.diff(np.append(starts, len(ms))))


def aligned(
    offsets: NDArray[np.int64], ms: NDArray[np.int64], most: int, first_ms: int, tz: str
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the moved times, and which fixes belong to their user's first `most` days with data.

    A user's n-th day with data becomes the n-th day of the data, which begin at `first_ms`; the time of day stays.

    >>> times = np.array([0, 1, 3, 5]) * 86_400_000
    >>> moved, kept = aligned(np.array([0, 2, 4]), times, 2, 0, "UTC")
    >>> (moved // 86_400_000).tolist(), kept.tolist()
    ([0, 1, 0, 1], [True, True, True, True])
    """
    days, before = day_numbers(offsets, ms, tz)
    first_day = int(zone(tz).to_local(np.array([first_ms]))[0]) // _DAY_MS
    return ms + (first_day + before - days) * _DAY_MS, before < most
