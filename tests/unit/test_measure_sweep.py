"""Uniform generalization: who is the same as others on a coarser grid."""

from collections import Counter

import numpy as np
import pytest

import shoal
from shoal.errors import SettingsError
from shoal.measure.sweep import LEVELS, coarser, sweep
from tests.people import LAEA, random_people


def snapped(people, space_m, time_s):
    """Everybody's samples on the coarser grid, counted from the epoch, as sets."""
    frame = people.frame
    return [
        frozenset(
            ((t + frame.origin_slot) * frame.slot_s // time_s, x * frame.cell_m // space_m, y * frame.cell_m // space_m)
            for t, x, y in people.user(user).tolist()
        )
        for user in range(len(people))
    ]


@pytest.mark.parametrize(("space_m", "time_s"), [(100, 60), (700, 60), (5000, 7200), (20_000, 28_800), (150, 5000)])
def test_the_coarser_grid_is_the_one_everybody_can_recompute(space_m, time_s):
    people = random_people(40, side=300, slots=3000, seed=2)
    coarse = coarser(people, space_m, time_s)
    expected = Counter(snapped(people, space_m, time_s))
    origin = coarse.frame.origin_slot
    found = [frozenset((t + origin, x, y) for t, x, y in coarse.user(u).tolist()) for u in range(len(coarse))]
    assert Counter(found) == expected
    assert (coarse.frame.cell_m, coarse.frame.slot_s) == (space_m, time_s)


@pytest.mark.parametrize("k", [2, 3])
def test_hidden_are_those_whose_k_gap_is_nothing(k):
    people = random_people(80, side=20, slots=300, mean=3)
    levels = sweep(people, k=k, sample=80)
    assert [(level.space_m, level.time_s) for level in levels] == list(LEVELS)
    for level in levels:
        kinds = Counter(snapped(people, level.space_m, level.time_s))
        assert level.hidden == sum(size for size in kinds.values() if size >= k)
        assert level.hidden == (level.gap == 0).sum()
    assert levels[0].share < levels[-1].share


def test_levels_finer_than_the_grid_are_left_out():
    people = coarser(random_people(10, crs=LAEA), 1000, 60)
    assert [level.space_m for level in sweep(people, levels=[(500, 60), (1000, 3600)])] == [1000]
    (level,) = sweep(people, levels=[(1000, 3600)])
    assert (len(level.gap), level.to_dict()["gap_median"]) == (0, None)


def test_figures_for_programs():
    (level,) = sweep(random_people(20), levels=[(20_000, 28_800)], sample=5)
    assert level.to_dict() == {
        "space_m": 20_000,
        "time_s": 28_800,
        "k": 2,
        "people": 20,
        "hidden": level.hidden,
        "share": level.hidden / 20,
        "gap_median": float(np.median(level.gap)),
    }


@pytest.mark.parametrize("wrong", [{"k": 1}, {"sample": -1}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(SettingsError):
        sweep(random_people(5), **wrong)


def test_the_grid_of_generated_people():
    people = shoal.from_arrow(shoal.synthesize(users=50, days=3, seed=1))
    shares = [level.share for level in sweep(people)]
    assert shares[0] == 0.0
