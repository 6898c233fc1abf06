"""Tools for arrays of whole numbers: distinct values, blocks of lists, and the narrowest type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.units import INT32

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["ROWS", "blocks", "distinct", "fresh", "narrow", "spread"]

ROWS = 1_000_000


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values in ascending order; much faster than `np.unique`.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    values = np.sort(values)
    kept: NDArray[Any] = values[fresh(values)]
    return kept


def fresh(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows differ from the row before; the first row counts as different.

    >>> fresh(np.array([1, 1, 2])).tolist()
    [True, False, True]
    """
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def blocks(sizes: NDArray[np.int64], rows: int = ROWS) -> Iterator[slice]:
    """Cut a list of sizes into consecutive blocks that sum to at most `rows` (or have a single larger size).

    >>> [(part.start, part.stop) for part in blocks(np.array([3, 3, 9, 1]), 6)]
    [(0, 2), (2, 3), (3, 4)]
    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + rows, side="right")))
        yield slice(start, end)
        start = end


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as int32 if all of them fit, else as int64.

    >>> narrow(np.array([1, 2.0])).dtype, narrow(np.array([2**31])).dtype
    (dtype('int32'), dtype('int64'))
    """
    fits = not values.size or (values.min() >= -INT32 - 1 and values.max() <= INT32)
    return values.astype(np.int32 if fits else np.int64, copy=False)


def spread(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the list of each row; the same as `np.repeat` of 0, 1, 2 …, which blocks other threads.

    >>> spread(np.array([2, 0, 3])).tolist()
    [0, 0, 2, 2, 2]
    """
    full = np.flatnonzero(counts)
    ends = np.cumsum(counts[full])
    rows = np.zeros(int(ends[-1]) if len(full) else 0, dtype=np.int64)
    if len(full):
        rows[0] = full[0]
        rows[ends[:-1]] = np.diff(full)
    return np.cumsum(rows, out=rows)
