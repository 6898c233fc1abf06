"""Spread and tails of the efforts behind k-gaps, against the slow twin and against known distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError, SettingsError
from shoal.kernels.tails import tail_of_sorted
from shoal.measure.tails import EXPONENTIAL, KINDS, gini, tails
from shoal.run import Run
from tests.draws import examples
from tests.oracle import stretch
from tests.oracle import tails as oracle
from tests.people import random_people

values = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 10**6)), min_size=1, max_size=120)


def tail_weight(numbers):
    return tail_of_sorted(np.sort(np.asarray(numbers, float)))


@examples(150)
@given(values)
def test_gini_and_tail_weight_equal_the_slow_twins(numbers):
    assert gini(numbers) == pytest.approx(oracle.gini(numbers), abs=1e-12)
    assert tail_weight(numbers) == pytest.approx(oracle.tail_weight(numbers), nan_ok=True)


def test_known_distributions():
    p = (np.arange(200_000) + 0.5) / 200_000
    assert tail_weight(-np.log(1 - p)) == pytest.approx(1.636, abs=0.001)
    assert pytest.approx(1.6364, abs=1e-4) == EXPONENTIAL
    assert tail_weight(1 / (1 - p)) == pytest.approx(14.207, abs=0.01)  # Pareto of shape 1
    assert gini(p) == pytest.approx(1 / 3, abs=1e-4)


def test_the_quantile_rule_is_the_one_that_is_named():
    numbers = np.random.default_rng(2).exponential(size=37)
    q50, q75, q99 = np.quantile(numbers, [0.5, 0.75, 0.99], method="inverted_cdf")
    assert tail_weight(numbers) == pytest.approx((q99 - q50) / (q75 - q50) / 3.44904, rel=1e-5)


def test_nothing_to_spread():
    assert gini([0, 0, 0]) == gini([4]) == 0.0
    assert np.isnan([tail_weight([1, 1, 1, 9]), tail_weight([3])]).all()


@pytest.mark.parametrize("wrong", [[], [1, -1], [float("nan")], [float("inf")]])
def test_values_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        gini(wrong)


@pytest.mark.parametrize("k", [2, 4])
def test_everybody_s_figures_are_those_of_their_sample_efforts(k):
    people = random_people(12, slots=2000, side=200, mean=8, seed=k)
    found = tails(shoal.k_gap(people, [2, 4]), k=k, run=Run(threads=2))
    boxes = [stretch.as_boxes(people.user(u).tolist()) for u in range(12)]
    for row, user in enumerate(found.users.tolist()):
        parts = stretch.all_parts(boxes, user, k)
        sets = [[space + time for space, time in parts], [space for space, _ in parts], [time for _, time in parts]]
        assert found.gini[row] == pytest.approx([float(oracle.gini(one)) for one in sets])
        assert found.tail[row] == pytest.approx([float(oracle.tail_weight(one)) for one in sets], nan_ok=True)
        assert found.ratio[row] == pytest.approx(float(sum(sets[2]) / sum(sets[1])))


def test_people_without_a_tail_are_counted_and_left_out():
    people = random_people(30, slots=300, side=40, mean=2)
    found = tails(shoal.k_gap(people, 2))
    figures = found.to_dict()
    unknown = np.isnan(found.tail).sum(axis=0)
    assert unknown.max() > 0
    assert list(figures["tail_unknown"].values()) == unknown.tolist()
    for n, kind in enumerate(KINDS):
        known = found.tail[~np.isnan(found.tail[:, n]), n]
        assert figures["tail_median"][kind] == pytest.approx(np.median(known))
        assert figures["tail_heavy"][kind] == (known > EXPONENTIAL).mean()


def test_the_ratio_where_a_part_costs_nothing():
    moving = random_people(6, side=1, slots=600)  # all at the same few cells
    still = type(moving)(moving.offsets, moving.t, 0 * moving.x, 0 * moving.y, moving.frame, moving.labels)
    figures = tails(shoal.k_gap(still, 2)).to_dict()
    assert figures["time_alone"] == 1.0
    assert figures["gini_median"]["space"] == 0.0
    assert figures["tail_unknown"]["space"] == 6


def test_another_k_is_refused():
    with pytest.raises(SettingsError):
        tails(shoal.k_gap(random_people(6), [2, 3]), k=4)
