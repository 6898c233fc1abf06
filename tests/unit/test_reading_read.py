from __future__ import annotations

import gzip
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import (
    BadRows,
    ColumnsNotFound,
    InputError,
    NoValidRows,
    OutputError,
    SettingsError,
    TooLarge,
    UnreadableFile,
)
from shoal.reading import engine
from shoal.reading.granules import choose_crs
from shoal.reading.options import ReadOptions, read_options
from shoal.reading.parts import event_parts
from shoal.reading.read import trajectories
from shoal.reading.sources import expand
from shoal.reading.spread import spread_of
from shoal.run import Run
from shoal.trajectories import build
from tests.people import read_events

BEIJING = "EPSG:32650"


def table(n=3_000, users=40, seed=5):
    rng = np.random.default_rng(seed)
    seconds = 1_772_323_200 + rng.integers(0, 3 * 86_400, n)
    return pa.table(
        {
            "uid": pa.array([f"{u:03d}" for u in rng.integers(0, users, n)]),
            "datetime": pa.array(seconds, pa.timestamp("s")),
            "lat": np.round(39.9 + rng.normal(0, 0.05, n), 5),
            "lng": np.round(116.4 + rng.normal(0, 0.05, n), 5),
        }
    )


def same(a, b):
    """The same people with the same samples on the same grid."""
    for name in ("offsets", "t", "x", "y"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.labels.to_pylist() == b.labels.to_pylist()
    assert a.frame == b.frame
    assert a.account.table() == b.account.table()
    return True


def write_csv(rows, path, delimiter=","):
    pacsv.write_csv(rows, path, pacsv.WriteOptions(delimiter=delimiter))


@pytest.fixture(scope="module")
def rows():
    return table()


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("same")
    order = np.random.default_rng(1).permutation(len(rows))
    pq.write_table(rows, folder / "one.parquet")
    pq.write_table(rows.take(order), folder / "shuffled.parquet", row_group_size=100)
    (folder / "parts" / "deep").mkdir(parents=True)
    pq.write_table(rows.slice(0, 1_000), folder / "parts" / "a.parquet")
    pq.write_table(rows.slice(1_000, 500).select(["lng", "uid", "lat", "datetime"]), folder / "parts" / "b.parquet")
    write_csv(rows.slice(1_500, 700), folder / "parts" / "deep" / "c.csv")
    write_csv(rows.slice(2_200), folder / "parts" / "deep" / "d.tsv", "\t")
    (folder / "parts" / "_SUCCESS").write_bytes(b"")
    (folder / "parts" / "notes.txt").write_text("not data")
    write_csv(rows, folder / "one.csv")
    write_csv(rows, folder / "semicolons.csv", ";")
    (folder / "one.csv.gz").write_bytes(gzip.compress((folder / "one.csv").read_bytes()))
    with pa.output_stream(str(folder / "one.csv.zst"), compression="zstd") as file:
        file.write((folder / "one.csv").read_bytes())
    text = (folder / "one.csv").read_bytes().replace(b"\n", b"\r\n")
    (folder / 'it\'s [1] "crlf".csv').write_bytes(b"\xef\xbb\xbf" + text)
    return folder


@pytest.fixture(scope="module")
def whole(folder):
    return shoal.read(folder / "one.parquet", run=Run(threads=1))


@pytest.mark.parametrize(
    "name",
    [
        "shuffled.parquet",
        "parts",
        "one.csv",
        "semicolons.csv",
        "one.csv.gz",
        "one.csv.zst",
        'it\'s [1] "crlf".csv',
        "parts/**/[a-d].*",
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_order_split_kind_and_threads_do_not_matter(name, threads, folder, whole):
    assert same(shoal.read(str(folder / name), run=Run(threads=threads)), whole)


def test_a_list_of_files_and_tables(folder, whole, rows):
    parts = [folder / "parts" / "a.parquet", str(folder / "parts" / "b.parquet"), folder / "parts" / "deep"]
    assert same(shoal.read(parts), whole)
    assert same(shoal.read([*parts, parts[0]]), whole), "a file is read once"
    assert same(shoal.from_arrow(rows), whole)
    assert same(shoal.from_pandas(rows.to_pandas()), whole)
    assert same(shoal.from_polars(pl.from_arrow(rows)), whole)


def test_folders_give_data_that_is_not_hidden(tmp_path):
    names = ["a.csv", "b/c.parquet", ".shoal-x1/staged.csv", "b/_temporary/d.csv", ".hidden.csv", "a.csv.manifest.json"]
    for name in names:
        (tmp_path / ".cache" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".cache" / name).write_text("uid,time,lat,lng\n1,0,1,1\n")
    root = tmp_path / ".cache"  # what is asked for may itself be hidden
    assert expand(root) == [root / "a.csv", root / "b" / "c.parquet"]
    assert expand([root / "a.csv", str(root / "*.csv"), root / ".hidden.csv"]) == [root / "a.csv", root / ".hidden.csv"]
    for nothing in (
        [],
        root / ".shoal-x1" / "none.csv",
        str(root / "*.tsv"),
        root / "b" / "_temporary" / ("n" * 5_000),
    ):
        with pytest.raises(UnreadableFile):
            expand(nothing)


def test_equals_a_plain_reading(rows, whole):
    """The same from pyproj, sets and `build` alone."""
    seconds = rows["datetime"].to_numpy().astype("datetime64[s]").astype(np.int64)
    x, y = whole.frame.cells(rows["lng"].to_numpy(), rows["lat"].to_numpy())
    labels, users = np.unique(rows["uid"].to_numpy(), return_inverse=True)
    t = (seconds // 60 - whole.frame.origin_slot).astype(np.int32)
    plain = build(users, t, x, y, labels=pa.array(labels.tolist()), frame=whole.frame)
    for name in ("offsets", "t", "x", "y"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(plain, name))
    assert whole.labels.equals(plain.labels.cast(whole.labels.type))
    assert whole.t.min() >= 0
    assert whole.frame.origin_slot * 60 % 86_400 == 0


def test_labels_keep_their_type(tmp_path):
    (tmp_path / "a.csv").write_text("uid,time,lat,lng\n007,0,1,1\n7,0,1,2\n")
    assert sorted(shoal.read(tmp_path / "a.csv").labels.to_pylist()) == ["007", "7"]
    rows = {"time": [0, 0], "lat": [1.0, 2.0], "lng": [1.0, 1.0]}
    for kind in (pa.int16(), pa.uint32(), pa.int64()):
        labels = shoal.from_arrow(pa.table({"uid": pa.array([7, 8], kind), **rows})).labels
        assert (labels.type, labels.to_pylist()) == (pa.int64(), [7, 8])
    assert shoal.from_pandas(pd.DataFrame({"uid": [7.0, None], **rows})).labels.to_pylist() == ["7"]
    category = pd.DataFrame({"uid": pd.Categorical(["b", "a"]), **rows})
    assert sorted(shoal.from_pandas(category).labels.to_pylist()) == ["a", "b"]
    pq.write_table(pa.table({"uid": ["007"], "time": [0], "lat": [1.0], "lng": [1.0]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"uid": [7], "time": [0], "lat": [1.0], "lng": [3.0]}), tmp_path / "c.parquet")
    mixed = shoal.read([tmp_path / "b.parquet", tmp_path / "c.parquet"])
    assert sorted(mixed.labels.to_pylist()) == ["007", "7"]


def test_identical_users_are_ranked_by_label_whatever_the_order(tmp_path):
    lines = [f"{user},0,1,1" for user in "dbca"]
    for name, part in (("a.csv", lines), ("b.csv", lines[::-1])):
        (tmp_path / name).write_text("uid,time,lat,lng\n" + "\n".join(part))
    assert shoal.read(tmp_path / "a.csv").labels.to_pylist() == ["a", "b", "c", "d"]
    assert same(shoal.read(tmp_path / "a.csv"), shoal.read(tmp_path / "b.csv"))


def points(lng, lat, **options):
    n = len(lng)
    rows = pa.table({"uid": range(n), "time": [0] * n, "lng": np.array(lng, float), "lat": np.array(lat, float)})
    return shoal.from_arrow(rows, **options)


@pytest.mark.parametrize(
    ("lng", "lat", "centre"),
    [
        ([116.4, 116.6, 117.0], [39.9, 39.4, 40.2], (117, 40)),
        ([116.4, 116.6], [39.9, 40.6], (116, 40)),  # the lower of two
        ([179.6, -179.2, -178.0], [-17.0, -17, -18], (-179, -17)),
        ([179.0, 180.0, -180.0, -179.0], [0.0, 0, 0, 0], (-180, 0)),
        ([-170.0, 170.0, 175.0], [1.0, 1, 1], (175, 1)),
        ([0.0, 90.0, 180.0, -90.0], [89.9, 89.9, 89.9, 89.9], None),
        ([12.0], [-90.0], (12, -90)),
    ],
)
def test_the_local_crs_is_centred_at_the_rounded_median(lng, lat, centre):
    people = points(lng, lat)
    if centre is not None:
        assert f"+lat_0={centre[1]} +lon_0={centre[0]} " in people.frame.crs
    back = people.frame.degrees((people.x + 0.5) * 100, (people.y + 0.5) * 100)
    true = np.array([lng, lat], float)[:, people.labels.to_pylist()]
    apart = np.linalg.norm(on_sphere(*back) - on_sphere(*true), axis=0) * 6_371_000
    assert apart.max() < 100, "cells lie where the points are, also across the antimeridian and at the poles"
    assert max(np.ptp(people.x), np.ptp(people.y)) < 40_000


def on_sphere(lng, lat):
    lng, lat = np.radians([lng, lat])
    return np.array([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)])


def test_places_that_the_crs_cannot_hold_are_counted():
    people = points([116.4, 116.5, -64.0], [40.0, 40.0, -40.0])
    assert people.account.dropped == {"place that the CRS can't hold": 1}
    assert people.account.users_dropped == {"no usable rows": 1}
    assert len(people) == 2


def test_a_given_crs_and_projected_input_agree():
    lng, lat = np.array([116.4, 116.5]), np.array([39.9, 39.95])
    degrees = points(lng, lat, crs=BEIJING)
    east, north = shoal.Frame(crs=BEIJING).cells(lng, lat)
    rows = pa.table({"uid": [0, 1], "time": [0, 0], "x": east * 100.0 + 1, "y": north * 100.0 + 99})
    metres = shoal.from_arrow(rows, crs=BEIJING)
    np.testing.assert_array_equal(metres.x, degrees.x)
    np.testing.assert_array_equal(metres.y, degrees.y)
    inside = shoal.from_arrow(rows, crs=BEIJING, bbox=(116.45, 39, 117, 41))
    assert inside.labels.to_pylist() == [1]
    assert inside.account.dropped == {"outside the bounding box": 1}


def test_gridded_data_without_geography():
    rows = pa.table({"uid": [1, 1, 2], "d": [0, 2, 0], "t": [47, 0, 48], "x": [5, 5, 1], "y": [-6, 200, 1]})
    people = shoal.from_arrow(rows, cell="500m", slot="30min")
    assert people.frame.crs is None
    assert people.user(0).tolist() == [[47, 5, -6], [96, 5, 200]]
    assert people.account.dropped == {"time can't be read": 1}, "a day has 48 half-hours"
    assert any("without geography" in note for note in people.account.notes)
    with pytest.raises(SettingsError, match="`crs"):
        shoal.from_arrow(rows.set_column(3, "x", pa.array([5.5, 5.0, 1.0])))
    with pytest.raises(SettingsError, match="`bbox"):
        shoal.from_arrow(rows, bbox=(0, 0, 1, 1))


def test_cells_file(tmp_path):
    (tmp_path / "cells.csv").write_text("id,lat,lng,name\n01,39.9,116.4,a\n02,39.8,116.5,b\n03,95,0,c\n")
    (tmp_path / "calls.csv").write_text(
        "msisdn,start_time,location_id,duration\n"
        "a,2026-03-01 08:00:00,01,5\na,2026-03-01 09:00:00,02,5\nb,2026-03-01 08:00:00,9,5\n"
        "b,2026-03-01 08:00:00,,5\nb,2026-03-01 08:00:00,03,5\n"
    )
    people = shoal.read(tmp_path / "calls.csv", cells=tmp_path / "cells.csv")
    assert people.samples == 2
    assert people.account.dropped == {"place can't be read": 1, "unknown cell": 2}
    assert "ignored columns: duration" in people.account.notes
    with pytest.raises(ColumnsNotFound, match="`cells"):
        shoal.read(tmp_path / "calls.csv")
    (tmp_path / "cells.csv").write_text("id,lat,lng\n01,39.9,116.4\n01,39.8,116.4\n")
    with pytest.raises(InputError, match="two places"):
        shoal.read(tmp_path / "calls.csv", cells=tmp_path / "cells.csv")


def test_numeric_cells_join_text_cells(tmp_path):
    (tmp_path / "cells.csv").write_text("id,lat,lng\n1,39.9,116.4\n2,39.8,116.5\n")
    rows = pa.table({"msisdn": ["a", "b"], "start_time": [0, 0], "location_id": [1, 2]})
    assert len(shoal.from_arrow(rows, cells=tmp_path / "cells.csv")) == 2


def test_not_a_number_is_no_number_whatever_the_statistics_of_the_file_say(tmp_path):
    """Those leave out NaN, and the engine believes them."""
    nan = float("nan")
    rows = {"uid": [7.0, nan, 8.0], "time": [0.0, 60.0, nan], "lat": [1.0] * 3, "lng": [1.0] * 3}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    assert shoal.read(tmp_path / "a.parquet").labels.to_pylist() == ["7"]
    assert shoal.read(tmp_path / "a.parquet").account.dropped == {"no user": 1, "time can't be read": 1}
    pq.write_table(pa.table({**rows, "uid": [1e16, nan, 0.5]}), tmp_path / "a.parquet")
    assert shoal.read(tmp_path / "a.parquet").account.dropped == {"no user": 1, "time can't be read": 1}
    days = {"uid": [1, 1, 2], "d": [0.0, nan, 1.0], "t": [nan, 0.0, 0.0], "x": [1.0, 1.0, 1.0], "y": [1.0, 1.0, 1.0]}
    pq.write_table(pa.table(days), tmp_path / "a.parquet")
    assert shoal.read(tmp_path / "a.parquet").account.dropped == {"time can't be read": 2}
    pq.write_table(pa.table({"id": ["a", "b"], "lat": [1.0, nan], "lng": [nan, 1.0]}), tmp_path / "cells.parquet")
    pq.write_table(pa.table({"uid": [1], "time": [0], "cell": ["a"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="no cell"):
        shoal.read(tmp_path / "a.parquet", cells=tmp_path / "cells.parquet")
    pq.write_table(pa.table({**rows, "uid": [1, 2, 3], "lat": [1.0, nan, 1.0]}), tmp_path / "a.parquet")
    assert shoal.read(tmp_path / "a.parquet").account.dropped == {"time can't be read": 1, "place can't be read": 1}


def test_screening_and_filters():
    hours = [0, 1, 24, 48, 0, 1, 2, 3, 5]
    rows = pa.table(
        {
            "uid": ["a"] * 4 + ["b"] * 4 + ["c"],
            "time": [1_772_366_400 + 3_600 * h for h in hours],  # noon
            "lat": [10.0] * 9,
            "lng": [179.5] * 8 + [-179.5],
        }
    )
    people = shoal.from_arrow(rows, min_samples=2, min_active_days=2)
    assert people.labels.to_pylist() == ["a"]
    assert people.account.dropped == {"of users with too few samples": 1, "of users with too few active days": 4}
    assert people.account.users_dropped == {"of users with too few samples": 1, "of users with too few active days": 1}
    assert people.account.kept_rows == people.samples == 4
    tokyo = shoal.from_arrow(rows, min_active_days=2, tz="Asia/Tokyo")  # noon UTC is 21 h: b's day ends at 3 h
    assert sorted(tokyo.labels.to_pylist()) == ["a", "b"]
    period = shoal.from_arrow(rows, period=("2026-03-01T14:00", "2026-03-02T12:00Z"))
    assert period.account.dropped == {"outside the period": 6}
    local = shoal.from_arrow(rows, period=("2026-03-01T15:00", "2026-03-02T13:00"), tz="Europe/Paris")
    assert local.account.dropped == period.account.dropped
    assert shoal.from_arrow(rows, bbox=(179, 0, -179, 20)).samples == 9
    assert shoal.from_arrow(rows, bbox=(179, 0, 180, 20)).account.dropped == {"outside the bounding box": 1}
    assert period.account.users_dropped == {"no usable rows": 1}
    west = shoal.from_arrow(rows, bbox=(-180, 0, -179, 20))
    assert west.account.users_dropped == read_events(rows, read_options(bbox=(-180, 0, -179, 20))).account.users_dropped
    assert west.account.users_dropped == {"no usable rows": 2}
    assert west.account.table()[-1] == ("users: no usable rows", 2)
    with pytest.raises(NoValidRows, match="`min_samples"):
        shoal.from_arrow(rows, min_samples=9)


def test_days_west_of_greenwich_are_counted_from_the_first_on():
    rows = pa.table({"uid": [1, 1, 2], "time": [0, 86_400, 0], "lat": [40.0] * 3, "lng": [-74.0] * 3})
    people = shoal.from_arrow(rows, min_active_days=2, tz="America/New_York")  # 1970 begins on 1969-12-31 there
    assert people.labels.to_pylist() == [1]


def test_notes_are_said_once(rows):
    people = shoal.from_arrow(rows.append_column("speed", pa.array([1] * len(rows))))
    assert people.account.notes[0].startswith("times without a zone were read as UTC; if they are local")
    assert people.account.to_dict()["rows_read"] == len(rows)


def test_events_are_what_trajectories_are_made_of(rows, whole):
    options = ReadOptions()
    events = read_events(rows, options)
    assert len(events) == len(rows)
    assert events.east is None
    assert choose_crs(spread_of(events), options) == whole.frame.crs
    assert same(trajectories(events, options), whole)
    assert trajectories(events, options, crs=BEIJING).frame.crs == BEIJING


@pytest.mark.parametrize(
    "options",
    [
        {"cell": 0},
        {"slot": "x"},
        {"tz": "Mars/Olympus"},
        {"tz": "../../etc/passwd"},
        {"crs": "EPSG:4326"},
        {"crs": "nonsense"},
        {"columns": {"who": "uid"}},
        {"period": ("2026-03-02", "2026-03-01")},
        {"period": ("then", "now")},
        {"bbox": (0, 50, 10, 40)},
        {"time_unit": "h"},
        {"min_samples": -1},
        {"colour": "red"},
        {"cell": 0, "columns": {"usr": "uid"}, "bbox": "west", "align_days": -1},
    ],
)
def test_senseless_settings_are_named(options, rows):
    with pytest.raises(SettingsError) as caught:
        shoal.from_arrow(rows, **options)
    assert all(re.search(rf"(^|; ){name}: |`{name}=", str(caught.value)) for name in options)


def test_the_grid_must_fit_32_bits():
    far = pa.table({"uid": [0, 0], "time": [0, 4_000_000_000], "lat": [1.0, 1.0], "lng": [1.0, 1.0]})
    with pytest.raises(SettingsError, match="`slot"):
        shoal.from_arrow(far, slot=1)
    assert shoal.from_arrow(far, slot=2).t.max() == 2_000_000_000
    cells = pa.table({"uid": [0, 0], "time": [0, 0], "x": [1, 4_294_967_297], "y": [1, 1]})
    assert shoal.from_arrow(cells).account.dropped == {"coordinates out of range": 1}


def test_keywords_go_on_top_of_options():
    options = read_options(ReadOptions(cell=500, tz="Asia/Tokyo"), cell="1km")
    assert (options.cell, options.tz) == (1_000, "Asia/Tokyo")


def test_free_memory_is_the_limit_unless_one_is_given(rows, monkeypatch):
    monkeypatch.setattr(engine, "available_bytes", lambda: 100_000)
    with event_parts(rows, ReadOptions()) as parts:
        assert len(parts) > 1


def test_spill_files_live_in_the_work_dir_and_are_gone(folder, tmp_path, monkeypatch):
    seen = []
    settings = engine._settings
    monkeypatch.setattr(engine, "_settings", lambda *a, **k: seen.extend(settings(*a, **k)) or settings(*a, **k))
    shoal.read(folder / "one.csv", run=Run(work_dir=tmp_path))
    assert any(f"temp_directory = '{tmp_path}" in line for line in seen)
    assert list(tmp_path.iterdir()) == []
    (folder / "bad").mkdir()
    (folder / "bad" / "bad.csv").write_text("uid,time,lat,lng\na,0,1,x\nb,0,1,1\n")
    seen.clear()
    with pytest.raises(BadRows):
        shoal.read(folder / "bad", run=Run(work_dir=tmp_path), strict=True)
    spilled = [line for line in seen if "SET temp_directory" in line]
    assert len(spilled) == 2
    assert all(f"'{tmp_path}" in line for line in spilled), "the second look spills there, too"
    with pytest.raises(OutputError, match="choose another"):
        shoal.read(folder / "one.csv", run=Run(work_dir=tmp_path / "nowhere"))


@pytest.mark.parametrize("disk", ["1GB", "10MB"])
def test_what_does_not_fit_memory_is_spilled_and_a_full_disk_is_too_large(disk, tmp_path, monkeypatch):
    settings = engine._settings
    small = {"SET memory_limit": "'60MB'", "SET max_temp_directory_size": f"'{disk}'"}

    def smaller(*paths, **options):
        lines = settings(*paths, **options)
        return [next((f"{k} = {v}" for k, v in small.items() if line.startswith(k)), line) for line in lines]

    monkeypatch.setattr(engine, "_settings", smaller)
    query = "CREATE TEMP TABLE p AS SELECT md5(CAST(i AS VARCHAR)) AS u FROM range(2500000) AS r(i)"
    if disk == "1GB":
        with engine.open_engine([], threads=2, work_dir=tmp_path) as connection:
            connection.execute(query)
            assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) > 10_000_000
    else:
        with pytest.raises(TooLarge), engine.open_engine([], threads=2, work_dir=tmp_path) as connection:
            connection.execute(query)
    assert list(tmp_path.iterdir()) == []


def test_the_engine_sees_only_its_files(folder, tmp_path):
    with engine.open_engine([folder / "one.csv"], threads=1, work_dir=tmp_path) as connection:
        assert next(tmp_path.iterdir()).stat().st_mode & 0o777 == 0o700
        for query in (f"SELECT * FROM read_csv('{folder}/semicolons.csv')", "INSTALL spatial", "SET threads = 4"):
            with pytest.raises(duckdb.Error):
                connection.execute(query).fetchall()
    with pytest.raises(UnreadableFile) as caught, engine.open_engine([], threads=1) as connection:
        connection.execute("SELECT CAST('secret' AS INTEGER)").fetchall()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (RuntimeError("Query interrupted"), KeyboardInterrupt),
        (duckdb.InterruptException("x"), KeyboardInterrupt),
        (duckdb.IOException('Could not write file "x": No space left on device'), OutputError),
        (duckdb.IOException("x"), UnreadableFile),
        (pa.ArrowInvalid("x"), UnreadableFile),
        (pa.ArrowNotImplementedError("x"), UnreadableFile),
        (duckdb.OutOfMemoryException("x"), TooLarge),
        (MemoryError(), TooLarge),
        (RuntimeError("our own mistake"), RuntimeError),
        (PermissionError("our own mistake"), PermissionError),
    ],
    ids=repr,
)
def test_errors_of_the_engine_become_ours_and_others_pass(raised, expected, tmp_path):
    with pytest.raises(expected) as caught, engine.open_engine([], threads=1, work_dir=tmp_path):
        raise raised
    assert type(caught.value) is expected
    assert list(tmp_path.iterdir()) == []


def test_errors_under_way_are_those_of_the_engine(tmp_path):
    late = "SELECT CASE WHEN i > 2000000 THEN error('secret') END FROM range(4000000) AS r(i)"
    with pytest.raises(UnreadableFile) as caught, engine.open_engine([], threads=1, work_dir=tmp_path) as connection:
        sum(batch.num_rows for batch in engine.batches(connection, late, 1 << 17))
    assert "secret" not in str(caught.value)
    endless = "SELECT a.i FROM range(3000000) AS a(i), range(3000000) AS b(i)"
    with pytest.raises(KeyboardInterrupt), engine.open_engine([], threads=1, work_dir=tmp_path) as connection:
        [connection.interrupt() for _ in engine.batches(connection, endless, 1 << 17)]


def test_frames_that_cannot_be_used():
    with pytest.raises(InputError):
        shoal.from_arrow([1, 2, 3])
    with pytest.raises(InputError):
        shoal.from_pandas(pd.DataFrame({"uid": ["a", {"b": 1}], "time": [0, 0], "lat": [1, 1], "lng": [1, 1]}))
    nested = pa.table({"uid": [["secret"]], "time": [0], "lat": [1.0], "lng": [1.0]})
    with pytest.raises(ColumnsNotFound, match="user"):
        shoal.from_arrow(nested)
