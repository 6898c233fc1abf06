"""The statistics behind order leaks: fair to fresh random numberings, hard on the others."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import spearmanr

from shoal.seen.findings import Findings
from shoal.verifier.order import _LEAST_P, _follows, _is_regular, _too_many, _trend, check_numbering


def test_random_orders_are_never_blamed():
    draw = np.random.default_rng(7)
    for n in (20, 50, 400):
        shapes = [np.arange(n), np.zeros(n, int), np.arange(n) // 7, (np.arange(n) < 3).astype(int)]
        for values in shapes:
            assert not any(_follows(draw.permutation(values)) for _ in range(100))


def test_kept_orders_are_blamed():
    for n in (20, 50, 400):
        assert _follows(np.arange(n))
        assert _follows(np.arange(n)[::-1])
    assert _follows(np.random.default_rng(1).permutation(40).repeat(5))
    assert _follows(np.arange(400) + np.random.default_rng(1).integers(0, 400, 400))


def rounds(n, k, draw):
    """Groups in random order, one record of each after the other, k times."""
    return np.tile(draw.permutation(n // k), k)


def there_and_back(n, k, draw):
    order = draw.permutation(n // k)
    return np.concatenate([order[:: 1 - 2 * (turn % 2)] for turn in range(k)])


@pytest.mark.parametrize(("n", "k"), [(40, 2), (60, 4), (100, 3), (400, 5)])
@pytest.mark.parametrize("made", [rounds, there_and_back])
def test_regular_numbers_of_groups_are_blamed(made, n, k):
    groups = made(n // k * k, k, np.random.default_rng(n))
    assert _is_regular(groups)
    assert not any(_is_regular(np.random.default_rng(seed).permutation(groups)) for seed in range(200))


@pytest.mark.parametrize("stride", [7, 61, 199])
def test_strides_are_blamed(stride):
    """Number 0 is the first, number 1 the one a stride on, around and around."""
    strided = np.arange(1000) * stride % 1000
    for values in (strided, np.argsort(strided), strided[::-1], strided // 10):
        assert _follows(values)


def test_rounds_of_what_is_only_alike_are_blamed():
    draw = np.random.default_rng(4)
    order = draw.permutation(100)
    for values in (np.concatenate([order, order]), np.concatenate([order, order[::-1]])):
        assert _follows(values + draw.integers(-20, 20, 200))


def test_the_trend_is_spearmans():
    draw = np.random.default_rng(3)
    for n in (5, 30, 200):
        for values in (draw.permutation(n), draw.integers(0, 4, n), np.arange(n) + draw.integers(0, n, n)):
            assert _trend(values) == pytest.approx(spearmanr(values, np.arange(n)).pvalue, rel=1e-9)
    assert _trend(np.zeros(9, int)) == 1.0


def test_more_than_chance():
    assert not _too_many(3, 1.0)
    assert not _too_many(0, 0.0)
    assert _too_many(20, 1.0)


def test_even_a_tenfold_error_blames_less_than_once_in_a_million():
    assert not _too_many(10, 0.75)  # p = 8e-9, of some fifty tests
    assert _too_many(10, 0.7)  # p = 4e-9
    assert not _too_many(10, 0.7, 2)


class Numbered(list):
    """Records in the order of their numbers, none like another: the first box, the last one, and the box around all."""

    def __init__(self, n):
        super().__init__(range(n))
        draw = np.random.default_rng(n)
        self.groups = np.arange(n)
        self.edges = [draw.integers(0, 10**6, (n, 6)) for _ in range(3)]
        self.counts = draw.integers(1, 10**6, n)
        self.unique = SimpleNamespace(ends=self.edges, counts=self.counts)


def put(records, what, up):
    """Let one quantity of the records rise or fall with their numbers."""
    first, last, around = records.edges
    if what == "when they begin":
        first[:, 0] = up
    elif what == "when they end":
        last[:, 1] = up
    elif what == "how many boxes they have":
        records.counts[:] = up
    elif what == "where they begin":
        first[:, 3] = up - first[:, 2]
    elif what == "where they begin (second axis)":
        first[:, 5] = up - first[:, 4]
    elif what == "how far they reach":
        around[:, 5] = up - around[:, 3] + around[:, 2] + around[:, 4]


QUANTITIES = ["when they begin", "when they end", "how many boxes they have", "where they begin",
              "where they begin (second axis)", "how far they reach"]  # fmt: skip


@pytest.mark.parametrize("what", [None, *QUANTITIES])
@pytest.mark.parametrize("turn", [1, -1])
def test_numbers_that_follow_something(what, turn):
    records, findings = Numbered(300), Findings()
    put(records, what, np.arange(300)[::turn])
    check_numbering(findings, records)
    assert findings.found == ([("leaks/order", {"what": what})] if what else [])


@pytest.mark.parametrize("expected", [0.2, 1.0, 3.0])
def test_too_many_are_as_many_as_chance_hardly_gives(expected):
    """The tail of the Poisson distribution, summed term by term."""
    terms = [math.exp(-expected) * expected**n / math.factorial(n) for n in range(60)]
    for seen in range(40):
        assert _too_many(seen, expected) == (math.fsum(terms[seen:]) < _LEAST_P)
