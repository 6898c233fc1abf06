"""Random owners: perfect matchings, and exactly uniform."""

import numpy as np
import pytest
from scipy.stats import chisquare

from shoal.publishing import owners
from shoal.publishing.owners import draw_owners, with_random_owners
from shoal.release import Members
from tests.oracle.marginal import owner_probabilities
from tests.people import people_of


def circulant(n, k):
    """Record r holds users r … r+k-1."""
    return (np.arange(n)[:, None] + np.arange(k)) % n


def latin(n, k, seed):
    """k disjoint perfect matchings without any pattern: circulant ones, records and users renamed."""
    rng = np.random.default_rng(seed)
    shifts = rng.permutation(n)[:k]
    return rng.permutation(n)[(rng.permutation(n)[:, None] + shifts) % n]


@pytest.mark.parametrize(("n", "k"), [(2, 2), (4, 2), (3, 3), (4, 3), (5, 4)])
def test_the_rule_is_exactly_uniform(n, k):
    """By following every draw and every coin of one and two rounds: what the docstring proves."""
    for rounds in (1, 2) if n * k <= 12 else (1,):
        lists = latin(n, k, seed=n).tolist()
        owned = owner_probabilities(lists, rounds)
        assert owned == pytest.approx({(r, u): 1 / k for r in range(n) for u in lists[r]})


@pytest.mark.parametrize(("n", "k"), [(2, 2), (9, 2), (7, 3), (6, 5), (40, 4), (8, 8)])
@pytest.mark.parametrize("seeded", [True, False])
def test_an_owner_each_among_the_members(n, k, seeded):
    lists = latin(n, k, seed=k)
    for seed in range(20):
        drawn = draw_owners(lists, np.random.default_rng(seed) if seeded else None)
        assert sorted(drawn.tolist()) == list(range(n))
        assert (lists == drawn[:, None]).any(axis=1).all()


@pytest.mark.parametrize(
    "lists", [circulant(6, 2), latin(12, 3, seed=1), pytest.param(circulant(11, 5), marks=pytest.mark.slow)], ids=len
)
def test_every_record_is_hers_equally_often(lists):
    """Chi-square for every record over 1,000 draws, and its power: a matching favoured by a third is noticed."""
    n, k = lists.shape
    counts = np.zeros((n, k))
    for seed in range(1000):
        counts += lists == draw_owners(lists, np.random.default_rng(seed))[:, None]
    assert (counts.sum(axis=1) == 1000).all()
    assert min(chisquare(row).pvalue for row in counts) > 1e-3 / n
    for row in counts:
        favoured = row * np.where(np.arange(k) == 0, 1.33, 1.0)
        assert chisquare(favoured * 1000 / favoured.sum()).pvalue < 1e-2


def test_chance_is_fresh_and_a_seed_repeats_it():
    lists = circulant(60, 3)
    free = {tuple(draw_owners(lists)) for _ in range(20)}
    assert len(free) > 1
    seeded = {tuple(draw_owners(lists, np.random.default_rng(5))) for _ in range(5)}
    assert len(seeded) == 1


def test_cycles_are_independent():
    """Ten pairs, ten times: all 1,024 ways to own are possible, and the owners of two pairs are unrelated."""
    pairs = np.arange(200).reshape(100, 2)
    lists = np.concatenate([pairs, pairs[:, ::-1]])
    draws = np.array([draw_owners(lists, np.random.default_rng(seed))[:100] % 2 for seed in range(200)]).reshape(-1, 10)
    assert len({tuple(row) for row in draws}) > 800
    together = np.corrcoef(draws.T) - np.eye(10)
    assert np.abs(together).max() < 0.1


def test_rounds_loosen_what_one_owner_tells(monkeypatch):
    """With one round, an owner tells the matching of far records; with more, less."""
    lists = circulant(30, 3)

    def agreement():
        draws = [draw_owners(lists, np.random.default_rng(seed)) for seed in range(600)]
        place = np.array([(lists == drawn[:, None]).argmax(axis=1) for drawn in draws])
        return np.mean(place[:, 0] == place[:, 15])

    many = agreement()
    monkeypatch.setattr(owners, "_two_of", lambda k, chance: (0, 1))
    monkeypatch.setattr(owners, "_ROUNDS", 1)
    one = agreement()
    assert many < one


def test_members_keep_their_records():
    lists = latin(9, 3, seed=2)
    people = people_of([[(t, t, t)] for t in range(9)])
    members = Members(lists[:, 0], np.arange(0, 28, 3), lists.ravel(), people, lists)
    drawn = with_random_owners(members)
    assert drawn.matchings is None
    after = drawn.indices.reshape(9, 3)
    assert (after[:, 0] == drawn.owners).all()
    assert (after[:, 1] < after[:, 2]).all()
    assert (np.sort(after, axis=1) == np.sort(lists, axis=1)).all()
    assert with_random_owners(drawn) is drawn
    assert (members.matchings == latin(9, 3, seed=2)).all()
