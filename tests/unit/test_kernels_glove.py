"""How GLOVE merges two trajectories, and how it finds the nearest: against the definitions."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.kernels.glove import merge_two_stage, reshape, two_stage
from shoal.kernels.stretch import Scale, Weights
from shoal.run import Run
from shoal.search.glove_groups import _LISTED, _Greedy
from tests.draws import examples
from tests.oracle import glove as twin
from tests.oracle.merge import holds
from tests.oracle.stretch import effort
from tests.people import as_samples, random_people

PAPER = Scale(12, 5, 2400, 2400)


@st.composite
def boxes(draw, most=9):
    """A trajectory: boxes sorted, that may overlap, be alike, or lie inside each other."""
    slots, side = draw(st.sampled_from([4, 40, 900])), draw(st.sampled_from([3, 300]))
    long, wide = draw(st.sampled_from([0, 3, 400])), draw(st.sampled_from([0, 50]))
    one = st.tuples(
        st.integers(0, slots),
        st.integers(0, long),
        st.integers(-side, side),
        st.integers(0, wide),
        st.integers(-side, side),
        st.integers(0, wide),
    )
    drawn = draw(st.lists(one, min_size=1, max_size=most, unique=True))
    return sorted((t, t + dt, x, x + dx, y, y + dy) for t, dt, x, dx, y, dy in drawn)


def array(boxes):
    return np.array(boxes, np.int32).reshape(-1, 6)


def tuples(boxes):
    return [tuple(box) for box in boxes.tolist()]


# reshape

INSIDE = [(0, 10, 0, 0, 0, 0), (4, 6, 5, 5, 5, 5)]
CHAIN = [(0, 6, 0, 1, 0, 0), (4, 10, 5, 5, 0, 0), (6, 14, 9, 9, 9, 9)]
EQUAL_STARTS = [(3, 5, 0, 0, 0, 0), (3, 5, 2, 2, 0, 0), (3, 9, 7, 7, 0, 0)]
TOUCHING = [(0, 3, 0, 0, 0, 0), (4, 6, 0, 0, 0, 0)]
EQUAL_ENDS = [(0, 9, 0, 0, 0, 0), (5, 9, 1, 1, 1, 1)]


@examples(150)
@given(boxes())
@example(INSIDE)
@example(CHAIN)
@example(EQUAL_STARTS)
@example(TOUCHING)
@example(EQUAL_ENDS)
def test_reshaped_boxes_are_apart_in_time_and_hold_what_they_held(given_boxes):
    found = tuples(reshape(array(given_boxes)))
    assert found == twin.reshape(given_boxes)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(found))
    for t0, t1, x0, x1, y0, y1 in given_boxes:
        for corner in ((t0, x0, y0), (t1, x1, y1), ((t0 + t1) // 2, x0, y1)):
            assert sum(holds(box, corner) for box in found) == 1


@pytest.mark.parametrize(
    ("given_boxes", "expected"),
    [
        (INSIDE, [(0, 3, 0, 0, 0, 0), (4, 6, 0, 5, 0, 5), (7, 10, 0, 0, 0, 0)]),
        (
            CHAIN,
            [(0, 3, 0, 1, 0, 0), (4, 5, 0, 5, 0, 0), (6, 6, 0, 9, 0, 9), (7, 10, 5, 9, 0, 9), (11, 14, 9, 9, 9, 9)],
        ),
        (EQUAL_STARTS, [(3, 5, 0, 7, 0, 0), (6, 9, 7, 7, 0, 0)]),
        (TOUCHING, TOUCHING),
        (EQUAL_ENDS, [(0, 4, 0, 0, 0, 0), (5, 9, 0, 1, 0, 1)]),
    ],
)
def test_reshape_by_hand(given_boxes, expected):
    assert tuples(reshape(array(given_boxes))) == expected


# two-stage


@examples(150)
@given(boxes(), boxes(), st.integers(1, 4), st.integers(1, 4))
def test_two_stages_equal_the_definition(a, b, n_a, n_b):
    found = tuples(two_stage(array(a), array(b), Weights(n_a, n_b), PAPER))
    assert found == twin.two_stage(a, b, n_a, n_b)
    assert found == tuples(two_stage(array(b), array(a), Weights(n_b, n_a), PAPER))


def test_the_example_of_the_paper():
    """Fig. 10a: s1 and s2 of a point at s2 of b; s1 of b is left, and joins the box of these three."""
    a = [(10, 10, 0, 0, 0, 0), (20, 20, 0, 0, 0, 0), (900, 900, 50, 50, 0, 0)]
    b = [(0, 0, 90, 90, 0, 0), (15, 15, 1, 1, 0, 0), (890, 890, 50, 50, 0, 0)]
    assert tuples(two_stage(array(a), array(b), Weights(1, 1), PAPER)) == [
        (0, 20, 0, 90, 0, 0),
        (890, 900, 50, 50, 0, 0),
    ]


samples = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8)


@examples(150)
@given(samples, samples)
def test_merged_people_keep_every_sample_and_no_empty_box(one, other):
    trajectories = [sorted(set(one)), sorted(set(other))]
    groups = [twin.Group((n,), twin.as_boxes(samples)) for n, samples in enumerate(trajectories)]
    singles = [array(group.boxes) for group in groups]
    found = tuples(merge_two_stage(*singles, Weights(1, 1), PAPER, as_samples(trajectories), np.arange(2)))
    assert found == twin.merged(*groups, trajectories, "two-stage").boxes
    everything = [s for samples in trajectories for s in samples]
    assert all(sum(holds(box, s) for box in found) == 1 for s in everything)
    assert all(any(holds(box, s) for s in everything) for box in found)


def test_a_piece_that_nobody_was_in_is_left_out():
    """[0, 9] and [5, 14] overlap in [5, 9]; there no sample is."""
    a = [(0, 0, 0), (14, 1, 0)]
    b = [(9, 0, 0), (5, 1, 0), (400, 0, 0), (401, 0, 0), (402, 0, 0)]
    trajectories = [a, sorted(b)]
    groups = [twin.Group((n,), twin.as_boxes(samples)) for n, samples in enumerate(trajectories)]
    pieces = twin.reshape(twin.two_stage(groups[0].boxes, groups[1].boxes))
    kept = twin.merged(*groups, trajectories, "two-stage").boxes
    times = [s[0] for samples in trajectories for s in samples]
    assert [box for box in pieces if not any(box[0] <= t <= box[1] for t in times)] == [
        box for box in pieces if box not in kept
    ]


# the search


def in_order(greedy, group, below):
    """All groups there are, as (effort to 1e-12, index), by comparing with each."""
    field = greedy._field
    own = [tuple(box) for box in greedy._boxes_of(group).tolist()]
    found = []
    for other in np.flatnonzero(field.there).tolist():
        if other != group and field.size[other] < below:
            boxes = [tuple(box) for box in greedy._boxes_of(other).tolist()]
            value = effort(own, boxes, int(field.size[group]), int(field.size[other]))
            found.append((twin.rounded(value), other))
    return sorted(found)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("two_stage", [False, True])
def test_the_nearest_are_those_of_comparing_with_everybody(seed, two_stage):
    """For people and, as merging goes on, for groups; also where most efforts are equal."""
    rng = np.random.default_rng(seed)
    slots, side = int(rng.choice([4, 400, 6000])), int(rng.choice([2, 40, 1500]))
    people = random_people(25, seed=seed, slots=slots, side=side, mean=3)
    greedy = _Greedy(people, 4, loose=True, two_stage=two_stage, run=Run(threads=1))
    greedy.search(np.arange(len(people)))
    for _ in range(10):
        for group in rng.choice(np.flatnonzero(greedy._field.there), 2).tolist():
            greedy.search(np.array([group]))
            field = greedy._field
            below = 4 if field.size[group] >= 4 else 2**62
            n = int(field.listed[group])
            listed = list(zip(field.effort[group, :n].tolist(), field.near[group, :n].tolist(), strict=True))
            assert listed == in_order(greedy, group, below)[:_LISTED]
        pair = greedy.least_pair()
        if pair is None:
            break
        greedy.merge(*pair)
