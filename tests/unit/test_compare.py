"""Comparing methods: what can be named, what is measured, what is saved."""

import csv
import json
import re
from dataclasses import asdict, replace

import pyarrow.parquet as pq
import pytest

import shoal
from shoal import comparison as room
from shoal.comparison import compare, contests, save_comparison
from shoal.errors import AlreadyExists, OutputError, SettingsError, TooFewUsers, TooLarge
from shoal.measure import precision
from shoal.methods import METHODS
from shoal.run import Run
from shoal.tables import refuse_table
from tests.people import random_people
from tests.progress import Heard
from tests.tracks import planted, traces_of, walk

SPANS = ["span_km_mean", "span_km_median", "duration_min_mean", "duration_min_median"]
COLUMNS = ["method", "k", "claim", "owner_cost", *SPANS, "suppressed", "seconds", "peak_memory_bytes"]
SCORES = ["fscore", "precision", "recall", "spatial_error_m"]
QUERIES = ["query_distortion", "query_distortion_low", "query_distortion_high"]
POINT_COLUMNS = ["method", "claim", *SCORES, *QUERIES, "compression", "seconds", "traces", "records", "points"]


@pytest.fixture(scope="module")
def lines():
    return compare(random_people(30, seed=1), contests(["shoal", "k-scale:full"], [2, 3]))


def test_every_choice_is_a_method_of_its_own():
    boxes = {name for name, kind in METHODS.items() if kind.takes == "samples"}
    named = [name for name in room._choices() if name.partition(":")[0] in boxes]
    methods = [one.method for one in contests(named, [4])]
    assert all(method.among in (4, None) for method in methods)
    assert {method.name for method in methods} == boxes
    differing = {repr(method) for method in methods}
    # shoal:normal, k-scale:nu-k-pick, glove:k-merge and kte-hide:30min are the defaults
    assert len(differing) == len(named) - 4


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("magic", "k-scale:marginal"),
        ("magic:full", "k-concealment"),
        ("k-scale:best", "k-scale:nu-k-pick, k-scale:k-pick, k-scale:full, k-scale:marginal"),
        ("k-scale:", "k-scale:full"),
        ("shoal:full", "shoal:thorough"),
        ("k-concealment:full", "k-concealment"),
    ],
)
def test_unknown_methods_are_answered_with_the_choices(name, hint):
    with pytest.raises(SettingsError, match=re.escape(hint)):
        contests([name], [2])


@pytest.mark.parametrize(("names", "ks"), [([], [2]), (["shoal"], []), (["shoal"], [1])])
def test_nothing_to_run(names, ks):
    with pytest.raises(SettingsError):
        contests(names, ks)


def test_nothing_runs_twice():
    assert len(contests(["shoal", "shoal"], [2, 2])) == 1


def test_each_line_is_its_methods_release(lines):
    people = random_people(30, seed=1)
    assert [(line.method, line.k, line.claim) for line in lines] == [
        ("shoal", 2, "k-anonymity(2)"),
        ("k-scale:full", 2, "k-anonymity(2)"),
        ("shoal", 3, "k-anonymity(3)"),
        ("k-scale:full", 3, "k-anonymity(3)"),
    ]
    assert lines[2].figures == asdict(precision(shoal.Shoal(k=3).anonymize(people)))
    assert lines[1].figures == asdict(precision(shoal.KScale(k=2, constraint="full").anonymize(people)))
    assert all(line.seconds > 0 for line in lines)


def test_too_few_people_is_said_before_anything_runs(monkeypatch):
    monkeypatch.setattr(room, "_measured", lambda *_: pytest.fail("it ran"))
    with pytest.raises(TooFewUsers):
        compare(random_people(4), contests(["shoal"], [2, 5]))


def test_too_little_memory_is_said_before_anything_runs(monkeypatch):
    monkeypatch.setattr(room, "_measured", lambda *_: pytest.fail("it ran"))
    with pytest.raises(TooLarge, match="k-scale would take"):
        compare(random_people(20), contests(["k-scale"], [2]), run=Run(memory=1000))


def test_peak_memory_is_of_the_run(tmp_path, monkeypatch):
    people = random_people(10)
    (known,) = compare(people, contests(["shoal"], [2]))
    assert known.peak_memory_bytes is None or known.peak_memory_bytes > 10_000_000
    monkeypatch.setattr(room, "_CLEAR_PEAK", tmp_path / "no" / "such")
    (unknown,) = compare(people, contests(["shoal"], [2]))
    assert unknown.peak_memory_bytes is None


