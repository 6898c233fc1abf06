"""Points against boxes and samples: equal to plain loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.attacks.matching import BoxMatcher, KnownPoints, PlaceMatcher, SampleMatcher, count_people
from shoal.errors import TooLarge
from shoal.run import Run
from tests.draws import examples
from tests.oracle import attacks as slow
from tests.targets import catalogue_of, original_of, random_crowd, random_records

SEEDS = st.integers(0, 10_000)


def known_of(queries):
    flat = np.array([sample for points in queries for sample in points], dtype=np.int64).reshape(-1, 3)
    return KnownPoints(np.cumsum([0, *map(len, queries)]), *flat.T)


def some_queries(people, seed, n=12):
    """Some samples of somebody, now and then with a stranger's or a place where nobody was; some empty."""
    chance = np.random.default_rng([seed, 2])
    queries = []
    for _ in range(n):
        samples = people[int(chance.integers(len(people)))]
        points = [samples[i] for i in chance.permutation(len(samples))[: chance.integers(0, 4)]]
        if chance.random() < 0.2:
            points.append((int(chance.integers(-3, 60)), int(chance.integers(-2, 9)), 3))
        queries.append(points)
    return queries


def lists(answer):
    offsets, kinds = answer
    return [kinds[a:b].tolist() for a, b in pairwise(offsets)]


def matchers(people):
    original = original_of(people)
    return SampleMatcher(original.offsets, original.t, original.x, original.y)


@examples(60)
@given(SEEDS)
def test_boxes_and_samples_are_found_as_by_loops(seed):
    people, records = random_crowd(seed), random_records(seed)
    queries = some_queries(people, seed)
    boxes, raw = BoxMatcher(catalogue_of(records).unique), matchers(people)
    assert lists(boxes.holders(known_of(queries))) == [slow.candidates(records, points) for points in queries]
    assert lists(raw.holders(known_of(queries))) == [slow.raw_candidates(people, points) for points in queries]
    counted = [slow.count(records, slow.candidates(records, points)) for points in queries]
    assert count_people(boxes, known_of(queries)).tolist() == counted


@examples(40)
@given(SEEDS)
def test_the_box_of_a_point_and_the_boxes_of_a_window(seed):
    chance = np.random.default_rng(seed)
    people, records = random_crowd(seed), random_records(seed)
    n = 30
    t, x, y = chance.integers(-2, (44, 8, 8), (n, 3)).T
    first = chance.integers(-5, 40, n)
    last = first + chance.integers(0, 20, n)
    for matcher, kinds in (
        (BoxMatcher(catalogue_of(records).unique), records),
        (matchers(people), slow.as_records(people)),
    ):
        kind = chance.integers(0, len(kinds), n)
        rows = matcher.find(kind, t, x, y)
        low, high = matcher.within(kind, first, last)
        for i in range(n):
            boxes = kinds[kind[i]][0]
            sound = matcher is not None and (kinds is not records or slow.is_sound(boxes))
            wanted = [box for box in boxes if sound and slow.holds(box, (t[i], x[i], y[i]))]
            found = [tuple(matcher.boxes(rows[i : i + 1])[0].tolist())] if rows[i] >= 0 else []
            assert found == wanted
            if sound:
                inside = matcher.boxes(np.arange(low[i], max(low[i], high[i]))).tolist()
                assert [tuple(box) for box in inside] == [b for b in boxes if first[i] <= b[0] and b[1] <= last[i]]


@examples(40)
@given(SEEDS)
def test_places_without_times(seed):
    people, records = random_crowd(seed), random_records(seed)
    matcher = PlaceMatcher(catalogue_of(records).unique, np.zeros((sum(len(b) for b, _ in records), 2), dtype=int))
    queries = [[(0, x, y) for _, x, y in points] for points in some_queries(people, seed) if points]
    wanted = [slow.place_candidates(records, [point[1:] for point in points]) for points in queries]
    assert lists(matcher.holders(known_of(queries))) == wanted


def test_places_and_times_far_apart_are_numbered_by_rank():
    people = [
        [(-(2**31), -(2**31), 7)],
        [(-(2**31), -(2**31), 7), (2**31 - 1, 2**31 - 1, -(2**31))],
        [(5, 6, 2**31 - 1)],
    ]
    raw = matchers(people)
    queries = [people[0], people[1], people[2], [(5, 6, 7)], [(4, 6, 2**31 - 1)]]
    assert lists(raw.holders(known_of(queries))) == [[0, 1], [1], [2], [], []]


def test_more_granules_than_numbers(monkeypatch):
    monkeypatch.setattr("shoal.attacks.matching._BITS", 3)
    with pytest.raises(TooLarge, match="fewer people"):
        matchers(random_crowd(1))


def test_the_same_whatever_the_threads():
    people, records = random_crowd(3, users=40), random_records(3, records=30)
    known = known_of(some_queries(people, 3, n=600))
    matcher = BoxMatcher(catalogue_of(records).unique)
    assert np.array_equal(
        count_people(matcher, known, run=Run(threads=1)), count_people(matcher, known, run=Run(threads=4))
    )
