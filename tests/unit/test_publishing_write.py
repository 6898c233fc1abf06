"""The one door out: format to the letter, atomic, private."""

import hashlib
import json
import os
import stat
import sys
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import parallel, switch
from shoal.errors import AlreadyExists, NotVerified, OutputError, SettingsError, UnreadableFile
from shoal.folders import private_folder
from shoal.publishing.files import write_tables
from shoal.publishing.manifest import _two_digits, manifest_path
from shoal.publishing.schema import release_table
from tests.forked import Forked
from tests.people import LAEA, random_people
from tests.publishing import dead_folder, written

TIME = pa.timestamp("ms", tz="UTC")
COLUMNS = [
    ("uid", pa.int64()),
    ("t_start", TIME),
    ("t_end", TIME),
    ("x_min", pa.int32()),
    ("y_min", pa.int32()),
    ("x_max", pa.int32()),
    ("y_max", pa.int32()),
    ("datetime", TIME),
    ("lat", pa.float64()),
    ("lng", pa.float64()),
]


@pytest.fixture(scope="module")
def people():
    return random_people(40, seed=3, crs=LAEA)


@pytest.fixture(scope="module")
def release(people):
    return shoal.KScale(k=3).anonymize(people)


@pytest.fixture(scope="module")
def groups(people):
    return shoal.KScale(k=3, constraint="full").anonymize(people)


def test_columns_types_order_and_metadata(release, tmp_path):
    release.write(tmp_path / "r.parquet")
    table = pq.read_table(tmp_path / "r.parquet")
    assert [(field.name, field.type) for field in table.schema] == COLUMNS
    raw = pq.read_metadata(tmp_path / "r.parquet").metadata
    assert set(raw) == {b"shoal", b"ARROW:schema"}
    assert json.loads(raw[b"shoal"]) == {
        "format": 1,
        "method": "k-scale",
        "parameters": {"k": 3, "constraint": "nu-k-pick", "candidates": 300},
        "claim": {"name": "cover", "k": 3},
        "cell_m": 100,
        "slot_s": 60,
        "crs": LAEA,
    }
    rows = list(zip(table["uid"].to_pylist(), table["t_start"].to_pylist(), strict=True))
    assert rows == sorted(rows)
    assert sorted(set(table["uid"].to_pylist())) == list(range(40))


def test_values(release, tmp_path):
    """Half-open metres and seconds, and the middle of each box, recomputed here from the granules."""
    published = written(release, tmp_path / "r.parquet").renumbered()
    table = pq.read_table(tmp_path / "r.parquet").to_pandas()
    t0, t1, x0, x1, y0, y1 = published.boxes.T.astype(np.int64)
    assert (table.t_start.astype("int64").to_numpy() == t0 * 60_000).all()
    assert (table.t_end.astype("int64").to_numpy() == (t1 + 1) * 60_000).all()
    assert (table.x_min == x0 * 100).all()
    assert (table.x_max == (x1 + 1) * 100).all()
    assert (table.y_min == y0 * 100).all()
    assert (table.y_max == (y1 + 1) * 100).all()
    assert (table.datetime - table.t_start == table.t_end - table.datetime).all()
    x, y = published.frame.cells(table.lng, table.lat)
    assert ((x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)).all()


def test_records_are_the_same_whatever_their_numbers(release, tmp_path):
    published = written(release, tmp_path / "r.parquet").renumbered()
    back = shoal.read_release(tmp_path / "r.parquet")
    assert (back.boxes == published.boxes).all()
    assert (back.offsets == published.offsets).all()
    one = sorted(release.record(r).tolist() for r in range(40))
    assert one == sorted(back.record(r).tolist() for r in range(40))
    assert [release.record(r).tolist() for r in range(40)] != [back.record(r).tolist() for r in range(40)]


def test_numbers_are_drawn_for_every_kind_of_column(release, groups, tmp_path):
    """What is written batch by batch is the renumbered release, whatever the records hold."""
    traces = shoal.read_traces(shoal.synthesize(users=12, kind="gps", scene="town", days=1, seed=2))
    points = shoal.Promesse(step=100).anonymize(traces)
    for made, options in ((release, {}), (release, {"geo": True}), (groups, {"compact": True}), (points, {})):
        path = tmp_path / "r.parquet"
        numbers = written(made, path, overwrite=True, **options)
        order = numbers.order.tolist()
        assert sorted(order) == list(range(len(numbers.release)))
        assert order != sorted(order)
        expected = release_table(numbers.renumbered(), geo="geo" in options)
        assert pq.read_table(path).equals(expected)


