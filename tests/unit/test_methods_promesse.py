"""Promesse: equal to a walk with geodesics, points at equal distances and times, nothing of the ends."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import shoal
from shoal.errors import SettingsError
from shoal.kernels.smooth import most_points
from shoal.kernels.tracks import tracks_of
from shoal.run import Run
from tests.draws import examples
from tests.oracle import promesse as slow
from tests.tracks import CORNERS, GEOD, around, records_of, table_of, traces_of, walk

START = 1_700_000_000_000
moves = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 1000, 60_000]),  # equal times too
        st.one_of(st.just(0.0), st.floats(-500, 500), st.floats(-20_000, 20_000)),  # repeated fixes, jumps
        st.one_of(st.just(0.0), st.floats(-500, 500), st.floats(-20_000, 20_000)),
    ),
    min_size=1,
    max_size=25,
)


def fixes_of(corner, steps):
    ms = START + np.cumsum([step[0] for step in steps])
    lng, lat = around(corner, *np.cumsum([step[1:] for step in steps], axis=0).T)
    return sorted(set(zip(ms.tolist(), lng.tolist(), lat.tolist(), strict=True)))


@examples(150)
@given(moves, st.sampled_from(CORNERS), st.sampled_from([50, 200, 1000]))
def test_equals_the_walk_with_geodesics(steps, corner, step_m):
    fixes = fixes_of(corner, steps)
    expected, margin = slow.smooth(fixes, step_m)
    assume(margin > 0.01)
    release = shoal.Promesse(step=step_m).anonymize(traces_of({"a": fixes}))
    if not expected:
        assert len(release) == 0
        assert (release.discarded, release.suppressed) == (1, len(fixes))
        return
    (record,) = records_of(release)
    assert len(record) == len(expected)
    ms, lng, lat = np.array(record).T
    true_ms, true_lng, true_lat = np.array(expected).T
    assert np.abs(ms - true_ms).max() <= 0.51
    _, _, off = GEOD.inv(lng, lat, true_lng, true_lat)
    assert off.max() < 0.05


@examples(60)
@given(st.integers(0, 10_000), st.sampled_from(CORNERS), st.sampled_from([100, 500]))
def test_points_are_as_far_apart_in_space_and_time(seed, corner, step_m):
    fixes = walk(seed, corner=corner)
    release = shoal.Promesse(step=step_m).anonymize(traces_of({"a": fixes}))
    for record in records_of(release):
        ms, lng, lat = map(np.array, zip(*record, strict=True))
        _, _, apart = GEOD.inv(lng[:-1], lat[:-1], lng[1:], lat[1:])
        assert np.abs(apart - step_m).max(initial=0) < 0.03
        assert np.ptp(np.diff(ms)) <= 1 if len(ms) > 2 else True
        # The dropped ends: a step away from the first fix, and before the trace is over.
        _, _, from_start = GEOD.inv(*fixes[0][1:], lng[0], lat[0])
        assert from_start == pytest.approx(step_m, abs=0.03)
        assert fixes[0][0] < ms[0] <= ms[-1] <= fixes[-1][0]
        assert (np.round(lng, 7) == lng).all()


@pytest.mark.parametrize("corner", CORNERS)
def test_huge_jumps_are_walked_to_the_end(corner):
    far = GEOD.fwd(*corner, 70.0, 3_000_000)[:2]
    people = {"a": [(START, *corner), (START + 1000, *far), (START + 2000, *corner)]}
    (record,) = records_of(shoal.Promesse(step=1000).anonymize(traces_of(people)))
    assert abs(len(record) - (5999 - 1)) <= 2
    _, _, apart = GEOD.inv(*np.array(record).T[1:, 1000:1001], *np.array(record).T[1:, 1001:1002])
    assert apart[0] == pytest.approx(1000, abs=0.05)
    middle = np.array(record)[2998:3001, 1:]
    _, _, missed = GEOD.inv(middle[:, 0], middle[:, 1], np.full(3, far[0]), np.full(3, far[1]))
    assert missed.min() < 1500


def test_short_traces_are_discarded_and_counted():
    near = [(START, 10.0, 50.0), (START + 1, 10.0, 50.0001), (START + 2, 10.0, 50.0002)]
    one = [(START, 10.0, 50.0)]
    release = shoal.Promesse().anonymize(traces_of({"near": near, "one": one, "walker": walk(1)}))
    assert (len(release), release.discarded, release.suppressed) == (1, 2, 4)
    assert release.created == release.samples
    assert str(release.claim) == "none"


def test_three_points_leave_one_and_two_leave_none():
    north = [(START + n, 10.0, 50.0 + n * 0.0019) for n in range(4)]  # 211 m apart
    assert [len(r) for r in records_of(shoal.Promesse().anonymize(traces_of({"a": north[:3]})))] == [1]
    assert len(shoal.Promesse().anonymize(traces_of({"a": north[:2]}))) == 0


def test_room_is_always_enough():
    for corner in CORNERS:
        for pace_m in (10.0, 100.0, 1e3, 1e4, 1e5):
            fixes, step_m = walk(int(pace_m), corner=corner, pace_m=pace_m, fixes=20), pace_m / 10
            traces, most = traces_of({"a": fixes}), np.empty(1, np.int64)
            most_points(tracks_of(traces), step_m, 0, 1, most)
            assert len(slow.smooth(fixes, step_m)[0]) <= most[0]


def test_order_labels_threads_and_memory_do_not_matter(tmp_path):
    people = {n: walk(n, fixes=200) for n in range(12)}
    table = table_of(people)
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    renamed = table_of({f"x{99 - n}": fixes for n, fixes in people.items()})

    def made(table, **how):
        traces = shoal.read_traces(table, split_gap="10min", run=Run(**how))
        return sorted(map(tuple, records_of(shoal.Promesse(step=100).anonymize(traces, run=Run(**how)))))

    expected = made(table)
    assert made(shuffled) == made(renamed) == made(table, threads=1) == expected
    assert made(shuffled, memory=100_000, work_dir=tmp_path) == expected
    assert list(tmp_path.iterdir()) == []


def test_release_is_written_verified_and_read_back(tmp_path):
    people = {n: walk(n, fixes=300) for n in range(30)}
    traces = traces_of(people, split_gap="4h")
    for name in ("r.parquet", "r.csv"):
        release = shoal.Promesse(step=100).anonymize(traces).write(tmp_path / name, audit=tmp_path / f"{name}.csv")
        back = shoal.read_release(tmp_path / name)
        assert records_of(back) == records_of(release)
        assert (back.method, back.parameters, str(back.claim)) == ("promesse", {"step_m": 100}, "none")
        assert back.to_points().columns.tolist() == ["uid", "datetime", "lat", "lng"]
    schema = pq.read_schema(tmp_path / "r.parquet")
    assert [(field.name, str(field.type)) for field in schema] == [
        ("uid", "int64"),
        ("datetime", "timestamp[ms, tz=UTC]"),
        ("lat", "double"),
        ("lng", "double"),
    ]


def test_settings_that_make_no_sense():
    for wrong in ({"step": 0}, {"step": "200km"}, {"k": 2}, {"step": -5}):
        with pytest.raises(SettingsError):
            shoal.Promesse(**wrong)
    with pytest.raises(SettingsError, match="point methods"):
        shoal.read(table_of({"a": walk(1)}), split_gap="4h")
