"""k-scale's refinements: marginal picking and the limit on members."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.kernels.marginal import Placed, Tried, choose_rows, place_leftovers
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import Samples, samples_of
from shoal.kernels.weighted import grown_costs, merged_cost, scratch_of
from shoal.run import Run
from shoal.search import pair_costs, proxy_candidates, signatures
from shoal.search.constraints import hardest_first, nu_k_pick
from shoal.search.marginal import _refresh, _start, _sweep, marginal_pick
from shoal.trajectories import build
from tests.draws import examples
from tests.oracle import marginal as slow
from tests.people import people_of, random_people


def costs_of(people, n=1000):
    return pair_costs(people, *proxy_candidates(signatures(people), n))


def check_promises(people, members, k, most):
    times = np.bincount(np.concatenate(members).astype(int), minlength=len(people)) + 1
    assert times.min() >= k
    assert min(map(len, members)) >= 1
    assert max(map(len, members)) <= most
    for owner, chosen in enumerate(members):
        assert owner not in chosen
        assert len(set(chosen)) == len(chosen)


@given(st.integers(1, 6), st.integers(0, 10**6), st.booleans())
@examples(150)
def test_costs_without_boxes_equal_k_merge(n_members, seed, crowded):
    people = random_people(n_members, seed=seed, slots=12 if crowded else 200, side=20, mean=8)
    everyone = np.arange(n_members)
    for objective in ("owner", "members"):
        weights = 1.0 / people.counts
        if objective == "owner":
            weights = np.where(everyone == 0, weights, 0.0)
        _, expected = shoal.k_merge([people.user(u) for u in range(n_members)], objective)
        room = scratch_of(people.samples, n_members, PAPERS)
        samples = samples_of(people)
        assert merged_cost(samples, everyone, n_members, weights, np.inf, room) == pytest.approx(expected, rel=1e-12)
        assert merged_cost(samples, everyone, n_members, weights, expected * 1.001, room) == pytest.approx(
            expected, rel=1e-12
        )
        assert merged_cost(samples, everyone, n_members, weights, expected * 0.999, room) >= expected * (1 - 1e-12)


def test_a_dear_merge_is_abandoned():
    people = random_people(2, seed=1, side=1000)
    room = scratch_of(people.samples, 2, PAPERS)
    samples = samples_of(people)
    assert merged_cost(samples, np.arange(2), 2, np.ones(2), 1.0, room) == np.inf


def test_grown_costs():
    people = random_people(12, seed=2)
    lists = np.array([[i, (i + 1) % 12, (i + 5) % 12] for i in range(12)])
    rows, columns = np.arange(12), (np.arange(12) + 3) % 12
    got = np.empty(12)
    grown_costs(samples_of(people), lists, rows, columns, PAPERS, got)
    for i in range(12):
        who = [*lists[i], columns[i]]
        assert got[i] == pytest.approx(shoal.k_merge([people.user(u) for u in who], "members")[1])


@pytest.mark.parametrize("seed", range(4))
def test_a_column_takes_the_rows_that_grow_least(seed):
    """The choice of one column, all rows being looked at, equals trying everything with k-merge alone."""
    k, people = 3, random_people(14, seed=seed, mean=6)
    costs = costs_of(people)
    placed, tried = _start(costs, k, 4)
    _refresh(people, placed, np.flatnonzero(placed.size))
    order = hardest_first(costs, costs.others, k)
    _sweep(people, placed, tried, order, Run(threads=1))
    for column in range(14):
        rows, got = np.empty((1, k - 1), np.int64), np.empty((1, k - 1))
        choose_rows(samples_of(people), placed, tried, np.array([column]), rows, got)
        near = set(tried.row[column].tolist()) | set(placed.picks[column].tolist())
        growth = {}
        for row in near:
            others = [m for m in placed.member[row, : placed.size[row]].tolist() if m != column]
            if len(others) < 4:
                with_column = slow.record_cost(people, row, [*others, column])
                growth[row] = with_column - slow.record_cost(people, row, others)
        best = sorted(growth.values())[: k - 1]
        assert sorted(growth[row] for row in rows[0]) == pytest.approx(best, rel=1e-6, abs=1e-6)
        for row, cost in zip(rows[0], got[0], strict=True):
            others = [m for m in placed.member[row, : placed.size[row]].tolist() if m != column]
            assert cost == pytest.approx(slow.record_cost(people, row, [*others, column]))


@pytest.mark.parametrize(("k", "most"), [(2, 1), (2, 2), (3, 4), (4, 3), (5, 8)])
@pytest.mark.parametrize("seed", range(3))
def test_promises_and_costs(k, most, seed):
    """Everything promised holds, the costs kept along the way are the true ones, and no sweep raises them."""
    people = random_people(40, seed=seed, mean=5)
    costs = costs_of(people)
    placed, tried = _start(costs, k, most)
    _refresh(people, placed, np.flatnonzero(placed.size))
    order = hardest_first(costs, costs.others, k)
    totals = []
    for _ in range(3):
        _sweep(people, placed, tried, order, Run(threads=1))
        if not totals:
            _refresh(people, placed, np.flatnonzero(place_leftovers(placed, *costs[:2], costs.others)))
        totals.append(placed.cost.sum())
        assert sorted(placed.picks.ravel().tolist()) == sorted(np.repeat(np.arange(40), placed.size).tolist())
    assert totals == sorted(totals, reverse=True)
    members = slow.members_of(marginal_pick(people, costs, k, most))
    check_promises(people, members, k, most)
    filled = [placed.member[i, : placed.size[i]].tolist() for i in range(40)]
    assert totals[-1] == pytest.approx(slow.total_cost(people, filled))


def test_marginal_costs_less_than_the_papers_picking():
    for seed in range(3):
        people = random_people(150, seed=seed, side=100, mean=8)
        costs = costs_of(people)
        for k in (2, 5):
            by_cost, marginal = nu_k_pick(costs, k), marginal_pick(people, costs, k, 2 * (k - 1))
            totals = [slow.total_cost(people, slow.members_of(plan)) for plan in (by_cost, marginal)]
            assert totals[1] < 0.9 * totals[0]


@pytest.mark.parametrize("most", ["least", "default"])
@pytest.mark.parametrize("picking", ["cost", "marginal"])
@pytest.mark.parametrize(
    "trajectories",
    [
        [[(5, 5, 5)]] * 5,
        [[(n, 3 * n, 0)] for n in range(6)],
        [[(0, 0, 0), (9, 1, 1)], [(1, 0, 0)], [(500, 10_000, 0)], [(3, 0, 0), (4, 4, 4), (5, 5, 5)]],
        [[(n % 3, n % 2, 0), (n, n, n)] for n in range(25)],
    ],
)
def test_odd_people(trajectories, picking, most):
    """Identical, one-sample and far users; k = U, U = k + 1; every record full."""
    people = people_of(trajectories)
    for k in {2, 3, len(people) - 1, len(people)}:
        limit = k - 1 if most == "least" else 2 * (k - 1)
        release = shoal.KScale(k=k, picking=picking, max_members=limit, candidates=2).anonymize(people)
        m = release.members
        members = [m.indices[a + 1 : b].tolist() for a, b in zip(m.offsets[:-1], m.offsets[1:], strict=True)]
        check_promises(people, members, k, limit)
        verdict = shoal.verify(people, release)
        assert verdict.ok, verdict.messages


def test_a_chain_makes_room():
    """User 3 can enter her own record only, unless somebody moves on."""
    member = np.array([[1], [0], [3], [-1]])
    picks = np.array([[1], [0], [-1], [2]])
    cost = np.zeros(4)
    placed = Placed(member, np.array([1, 1, 1, 0]), picks, cost, cost, np.zeros(4, np.int64))
    place_leftovers(placed, np.zeros(5, np.int64), np.empty(0, np.int64), np.empty(0))
    assert sorted(placed.picks[:, 0].tolist()) == [0, 1, 2, 3]
    for user, row in enumerate(placed.picks[:, 0]):
        assert row != user
        assert placed.member[row, 0] == user


def test_a_limit_on_the_papers_picking():
    people = random_people(60, seed=3)
    free = shoal.KScale(k=4).anonymize(people)
    capped = shoal.KScale(k=4, max_members=3).anonymize(people)
    assert np.diff(free.members.offsets).max() > 4
    assert set(np.diff(capped.members.offsets).tolist()) == {4}
    assert capped.parameters == {"k": 4, "constraint": "nu-k-pick", "candidates": 400, "max_members": 3}
    loose = shoal.KScale(k=4, max_members=59).anonymize(people)
    assert (loose.members.indices == free.members.indices).all()


def test_threads_and_labels_do_not_matter():
    people = random_people(150, seed=4, mean=6)
    method = shoal.KScale(k=3, picking="marginal")
    one, three = (method.anonymize(people, run=Run(threads=n)) for n in (1, 3))
    assert (one.boxes == three.boxes).all()
    assert (one.members.indices == three.members.indices).all()
    assert one.parameters == {**shoal.KScale(k=3).anonymize(people).parameters, "picking": "marginal", "max_members": 4}
    shuffled = np.random.default_rng(1).permutation(len(people))
    rows = [people.user(u) for u in shuffled]
    users = np.repeat(np.arange(len(people)), [len(samples) for samples in rows])[::-1]
    columns = np.ascontiguousarray(np.concatenate(rows)[::-1].T)
    again = build(users, *columns, labels=pa.array([f"x{n}" for n in range(len(people))]), frame=people.frame)
    other = method.anonymize(again)
    assert (other.boxes == one.boxes).all()
    assert (other.offsets == one.offsets).all()


def test_nothing_is_merged_again_if_nothing_changed():
    """A second look at unchanged records takes every cost from memory: wrong samples would go unnoticed."""
    people = random_people(30, seed=5)
    costs = costs_of(people)
    placed, tried = _start(costs, 3, 4)
    _refresh(people, placed, np.flatnonzero(placed.size))
    order = hardest_first(costs, costs.others, 3)
    before = None
    while before is None or (before != placed.picks).any():
        before = placed.picks.copy()
        _sweep(people, placed, tried, order, Run(threads=1))
    rows, got = np.empty((30, 2), np.int64), np.empty((30, 2))
    nothing = np.zeros_like(people.t)
    samples = Samples(nothing, nothing, nothing, people.offsets)
    choose_rows(samples, placed, Tried(*tried), np.arange(30), rows, got)
    assert (np.sort(rows, axis=1) == np.sort(before, axis=1)).all()
