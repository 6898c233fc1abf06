"""The attacks top-locations and home-work: equal to plain loops."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.attacks import open_target, play
from shoal.errors import CannotCheck, SettingsError, TooLarge
from shoal.run import Run
from tests.draws import examples
from tests.oracle import attacks as slow
from tests.people import random_people
from tests.targets import GRID, random_crowd, random_records, target_of

WEEK = 7 * 24 * 6  # in slots of ten minutes
# Kathmandu is off by 5:45, Dublin changes its clocks within the week.
ZONES = ["UTC", "Asia/Kathmandu", "Europe/Dublin"]
START = 1_774_569_600 // 600  # 2026-03-27, a Friday before the clocks change


def victims_of(people, seed, n, code):
    chance = np.random.default_rng([seed, code])
    return np.sort(chance.permutation(people)[:n]).tolist()


def shifted(people, records):
    people = [[(t + START, x, y) for t, x, y in samples] for samples in people]
    return people, [([(b[0] + START, b[1] + START, *b[2:]) for b in boxes], n) for boxes, n in records]


@examples(30)
@given(st.integers(0, 10_000))
def test_top_locations_are_those_of_plain_loops(seed):
    people, records = random_crowd(seed, side=3, most=12), random_records(seed, side=3, records=9)
    outcome = play(target_of(people, records), "top-locations", victims=6, seed=seed)
    victims = victims_of(np.arange(len(people)), seed, 6, 3)
    for row in outcome.rows:
        tops = [slow.top_cells(samples, row["locations"]) for samples in people]
        counts = [slow.count(records, slow.place_candidates(records, tops[v])) for v in victims]
        seen = [{(x, y) for _, x, y in samples} for samples in people]
        control = [sum(set(tops[v]) <= cells for cells in seen) for v in victims]
        alike = Counter(frozenset(top) for top in tops)
        found = [n for n in counts if n]
        assert row["success"] == counts.count(1) / len(counts)
        assert row["candidates_median"] == (np.median(found) if found else None)
        assert row["control"] == control.count(1) / len(control)
        assert row["control_candidates_mean"] == pytest.approx(np.mean(control))
        assert row["control_ranked"] == sum(alike[frozenset(tops[v])] == 1 for v in victims) / len(victims)


@examples(30)
@given(st.integers(0, 10_000), st.sampled_from(ZONES))
def test_home_and_work_are_those_of_plain_loops(seed, tz):
    people, records = shifted(
        random_crowd(seed, users=12, slots=WEEK, side=3, most=20),
        random_records(seed, slots=WEEK, side=3, records=9, most=9),
    )
    places = [slow.home_and_work(samples, GRID.slot_s, tz) for samples in people]
    both = [user for user, (home, work) in enumerate(places) if home and work]
    target = target_of(people, records, tz=tz)
    if not both:
        with pytest.raises(CannotCheck, match="`tz`"):
            play(target, "home-work", victims=6, seed=seed)
        return
    outcome = play(target, "home-work", victims=6, seed=seed)
    victims = victims_of(np.array(both), seed, 6, 4)
    times = [t for samples in people for t, _, _ in samples]
    for row, parts in zip(outcome.rows, ([0], [1], [0, 1]), strict=True):
        counts, control, alike = [], [], []
        for victim in victims:
            known = [((slow.at_night, slow.at_work)[part], places[victim][part]) for part in parts]
            found = slow.home_work_candidates(records, known, GRID.slot_s, tz, (min(times), max(times)))
            counts.append(slow.count(records, found))
            has = [
                all(
                    any((x, y) == cell and when(slow.local_hour(t, 600, tz)) for t, x, y in samples)
                    for when, cell in known
                )
                for samples in people
            ]
            control.append(sum(has))
            alike.append(sum([places[u][p] for p in parts] == [places[victim][p] for p in parts] for u in both))
        assert row["success"] == counts.count(1) / len(counts)
        assert row["not_found"] == counts.count(0) / len(counts)
        assert row["candidates_mean"] == (pytest.approx(np.mean([n for n in counts if n])) if any(counts) else None)
        assert row["control"] == control.count(1) / len(control)
        assert row["control_candidates_mean"] == pytest.approx(np.mean(control))
        assert row["control_ranked"] == alike.count(1) / len(alike)
    assert [row["known"] for row in outcome.rows] == ["home", "work", "home and work"]


@pytest.mark.parametrize("attack", ["top-locations", "home-work", "points", "window"])
def test_the_same_seed_gives_the_same_whatever_the_threads(attack):
    people = random_people(60, seed=4, slots=3 * 1440)
    target = open_target(people, shoal.Shoal(k=3).anonymize(people))
    one = play(target, attack, victims=30, seed=7, run=Run(threads=1))
    assert play(target, attack, victims=30, seed=7, run=Run(threads=3)) == one
    assert play(target, attack, victims=30, seed=8).rows != one.rows
    assert one.ok
    assert all(row["candidates_min"] >= 3 for row in one.rows)


def test_a_number_of_places():
    target = target_of([[(1, 1, 1), (2, 1, 1), (3, 2, 2)]], [([(1, 3, 1, 2, 1, 2)], 1)])
    (row,) = play(target, "top-locations", locations=2).rows
    assert (row["locations"], row["success"], row["control"]) == (2, 1.0, 1.0)
    with pytest.raises(SettingsError, match="locations: must be at least"):
        play(target, "top-locations", locations=0)


def test_a_period_too_long_to_tell_the_hours():
    people = [[(-(2**30), 1, 1), (2**30, 1, 1)]]
    with pytest.raises(TooLarge, match="`period`"):
        play(target_of(people, [([(0, 3, 1, 2, 1, 2)], 1)]), "home-work")
