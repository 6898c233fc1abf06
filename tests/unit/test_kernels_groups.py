"""What a group costs, against the merge itself; and how many samples lie in given slots of groups."""

from itertools import pairwise

import numpy as np
import pytest

import shoal
from shoal.kernels.groups import group_cost, samples_within, scratch_for
from shoal.kernels.merge import MEMBERS, MemberLists, MergedRecords, merge_records
from shoal.kernels.price import PAPERS, price_of_worth
from tests.oracle import merge as oracle
from tests.people import as_samples, lists_of

MOST = 6
# The papers', and others from those by which only space counts to those by which only time does.
ANY = [PAPERS, *(price_of_worth(name, cells, 1.0) for name in ("sum", "roots") for cells in (0.01, 1.0, 100.0))]
any_price = pytest.mark.parametrize("price", ANY, ids=lambda price: f"{price.kind}-{price.side}")


def random_samples(seed, users=30):
    """People of very different kinds: busy, static, of one sample, with many samples at one time, alike."""
    rng = np.random.default_rng(seed)
    slots, side = rng.choice([3, 20, 400]), rng.choice([1, 6, 3000])
    lists = []
    for _ in range(users):
        count = 1 if rng.random() < 0.2 else rng.integers(1, rng.choice([3, 9, 40]))
        t = np.sort(rng.integers(0, slots, count)) + rng.integers(0, 2) * slots // 2
        place = rng.integers(-side, side, 2)
        spread = 0 if rng.random() < 0.2 else rng.integers(0, side, (count, 2))
        lists.append(np.column_stack([t, np.broadcast_to(place + spread, (count, 2))]))
        if rng.random() < 0.15:
            lists.append(lists[-1])
    return as_samples(lists[:users])


def random_groups(seed, users=30, count=250):
    rng = np.random.default_rng(seed)
    return [rng.choice(users, rng.integers(1, MOST + 1), replace=False) for _ in range(count)]


def merged_costs(samples, groups, price=PAPERS):
    offsets = np.concatenate([[0], np.cumsum([len(members) for members in groups])])
    costs = np.empty(len(groups))
    nothing = np.empty((0, 6), np.int32)
    starts, counts = np.zeros(len(groups), np.int64), np.zeros(len(groups), np.int64)
    merged = MergedRecords(nothing, starts, counts, costs)
    merge_records(samples, MemberLists(offsets, np.concatenate(groups)), MEMBERS, price, merged)
    return costs


def cost_of(samples, members, bound=np.inf, scratch=None):
    scratch = scratch_for(samples, MOST + 1) if scratch is None else scratch
    return group_cost(samples, np.array([*members, -1]), len(members), bound, scratch)


@any_price
@pytest.mark.parametrize("seed", range(10))
def test_costs_equal_the_merge(seed, price):
    """The starts of boxes that the kernel leaves out are not missed, whatever the price."""
    samples, groups = random_samples(seed), random_groups(seed)
    scratch = scratch_for(samples, MOST, price)
    found = np.array([cost_of(samples, members, scratch=scratch) for members in groups])
    np.testing.assert_allclose(found, merged_costs(samples, groups, price), rtol=1e-12)


@any_price
@pytest.mark.parametrize("seed", range(4))
def test_a_bound_only_spares_what_exceeds_it(seed, price):
    samples, groups = random_samples(seed), random_groups(seed)
    scratch = scratch_for(samples, MOST, price)
    rng = np.random.default_rng(seed)
    abandoned = 0
    for members, cost in zip(groups, merged_costs(samples, groups, price), strict=True):
        for bound in (0.0, cost * rng.random(), cost * (1 - 1e-9), cost * (1 + 1e-9), 2 * cost):
            found = cost_of(samples, members, bound, scratch)
            abandoned += found == np.inf
            assert found == pytest.approx(cost) or (found == np.inf and bound < cost)
            assert found < np.inf or bound < cost
    assert abandoned > 0


@any_price
@pytest.mark.parametrize("seed", range(4))
def test_one_more_never_lowers_a_cost(seed, price):
    samples = random_samples(seed)
    scratch = scratch_for(samples, MOST + 1, price)
    for members in random_groups(seed, count=150):
        costs = [cost_of(samples, members[: n + 1], scratch=scratch) for n in range(len(members))]
        assert all(after >= before * (1 - 1e-12) for before, after in pairwise(costs))


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_members_makes_no_difference(seed):
    samples = random_samples(seed)
    scratch = scratch_for(samples, MOST)
    for members in random_groups(seed, count=50):
        cost = cost_of(samples, members, scratch=scratch)
        assert cost_of(samples, members[::-1], scratch=scratch) == pytest.approx(cost, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_costs_equal_trying_every_partition(seed):
    samples = random_samples(seed, users=12)
    everyone = lists_of(samples)
    for members in random_groups(seed, users=12, count=40):
        lists = [everyone[member] for member in members[:3]]
        if len({t for one in lists for t, _, _ in one}) <= 9:
            assert cost_of(samples, members[:3]) == pytest.approx(oracle.cheapest(lists, "members"))


def test_costs_equal_the_public_face():
    samples = random_samples(3)
    everyone = lists_of(samples)
    for members in random_groups(3, count=20):
        _, cost = shoal.k_merge([everyone[member] for member in members], "members")
        assert cost_of(samples, members) == pytest.approx(cost)


def test_far_places_and_times_stay_exact():
    far = 2**30 - 1
    lists = [[(0, -far, 0), (far, far, far)], [(1, 0, 0), (far, far - 1, -far)]]
    _, cost = shoal.k_merge(lists, "members")
    assert cost_of(as_samples(lists), [0, 1]) == cost


@pytest.mark.parametrize("seed", range(6))
def test_samples_within_slots_are_counted(seed):
    samples = random_samples(seed)
    everyone, rng = lists_of(samples), np.random.default_rng(seed)
    groups = random_groups(seed, count=12)
    offsets = np.concatenate([[0], np.cumsum([len(members) for members in groups])])
    chosen = rng.integers(0, len(groups), 40)
    first = rng.integers(-2, 420, 40).astype(np.int32) // rng.choice([1, 20])
    last = first + rng.integers(0, 60, 40).astype(np.int32)
    expected = sum(
        low <= t <= high
        for group, low, high in zip(chosen, first, last, strict=True)
        for member in groups[group]
        for t, _, _ in everyone[member]
    )
    found = samples_within(samples, MemberLists(offsets, np.concatenate(groups)), chosen, first, last)
    assert found == expected
