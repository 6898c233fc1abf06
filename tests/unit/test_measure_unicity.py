"""Unicity: equal to a slow twin, monotone, fair, and independent of everything that must not matter."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import SettingsError
from shoal.kernels.unicity import Coarse, draw_points
from shoal.measure.unicity import resolution_text
from shoal.run import Run
from tests.draws import examples
from tests.oracle import unicity as oracle
from tests.people import as_samples, people_of, random_people


@examples(60)
@given(
    n=st.integers(1, 30),
    seed=st.integers(0, 5),
    slots=st.sampled_from([3, 40, 300]),
    side=st.sampled_from([12, 60]),
    space_m=st.sampled_from([100, 150, 1000, 3000]),
    time_s=st.sampled_from([60, 3600, 5000]),
)
def test_it_equals_the_slow_twin(n, seed, slots, side, space_m, time_s):
    people = random_people(n, seed=seed, slots=slots, side=side, mean=6)
    points = (1, 2, 3, 5, 9)
    found = shoal.unicity(people, points=points, resolutions=[(space_m, time_s)], sample=n, seed=seed)
    for row, p in zip(found, points, strict=True):
        lists = [oracle.candidates(people, user, p, space_m, time_s, seed) for user in range(n)]
        assert row.unique == sum(len(others) == 1 for others in lists)
        assert row.fewer == sum(len(oracle.coarse_points(people, u, space_m, time_s)) < p for u in range(n))


def test_all_people_in_several_blocks(monkeypatch):
    people = random_people(60, slots=40, side=12)
    whole = shoal.unicity(people, sample=60)
    module = sys.modules[resolution_text.__module__]
    monkeypatch.setattr(module, "_TOGETHER", 7)
    monkeypatch.setattr(module, "_SAMPLES_PER_RANGE", 50)
    for threads in (1, 2, 5):
        assert shoal.unicity(people, sample=60, run=Run(threads=threads)) == whole


def test_more_points_and_finer_ones_never_hide_anybody():
    people = random_people(300, slots=200, side=20)
    found = shoal.unicity(people, points=range(1, 13), resolutions=[(100, 60), (1000, 3600), (10_000, 86_400)])
    shares = np.array([row.share for row in found]).reshape(3, 12)
    assert (np.diff(shares, axis=1) >= 0).all()
    assert (shares[0] >= shares[1]).all()
    assert shares[0, -1] > shares[2, 0]


def test_the_points_of_a_user_are_nested_distinct_and_drawn_fairly():
    samples = as_samples([[(t, x, x) for t in range(6) for x in (0, 1)]])  # two in each of six points at the resolution
    coarse, one = Coarse(0, 60, 60, 100, 1000), np.zeros(1, np.int64)
    firsts = np.zeros(6, int)
    for seed in range(3000):
        counts, points = draw_points(samples, coarse, one, 8, seed)
        assert counts.tolist() == [6]
        assert sorted(points[0, :6, 0].tolist()) == [0, 1, 2, 3, 4, 5]
        _, fewer = draw_points(samples, coarse, one, 3, seed)
        assert (fewer[0] == points[0, :3]).all()
        firsts[points[0, 0, 0]] += 1
    assert abs(firsts - 500).max() < 100  # five standard deviations


def test_rows_and_labels_do_not_matter():
    table = shoal.synthesize(users=80, scene="town", days=3, seed=4)
    order = np.random.default_rng(1).permutation(table.num_rows)
    renamed = table.set_column(0, "uid", pa.array([f"u{uid}" for uid in table["uid"].to_pylist()]))
    found = shoal.unicity(shoal.from_arrow(table), sample=40)
    assert shoal.unicity(shoal.from_arrow(renamed.take(pa.array(order))), sample=40) == found


def test_twins_are_never_unique_and_a_hermit_always_is():
    people = people_of([[(0, 0, 0), (5, 5, 5)], [(0, 0, 0), (5, 5, 5)], [(9, 9, 9)]])
    for row in shoal.unicity(people, points=(1, 2, 3), resolutions=[(100, 60)]):
        assert (row.unique, row.people) == (1, 3)
        assert row.fewer == {1: 0, 2: 1, 3: 3}[row.points]
        assert row.interval[0] < row.share < row.interval[1]
        assert row.to_dict()["low"] == row.interval[0]


def test_the_seed_chooses_people_and_points():
    people = random_people(400, slots=60, side=12)
    found = {shoal.unicity(people, points=2, sample=50, seed=seed)[0].unique for seed in range(8)}
    assert len(found) > 1
    assert shoal.unicity(people, points=2, sample=50, seed=3) == shoal.unicity(people, points=2, sample=50, seed=3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": 0},
        {"points": 65},
        {"points": []},
        {"sample": 0},
        {"seed": -1},
        {"resolutions": []},
        {"resolutions": [(50, 3600)]},
        {"resolutions": [(1000, 30)]},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(SettingsError):
        shoal.unicity(random_people(5), **wrong)


def test_resolutions_read_well():
    assert resolution_text(20_000, 86_400) == "20 km / 1 d"
    assert resolution_text(150, 5400) == "150 m / 90 min"


def test_real_call_records(data):
    """The literature's picture: four points single out nearly everybody."""
    people = shoal.read(data / "tdrive_cdr.parquet", tz="Asia/Shanghai")
    (four,) = shoal.unicity(people, points=4, sample=300)
    assert four.share > 0.9
