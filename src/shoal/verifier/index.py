"""An index of boxes in space and time, in which the boxes that may hold a point are looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.verifier.arrays import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BoxIndex", "Look"]


class BoxIndex:
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

    def look(self, points: NDArray[np.int64]) -> Look:
        """Find, for each point (t, x, y), where its cells are, one on each grid."""
        starts = np.empty((len(points), len(self.sizes)), dtype=np.int64)
        ends = np.empty_like(starts)
        for column, (long, wide) in enumerate(self.sizes):
            key = _hash(long, wide, points[:, 0] >> long, points[:, 1] >> wide, points[:, 2] >> wide)
            starts[:, column] = np.searchsorted(self.keys, key, side="left")
            ends[:, column] = np.searchsorted(self.keys, key, side="right")
        return Look(starts, ends - starts, self.box)


class Look:
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
