from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.errors import AlreadyExists, OutputError, SettingsError, TooLarge
from shoal.run import Run
from shoal.synth import generate, synthesize
from tests.progress import Heard
from tests.publishing import dead_folder


def test_same_seed_same_rows_and_another_seed_others():
    first = synthesize(users=60, seed=5)
    assert first.equals(synthesize(users=60, seed=5))
    assert not first.equals(synthesize(users=60, seed=6))


@pytest.mark.parametrize("kind", ["cdr", "gps"])
def test_threads_and_blocks_do_not_matter(kind, monkeypatch):
    options = {"users": 45, "kind": kind, "days": 3, "seed": 2}
    whole = synthesize(run=Run(threads=1), **options)
    monkeypatch.setattr(generate, "ROWS_PER_BLOCK", 900)
    pieces = synthesize(run=Run(threads=3), **options)
    assert len(pieces["uid"].chunks) > len(whole["uid"].chunks)
    assert whole.equals(pieces)


@pytest.mark.parametrize("kind", ["cdr", "gps"])
def test_columns_order_and_period(kind):
    table = synthesize(users=40, kind=kind, days=3, start="2026-03-01", seed=4)
    assert table.schema.types == [pa.int64(), pa.timestamp("ms", tz="UTC"), pa.float64(), pa.float64()]
    uid, seconds = table["uid"].to_numpy(), table["datetime"].cast("int64").to_numpy() // 1000
    same = uid[1:] == uid[:-1]
    assert (np.diff(seconds)[same] > 0).all()
    assert len(np.unique(uid)) == 40 == (~same).sum() + 1
    begin = np.datetime64("2026-03-01", "s").astype(int)
    assert begin <= seconds.min() < seconds.max() < begin + 3 * 86_400
    assert ((uid > 0) & (uid < 2**53)).all()
    assert not (np.diff(uid[np.append(True, ~same)]) > 0).all()  # identifiers do not follow the order of rows


def test_dense_calls_stay_distinct_and_within_the_period():
    table = synthesize(users=60, days=1, samples=1_440, seed=3)
    uid, seconds = table["uid"].to_numpy(), table["datetime"].cast("int64").to_numpy() // 1000
    assert (np.diff(seconds)[uid[1:] == uid[:-1]] > 0).all()
    assert seconds.min() // 86_400 == seconds.max() // 86_400


def test_parquet_csv_and_gz_hold_the_same_rows(tmp_path):
    table = synthesize(users=12, seed=8)
    for name in ("a.parquet", "a.csv", "a.csv.gz"):
        assert synthesize(tmp_path / name, users=12, seed=8) is None
    assert pq.read_table(tmp_path / "a.parquet").equals(table)
    text = (tmp_path / "a.csv").read_text()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).decode() == text
    lines = text.splitlines()
    row = {name: column[0].as_py() for name, column in zip(table.column_names, table.columns, strict=True)}
    assert lines[0] == "uid,datetime,lat,lng"
    assert lines[1] == f"{row['uid']},{row['datetime']:%Y-%m-%dT%H:%M:%SZ},{row['lat']!r},{row['lng']!r}"
    assert len(lines) == table.num_rows + 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "a.csv.gz", "a.parquet"]


def test_existing_file_is_refused_unless_overwritten(tmp_path):
    target = tmp_path / "people.parquet"
    target.write_bytes(b"mine")
    with pytest.raises(AlreadyExists) as caught:
        synthesize(target, users=5)
    assert "people.parquet" in str(caught.value)
    assert str(tmp_path) not in str(caught.value)
    assert target.read_bytes() == b"mine"
    synthesize(target, users=5, overwrite=True)
    assert pq.read_metadata(target).num_rows > 5


def test_a_failure_on_the_way_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(generate, "ROWS_PER_BLOCK", 500)
    heard = []

    def stop(amount):
        heard.append(amount)
        if len(heard) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        synthesize(tmp_path / "people.parquet", users=50, run=Run(progress=Heard(stop)))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_swept(tmp_path):
    (dead_folder(tmp_path) / "people.parquet").write_bytes(b"half")
    synthesize(tmp_path / "people.parquet", users=5)
    assert [path.name for path in tmp_path.iterdir()] == ["people.parquet"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    target = tmp_path / "people.csv"
    with pytest.raises(AlreadyExists):
        synthesize(target, users=5, run=Run(progress=Heard(lambda _: target.write_text("mine"))))
    assert target.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


def test_progress_counts_every_user():
    progress = Heard()
    synthesize(users=30, run=Run(progress=progress))
    assert [done for _, *done in progress.stages] == [[30, 30.0]]


def test_unwritable_places_are_output_errors(tmp_path):
    with pytest.raises(OutputError, match="does not exist"):
        synthesize(tmp_path / "absent" / "people.parquet", users=2)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        synthesize(tmp_path / "file" / "people.parquet", users=2)
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        synthesize(tmp_path / "folder.parquet", users=2, overwrite=True)


@pytest.mark.parametrize(
    "options",
    [
        {"users": 0},
        {"days": 0},
        {"days": 400},
        {"kind": "wifi"},
        {"scene": "moon"},
        {"samples": 0.5},
        {"samples": float("nan")},
        {"samples": 1e9},
        {"samples": 100, "kind": "gps"},
        {"interval_s": 0, "kind": "gps"},
        {"start": "yesterday"},
        {"start": "2026-01-05 10:00"},
        {"seed": -1},
        {"path": "people.xlsx"},
    ],
    ids="-".join,
)
def test_bad_arguments(options):
    with pytest.raises(SettingsError):
        synthesize(**({"users": 3} | options))


def test_too_many_rows_for_a_table():
    with pytest.raises(TooLarge, match="path"):
        synthesize(users=5_000_000)


@pytest.mark.parametrize(("days", "samples"), [(14, 40), (14, 300), (5, None), (1, 2)])
def test_mean_samples_are_as_asked(days, samples):
    table = synthesize(users=3_000, days=days, samples=samples, seed=9)
    wanted = samples if samples is not None else 144 * days / 14
    assert table.num_rows / 3_000 == pytest.approx(wanted, rel=0.06)
