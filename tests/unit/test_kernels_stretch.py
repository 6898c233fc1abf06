"""Stretch efforts against the slow twin: samples, boxes with weights, ties, and leaving off early."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError, SettingsError
from shoal.frame import Frame
from shoal.kernels.stretch import (
    NearestBoxes,
    RowRange,
    Scale,
    StretchedBoxes,
    Weights,
    box_effort,
    box_reach,
    effort_sum,
    nearest_boxes,
    nearest_parts,
)
from shoal.measure.stretch import Stretch
from tests.draws import examples
from tests.oracle import stretch as oracle
from tests.people import as_samples

GRID = Frame(crs=None)


def terms_of(stretch, frame=GRID):
    weight = Fraction(str(stretch.space_weight))
    return oracle.Terms(weight, stretch.space_max_m, stretch.time_max_s, frame.cell_m, frame.slot_s)


# Short reaches, so that caps are met; the last has no round numbers.
SHORT = Stretch(space_max_m=500, time_max_s=600)
stretches = st.sampled_from(
    [
        Stretch(),
        SHORT,
        Stretch(space_max_m=1000, time_max_s=300, space_weight=0.25),
        Stretch(space_max_m=777, time_max_s=913, space_weight=0.3),
    ]
)
moment = st.integers(-8, 25)
place = st.integers(-6, 12)
sample = st.tuples(moment, place, place)
samples = st.lists(sample, min_size=1, max_size=12, unique=True).map(sorted)


@st.composite
def box(draw):
    (t, x, y), dt, dx, dy = draw(sample), *(draw(st.integers(0, 6)) for _ in range(3))
    return (t, t + dt, x, x + dx, y, y + dy)


boxes = st.lists(box(), min_size=1, max_size=10).map(sorted)
people = st.integers(1, 5)


def rows_of(a, b):
    return RowRange(0, len(a)), RowRange(len(a), len(a) + len(b))


def packed(a, b):
    edges = np.array([*a, *b], np.int32)
    boxes = StretchedBoxes(edges, np.empty(len(edges), np.int32))
    for rows in rows_of(a, b):
        box_reach(boxes, *rows)
    return boxes


@examples(150)
@given(boxes, boxes, people, people, stretches)
def test_boxes_equal_the_slow_twin(a, b, n_a, n_b, stretch):
    both, ends = packed(a, b), rows_of(a, b)
    scale = stretch.scale(GRID)
    truth = oracle.effort(a, b, n_a, n_b, terms_of(stretch))
    weights = Weights(n_a, n_b)
    assert box_effort(both, *ends, weights, scale, np.inf) == pytest.approx(float(truth), abs=1e-14)
    back = box_effort(both, *ends[::-1], Weights(n_b, n_a), scale, np.inf)
    assert back == box_effort(both, *ends, weights, scale, 1.0)


@examples(150)
@given(boxes, boxes, people, people, stretches)
@example([(10, 10, 0, 0, 0, 0)], [(0, 0, 0, 0, 0, 0), (10, 10, 0, 0, 5, 5)], 1, 1, SHORT)  # both caps
def test_the_nearest_box_is_the_first_at_the_least_effort(a, b, n_a, n_b, stretch):
    at, space, time = nearest = NearestBoxes(np.empty(len(a), np.int64), np.empty(len(a)), np.empty(len(a)))
    nearest_boxes(packed(a, b), *rows_of(a, b), Weights(n_a, n_b), stretch.scale(GRID), nearest)
    for i, one in enumerate(a):
        truth = oracle.nearest(one, b, n_a, n_b, terms_of(stretch))
        assert at[i] - len(a) == truth
        expected = oracle.sample_parts(one, b[truth], n_a, n_b, terms_of(stretch))
        assert (space[i], time[i]) == pytest.approx([float(part) for part in expected], abs=1e-14)


@examples(150)
@given(samples, samples, stretches)
@example([(0, 0, 0), (10, 0, 0)], [(0, 0, 0), (10, 0, 5)], SHORT)  # both caps
def test_samples_equal_the_slow_twin(a, b, stretch):
    first, second = oracle.as_boxes(a), oracle.as_boxes(b)
    scale = stretch.scale(GRID)
    if not oracle.first_is_longer(first, second):
        a, b = b, a
    both, ends = as_samples([a, b]), rows_of(a, b)
    whole = (scale.space_cap + scale.time_cap) * len(a)
    truth = oracle.effort(first, second, terms=terms_of(stretch))
    assert Fraction(effort_sum(both, *ends, scale, whole), whole) == truth
    space, time = np.empty(len(a), np.int64), np.empty(len(a), np.int64)
    nearest_parts(both, *ends, scale, space, time)
    whole = scale.space_cap + scale.time_cap
    found = [(Fraction(int(s), whole), Fraction(int(p), whole)) for s, p in zip(space, time, strict=True)]
    assert found == oracle.parts(first, second, terms=terms_of(stretch))


@examples(100)
@given(samples, samples, stretches, st.fractions(0, 1))
def test_it_leaves_off_only_above_the_limit(a, b, stretch, share):
    scale = stretch.scale(GRID)
    both, ends = as_samples([a, b]), rows_of(a, b)
    whole = (scale.space_cap + scale.time_cap) * len(a)
    total = effort_sum(both, *ends, scale, whole)
    limit = int(share * whole)
    found = effort_sum(both, *ends, scale, limit)
    assert found == total if total <= limit else limit < found <= total

    both, weights = packed(oracle.as_boxes(a), oracle.as_boxes(b)), Weights(2, 3)
    effort = box_effort(both, *ends, weights, scale, np.inf)
    assert box_effort(both, *ends, weights, scale, effort) == effort
    assert box_effort(both, *ends, weights, scale, effort - 1e-9) == np.inf


@examples(100)
@given(sample, sample, stretches)
def test_for_two_samples_it_is_the_taxicab_form_of_the_k_gap_paper(a, b, stretch):
    terms = terms_of(stretch)
    (first,), (second,) = oracle.as_boxes([a]), oracle.as_boxes([b])
    assert oracle.sample_effort(first, second, terms=terms) == oracle.taxicab(a, b, terms)
    assert shoal.stretch_effort([a], [b], stretch=stretch) == pytest.approx(float(oracle.taxicab(a, b, terms)), abs=0)


def test_far_coordinates_do_not_overflow():
    end = 2**30
    a, b = [(-end, -end, -end)], [(end, end, end), (end, end, end - 1)]
    assert shoal.stretch_effort(a, b) == 1.0
    assert effort_sum(as_samples([a, b]), *rows_of(a, b), Stretch().scale(GRID), 10**9) == 4800


def test_the_paper_s_terms_and_the_units_of_the_grid():
    assert Stretch().scale(GRID) == Scale(12, 5, 2400, 2400)
    assert shoal.stretch_effort([(0, 0, 0)], [(0, 10, 0)]) == 0.5 * 1 / 20  # 1 km of 20
    assert shoal.stretch_effort([(0, 0, 0)], [(48, 0, 0)]) == pytest.approx(0.5 * 0.1)  # 48 min of 8 h
    assert shoal.stretch_effort([(0, 0, 0)], [(1, 1, 0)], frame=Frame(crs=None, cell_m=500, slot_s=1800)) == (
        pytest.approx(0.5 * 500 / 20_000 + 0.5 * 1800 / 28_800)
    )


def test_weights_say_whose_precision_is_lost():
    inner, outer = [(0, 0, 0, 0, 0, 0)], [(0, 0, 0, 9, 0, 0)]  # only the inner box must be stretched, by 900 m
    assert shoal.stretch_effort(inner, outer) == pytest.approx(0.5 * 450 / 20_000)
    assert shoal.stretch_effort(inner, outer, weights=(1, 3)) == pytest.approx(0.5 * 225 / 20_000)
    assert shoal.stretch_effort(inner, outer, weights=(3, 1)) == pytest.approx(0.5 * 675 / 20_000)


def test_rows_in_any_order_and_either_first():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 90, (20, 3)), rng.integers(0, 90, (20, 3))
    expected = shoal.stretch_effort(a, b)
    assert shoal.stretch_effort(b, rng.permutation(a)) == expected
    assert expected == pytest.approx(float(oracle.effort(oracle.as_boxes(a.tolist()), oracle.as_boxes(b.tolist()))))


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (([], [(0, 0, 0)]), {}, InputError),
        (([(0, 0)], [(0, 0, 0)]), {}, InputError),
        (([(0.5, 0, 0)], [(0, 0, 0)]), {}, InputError),
        (([(0, 0, 0)], [(5, 4, 0, 0, 0, 0)]), {}, InputError),
        (([(0, 0, 0)], [(2**31, 0, 0)]), {}, InputError),
        (([(0, 0, 0)], [(0, 0, 0)]), {"weights": (0, 1)}, SettingsError),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, options, error):
    with pytest.raises(error):
        shoal.stretch_effort(*arguments, **options)


@pytest.mark.parametrize("wrong", [{"space_max_m": 0}, {"time_max_s": 0}, {"space_weight": 0.0}, {"space_weight": 1.0}])
def test_terms_that_make_no_sense_are_refused(wrong):
    with pytest.raises(SettingsError):
        Stretch(**wrong)


def test_terms_without_a_common_measure_are_refused():
    with pytest.raises(SettingsError, match="rounder"):
        Stretch(space_max_m=19_997, time_max_s=28_793, space_weight=0.123457).scale(GRID)
