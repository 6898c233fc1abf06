"""The cheapest partition into groups of k to 2k-1, by a dynamic program over all subsets of users."""

from itertools import combinations

import numpy as np

from shoal.kernels.merge import MEMBERS, MemberLists, MergedRecords, merge_records
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import samples_of


def subset_costs(people, k, price=PAPERS):
    """Return the `members` cost of every group of k to 2k-1 of the people, by the bits of who is in it."""
    sizes = range(k, min(2 * k, len(people) + 1))
    groups = [group for size in sizes for group in combinations(range(len(people)), size)]
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])])
    members = np.array([user for group in groups for user in group])
    costs, zeros = np.empty(len(groups)), np.zeros(len(groups), np.int64)
    no_boxes = np.empty((0, 6), np.int32)
    merged = MergedRecords(no_boxes, zeros, zeros.copy(), costs)
    merge_records(samples_of(people), MemberLists(offsets, members), MEMBERS, price, merged)
    return {sum(1 << user for user in group): cost for group, cost in zip(groups, costs.tolist(), strict=True)}


def cheapest_partition(people, k, price=PAPERS):
    """Return the least total cost and groups that reach it."""
    costs = subset_costs(people, k, price)
    everybody = (1 << len(people)) - 1
    best = {0: (0.0, ())}
    for done in range(everybody + 1):  # every partition is reached by the group of the lowest user still free
        if done not in best:
            continue
        lowest = ~done & (done + 1)
        for group, cost in costs.items():
            if group & lowest and not group & done:
                total = best[done][0] + cost
                if done | group not in best or total < best[done | group][0]:
                    best[done | group] = (total, (*best[done][1], group))
    total, groups = best[everybody]
    return total, [[user for user in range(len(people)) if group >> user & 1] for group in groups]
