"""Turn member lists into records: everyone's boxes by k-merge, on several threads, and identical groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels.groups import samples_within
from shoal.kernels.merge import MemberLists, MergedRecords, merge_records
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import samples_of
from shoal.layouts import Boxes
from shoal.lists import even_ranges, offsets_of, take_lists
from shoal.merge import OBJECTIVES
from shoal.release import Members, Release
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.kernels.price import Price
    from shoal.merge import Objective
    from shoal.methods.glove import Glove
    from shoal.methods.kte_hide.pieces import Pieces
    from shoal.methods.shoal import Shoal
    from shoal.search.constraints import Plan
    from shoal.trajectories import Trajectories

__all__ = ["group_release", "merge_all"]

_SAMPLES_PER_RANGE = 200_000


def merge_all(
    people: Trajectories | Pieces,
    offsets: NDArray[np.int64],
    members: NDArray[np.int64],
    objective: Objective,
    *,
    price: Price = PAPERS,
    run: Run = LOCAL,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """k-merge every record: record r merges the users members[offsets[r]:offsets[r+1]], the owner first.

    Costs are by the given price of a box; the objective `sum` goes with that of the papers only. Users may be pieces of
    users, too. Returns the boxes of all records as (box offsets, boxes). Memory: 24 bytes for each sample of the least
    member of a record.
    """
    counts = people.counts[members]
    room = offsets_of(np.minimum.reduceat(counts, offsets[:-1]))
    boxes = np.empty((room[-1], 6), np.int32)
    n_boxes, costs = np.empty(len(offsets) - 1, np.int64), np.empty(len(offsets) - 1)

    def fill(start: int, stop: int) -> None:
        lists = MemberLists(offsets[start : stop + 1], members)
        merged = MergedRecords(boxes, room[start:stop], n_boxes[start:stop], costs[start:stop])
        merge_records(samples_of(people), lists, OBJECTIVES[objective], price, merged)

    with run.stage("records", len(offsets) - 1) as advance:
        ranges = even_ranges(np.add.reduceat(counts, offsets[:-1]), _SAMPLES_PER_RANGE)
        run.ranges(fill, ranges, advance=advance)
    box_offsets, rows = take_lists(room, np.arange(len(n_boxes)), n_boxes)
    return box_offsets, boxes[rows]


def group_release(
    method: Glove | Shoal, people: Trajectories, plan: Plan, offsets: NDArray[np.int64], boxes: NDArray[np.int32]
) -> Release:
    """Publish every group's record once for each of its members.

    `boxes[offsets[g]:offsets[g+1]]` is the record of group g of the plan; `record_of` is -1 for those who are not
    published. Boxes that are wider, higher or longer than the thresholds are left out for the whole group, and a group
    without a box left is not published; all samples that are left out are counted. Linear.
    """
    offsets, boxes, lost = _within_thresholds(people, plan, offsets, boxes, method.max_span, method.max_duration)
    published = plan.record_of >= 0
    owners = np.flatnonzero(published & (np.diff(offsets)[plan.record_of] > 0))
    suppressed = lost + int(people.counts[~published].sum())
    box_offsets, rows = take_lists(offsets, plan.record_of[owners])
    member_offsets, members = take_lists(plan.offsets, plan.record_of[owners])
    return Release(
        offsets=box_offsets,
        layout=Boxes(boxes[rows]),
        frame=people.frame,
        method=method.name,
        parameters=method.parameters,
        claim=method.claim,
        samples=people.samples - suppressed,
        suppressed=suppressed,
        members=Members(owners, member_offsets, plan.members[members], people),
    )


def _within_thresholds(
    people: Trajectories,
    plan: Plan,
    offsets: NDArray[np.int64],
    boxes: NDArray[np.int32],
    max_span_m: int | None,
    max_duration_s: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Leave out boxes beyond the thresholds; return the remaining boxes and the number of samples in the others."""
    t0, t1, x0, x1, y0, y1 = boxes.T
    side_m = (np.maximum(x1 - x0, y1 - y0) + 1.0) * people.frame.cell_m
    duration_s = (t1 - t0 + 1.0) * people.frame.slot_s
    kept = (side_m <= (max_span_m or np.inf)) & (duration_s <= (max_duration_s or np.inf))
    if kept.all():
        return offsets, boxes, 0
    group = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    lists = MemberLists(plan.offsets, plan.members)
    lost = samples_within(samples_of(people), lists, group[~kept], t0[~kept], t1[~kept])
    return offsets_of(np.bincount(group[kept], minlength=len(offsets) - 1)), boxes[kept], int(lost)
