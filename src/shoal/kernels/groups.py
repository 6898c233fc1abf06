"""Group cost: everybody's owner cost in the group's common record, the `members` objective of k-merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit
from shoal.kernels.price import PAPERS
from shoal.kernels.weighted import Scratch, merged_cost, scratch_of

if TYPE_CHECKING:
    from shoal.jit import Ints, Ints32
    from shoal.kernels.merge import MemberLists
    from shoal.kernels.price import Price
    from shoal.kernels.samples import Samples

__all__ = ["Scratch", "group_cost", "samples_within", "scratch_for"]


def scratch_for(samples: Samples, n_members: int, price: Price = PAPERS) -> Scratch:
    """Return scratch arrays for any group of this many people, and the price of a box."""
    return scratch_of(int(np.sort(np.diff(samples.offsets))[-n_members:].sum()), n_members, price)


@jit
def group_cost(samples: Samples, members: Ints, n_members: int, bound: float, scratch: Scratch) -> float:
    """Return the sum of the owner costs of members[:n_members]; inf as soon as it is sure to exceed `bound`."""
    for m in range(n_members):
        scratch.share[m] = 1.0 / (samples.offsets[members[m] + 1] - samples.offsets[members[m]])
    return merged_cost(samples, members, n_members, scratch.share, bound, scratch)


@jit
def samples_within(samples: Samples, lists: MemberLists, records: Ints, first: Ints32, last: Ints32) -> int:
    """Count the samples that the members of records[b] have in the slots first[b]…last[b], over all b."""
    n = 0
    for b in range(len(records)):
        for q in range(lists.offsets[records[b]], lists.offsets[records[b] + 1]):
            u = lists.members[q]
            own = samples.t[samples.offsets[u] : samples.offsets[u + 1]]
            n += np.searchsorted(own, last[b], side="right") - np.searchsorted(own, first[b], side="left")
    return n
