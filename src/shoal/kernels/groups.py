"""The cost of a group: everybody's owner cost in the group's common record, the `members` objective of k-merge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit
from shoal.kernels.weighted import Samples, Scratch, merged_cost, scratch_of

if TYPE_CHECKING:
    from shoal.jit import Ints, Ints32

__all__ = ["Samples", "Scratch", "group_cost", "samples_within", "scratch_for"]


def scratch_for(samples: Samples, n_members: int) -> Scratch:
    """Return room for any group of so many users."""
    return scratch_of(int(np.sort(np.diff(samples.offsets))[-n_members:].sum()), n_members)


@jit
def group_cost(samples: Samples, members: Ints, n_members: int, bound: float, scratch: Scratch) -> float:
    """Return the sum of the owner costs of members[:n_members]; inf as soon as it is sure to exceed `bound`."""
    for m in range(n_members):
        scratch.share[m] = 1.0 / (samples.offsets[members[m] + 1] - samples.offsets[members[m]])
    return merged_cost(samples, members, n_members, scratch.share, bound, scratch)


@jit
def samples_within(
    t: Ints32, offsets: Ints, member_offsets: Ints, members: Ints, groups: Ints, first: Ints32, last: Ints32
) -> int:
    """Count the samples that the members of groups[b] have in the slots first[b]…last[b], over all b."""
    n = 0
    for b in range(len(groups)):
        for q in range(member_offsets[groups[b]], member_offsets[groups[b] + 1]):
            own = t[offsets[members[q]] : offsets[members[q] + 1]]
            n += np.searchsorted(own, last[b], side="right") - np.searchsorted(own, first[b], side="left")
    return n
