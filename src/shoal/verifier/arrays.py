"""Distinct whole numbers by sorting: much faster than `np.unique`, above all on rows packed into one number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["distinct", "fresh"]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Give the distinct values in order.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    values = np.sort(values)
    kept: NDArray[Any] = values[fresh(values)]
    return kept


def fresh(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Say which rows differ from the row before; the first one does.

    >>> fresh(np.array([1, 1, 2])).tolist()
    [True, False, True]
    """
    new = np.ones(len(columns[0]), dtype=bool)
    new[1:] = False
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new
