"""The search for groups: whatever it does, a partition stays one, costs are true and never rise."""

from itertools import pairwise

import numpy as np
import pytest

from shoal.kernels.exchange import arcs_for, chains_for, exchange, refresh, regroup
from shoal.kernels.groups import group_cost, scratch_for
from shoal.kernels.members import empty_partition, load_groups
from shoal.kernels.merge import OWNER, MemberLists, MergedRecords, merge_records
from shoal.kernels.partners import cheapest_partners
from shoal.kernels.price import PAPERS
from shoal.kernels.start import start_groups
from tests.people import as_samples

DEPTH, CLOSINGS, ARCS, NEAR_GROUPS = 4, 30, 12, 5


def random_lists(n, seed, kind="mixed"):
    rng = np.random.default_rng(seed)
    if kind == "identical":
        return [[(3, 1, 1), (8, 2, 2)]] * n
    lists = []
    for _ in range(n):
        count = rng.integers(1, 7)
        home = rng.integers(0, 5, 2) * 40 if kind == "mixed" else rng.integers(0, 10_000, 2)
        t = np.sort(rng.choice(60, count, replace=False))
        lists.append(np.column_stack([t, home + rng.integers(0, 6, (count, 2))]))
    return lists


def pair_costs(samples):
    """Both owner costs of every pair added, each by a merge of its own."""
    n = len(samples.offsets) - 1
    pairs = [(u, v) for u in range(n) for v in range(n) if u != v]
    costs = np.empty(len(pairs))
    places, zeros = np.arange(0, 2 * len(pairs) + 1, 2), np.zeros(len(pairs), np.int64)
    nothing = np.empty((0, 6), np.int32)
    lists, merged = MemberLists(places, np.array(pairs).ravel()), MergedRecords(nothing, zeros, zeros.copy(), costs)
    merge_records(samples, lists, OWNER, PAPERS, merged)
    table = np.full((n, n), np.inf)
    table[tuple(np.array(pairs).T)] = costs
    return table + table.T


def neighbours(samples, kind, seed):
    """Lists of neighbours, as good or bad as may be."""
    n = len(samples.offsets) - 1
    rng = np.random.default_rng(seed)
    if kind == "none":
        return np.full((n, 3), -1), np.full(n, np.inf)
    if kind == "hubs":  # everyone knows the same three
        near = np.array([[v for v in range(4) if v != u][:3] for u in range(n)])
        near[near >= n] = -1
        return near, np.zeros(n)
    if kind == "random":  # not symmetric, of any length
        near = np.array([rng.permutation(np.delete(np.arange(n), u)) for u in range(n)])[:, :6]
        near[np.arange(near.shape[1]) >= rng.integers(0, 7, n)[:, None]] = -1
        return near, rng.random(n)
    costs = pair_costs(samples)
    near = np.argsort(costs, axis=1, kind="stable")[:, : n - 1][:, :10]
    return near, np.take_along_axis(costs, near[:, -1:], axis=1)[:, 0]


def check(samples, groups, k, scratch):
    """Everybody in one place, sizes right, figures true."""
    n = len(samples.offsets) - 1
    used = np.flatnonzero(groups.size)
    assert sorted(u for g in used for u in groups.members[g, : groups.size[g]]) == list(range(n))
    assert groups.size[used].min() >= k
    assert groups.size[used].max() <= 2 * k - 1
    for g in range(len(groups.size)):
        members = groups.members[g, : groups.size[g]]
        assert (groups.of[members] == g).all()
        assert groups.place[members].tolist() == list(range(len(members)))
        expected = group_cost(samples, members, len(members), np.inf, scratch) if len(members) else 0.0
        assert groups.cost[g] == expected
        for place in np.flatnonzero(groups.without[g, : len(members)] >= 0):
            rest = np.delete(members, place)
            assert groups.without[g, place] == pytest.approx(
                group_cost(samples, rest, len(rest), np.inf, scratch), rel=1e-12
            )


