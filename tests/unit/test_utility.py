"""What is left of the data: spatial error and range queries as plain loops give them, for points and for boxes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import CannotCheck, SettingsError
from shoal.figures import Figure
from shoal.reading.options import ReadOptions
from shoal.run import Run
from shoal.seen.pairs import Pairs, Track, open_pairs
from shoal.utility import METRICS, Metric, register
from shoal.utility.queries import count_queries, draw_queries, query_distortions
from shoal.utility.space import spatial_errors
from tests.draws import examples
from tests.oracle import utility as slow
from tests.tracks import CORNERS, around, records_of, table_of, traces_of, walk


def track_of(records):
    offsets = np.cumsum([0, *map(len, records)])
    ms, lng, lat = (np.array(column) for column in zip(*(fix for fixes in records for fix in fixes), strict=True))
    return Track(offsets, ms, lng, lat)


@examples(40)
@given(st.integers(0, 10_000), st.sampled_from(CORNERS), st.sampled_from([1, 2, 3, 40]))
def test_distances_to_the_line_are_those_of_plain_loops(seed, corner, fixes):
    traces = traces_of({"a": walk(seed, corner=corner, fixes=fixes, pace_m=300)})
    chance = np.random.default_rng(seed)
    lng, lat = around(corner, *chance.uniform(-1500, 1500, (2, 15)))
    pairs = Pairs(traces, track_of([list(zip(range(15), lng, lat, strict=True))]), np.array([0]))
    line = list(zip(traces.lng.tolist(), traces.lat.tolist(), strict=True))
    expected = [slow.line_distance(point, line) for point in zip(lng.tolist(), lat.tolist(), strict=True)]
    assert np.allclose(spatial_errors(pairs), expected, rtol=1e-4, atol=0.02)


def test_of_many_points_some_are_drawn():
    traces = traces_of({n: walk(n, fixes=100) for n in range(4)})
    pairs = open_pairs(traces, shoal.Promesse(step=50).anonymize(traces))
    every = spatial_errors(pairs)
    some = spatial_errors(pairs, most=40, seed=1)
    assert len(some) == 40 < len(every)
    assert np.isin(some, every).all()
    assert np.array_equal(some, spatial_errors(pairs, most=40, seed=1))


def test_an_arc_of_a_thousand_kilometres_is_no_chord_below_the_ground():
    from tests.tracks import GEOD

    there = GEOD.fwd(10.0, 50.0, 80.0, 1_000_000)[:2]
    middle = GEOD.fwd(10.0, 50.0, 80.0, 500_000)[:2]
    traces = traces_of({"a": [(0, 10.0, 50.0), (1000, *there)]})
    pairs = Pairs(traces, track_of([[(500, *middle)]]), np.array([0]))
    assert spatial_errors(pairs)[0] < 200  # the chord is 20 km below


@examples(40)
@given(st.integers(0, 10_000), st.sampled_from(CORNERS[:4]))
def test_queries_count_what_plain_loops_count(seed, corner):
    people = {n: walk([seed, n], corner=corner, pace_m=800, gap_ms=3_600_000) for n in range(6)}
    traces = traces_of(people)
    queries = draw_queries(traces, 20, seed)
    counts = count_queries(traces, queries)
    lists = records_of(traces)
    assert counts.tolist() == [slow.crossing(lists, *query) for query in zip(*queries, strict=True)]
    assert counts.min() >= 1
    assert (np.diff(queries.when, axis=1) >= 2 * 3_600_000).all()
    assert (np.diff(queries.when, axis=1) <= 8 * 3_600_000).all()


def test_queries_have_the_sizes_of_the_paper_and_follow_their_seed():
    traces = traces_of({n: walk(n) for n in range(3)})
    queries = draw_queries(traces, 1000, 1)
    half_diagonal = np.hypot(queries.where[:, 3] * 111_040, queries.where[:, 2] * 111_320 * np.cos(np.radians(39.9)))
    assert half_diagonal.min() > 495
    assert half_diagonal.max() < 5_050
    assert np.array_equal(draw_queries(traces, 1000, 1).where, queries.where)
    assert not np.array_equal(draw_queries(traces, 1000, 2).where, queries.where)
    with pytest.raises(SettingsError):
        draw_queries(traces, 0, 1)


def test_the_raw_data_have_no_error_at_all():
    traces = traces_of({n: walk(n) for n in range(5)})
    pairs = Pairs(traces, Track(traces.offsets, traces.ms, traces.lng, traces.lat), np.arange(5))
    assert query_distortions(pairs, queries=50).tolist() == [0] * 50
    assert spatial_errors(pairs).max() < 1e-3


def test_evaluate_points_and_boxes(tmp_path):
    import pyarrow.parquet as pq

    original = tmp_path / "in.parquet"
    pq.write_table(table_of({n: walk(n, fixes=300) for n in range(20)}), original)
    traces = shoal.read_traces(original)
    shoal.Promesse(step=100).anonymize(traces).write(tmp_path / "p.parquet", audit=tmp_path / "pa.parquet")
    found = shoal.evaluate(original, tmp_path / "p.parquet", audit=tmp_path / "pa.parquet", queries=100)
    assert found.spatial_error_m < 40
    assert found.points == pq.read_metadata(tmp_path / "p.parquet").num_rows
    assert found.compression == found.points / found.fixes
    without = shoal.evaluate(original, tmp_path / "p.parquet", queries=100)
    assert without.spatial_error_m is None
    assert without.query_distortion == found.query_distortion
    boxes = shoal.Uniform(to_cell="1km", to_slot="10min").anonymize(shoal.read(original))
    coarse = shoal.evaluate(traces, boxes, queries=100)
    assert coarse.records == 20
    assert coarse.spatial_error_m > found.spatial_error_m


def test_a_new_metric_is_one_class_and_one_registration(monkeypatch):
    class Doubled(Metric):
        name, definition, better = "doubled", "Twice the points.", "lower"
        figures = (Figure("doubled", "points, doubled", "{:,}".format),)
        compared = figures

        def measure(self, pairs, drawn, run):
            return {"doubled": 2 * len(pairs.published.ms)}

    monkeypatch.setitem(METRICS, "doubled", None)  # gone when the test ends
    register(Doubled)
    traces = traces_of({n: walk(n) for n in range(3)})
    found = shoal.evaluate(traces, shoal.Promesse(step=50).anonymize(traces), queries=10)
    assert found.doubled == found.to_dict()["doubled"] == 2 * found.points
    (line,) = shoal.compare(traces, ["promesse:50m"], queries=10)
    assert line.to_dict()["doubled"] == line.doubled == found.doubled
    assert ("points, doubled", str(found.doubled)) in {*found.table()} & {*line.printed()}
    with pytest.raises(AttributeError, match="it has: compression, "):
        _ = found.tripled


def test_records_belong_to_the_part_of_their_time():
    day = 86_400_000
    people = {
        n: walk(n, fixes=100) + [(ms + day, lng, lat) for ms, lng, lat in walk(n + 50, fixes=100)] for n in range(4)
    }
    traces = traces_of(people, split_gap="4h")
    release = shoal.Promesse(step=100).anonymize(traces)
    pairs = open_pairs(traces, release)
    assert pairs.traces.tolist() == list(range(8))
    assert spatial_errors(pairs).mean() < 40
    rows = table_of(people).take(np.random.default_rng(1).permutation(800))
    for run in (Run(), Run(memory=40_000)):  # the second: in parts
        again = open_pairs(rows, release, options=ReadOptions(split_gap="4h"), run=run)
        assert again.traces.tolist() == list(range(8))
        assert records_of(again.original) == records_of(traces)
    with pytest.raises(CannotCheck, match="`min_samples`"):
        open_pairs(rows, release, options=ReadOptions(min_samples=1_000))


def test_what_can_not_be_evaluated(tmp_path):
    traces = traces_of({n: walk(n) for n in range(3)})
    release = shoal.Promesse(step=50).anonymize(traces)
    other = traces_of({f"x{n}": walk(n) for n in range(3)})
    with pytest.raises(CannotCheck, match="audit"):
        open_pairs(other, release)
    (tmp_path / "no.csv").write_text("uid,datetime\n0,2020-01-01T00:00:00.000Z\n")
    with pytest.raises(CannotCheck, match="degrees"):
        shoal.evaluate(traces, tmp_path / "no.csv")
    with pytest.raises(CannotCheck, match="read"):
        shoal.evaluate(traces, tmp_path / "nothing.parquet")
