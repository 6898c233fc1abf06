"""Lists in one array: list r is values[offsets[r]:offsets[r+1]]."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["even_ranges", "offsets_of", "ranges_of", "take_lists"]


def offsets_of(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the offsets of lists of these lengths: where each starts, and where the last ends.

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def take_lists(
    offsets: NDArray[np.int64], chosen: NDArray[np.int64], counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the offsets and the rows of the chosen lists, in that order; with `counts`, only the first rows of each.

    >>> offsets, rows = take_lists(np.array([0, 2, 5]), np.array([1, 0, 1]))
    >>> offsets.tolist(), rows.tolist()
    ([0, 3, 5, 8], [2, 3, 4, 0, 1, 2, 3, 4])
    """
    starts = offsets[:-1][chosen]
    lengths = (np.diff(offsets) if counts is None else counts)[chosen]
    taken = offsets_of(lengths)
    return taken, np.arange(taken[-1]) + np.repeat(starts - taken[:-1], lengths)


def even_ranges(weights: NDArray[np.int64], per_range: int) -> list[tuple[int, int]]:
    """Cut 0…len(weights) into ranges of about the same weight.

    >>> even_ranges(np.array([3, 3, 3, 9, 1]), 6)
    [(0, 1), (1, 3), (3, 5)]
    """
    part = np.cumsum(weights) // per_range
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(weights)]
    return [(start, stop) for start, stop in pairwise(edges) if start < stop]


def ranges_of(n: int, per_range: int) -> list[tuple[int, int]]:
    """Cut 0…n into ranges of the same length; the last one may be shorter.

    >>> ranges_of(5, 2), ranges_of(4, 2), ranges_of(0, 2)
    ([(0, 2), (2, 4), (4, 5)], [(0, 2), (2, 4)], [])
    """
    return [(start, min(start + per_range, n)) for start in range(0, n, per_range)]
