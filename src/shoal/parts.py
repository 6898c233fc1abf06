"""Parts: groups of users who are close in space and are worked on together.

A method's heavy step is a pure function of one part's arrays (see `shoal.run.Run.map`). Parts never depend on the
number of threads or on memory, so neither do the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["even_parts", "halo", "space_order"]

_LEAF = 64


def space_order(x: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order points so that neighbours in the order are neighbours in space: halve by the longer side, again and again.

    Ties are broken by index. O(n log² n).

    >>> space_order(np.array([0, 900, 1, 901]), np.array([0, 0, 0, 0])).tolist()
    [0, 1, 2, 3]
    """
    order = np.arange(len(x))
    todo = [(0, len(x))]
    while todo:
        start, stop = todo.pop()
        if stop - start <= _LEAF:
            continue
        here = order[start:stop]
        side = x if np.ptp(x[here]) >= np.ptp(y[here]) else y
        order[start:stop] = here[np.lexsort((here, side[here]))]
        middle = (start + stop) // 2
        todo += [(start, middle), (middle, stop)]
    return order


def even_parts(n: int, most: int) -> list[tuple[int, int]]:
    """Cut 0…n into ranges of nearly the same length, each at most `most` long.

    >>> even_parts(10, 4)
    [(0, 3), (3, 6), (6, 10)]
    """
    parts = -(-n // most)
    return [(n * part // parts, n * (part + 1) // parts) for part in range(parts)]


def halo(x: NDArray[np.int64], y: NDArray[np.int64], part: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """Return the `most` points outside a part that are nearest to its bounding box, ascending; ties by index. O(n)."""
    apart = [np.maximum(side[part].min() - side, side - side[part].max()).clip(min=0) for side in (x, y)]
    distance = np.maximum(*apart).astype(np.float64)
    distance[part] = np.inf
    if len(x) - len(part) <= most:
        return np.flatnonzero(distance < np.inf)
    edge = np.partition(distance, most - 1)[most - 1]
    inside = np.flatnonzero(distance < edge)
    return np.sort(np.concatenate([inside, np.flatnonzero(distance == edge)[: most - len(inside)]]))