def test_progress_says_which_run():
    progress = Heard()
    compare(random_people(10), contests(["k-scale"], [2]), run=Run(progress=progress))
    stages = [name for name, _, _ in progress.stages]
    assert stages[0] == "runs"
    assert "k-scale, k = 2: records" in stages


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_saved_tables_hold_the_lines(lines, tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    save_comparison(lines, path)
    if ending == "csv":
        with path.open(newline="") as file:
            saved = list(csv.DictReader(file))
    else:
        saved = json.loads(path.read_text()) if ending == "json" else pq.read_table(path).to_pylist()
    assert list(saved[0]) == COLUMNS
    assert len(saved) == len(lines)
    for row, line in zip(saved, lines, strict=True):
        assert (row["method"], int(row["k"]), row["claim"]) == (line.method, line.k, line.claim)
        for name, value in line.figures.items():
            assert float(row[name]) == value
        assert row["peak_memory_bytes"] in (line.peak_memory_bytes, str(line.peak_memory_bytes or ""))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_unknown_peaks_are_saved_too(lines, tmp_path):
    for ending in ("csv", "json", "parquet"):
        save_comparison([replace(lines[0], peak_memory_bytes=None)], tmp_path / f"table.{ending}")
    assert pq.read_table(tmp_path / "table.parquet")["peak_memory_bytes"].to_pylist() == [None]


def test_an_existing_table_stays(lines, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("mine")
    with pytest.raises(AlreadyExists, match="`overwrite`"):
        save_comparison(lines, path)
    assert path.read_text() == "mine"
    save_comparison(lines, path, overwrite=True)
    assert path.read_text().startswith("method,k,claim,owner_cost")


def test_where_a_table_can_not_be(tmp_path):
    events = tmp_path / "events.csv"
    events.write_text("uid,datetime,lat,lng\n")
    with pytest.raises(SettingsError, match=r"\.parquet"):
        refuse_table(tmp_path / "table.txt", [events], overwrite=False)
    with pytest.raises(OutputError, match="never overwritten"):
        refuse_table(events, [events], overwrite=True)
    with pytest.raises(OutputError, match="does not exist"):
        refuse_table(tmp_path / "none" / "table.csv", [events], overwrite=True)


# Points


@pytest.fixture(scope="module")
def traces():
    return traces_of({n: planted(n)[0] for n in range(6)})


def test_lines_are_those_of_evaluate_and_attack(traces):
    names = ["raw", "promesse:100m", "geo-indistinguishability:ln(10)/100"]
    raw, smooth, noisy = compare(traces, names, queries=100, seed=3)
    assert (raw.fscore, raw.query_distortion, raw.compression) == (1.0, 0.0, 1.0)
    assert raw.spatial_error_m < 1e-3
    assert (list(raw.to_dict()), raw.seconds) == (POINT_COLUMNS, None)
    release = shoal.Promesse(step=100).anonymize(traces)
    alone = shoal.evaluate(traces, release, queries=100, seed=3)
    assert smooth.query_distortion == alone.query_distortion
    assert smooth.spatial_error_m == pytest.approx(alone.spatial_error_m)
    assert smooth.fscore == pytest.approx(shoal.attack(traces, release, "poi").rows[0]["fscore"])
    assert noisy.compression == 1.0
    assert 5 < noisy.spatial_error_m < 90
    assert noisy.claim.startswith("geo-indistinguishability(")


def test_names_of_point_methods():
    with pytest.raises(SettingsError, match="points only"):
        compare(random_people(4), ["raw"])
    with pytest.raises(SettingsError, match="one after the other"):
        contests(["promesse", "shoal"])
    for wrong in ("promesse:fast", "geo-indistinguishability"):
        with pytest.raises(SettingsError):
            contests([wrong])
    assert [one.takes for one in contests(["raw", "promesse"])] == ["fixes", "fixes"]


def test_people_who_never_stay_have_no_score():
    (line,) = compare(traces_of({n: walk(n) for n in range(3)}), ["promesse:50m"], queries=10)
    assert (line.fscore, line.precision, line.recall) == (None, None, None)


def test_points_that_do_not_fit_into_memory_are_refused_before_any_run(traces):
    with pytest.raises(TooLarge):
        compare(traces, ["promesse:1m"], run=Run(memory=1000))
