"""The attack poi: stays as plain loops find them, planted places found again, published ones scored by Promesse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.attacks.poi import places_of, poi_scores, stays_of
from shoal.errors import CannotCheck, SettingsError
from shoal.kernels.geodesy import Vector, place
from shoal.seen.pairs import Pairs, Track
from tests.draws import examples
from tests.oracle import stays as slow
from tests.tracks import CORNERS, GEOD, around, planted, traces_of, walk


def flat_stays(rows, diameter_m, stay_s):
    ms, x, y = (np.array(column) for column in zip(*rows, strict=True))
    x, y = x.astype(float), y.astype(float)
    found = stays_of(
        np.array([0, len(ms)]),
        ms.astype(np.int64),
        x,
        y,
        np.zeros(len(x)),
        diameter_m=diameter_m,
        stay_s=stay_s,
        flat=True,
    )
    return [rows[a:b] for a, b in zip(*found[1:], strict=True)]


def euclid(a, b):
    return float(np.hypot(a[0] - b[0], a[1] - b[1]))


def test_the_known_case_of_accios_clusterer():
    """Planar metres, one minute and 15 m: exactly two stays of four events."""
    first = [(600_000, 1000, 0), (620_000, 1000, 10), (620_000, 1010, 10), (660_000, 1010, 10)]
    second = [(750_000, 1000, 0), (770_000, 1000, 10), (780_000, 1010, 10), (820_000, 1010, 10)]
    too_wide = [(670_000, 1000, 20), (680_000, 1000, 10), (740_000, 1020, 0)]
    too_short = [(830_000, 1020, 20), (880_000, 1020, 20)]
    rows = [(0, 0, 0), *first, *too_wide, *second, *too_short]
    assert flat_stays(rows, 15, 60) == [first, second]


@examples(150)
@given(st.integers(0, 100_000), st.sampled_from([5, 40, 120]), st.sampled_from([20.0, 60.0, 150.0]))
def test_stays_are_those_of_plain_loops(seed, n, spread):
    chance = np.random.default_rng(seed)
    ms = np.cumsum(chance.integers(0, 400_000, n))
    x, y = chance.normal(0, spread, (2, n)) + 300 * np.cumsum(chance.random((2, n)) < 0.1, axis=1)
    rows = list(zip(ms.tolist(), x.tolist(), y.tolist(), strict=True))
    expected = slow.stays([(t, (a, b)) for t, a, b in rows], euclid, 200, 900_000)
    found = [[(t, (a, b)) for t, a, b in stay] for stay in flat_stays(rows, 200, 900)]
    assert found == expected


@examples(10)
@given(st.integers(0, 1000))
def test_long_wide_stays_with_more_fixes_than_are_compared(seed):
    chance = np.random.default_rng(seed)
    n = 700
    angle, radius = chance.uniform(0, 2 * np.pi, n), 101 * chance.random(n) ** 0.1  # some pairs are just too far apart
    rows = [(i * 60_000, r * np.cos(a), r * np.sin(a)) for i, (a, r) in enumerate(zip(angle, radius, strict=True))]
    expected = slow.stays([(t, (a, b)) for t, a, b in rows], euclid, 200, 900_000)
    assert [len(stay) for stay in flat_stays(rows, 200, 900)] == [len(stay) for stay in expected]


def metres(a, b):
    return GEOD.inv(*a, *b)[2]


@pytest.mark.parametrize("corner", CORNERS)
def test_stays_are_the_same_anywhere_on_earth(corner):
    chance = np.random.default_rng(1)
    n = 150
    east, north = chance.normal(0, 60, (2, n)) + 1000 * np.cumsum(chance.random((2, n)) < 0.03, axis=1)
    lng, lat = around(corner, east, north)
    fixes = [(1_000_000 + i * 60_000, float(a), float(b)) for i, (a, b) in enumerate(zip(lng, lat, strict=True))]
    expected = slow.stays([(t, (a, b)) for t, a, b in fixes], metres, 200, 900_000)
    found = places_of(traces_of({"a": fixes}))
    centres = [np.mean([around_back(corner, p) for _, p in stay], axis=0) for stay in expected]
    assert 1 <= len(found) <= len(centres)
    for x, y, z in zip(found.x, found.y, found.z, strict=True):
        assert min(np.hypot(*(around_back(corner, place(Vector(x, y, z))) - c)) for c in centres) < 100


def around_back(corner, there):
    """Metres east and north of a corner."""
    angle, _, d = GEOD.inv(*corner, *there)
    return np.array([d * np.sin(np.radians(angle)), d * np.cos(np.radians(angle))])


def test_planted_stays_are_found():
    scores = []
    for seed in range(12):
        fixes, real = planted(seed, corner=CORNERS[seed % 2 + 1])
        found = places_of(traces_of({"a": fixes}))
        seen = [place(Vector(*xyz)) for xyz in zip(found.x, found.y, found.z, strict=True)]
        scores.append(slow.score(real, seen, metres, 100)[2])
    assert np.mean(scores) > 0.95


def test_a_place_that_is_visited_twice_is_one_place():
    fixes, _ = planted(1, stays=2)
    again = [(ms + 86_400_000, lng, lat) for ms, lng, lat in fixes]
    assert len(places_of(traces_of({"a": fixes + again}))) == len(places_of(traces_of({"a": fixes}))) == 2


def test_raw_data_give_everything_away_and_promesse_hides_it():
    people = {n: planted(n)[0] for n in range(8)}
    traces = traces_of(people)
    raw = Pairs(traces, Track(traces.offsets, traces.ms, traces.lng, traces.lat), np.arange(len(traces)))
    assert poi_scores(raw).means() == {"precision": 1.0, "recall": 1.0, "fscore": 1.0}
    outcome = shoal.attack(traces, shoal.Promesse(step=200).anonymize(traces), "poi")
    assert outcome.rows[0]["fscore"] < 0.2
    assert outcome.rows[0]["control"] == 1.0
    assert outcome.victims == 8
    noisy = shoal.GeoIndistinguishability(epsilon=0.2).anonymize(traces)
    assert shoal.attack(traces, noisy, "poi").rows[0]["fscore"] > 0.9  # ten metres of noise hide no place


@examples(30)
@given(st.integers(0, 1000))
def test_scores_are_those_of_the_definitions(seed):
    chance = np.random.default_rng(seed)
    traces = traces_of({n: planted([seed, n], stays=3)[0] for n in range(3)})
    shift = chance.uniform(0, 0.002, len(traces))  # up to 200 m north
    moved = traces.lat + np.repeat(shift, traces.counts)
    pairs = Pairs(traces, Track(traces.offsets, traces.ms, traces.lng, moved), np.arange(len(traces)))
    real, seen = (places_of(part) for part in (traces, pairs.published))
    expected = []
    for n in range(len(traces)):
        lists = []
        for found in (real, seen):
            part = slice(found.offsets[n], found.offsets[n + 1])
            lists.append(list(zip(found.x[part], found.y[part], found.z[part], strict=True)))
        expected.append(slow.score(*lists, lambda a, b: float(np.linalg.norm(np.subtract(a, b))), 100))
    means = poi_scores(pairs).means()
    assert np.allclose([means["precision"], means["recall"], means["fscore"]], np.mean(expected, axis=0))


def test_what_can_not_be_played(tmp_path):
    traces = traces_of({n: walk(n) for n in range(3)})
    release = shoal.Promesse(step=50).anonymize(traces)
    with pytest.raises(CannotCheck, match="no places"):
        shoal.attack(traces, release, "poi")
    with pytest.raises(SettingsError):
        shoal.attack(traces, release, "poi", diameter="0m")
    release.write(tmp_path / "r.parquet")
    with pytest.raises(CannotCheck, match="`audit`"):
        shoal.attack(traces, tmp_path / "r.parquet", "poi")
