"""The k-gap: equal to its definition, whatever leaves pairs out, and independent of what must not matter."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import SettingsError, TooFewUsers, TooLarge
from shoal.frame import Frame
from shoal.kernels.kgap import rows_of
from shoal.kernels.samples import samples_of
from shoal.kernels.stretch import effort_sum
from shoal.measure import Stretch
from shoal.run import Run
from shoal.trajectories import build
from tests.draws import examples
from tests.oracle import stretch as oracle
from tests.people import people_of, random_people

MODULE = sys.modules[shoal.k_gap.__module__]


def lists(people):
    return [oracle.as_boxes(people.user(u).tolist()) for u in range(len(people))]


def check(people, ks, stretch=None, **options):
    """Compare with the definition, exactly computed."""
    terms = stretch or Stretch()
    paper = oracle.Terms(oracle.Fraction(str(terms.space_weight)), terms.space_max_m, terms.time_max_s)
    boxes = lists(people)
    found = shoal.k_gap(people, ks, stretch=stretch, **options)
    for row, user in enumerate(found.users.tolist()):
        truth = oracle.in_order(boxes, user, paper)[: max(ks) - 1]
        gaps = [float(sum(effort for effort, _ in truth[: k - 1]) / (k - 1)) for k in ks]
        assert found.gap[row] == pytest.approx(gaps, abs=1e-12)
        assert found.near[row].tolist() == [v for _, v in truth]
        assert found.effort[row] == pytest.approx([float(effort) for effort, _ in truth], abs=1e-14)
        each = [oracle.parts(boxes[user], boxes[v], terms=paper) for _, v in truth]
        for column, k in enumerate(ks):
            means = [[float(sum(p[part] for p in one) / len(one)) for one in each[: k - 1]] for part in (0, 1)]
            parts = (found.space[row, column], found.time[row, column])
            assert parts == pytest.approx([sum(mean) / (k - 1) for mean in means], abs=1e-12)
    return found


@examples(30)
@given(
    n=st.integers(5, 9),
    seed=st.integers(0, 10**6),
    slots=st.sampled_from([3, 40, 300, 3000]),
    side=st.sampled_from([3, 60, 900]),
    mean=st.sampled_from([1, 3, 6]),
    stretch=st.sampled_from([None, Stretch(space_max_m=700, time_max_s=900), Stretch(space_weight=0.3)]),
)
def test_it_equals_the_definition(n, seed, slots, side, mean, stretch):
    check(random_people(n, seed=seed, slots=slots, side=side, mean=mean + 1), [2, 3, 5], stretch)


def test_it_is_the_mean_effort_to_the_nearest():
    people = random_people(7, slots=500, mean=4)
    for k in (2, 4):
        truth = [float(oracle.k_gap(lists(people), user, k)) for user in range(7)]
        assert shoal.k_gap(people, k).gap[:, 0] == pytest.approx(truth, abs=1e-12)


def brute_force(people, users, kept):
    """All pairs, in whole numbers."""
    scale = Stretch().scale(people.frame)
    whole = scale.space_cap + scale.time_cap
    counts, samples = people.counts, samples_of(people)
    efforts = np.full((len(users), len(people)), np.inf)
    for row, u in enumerate(users):
        for v in range(len(people)):
            if u == v:
                continue
            a, b = (u, v) if (counts[u], -u) > (counts[v], -v) else (v, u)
            total = effort_sum(samples, rows_of(samples, a), rows_of(samples, b), scale, whole * counts[a])
            efforts[row, v] = total / (whole * counts[a])
    order = np.lexsort((np.broadcast_to(np.arange(len(people)), efforts.shape), np.rint(efforts * 1e12)))
    return order[:, :kept], np.take_along_axis(efforts, order[:, :kept], axis=1)


@pytest.mark.parametrize(
    "options",
    [
        {"scene": "town", "days": 5, "samples": 40},
        {"scene": "nation", "days": 14},
        {"kind": "gps", "days": 1, "interval_s": 600},
    ],
)
def test_it_equals_brute_force_on_generated_people(options):
    people = shoal.from_arrow(shoal.synthesize(users=120, seed=5, **options))
    found = shoal.k_gap(people, [2, 10])
    near, effort = brute_force(people, range(len(people)), 9)
    assert (found.near == near).all()
    assert (found.effort == effort).all()
    assert found.begun < len(people) ** 2
    assert found.gap == pytest.approx(found.space + found.time, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [("tdrive_cdr", {"tz": "Asia/Shanghai"}), ("gowalla_nyc", {})])
def test_it_equals_brute_force_on_real_people(data, name, options):
    everyone = shoal.read(data / f"{name}.parquet", **options)
    people = some(everyone, np.random.default_rng(1).permutation(len(everyone))[:1000])
    found = shoal.k_gap(people, [2, 5, 20])
    near, effort = brute_force(people, range(len(people)), 19)
    assert (found.near == near).all()
    assert found.effort == pytest.approx(effort, abs=1e-12)


def some(people, chosen):
    owner = np.repeat(np.arange(len(people)), people.counts)
    kept = np.isin(owner, chosen)
    labels = pa.array(people.labels.to_pylist())
    columns = (column[kept] for column in (owner, people.t, people.x, people.y))
    return build(*columns, labels=labels, frame=people.frame)


def test_many_bins_and_places_or_few_make_no_difference(monkeypatch):
    people = random_people(40, slots=4000, side=300, mean=60)
    expected = shoal.k_gap(people, [4])
    for name, value in {"_GAP_BYTES": 1, "_BINS_PER_CAP": 1, "_WORK_PER_RANGE": 1, "_SAMPLES_PER_RANGE": 1}.items():
        monkeypatch.setattr(MODULE, name, value)
        found = shoal.k_gap(people, [4], run=Run(threads=2))
        assert (found.near == expected.near).all()
        assert (found.effort == expected.effort).all()


def test_threads_and_a_sample_make_no_difference():
    people = random_people(60, slots=2000, side=200)
    everybody = shoal.k_gap(people, [2, 7], run=Run(threads=1))
    drawn = shoal.k_gap(people, [2, 7], sample=13, seed=3, run=Run(threads=3))
    assert len(drawn.users) == 13
    assert (drawn.gap == everybody.gap[drawn.users]).all()
    assert (drawn.near == everybody.near[drawn.users]).all()
    assert shoal.k_gap(people, 2, sample=10**6).users.tolist() == list(range(60))


def test_rows_and_labels_do_not_matter_nor_do_whole_shifts():
    people = random_people(30, slots=900, side=90)
    rng = np.random.default_rng(1)
    owner = rng.permutation(30)[np.repeat(np.arange(30), people.counts)]
    rows = rng.permutation(people.samples)
    columns = (column[rows] for column in (owner, people.t + 77, people.x - 1000, people.y + 5))
    again = build(*columns, labels=pa.array([f"u{n}" for n in range(30)]), frame=Frame(crs=None))
    assert (shoal.k_gap(again, 3).gap == shoal.k_gap(people, 3).gap).all()


def test_the_table_names_people_and_holds_a_row_for_each_k():
    people = people_of([[(0, 0, 0)], [(0, 10, 0)], [(48, 10, 0)]])
    table = shoal.k_gap(people, [2, 3]).table()
    assert table.column_names == ["uid", "k", "gap", "space", "time"]
    rows = table.to_pylist()
    assert [(row["uid"], row["k"]) for row in rows] == [(u, k) for u in ("p0", "p1", "p2") for k in (2, 3)]
    # 1 km is 0.025, 48 min are 0.05
    assert [round(row["gap"], 9) for row in rows] == [0.025, 0.05, 0.025, 0.0375, 0.05, 0.0625]
    assert [round(row["space"], 9) for row in rows] == [0.025, 0.025, 0.025, 0.0125, 0.0, 0.0125]
    assert [round(row["time"], 9) for row in rows] == [0.0, 0.025, 0.0, 0.025, 0.05, 0.05]


def test_people_who_are_the_same_and_people_who_share_nothing():
    twins = people_of([[(0, 0, 0), (9, 1, 1)]] * 4)
    found = shoal.k_gap(twins, [2, 4])
    assert (found.gap == 0).all()
    assert found.near.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
    apart = people_of([[(0, 0, 0)], [(10**6, 10**6, 0)], [(2 * 10**6, 0, 10**6)]])
    found = check(apart, [2, 3])
    assert (found.gap == 1).all()
    assert (found.space == 0.5).all()


def test_thousands_of_samples_in_one_minute():
    crowd = [(0, n % 70, n // 70) for n in range(3000)]
    people = people_of([crowd, [(0, 3, 3)], crowd[1:], [(5, 0, 0)]])
    found = shoal.k_gap(people, [2, 4])
    near, effort = brute_force(people, range(4), 3)
    assert (found.near == near).all()
    assert (found.effort == effort).all()


@pytest.mark.parametrize("wrong", [{"k": 1}, {"k": []}, {"k": [2, 0]}, {"sample": 0}, {"seed": -1}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(SettingsError):
        shoal.k_gap(random_people(5), **{"k": 2, **wrong})


def test_fewer_people_than_k_are_refused():
    with pytest.raises(TooFewUsers, match="5 people"):
        shoal.k_gap(random_people(5), [2, 6])
    with pytest.raises(TooFewUsers):
        shoal.k_gap(random_people(1), 2)
    assert shoal.k_gap(random_people(5), 5).gap.shape == (5, 1)


def test_too_much_memory_is_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(sys.modules["shoal.memory"], "available_bytes", lambda: 1000)
    with pytest.raises(TooLarge, match="k-gap"):
        shoal.k_gap(random_people(50), 2)
