"""From member lists to records: everyone's boxes, by k-merge, on several threads."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels.merge import merge_records
from shoal.merge import OBJECTIVES
from shoal.parallel import run_ranges
from shoal.progress import SILENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.merge import Objective
    from shoal.progress import Progress
    from shoal.trajectories import Trajectories

__all__ = ["merge_all"]

_SAMPLES_PER_RANGE = 200_000


def merge_all(
    people: Trajectories,
    offsets: NDArray[np.int64],
    members: NDArray[np.int64],
    objective: Objective,
    *,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    """k-merge every record: record r merges the users members[offsets[r]:offsets[r+1]], the owner first.

    Gives the boxes of all records as (box offsets, boxes) and the cost of each. Memory: 24 bytes for each
    sample of the least member of a record.
    """
    counts = people.counts[members]
    room = np.concatenate([[0], np.cumsum(np.minimum.reduceat(counts, offsets[:-1]))])
    boxes = np.empty((room[-1], 6), np.int32)
    n_boxes, costs = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1)

    def fill(start: int, stop: int) -> None:
        merge_records(
            people.t,
            people.x,
            people.y,
            people.offsets,
            offsets[start : stop + 1],
            members,
            OBJECTIVES[objective],
            boxes,
            room[start:stop],
            n_boxes[start:stop],
            costs[start:stop],
        )

    with progress.stage("records", len(offsets) - 1) as advance:
        run_ranges(fill, _even_ranges(np.add.reduceat(counts, offsets[:-1])), threads=threads, advance=advance)
    box_offsets = np.concatenate([[0], np.cumsum(n_boxes)])
    rows = np.arange(box_offsets[-1]) + np.repeat(room[:-1] - box_offsets[:-1], n_boxes)
    return box_offsets, boxes[rows], costs


def _even_ranges(samples: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the records into ranges of about the same number of samples."""
    part = np.cumsum(samples) // _SAMPLES_PER_RANGE
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(samples)]
    return list(pairwise(edges))