def search(samples, near, reach, k, sweeps=4, start=None):
    """Start and sweep, checked after each step; give the total costs."""
    n = len(samples.offsets) - 1
    scratch, groups = scratch_for(samples, 2 * k), empty_partition(n, k)
    if start is None:
        start_groups(samples, near, np.argsort(-reach, kind="stable"), ARCS, groups, scratch)
    else:
        load_groups(samples, np.array(start), groups, scratch)
    check(samples, groups, k, scratch)
    arcs, chains = arcs_for(near, ARCS, NEAR_GROUPS), chains_for(DEPTH, CLOSINGS)
    totals = [groups.cost.sum()]
    for _ in range(sweeps):
        promise = np.empty(n)
        refresh(samples, groups, arcs, 0, promise[: n // 2], scratch)
        refresh(samples, groups, arcs, n // 2, promise[n // 2 :], scratch)
        assert groups.cost.sum() == totals[-1]
        order = np.argsort(promise, kind="stable")
        for users in (order[: n // 3], order[n // 3 :]):
            exchange(samples, users, groups, arcs, chains, scratch)
            check(samples, groups, k, scratch)
            totals.append(groups.cost.sum())
        regroup(samples, groups, arcs, scratch)
        check(samples, groups, k, scratch)
        totals.append(groups.cost.sum())
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(totals))
    return totals


KINDS = ["true", "none", "hubs", "random"]
SIZES = {"k": lambda k: k, "2k-1": lambda k: 2 * k - 1, "2k": lambda k: 2 * k, "3k-1": lambda k: 3 * k - 1}


@pytest.mark.parametrize("near", KINDS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_least_numbers_of_users(near, size, k):
    for seed, kind in enumerate(["mixed", "isolated", "identical"]):
        n = SIZES[size](k)
        samples = as_samples(random_lists(n, seed, kind))
        search(samples, *neighbours(samples, near, seed), k)


@pytest.mark.parametrize("near", KINDS)
@pytest.mark.parametrize("kind", ["mixed", "isolated", "identical"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_more_users(near, kind, k):
    for seed, n in enumerate([23, 41]):
        samples = as_samples(random_lists(n, seed, kind))
        search(samples, *neighbours(samples, near, seed), k)


@pytest.mark.parametrize("sizes", [[2, 3, 2, 3, 2], [3, 3, 3, 3], [2] * 6])
def test_sweeps_from_groups_there_are(sizes):
    lists = random_lists(sum(sizes), 5)
    samples = as_samples(lists)
    near, reach = neighbours(samples, "true", 0)
    totals = search(samples, near, reach, 2, start=sizes)
    assert totals[-1] < totals[0]


def test_two_who_stand_wrong_are_exchanged():
    here, there = [[(1, 0, 0)], [(2, 0, 0)]], [[(1, 900, 900)], [(2, 900, 900)]]
    samples = as_samples([here[0], there[0], here[1], there[1]])
    near, reach = neighbours(samples, "true", 0)
    assert search(samples, near, reach, 2, sweeps=1, start=[2, 2])[-1] == 2 * 2 * (2 * 2)


def test_a_group_too_large_is_split_and_one_that_nobody_needs_dissolved():
    close = [[(5, n // 2, n // 2)] for n in range(4)]  # two pairs, as one group of three and one that stands badly
    samples = as_samples([close[0], close[1], close[2], [(5, 500, 500)], close[3], [(5, 500, 501)]])
    near, reach = neighbours(samples, "true", 0)
    best = search(samples, near, reach, 2, start=[3, 3], sweeps=6)[-1]
    assert best == 2 * 2 + 2 * 2 + 2 * 3


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_groups_decides_nothing_twice(seed):
    """The same call gives the same groups."""
    samples = as_samples(random_lists(30, seed))
    near, reach = neighbours(samples, "true", seed)
    assert search(samples, near, reach, 3) == search(samples, near, reach, 3)


# Partners


def naive_partners(costs, nearest, start, kept):
    """The cheapest of all who stand in a user's list, or whose list she stands in."""
    rows = []
    for row, candidates in enumerate(nearest):
        user = start + row
        known = set(candidates) | {start + other for other, others in enumerate(nearest) if user in others}
        ranked = sorted((costs[user, other], other) for other in known)[:kept]
        rows.append(ranked + [(np.inf, -1)] * (kept - len(ranked)))
    return rows


def check_partners(samples, nearest, start, kept):
    rows = len(nearest)
    other, cost = np.empty((rows, kept), np.int64), np.empty((rows, kept))
    merged = cheapest_partners(samples, nearest, start, PAPERS, other, cost)
    costs = pair_costs(samples)
    for row, ranked in enumerate(naive_partners(costs, nearest.tolist(), start, kept + 1)):
        expected, chosen = ranked[:kept], other[row]
        assert cost[row].tolist() == pytest.approx([c for c, _ in expected], rel=1e-12)
        assert ((chosen < 0) == np.isinf(cost[row])).all()
        assert len(set(chosen[chosen >= 0])) == (chosen >= 0).sum()
        assert [costs[start + row, v] for v in chosen[chosen >= 0]] == pytest.approx(cost[row][chosen >= 0].tolist())
        if all(after > before * (1 + 1e-9) for (before, _), (after, _) in pairwise(ranked) if after < np.inf):
            assert chosen.tolist() == [v for _, v in expected]
    pairs = {frozenset((start + row, v)) for row, others in enumerate(nearest.tolist()) for v in others}
    assert merged == len(pairs)
    return other


@pytest.mark.parametrize("kept", [1, 3, 8, 30])
@pytest.mark.parametrize("kind", ["mixed", "isolated", "identical"])
def test_partners_equal_brute_force(kept, kind):
    for seed, (n, start, stop) in enumerate([(2, 0, 2), (20, 0, 20), (25, 7, 18), (25, 20, 25)]):
        samples = as_samples(random_lists(n, seed, kind))
        rng = np.random.default_rng(seed)
        ranks = min(n - 1, 8)
        nearest = np.array([rng.permutation(np.delete(np.arange(n), u))[:ranks] for u in range(start, stop)])
        check_partners(samples, nearest, start, kept)


def test_partners_as_cheap_come_in_order():
    samples = as_samples(random_lists(9, 0, "identical"))
    nearest = np.array([[v for v in range(8, -1, -1) if v != u] for u in range(9)])
    other = check_partners(samples, nearest, 0, 4)
    assert other.tolist() == [[v for v in range(9) if v != u][:4] for u in range(9)]