def test_manifest(release, tmp_path):
    release.write(tmp_path / "r.parquet")
    manifest = json.loads((tmp_path / "r.parquet.manifest.json").read_text())
    assert manifest["files"] == {"r.parquet": hashlib.sha256((tmp_path / "r.parquet").read_bytes()).hexdigest()}
    assert manifest["seeded"] is False
    assert manifest["counts"]["records"] == 40
    assert manifest["counts"]["samples_published"] == _two_digits(release.samples)
    assert set(manifest) == {"shoal", "counts", "seeded", "files"}


@pytest.mark.parametrize(("exact", "rounded"), [(0, 0), (7, 7), (99, 99), (101, 100), (1_269_611, 1_300_000)])
def test_counts_have_two_digits(exact, rounded):
    assert _two_digits(exact) == rounded


def test_a_seed_fixes_the_file_and_takes_the_claim(release, groups, tmp_path):
    for name in ("a", "b"):
        release.write(tmp_path / f"{name}.parquet", seed=7)
    release.write(tmp_path / "c.parquet", seed=8)
    files = [(tmp_path / f"{name}.parquet").read_bytes() for name in "abc"]
    assert files[0] == files[1] != files[2]
    assert str(shoal.read_release(tmp_path / "a.parquet").claim) == "none (research)"
    assert json.loads((tmp_path / "a.parquet.manifest.json").read_text())["seeded"] is True
    groups.write(tmp_path / "g.parquet", seed=7)
    assert str(shoal.read_release(tmp_path / "g.parquet").claim) == "k-anonymity(3)"


