"""Count the samples in the boxes of a record of the people it may stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.samples import Samples

__all__ = ["held_samples"]


@jit
def held_samples(
    samples: Samples, owner_offsets: Ints, owners: Ints, box_offsets: Ints, boxes: Ints32
) -> tuple[Ints, Floats]:
    """Count each box's samples of the record's owners; return (samples by box, owner cost by owner).

    Record r has the boxes box_offsets[r]…, sorted and disjoint in time, and the owners owner_offsets[r]…. The owner
    cost is the mean of Δt·(Δx+Δy) over the owner's samples that are in a box (k-scale, Eq. 4); NaN if none is. Linear.
    """
    t, x, y, offsets = samples
    held = np.zeros(len(boxes), np.int64)
    costs = np.full(len(owners), np.nan)
    for r in range(len(box_offsets) - 1):
        for p in range(owner_offsets[r], owner_offsets[r + 1]):
            b = box_offsets[r]
            inside = 0
            total = 0.0
            for s in range(offsets[owners[p]], offsets[owners[p] + 1]):
                while b < box_offsets[r + 1] and boxes[b, 1] < t[s]:
                    b += 1
                if b == box_offsets[r + 1]:
                    break
                in_time = boxes[b, 0] <= t[s]
                in_space = boxes[b, 2] <= x[s] <= boxes[b, 3] and boxes[b, 4] <= y[s] <= boxes[b, 5]
                if in_time and in_space:
                    duration = float(boxes[b, 1]) - boxes[b, 0] + 1
                    sides = float(boxes[b, 3]) - boxes[b, 2] + float(boxes[b, 5]) - boxes[b, 4] + 2
                    total += duration * sides
                    held[b] += 1
                    inside += 1
            if inside > 0:
                costs[p] = total / inside
    return held, costs
