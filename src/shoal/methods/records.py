"""From member lists to records: everyone's boxes, by k-merge, on several threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels.merge import merge_records
from shoal.lists import even_ranges, offsets_of, take_lists
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
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """k-merge every record: record r merges the users members[offsets[r]:offsets[r+1]], the owner first.

    Gives the boxes of all records as (box offsets, boxes). Memory: 24 bytes for each sample of the least member
    of a record.
    """
    counts = people.counts[members]
    room = offsets_of(np.minimum.reduceat(counts, offsets[:-1]))
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
        ranges = even_ranges(np.add.reduceat(counts, offsets[:-1]), _SAMPLES_PER_RANGE)
        run_ranges(fill, ranges, threads=threads, advance=advance)
    box_offsets, rows = take_lists(room, np.arange(len(n_boxes)), n_boxes)
    return box_offsets, boxes[rows]
