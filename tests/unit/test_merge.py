"""k_merge against brute force over all partitions."""

import time
from functools import partial

import numpy as np
import pytest

import shoal
from shoal.errors import InputError, SettingsError
from shoal.kernels.merge import MemberLists, MergedRecords, merge_records, pair_owner_costs, pair_scratch
from shoal.kernels.price import PAPERS, PRICES, price_of_worth
from shoal.merge import OBJECTIVES as MERGE_OBJECTIVES
from tests.oracle.merge import additive, cheapest, cost_of, holds
from tests.people import as_samples

OBJECTIVES = ("sum", "owner", "members")


def random_case(rng, largest=11):
    """A few short trajectories on a small grid, with many ties in time."""
    n_users = int(rng.integers(2, 6))
    slots = int(rng.integers(2, 12))
    sizes = rng.integers(1, max(2, largest // n_users) + 2, n_users)
    side = int(rng.integers(1, 30))
    return [
        [
            (int(t), int(x), int(y))
            for t, x, y in np.stack([rng.integers(0, slots, n), *rng.integers(-side, side, (2, n))], 1)
        ]
        for n in sizes
    ]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("block", range(4))
def test_equals_brute_force(objective, block):
    """4 blocks × 200 cases × 3 objectives = 2,400 cases, L = 2…5."""
    rng = np.random.default_rng([block, 7])
    for _ in range(200):
        trajectories = random_case(rng)
        boxes, cost = shoal.k_merge([np.array(s) for s in trajectories], objective)
        assert cost == pytest.approx(cheapest(trajectories, objective), rel=1e-12)
        assert cost == pytest.approx(cost_of(boxes.tolist(), trajectories, objective), rel=1e-12)
        assert (boxes[1:, 0] > boxes[:-1, 1]).all()
        for samples in trajectories:
            assert all(any(holds(box, s) for box in boxes) for s in samples)
            assert all(any(holds(box, s) for s in samples) for box in boxes)


@pytest.mark.parametrize("objective", ["owner", "members"])
@pytest.mark.parametrize("price", ["sum", "roots"])
def test_any_price_equals_brute_force(price, objective):
    """400 cases of each, from worths that make only time count to those that make only space count."""
    rng = np.random.default_rng([len(price), len(objective)])
    for _ in range(400):
        trajectories, worth = random_case(rng), tuple(10.0 ** rng.uniform(-2, 2, 2))
        boxes, cost = shoal.k_merge([np.array(s) for s in trajectories], objective, price=price, worth=worth)
        plain = partial(additive, worth=worth, root=price == "roots")
        assert cost == pytest.approx(cheapest(trajectories, objective, plain), rel=1e-12)
        assert cost == pytest.approx(cost_of(boxes.tolist(), trajectories, objective, plain), rel=1e-12)


def test_prices_choose_different_boxes():
    rng, differ = np.random.default_rng(4), np.zeros(2, int)
    for _ in range(400):
        trajectories = random_case(rng)
        product, *others = (shoal.k_merge(trajectories, "owner", price=name)[0].tolist() for name in PRICES)
        differ += [boxes != product for boxes in others]
    assert (differ > 2).all()


def test_boxes_are_tight():
    trajectories = random_case(np.random.default_rng(3))
    boxes, _ = shoal.k_merge([np.array(s) for s in trajectories])
    for box in boxes:
        inside = np.array([s for samples in trajectories for s in samples if box[0] <= s[0] <= box[1]])
        assert box.tolist() == np.stack([inside.min(0), inside.max(0)], 1).ravel().tolist()


def test_one_trajectory_keeps_its_slots():
    boxes, cost = shoal.k_merge([np.array([(3, 1, 1), (0, 5, 5), (3, 2, 1)])])
    assert boxes.tolist() == [[0, 0, 5, 5, 5, 5], [3, 3, 1, 2, 1, 1]]
    assert cost == 2 + 3


def test_ties_take_the_later_start():
    """One box over slots 0…3 costs 4·2, two boxes of two slots cost 2·2 each."""
    boxes, cost = shoal.k_merge([np.array([(0, 0, 0), (3, 0, 0)]), np.array([(1, 0, 0), (2, 0, 0)])])
    assert cost == 8
    assert boxes[:, :2].tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_costs_alone_are_the_same(objective):
    """With no room for boxes the kernel fills costs only."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        trajectories = [sorted(samples) for samples in random_case(rng)]
        ends, cost, nothing = np.array([0, len(trajectories)]), np.zeros(1), np.zeros(1, np.int64)
        none = np.empty((0, 6), np.int32)
        lists, merged = MemberLists(ends, np.arange(ends[1])), MergedRecords(none, ends[:1], nothing, cost)
        merge_records(as_samples(trajectories), lists, MERGE_OBJECTIVES[objective], PAPERS, merged)
        assert cost[0] == shoal.k_merge(trajectories, objective)[1]


def test_the_largest_granules_do_not_overflow():
    most = 2**31 - 1
    far = [[(0, 0, 0), (most, most, most)], [(1, 0, 0)]]
    expected = float((most + 1) * 2 * (most + 1))
    assert shoal.k_merge(far)[1] == expected
    assert pair(far) == (expected, expected)


def pair(trajectories, bounds=(np.inf, np.inf), price=PAPERS):
    samples = as_samples([sorted(own) for own in trajectories])
    return pair_owner_costs(samples, 0, 1, *bounds, pair_scratch(len(samples.t), price))


def test_pair_kernel_gives_both_roles():
    rng = np.random.default_rng(11)
    for _ in range(600):
        trajectories = random_case(rng)[:2]
        expected = cheapest(trajectories, "owner"), cheapest(trajectories[::-1], "owner")
        assert pair(trajectories) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["sum", "roots"])
def test_pair_kernel_gives_both_roles_at_any_price(name):
    rng = np.random.default_rng(14)
    for _ in range(300):
        trajectories, worth = random_case(rng)[:2], tuple(10.0 ** rng.uniform(-2, 2, 2))
        plain = partial(additive, worth=worth, root=name == "roots")
        expected = cheapest(trajectories, "owner", plain), cheapest(trajectories[::-1], "owner", plain)
        assert pair(trajectories, price=price_of_worth(name, *worth)) == pytest.approx(expected, rel=1e-12)


def test_pair_kernel_agrees_with_the_general_one_on_long_trajectories():
    rng = np.random.default_rng(12)
    for _ in range(60):
        trajectories = [
            np.stack([rng.integers(0, 900, n), *rng.integers(0, 200, (2, n))], 1) for n in rng.integers(1, 300, 2)
        ]
        expected = shoal.k_merge(trajectories, "owner")[1], shoal.k_merge(trajectories[::-1], "owner")[1]
        assert pair([s.tolist() for s in trajectories]) == pytest.approx(expected, rel=1e-12)


def test_abandoning_never_loses_a_cost_within_its_bound():
    rng = np.random.default_rng(13)
    abandoned = 0
    for _ in range(300):
        trajectories = [
            np.stack([rng.integers(0, 400, n), *rng.integers(0, 50, (2, n))], 1).tolist()
            for n in rng.integers(20, 90, 2)
        ]
        exact = pair(trajectories)
        bounds = tuple(np.array(exact) * rng.uniform(0.2, 1.4, 2))
        got = pair(trajectories, bounds)
        if got == (np.inf, np.inf):
            abandoned += 1
            assert exact[0] > bounds[0]
            assert exact[1] > bounds[1]
        else:
            assert got == exact
    assert abandoned > 20


@pytest.mark.parametrize("when", [0, 50_000, 99_999])
def test_one_sample_against_very_many_is_fast(when):
    many = np.zeros((100_000, 3), np.int64)
    many[:, 0] = np.arange(100_000)
    one = [(when, 5, 5)]
    shoal.k_merge([many[:2], one])  # compiles
    pair([many[:2].tolist(), one])
    begun = time.process_time()
    assert shoal.k_merge([many, one])[1] == 100_000 * 12
    assert pair([many.tolist(), one]) == (100_000 * 12, 100_000 * 12)
    assert time.process_time() - begun < 5


def test_a_million_samples_in_a_slot():
    crowd = np.zeros((1_000_000, 3), np.int64)
    crowd[:, 1] = np.arange(1_000_000)
    boxes, cost = shoal.k_merge([crowd, np.array([(0, 5, 5), (1, 5, 5)])])
    assert boxes.tolist() == [[0, 1, 0, 999_999, 0, 5]]
    assert cost == 2 * (1_000_000 + 6)


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [np.zeros((0, 3), int)],
        [np.zeros((2, 2), int)],
        [np.zeros((2, 3))],
        [[(0, 0, 0), (2**40, 0, 0)]],
        [[(-(2**63), 0, 0)], [(2**63 - 1, 0, 0)]],
        [np.full((1, 3), 2**63, np.uint64)],
        [[(0, 0, 0), (1, 1)]],
        [None],
    ],
)
def test_bad_trajectories(bad):
    with pytest.raises(InputError):
        shoal.k_merge(bad)


def test_bad_objective():
    with pytest.raises(SettingsError):
        shoal.k_merge([[(0, 0, 0)]], "least")


@pytest.mark.parametrize(
    "bad", [{"price": "dear"}, {"price": "roots"}, {"worth": (0, 1)}, {"worth": (1, np.inf)}, {"worth": (1,)}]
)
def test_bad_prices(bad):
    """The objective `sum` takes no price but the papers': elementary boxes are not enough then."""
    with pytest.raises(SettingsError):
        shoal.k_merge([[(0, 0, 0)]], **bad)
