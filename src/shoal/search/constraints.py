"""Choose who is merged with whom: the three anonymity constraints of k-scale (Sec. III-D) on sparse pair costs.

Each takes PairCosts and k and returns a Plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.kernels.marginal import Placed, place_leftovers
from shoal.kernels.pick import capped_entries, cheapest_entries, join_clusters
from shoal.lists import offsets_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.search import PairCosts

__all__ = ["Plan", "clusters", "hardest_first", "k_pick", "nu_k_pick", "own_lists", "regular_lists"]

_ARCS = 16  # of everyone, in both roles, that an assignment looks at first: few leave out a needed one


class Plan(NamedTuple):
    """The lists to merge: list r is members[offsets[r]:offsets[r+1]]; user u is published as list record_of[u].

    Where every user has a list of their own, they come first in it and the others follow ascending.
    """

    offsets: NDArray[np.int64]
    members: NDArray[np.int64]
    record_of: NDArray[np.int64]


def nu_k_pick(costs: PairCosts, k: int, max_members: int | None = None) -> Plan:
    """Let column j mark the k-1 rows to which merging with j costs least (k-scale, Alg. 1).

    A row that nobody marks merges with its own cheapest neighbour, so that no raw record is published. Ties go
    to the lower canonical index. With `max_members` (at least k-1) columns choose in turn, hardest first, among
    the rows that have fewer. Guarantee: every user is a member of at least k records, their own included.
    """
    if max_members is None:
        entries = cheapest_entries(costs.offsets, costs.other, costs.others, k - 1)
        return own_lists(costs, costs.other[entries])
    order = hardest_first(costs, costs.others, k)
    entries = capped_entries(costs.offsets, costs.other, costs.others, order, k - 1, max_members)
    picks = np.where(entries < 0, -1, costs.other[entries])
    return own_lists(costs, _completed(costs, picks, max_members))


def _completed(costs: PairCosts, picks: NDArray[np.int64], max_members: int) -> NDArray[np.int64]:
    """Find rows for the columns that found too few rows with room."""
    n_users = len(picks)
    columns, places = np.nonzero(picks >= 0)
    rows = picks[columns, places]
    order = np.argsort(rows, kind="stable")
    size = np.bincount(rows, minlength=n_users)
    member = np.full((n_users, max_members), -1)
    member[rows[order], np.arange(len(rows)) - offsets_of(size)[rows[order]]] = columns[order]
    nothing = np.zeros(n_users)
    placed = Placed(member, size, picks.copy(), nothing, nothing, np.zeros(n_users, np.int64))
    place_leftovers(placed, costs.offsets, costs.other, costs.others)
    return placed.picks


def k_pick(costs: PairCosts, k: int) -> Plan | None:
    """Let every row pick exactly k-1 others such that everyone is picked exactly k-1 times.

    This is k-pick (k^(τ,ε)-anonymity, Sec. III-F): k-1 rounds of a minimum-cost assignment without fixed points on the
    arcs that are left. The result is None if the sparse costs allow no such assignment: call again with more candidates
    (all pairs always do).
    """
    lists = regular_lists(costs, k, costs.own, costs.others)
    if lists is None:
        return None
    lists[:, 1:].sort(axis=1)
    return Plan(np.arange(0, lists.size + 1, k), lists.ravel(), np.arange(len(lists)))


def regular_lists(
    costs: PairCosts,
    k: int,
    as_row: NDArray[np.float64],
    as_column: NDArray[np.float64],
    price: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]] | None = None,
) -> NDArray[np.int64] | None:
    """Return k edge-disjoint perfect matchings of records and users, as the columns of a (users, k) array.

    Row i holds the k users of record i; the first matching is everyone with their own record. `as_row[p]` is the
    cost of the arc on which the list's user takes other[p], `as_column[p]` that on which they are taken by other[p].
    `price(lists, rows, columns)` gives the costs of arcs for the next round, given the lists so far. None if the
    arcs do not suffice. Cost: k-1 assignments on about 16 cheap arcs of everyone, rarely on all.
    """
    n_users = len(costs.offsets) - 1
    lists = np.arange(n_users)[:, None]
    cheap, every = _cheap_arcs(costs, as_row, as_column, _ARCS + k), None
    for _ in range(k - 1):
        chosen = _assignment(lists, cheap, price)
        if chosen is None:
            every = _all_arcs(costs, as_row) if every is None else every
            chosen = _assignment(lists, every, price)
        if chosen is None:
            return None
        lists = np.concatenate([lists, chosen[:, None]], axis=1)
    return lists


class _Arcs(NamedTuple):
    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    costs: NDArray[np.float64]


def _all_arcs(costs: PairCosts, as_row: NDArray[np.float64]) -> _Arcs:
    return _Arcs(np.repeat(np.arange(len(costs.offsets) - 1), np.diff(costs.offsets)), costs.other, as_row)


def _cheap_arcs(costs: PairCosts, as_row: NDArray[np.float64], as_column: NDArray[np.float64], n: int) -> _Arcs:
    """Return the n cheapest arcs of every row and of every column, each once."""
    n_users = len(costs.offsets) - 1
    n = min(n, int(np.diff(costs.offsets).max()))
    ends, prices = [], []
    for cost, row_first in ((as_row, True), (as_column, False)):
        entries = cheapest_entries(costs.offsets, costs.other, cost, n)
        user, place = np.nonzero(entries >= 0)
        entry = entries[user, place]
        other = costs.other[entry]
        ends.append(user * n_users + other if row_first else other * n_users + user)
        prices.append(cost[entry])
    keys, first = np.unique(np.concatenate(ends), return_index=True)
    return _Arcs(keys // n_users, keys % n_users, np.concatenate(prices)[first])


def _assignment(
    lists: NDArray[np.int64],
    arcs: _Arcs,
    price: Callable[[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.float64]] | None,
) -> NDArray[np.int64] | None:
    """Return a column for every row, not one of its list, at the least total cost; None if the arcs do not suffice."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    fresh = (lists[arcs.rows] != arcs.columns[:, None]).all(axis=1)
    rows, columns = arcs.rows[fresh], arcs.columns[fresh]
    cost = arcs.costs[fresh] if price is None or lists.shape[1] == 1 else price(lists, rows, columns)
    graph = csr_array(
        (_whole(cost), columns, offsets_of(np.bincount(rows, minlength=len(lists)))), shape=(len(lists),) * 2
    )
    try:
        found, given = min_weight_full_bipartite_matching(graph)
    except ValueError:
        return None
    chosen = np.empty(len(lists), np.int64)
    chosen[found] = given
    return chosen


