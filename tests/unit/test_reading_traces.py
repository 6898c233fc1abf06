"""Reading traces: the very fixes, sorted, only exact repetitions merged; split at gaps, days moved together."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import NoValidRows, SettingsError
from shoal.run import Run
from tests.draws import examples
from tests.tracks import records_of, traces_of

HOUR = 3_600_000
DAY = 24 * HOUR
fixes = st.tuples(st.integers(0, 9), st.sampled_from([1.0, 1.0 + 1e-12, 2.0]), st.sampled_from([5.0, -5.0]))


@examples(80)
@given(st.dictionaries(st.integers(0, 5), st.lists(fixes, min_size=1, max_size=30), min_size=1))
def test_fixes_are_everybodys_sorted_and_distinct(people):
    traces = traces_of({label: [(ms * 1000, lng, lat) for ms, lng, lat in rows] for label, rows in people.items()})
    expected = [sorted({(ms * 1000, lng, lat) for ms, lng, lat in people[label]}) for label in sorted(people)]
    assert records_of(traces) == expected
    assert traces.labels.to_pylist() == sorted(people)
    assert traces.users.tolist() == list(range(len(people)))
    repeated = sum(map(len, people.values())) - sum(map(len, expected))
    assert traces.account.dropped.get("same user, time and place", 0) == repeated


@examples(50)
@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=12, unique=True), min_size=1, max_size=4))
def test_traces_are_split_where_nothing_is_logged(hours):
    people = {n: [(h * HOUR, 1.0, 2.0) for h in some] for n, some in enumerate(hours)}
    parts = []
    for n, some in enumerate(hours):
        part = []
        for h in sorted(some):
            if part and h - part[-1] >= 4:
                parts.append((n, part))
                part = []
            part.append(h)
        parts.append((n, part))
    traces = traces_of(people, split_gap="4h")
    assert traces.users.tolist() == [n for n, _ in parts]
    assert [[ms // HOUR for ms, _, _ in record] for record in records_of(traces)] == [part for _, part in parts]


def test_days_are_moved_to_one_start_and_the_later_ones_left_out():
    people = {
        "early": [(0, 1.0, 1.0), (DAY + HOUR, 1.0, 1.0)],
        "late": [(day * DAY + 5 * HOUR, 1.0, 1.0) for day in (10, 12, 13)],
    }
    traces = traces_of(people, align_days=2)
    assert [[ms for ms, _, _ in record] for record in records_of(traces)] == [
        [0, DAY + HOUR],
        [5 * HOUR, DAY + 5 * HOUR],
    ]
    assert traces.account.dropped == {"of later days than were asked for": 1}
    # A day is one of the zone: 20 o'clock UTC is tomorrow in Shanghai.
    shanghai = traces_of(
        {"a": [(20 * HOUR, 1.0, 1.0), (3 * DAY + 2 * HOUR, 1.0, 1.0)]}, align_days=5, tz="Asia/Shanghai"
    )
    assert (shanghai.ms - shanghai.ms[0]).tolist() == [0, 30 * HOUR]


def test_people_with_too_few_fixes_or_days_are_left_out():
    people = {
        "one": [(0, 1.0, 1.0)],
        "two": [(0, 1.0, 1.0), (HOUR, 1.0, 1.0)],
        "days": [(0, 1.0, 1.0), (DAY, 1.0, 1.0)],
    }
    assert traces_of(people, min_samples=2).labels.to_pylist() == ["days", "two"]
    traces = traces_of(people, min_active_days=2)
    assert traces.labels.to_pylist() == ["days"]
    assert traces.account.users_dropped == {"of users with too few active days": 2}
    with pytest.raises(NoValidRows):
        traces_of(people, min_samples=3)


def test_the_same_from_parts_that_do_not_fit_into_memory(tmp_path):
    chance = np.random.default_rng(5)
    n = 4000
    table = pa.table(
        {
            "uid": chance.integers(0, 50, n),
            "time": chance.integers(0, 30 * 86_400, n),
            "lat": chance.uniform(40, 41, n),
            "lng": chance.uniform(116, 117, n),
        }
    )
    whole = shoal.read_traces(table, split_gap="4h", align_days=6, min_samples=70)
    parts = shoal.read_traces(
        table, split_gap="4h", align_days=6, min_samples=70, run=Run(memory=60_000, work_dir=tmp_path)
    )
    for name in ("offsets", "ms", "lng", "lat", "users"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name)), name
    assert whole.labels.equals(parts.labels)
    assert whole.account == parts.account
    assert whole.frame == parts.frame


def test_metres_with_a_crs_become_degrees_and_cells_without_one_are_refused():
    table = pa.table({"uid": [1], "time": [0], "x": [448_700.0], "y": [4_416_800.0]})
    traces = shoal.read_traces(table, crs="EPSG:32650")
    assert (round(traces.lng[0], 2), round(traces.lat[0], 2)) == (116.4, 39.9)
    with pytest.raises(SettingsError, match="geography"):
        shoal.read_traces(pa.table({"uid": [1], "d": [0], "t": [3], "x": [5], "y": [6]}), slot="30min")


def test_a_trace_is_as_private_as_the_input():
    frame = traces_of({"ann": [(0, 1.0, 2.0)]}).to_pandas()
    assert frame.columns.tolist() == ["uid", "datetime", "lat", "lng", "trace"]
    assert frame["uid"].tolist() == ["ann"]
    assert "ann" not in repr(traces_of({"ann": [(0, 1.0, 2.0)]}))
