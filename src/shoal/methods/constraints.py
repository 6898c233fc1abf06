"""Who is merged with whom: the three anonymity constraints of paper 003 (Sec. III-D) on sparse pair costs.

Each takes PairCosts and k and gives a Plan.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from shoal.kernels.pick import least_costs
from shoal.lists import offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.neighbours import PairCosts

__all__ = ["Plan", "clusters", "k_pick", "nu_k_pick"]


class Plan(NamedTuple):
    """What to merge: list r is members[offsets[r]:offsets[r+1]]; user u is published as list record_of[u].

    Where every user has a list of her own, she comes first in it and the others follow ascending.
    """

    offsets: NDArray[np.int64]
    members: NDArray[np.int64]
    record_of: NDArray[np.int64]


def nu_k_pick(costs: PairCosts, k: int) -> Plan:
    """Let column j mark the k-1 rows to which merging with j costs least (003, Alg. 1).

    A row that nobody marks merges with its own cheapest neighbour, so that no raw record is published. Ties go
    to the lower canonical index. Guarantee: every user is a member of at least k records, her own included.
    """
    n_users = len(costs.offsets) - 1
    rows = least_costs(costs.offsets, costs.other, costs.others, k - 1)
    columns = np.repeat(np.arange(n_users), k - 1)
    unmarked = np.setdiff1d(np.arange(n_users), rows)
    cheapest = least_costs(costs.offsets, costs.other, costs.own, 1)[unmarked, 0]
    return _own_lists(np.concatenate([rows.ravel(), unmarked]), np.concatenate([columns, cheapest]), n_users)


def k_pick(costs: PairCosts, k: int) -> Plan | None:
    """Let every row pick exactly k-1 others such that everyone is picked exactly k-1 times (002, Sec. III-F).

    k-1 rounds of a minimum-cost assignment without fixed points on the arcs that are left. Gives None if the
    sparse costs allow no such assignment: call again with more candidates (all pairs always do).
    """
    n_users = len(costs.offsets) - 1
    # A zero would count as a missing arc; true costs are at least 2 (one granule).
    left = csr_array((costs.own.copy(), costs.other.copy(), costs.offsets.copy()), shape=(n_users, n_users))
    picked: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    for _ in range(k - 1):
        try:
            rows, columns = (side.astype(np.int64) for side in min_weight_full_bipartite_matching(left))
        except ValueError:
            return None
        picked.append((rows, columns))
        left = _without(left, rows, columns)
    rows, columns = (np.concatenate(side) for side in zip(*picked, strict=True))
    return _own_lists(rows, columns, n_users)


def _without(arcs: csr_array, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> csr_array:
    taken = csr_array((arcs[rows, columns], (rows, columns)), shape=arcs.shape)
    left = csr_array(arcs - taken)
    left.eliminate_zeros()
    return left


def clusters(costs: PairCosts, k: int) -> Plan:
    """Put everybody into one of several disjoint clusters of at least k (003's full consistency, Eq. 8).

    Greedy, hardest first: the user whose (k-1)-th neighbour is dearest takes its k-1 cheapest free neighbours
    (both costs added); who finds too few joins the cluster of its cheapest neighbour that has one.
    """
    n_users = len(costs.offsets) - 1
    both = costs.own + costs.others
    cluster = np.full(n_users, -1, np.int64)
    late = []
    for user in _hardest_first(costs, both, k):
        if cluster[user] >= 0:
            continue
        near = _by_cost(costs, both, user)
        free = near[cluster[near] < 0][: k - 1]
        if len(free) < k - 1:
            late.append(user)
        else:
            cluster[[user, *free]] = user
    late = [user for user in late if cluster[user] < 0]  # others may have taken some of them since
    while late:  # a round may give homes to those whose neighbours were late themselves
        homeless = []
        for user in late:
            near = _by_cost(costs, both, user)
            homes = cluster[near[cluster[near] >= 0]]
            if len(homes):
                cluster[user] = homes[0]
            else:
                homeless.append(user)
        if len(homeless) == len(late):
            cluster[homeless] = cluster[cluster >= 0][0]
            break
        late = homeless
    _, record_of = np.unique(cluster, return_inverse=True)
    members = np.argsort(record_of, kind="stable")
    return Plan(offsets_of(np.bincount(record_of)), members, record_of)


def _hardest_first(costs: PairCosts, both: NDArray[np.float64], k: int) -> list[int]:
    reach = [np.partition(both[a:b], k - 2)[k - 2] for a, b in pairwise(costs.offsets)]
    order: list[int] = np.argsort(-np.array(reach), kind="stable").tolist()
    return order


def _by_cost(costs: PairCosts, both: NDArray[np.float64], user: int) -> NDArray[np.int64]:
    part = slice(costs.offsets[user], costs.offsets[user + 1])
    return costs.other[part][np.argsort(both[part], kind="stable")]


def _own_lists(rows: NDArray[np.int64], members: NDArray[np.int64], n_users: int) -> Plan:
    """Give everyone a list of her own: herself, then the members picked for her row, ascending."""
    everyone = np.arange(n_users)
    rows, members = np.concatenate([everyone, rows]), np.concatenate([everyone, members])
    order = np.lexsort((np.where(rows == members, -1, members), rows))
    return Plan(offsets_of(np.bincount(rows)), members[order], everyone)