def test_audit_and_run_record_are_private_and_right(release, people, tmp_path):
    published = written(
        release, tmp_path / "r.parquet", audit=tmp_path / "a.parquet", run_record=tmp_path / "run.json", seed=5
    ).renumbered()
    for name in ("a.parquet", "run.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    audit = pq.read_table(tmp_path / "a.parquet")
    assert [(f.name, f.type) for f in audit.schema] == [
        ("record", pa.int64()),
        ("owner", pa.string()),
        ("member", pa.string()),
    ]
    index = {label: n for n, label in enumerate(people.labels.to_pylist())}
    for record in range(40):
        rows = audit.filter(pa.compute.equal(audit["record"], record)).to_pylist()
        (owner,) = {row["owner"] for row in rows}
        members = [index[row["member"]] for row in rows]
        assert members[0] == index[owner]
        boxes, _ = shoal.k_merge([people.user(u) for u in members], "owner")
        assert published.record(record).tolist() == boxes.tolist()
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["seed"] == 5
    assert run["counts"]["samples_published"] == people.samples


def test_compact(groups, people, tmp_path):
    groups.write(tmp_path / "g.parquet", compact=True, audit=tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "g.parquet")
    assert table.schema.field("count").type == pa.int32()
    back = shoal.read_release(tmp_path / "g.parquet")
    assert back.multiplicity.min() >= 3
    assert back.multiplicity.sum() == 40
    audit = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert all(row["owner"] == row["member"] for row in audit)
    assert sorted(row["owner"] for row in audit) == sorted(people.labels.to_pylist())
    with pytest.raises(SettingsError, match="identical"):
        shoal.KScale(k=2).anonymize(people).write(tmp_path / "x.parquet", compact=True)


def test_csv(release, tmp_path):
    published = written(release, tmp_path / "r.csv").renumbered()
    header, first, *_ = (tmp_path / "r.csv").read_text().splitlines()
    assert header == ",".join(name for name, _ in COLUMNS)
    assert first.split(",")[1].endswith("Z")
    back = shoal.read_release(tmp_path / "r.csv")
    assert (back.boxes == published.boxes).all()
    assert pa_csv.read_csv(tmp_path / "r.csv").num_rows == len(published.boxes)


def test_without_geography_there_are_no_degrees(tmp_path):
    release = shoal.KScale(k=2).anonymize(random_people(10))
    release.write(tmp_path / "r.parquet")
    assert pq.read_schema(tmp_path / "r.parquet").names == [name for name, _ in COLUMNS[:8]]
    assert shoal.read_release(tmp_path / "r.parquet").frame.crs is None
    with pytest.raises(SettingsError, match="geography"):
        release.write(tmp_path / "g.parquet", geo=True)


def test_existing_output_is_refused(release, tmp_path):
    release.write(tmp_path / "r.parquet")
    before = (tmp_path / "r.parquet").read_bytes()
    with pytest.raises(AlreadyExists):
        release.write(tmp_path / "r.parquet")
    assert (tmp_path / "r.parquet").read_bytes() == before
    release.write(tmp_path / "r.parquet", overwrite=True)
    shoal.read_release(tmp_path / "r.parquet")


@pytest.mark.parametrize("name", ["r.txt", "none/r.parquet", "."])
def test_bad_output_names(release, tmp_path, name):
    with pytest.raises((OutputError, SettingsError)):
        release.write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_check_publishes_nothing(release, tmp_path, monkeypatch):
    def refuse(people, path, **_):
        assert manifest_path(path).exists()
        raise NotVerified("no")

    monkeypatch.setattr("shoal.pipeline.verify", refuse)
    with pytest.raises(NotVerified):
        release.write(tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("room", "name", "error", "said"),
    [
        (os, "fsync", (28, "No space left on device"), "No space left"),
        (switch, "sync_folder", (5, "I/O"), "published"),
    ],
    ids=["full disk", "while moving"],
)
def test_an_error_of_the_disk_takes_everything_back(release, tmp_path, monkeypatch, room, name, error, said):
    def broken(_):
        raise OSError(*error)

    monkeypatch.setattr(room, name, broken)
    with pytest.raises(OutputError, match=said) as caught:
        release.write(tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    assert "nothing was published" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_runs_are_swept_and_living_ones_kept(tmp_path):
    dead = dead_folder(tmp_path)
    (dead / "raw").touch()
    with private_folder(tmp_path) as alive:
        assert not dead.exists()
        assert stat.S_IMODE(alive.stat().st_mode) == 0o700
        with private_folder(tmp_path):
            assert alive.exists()
    assert list(tmp_path.iterdir()) == []


def test_many_runs_in_one_folder_do_not_sweep_each_other(tmp_path):
    code = """
import sys
from pathlib import Path
from shoal.folders import private_folder
for _ in range(300):
    with private_folder(Path(sys.argv[1])) as folder:
        (folder / "file").touch()
"""
    runs = [Forked(code, tmp_path) for _ in range(3)]
    assert [run.end() for run in runs] == [(0, "", "")] * 3
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_is_no_release(release, tmp_path):
    path = tmp_path / "r.parquet"
    release.write(path)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(UnreadableFile, match="changed"):
        shoal.read_release(path)
    manifest = json.loads(manifest_path(path).read_text())
    path.write_bytes(b"x")
    manifest["files"]["r.parquet"] = hashlib.sha256(b"x").hexdigest()
    manifest_path(path).write_text(json.dumps(manifest))
    with pytest.raises(UnreadableFile, match=r"r\.parquet can't be read as a release"):
        shoal.read_release(path)
    manifest_path(path).write_text("{}")
    with pytest.raises(UnreadableFile, match="manifest"):
        shoal.read_release(path)
    manifest_path(path).unlink()
    with pytest.raises(UnreadableFile, match="missing"):
        shoal.read_release(path)


@pytest.mark.parametrize("method", [shoal.Shoal(k=2), shoal.KScale(k=2), shoal.Uniform(), shoal.Promesse(step=500)])
def test_with_a_seed_only_k_anonymity_is_still_claimed(method, events, tmp_path):
    """As docs/promise.md and the help of --seed say."""
    people = method.read(events)
    published = method.anonymize(people, seed=1).write(tmp_path / "r.parquet", seed=1)
    hidden = method.claim.name == "k-anonymity"
    assert published.claim == (method.claim if hidden else shoal.Claim("none", why="research"))
    assert json.loads((tmp_path / "r.parquet.manifest.json").read_text())["seeded"] is True


def test_a_signal_while_writing_ends_is_raised_and_never_ignored(tmp_path, monkeypatch):
    """What is made ahead is closed by the writer, not by the garbage collector, which would only print the signal."""
    ignored = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    @contextmanager
    def disturbed():
        yield
        raise KeyboardInterrupt

    def broken(*_):
        monkeypatch.setattr(parallel, "undisturbed", disturbed)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", broken)
    tables = (pa.table({"n": [n]}) for n in range(9))
    with pytest.raises(KeyboardInterrupt):
        write_tables(tmp_path / "t.parquet", tables, 0o600)
    assert not ignored