def _whole(cost: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return costs as whole numbers from 1 to 2^40; a zero would count as a missing arc.

    On whole numbers the arithmetic of the assignment is exact; rounding errors can keep it busy for ever.
    """
    whole: NDArray[np.float64] = np.round(cost * (2.0**40 / cost.max(initial=1.0))) + 1.0
    return whole


def clusters(costs: PairCosts, k: int) -> Plan:
    """Put everybody into one of several disjoint clusters of at least k (k-scale's full consistency, Eq. 8).

    Greedy, hardest first: the user whose (k-1)-th neighbour is dearest takes its k-1 cheapest free neighbours
    (both costs added); who finds too few joins the cluster of its cheapest neighbour that has one.
    """
    both = costs.own + costs.others
    cluster = join_clusters(costs.offsets, costs.other, both, hardest_first(costs, both, k), k)
    _, record_of = np.unique(cluster, return_inverse=True)
    members = np.argsort(record_of, kind="stable")
    return Plan(offsets_of(np.bincount(record_of)), members, record_of)


def hardest_first(costs: PairCosts, cost: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return everybody in the order of their (k-1)-th least cost, highest first; ties in canonical order."""
    last = cheapest_entries(costs.offsets, costs.other, cost, k - 1)[:, -1]
    return np.argsort(np.where(last < 0, -np.inf, -cost[last]), kind="stable")


def own_lists(costs: PairCosts, picks: NDArray[np.int64]) -> Plan:
    """Return a list for everyone: themselves, then those who picked their row (picks[j] are j's rows), ascending.

    Whoever is picked by nobody has their cheapest neighbour in it.
    """
    n_users = len(picks)
    everyone = np.arange(n_users)
    alone = np.setdiff1d(everyone, picks)
    cheapest = costs.other[cheapest_entries(costs.offsets, costs.other, costs.own, 1)[alone, 0]]
    rows = np.concatenate([everyone, picks.ravel(), alone])
    members = np.concatenate([everyone, np.repeat(everyone, picks.shape[1]), cheapest])
    order = np.lexsort((np.where(rows == members, -1, members), rows))
    return Plan(offsets_of(np.bincount(rows)), members[order], everyone)
