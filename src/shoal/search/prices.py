"""The price of a box on the grid of some people, from what a side is worth in time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels.merge import MEMBERS, MemberLists, MergedRecords, merge_records
from shoal.kernels.price import PAPERS, price_of_worth
from shoal.kernels.samples import samples_of
from shoal.lists import offsets_of, take_lists
from shoal.run import LOCAL, Run
from shoal.search.partners import homes, neighbourhood, partners_in, sketching

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.kernels.price import Price, PriceName
    from shoal.trajectories import Trajectories

__all__ = ["price_for", "usual_worth"]

_RUNS, _RUN = 16, 128  # how many runs of neighbours, and of how many people, are looked at for the usual worth
_CANDIDATES = 3  # times as many as are merged


def price_for(
    people: Trajectories, name: PriceName, worth: tuple[int, int] | None, k: int, *, run: Run = LOCAL
) -> Price:
    """Return the price of a box if a mean side of so many metres is worth as much as so many seconds.

    Without a worth, it is what it usually is in groups of k (`usual_worth`).
    """
    if name == "product":
        return PAPERS
    if worth is None:
        return price_of_worth(name, *usual_worth(people, k, run=run))
    return price_of_worth(name, worth[0] / people.frame.cell_m, worth[1] / people.frame.slot_s)


def usual_worth(people: Trajectories, k: int, *, run: Run = LOCAL) -> tuple[float, float]:
    """Return the mean side, in cells, and duration, in slots, of the boxes of people merged with k-1 others.

    Boxes are those that the papers' price makes; a person's others are the cheapest among their neighbours. About 2,000
    people are looked at, in runs of neighbours all over space. The same for any threads and order of the input.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=60, days=3, seed=1))
    >>> cells, slots = usual_worth(people, 2)
    >>> cells >= 1, slots >= 1
    (True, True)
    """
    order, how = homes(people, run=run).order, sketching(people)
    size = min(max(_RUN, 4 * k), len(people))
    starts = np.unique(np.linspace(0, len(people) - size, _RUNS).astype(np.int64))
    lists = []
    for start in starts:
        users = order[start : start + size]
        found = partners_in(
            neighbourhood(people, users, 0, size), candidates=_CANDIDATES * k, kept=min(k, size) - 1, how=how
        )
        lists.append(np.column_stack([users, found["other"]]))
    boxes = _boxes(people, np.concatenate(lists))
    t0, t1, x0, x1, y0, y1 = boxes.T.astype(np.float64)
    return float((x1 - x0 + y1 - y0 + 2).mean()) / 2, float((t1 - t0 + 1).mean())


def _boxes(people: Trajectories, lists: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the boxes of records that merge the users of each row; -1 stands for nobody."""
    there = lists >= 0
    offsets, members = offsets_of(there.sum(axis=1)), lists[there]
    room = offsets_of(np.minimum.reduceat(people.counts[members], offsets[:-1]))
    boxes, counts = np.empty((int(room[-1]), 6), np.int32), np.empty(len(lists), np.int64)
    merged = MergedRecords(boxes, room[:-1], counts, np.empty(len(lists)))
    merge_records(samples_of(people), MemberLists(offsets, members), MEMBERS, PAPERS, merged)
    _, rows = take_lists(room, np.arange(len(lists)), counts)
    return boxes[rows]
