"""Files that are no releases, whatever they say: each is refused with a typed error, at once, by whoever opens it."""

import hashlib
import json
import os
import socket

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import CannotCheck, LedgerError, ShoalError, UnreadableFile
from shoal.publishing.ledger.file import open_file
from tests.releases import grouped, toy_people, two_digits

PEOPLE = toy_people(users=24, samples=6, seed=4)
DRAFT = grouped(PEOPLE, 4)
TABLE, HEADER = DRAFT.table(), DRAFT.shoal()
POINTS = TABLE.select(["uid", "datetime", "lat", "lng"])
N = len(TABLE)
LARGE = 10**400


def put(name, values, kind=None, table=TABLE):
    kind = kind or table.schema.field(name).type
    return table.set_column(table.column_names.index(name), name, pa.array([values] * N, kind))


def more(name, value, kind):
    return TABLE.append_column(name, pa.array([value] * N, kind))


def named(value):
    return pa.array([{"a": value}] * N, pa.struct([("a", pa.dictionary(pa.int32(), pa.string()))]))


TABLES = {
    "no uid": TABLE.drop_columns(["uid"]),
    "no t_start": TABLE.drop_columns(["t_start"]),
    "no lat": TABLE.drop_columns(["lat"]),
    "no columns": pa.table({}),
    "a column twice": pa.Table.from_arrays([*TABLE.columns, TABLE["uid"]], names=[*TABLE.column_names, "uid"]),
    "text for uid": put("uid", "a", pa.string()),
    "bytes for uid": put("uid", b"\xff", pa.binary()),
    "nothing for uid": put("uid", None),
    "nothing for a time": put("t_start", None),
    "a column of nothing": put("x_min", None, pa.null()),
    "fractions for uid": put("uid", 0.5, pa.float64()),
    "no number for uid": put("uid", np.inf, pa.float64()),
    "uid beyond 64 bits": put("uid", 10**30, pa.decimal128(38, 0)),
    "uid of 64 bits": put("uid", 2**64 - 1, pa.uint64()),
    "true for uid": put("uid", *[True], pa.bool_()),
    "lists for uid": put("uid", [1], pa.list_(pa.int64())),
    "huge lists for uid": put("uid", [1] * 10_000, pa.list_(pa.int64())),
    "a map for uid": put("uid", [("a", 1)], pa.map_(pa.string(), pa.int64())),
    "nested dictionaries": TABLE.set_column(0, "uid", named("x")),
    "one negative uid": put("uid", -5),
    "the largest uid": put("uid", 2**63 - 1),
    "times in nanoseconds": put("t_start", 2**62, pa.timestamp("ns")),
    "times in seconds": put("t_start", 2**40, pa.timestamp("s")),
    "the last time": put("t_end", 2**63 - 1),
    "the first time": put("t_start", -(2**63)),
    "the least metre": put("x_min", -(2**31)),
    "metres of 64 bits": put("x_min", 2**40, pa.int64()),
    "places without end": put("lat", np.inf),
    "a count below zero": more("count", -5, pa.int32()),
    "a count of zero": more("count", 0, pa.int32()),
    "text for count": more("count", "q", pa.string()),
    "text for geometry": more("geometry", "q", pa.string()),
    "lists for geometry": more("geometry", [1], pa.list_(pa.int64())),
    "no geometry": more("geometry", None, pa.binary()),
    "points of nothing": put("lat", None, table=POINTS),
    "points of text": put("lat", "a", pa.string(), table=POINTS),
    "points that are no numbers": put("lat", np.nan, table=POINTS),
}
HEADERS = {
    "no header": None,
    "half a header": "{",
    "a deep header": "[" * 100_000,
    "a deeper header": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "a huge header": json.dumps({**HEADER, "x": "y" * 20_000_000}),
    "a header of bytes": b"\xff\xfe",
    "a key twice": json.dumps(HEADER)[:-1] + ', "format": 1}',
    "half a character": json.dumps({**HEADER, "method": "\ud800"}),
    **{
        f"{value} for {name}": json.dumps({**HEADER, name: value})
        for name, values in {
            "format": (None, 2, "1"),
            "cell_m": (float("nan"), float("inf"), -5, 2**31, "1"),
            "slot_s": (0, -5, 1.5, 2**63),
            "crs": ("EPSG:999999", "EPSG:4326", "EPSG:32650\0", [], 7, "+proj=laea " * 10_000),
            "method": (None, [], {}, 7),
            "parameters": (None, [], "x"),
            "claim": (None, [], "cover", {}, {"name": ["cover"], "k": 3}, {"name": "cover", "k": -3}),
        }.items()
        for value in values
    },
    "a large cell": json.dumps({**HEADER, "cell_m": LARGE}),
    "a large k": json.dumps({**HEADER, "claim": {"name": "cover", "k": LARGE}}),
}
COUNTS = (float("nan"), float("inf"), float("-inf"), [], "x", None, 10**30, -3, True, 1.5)
MANIFESTS = {
    "no manifest": None,
    "an empty manifest": b"",
    "a manifest of bytes": b"\xff",
    "a deep manifest": b"[" * 100_000,
    "a huge manifest": b" " * 20_000_000,
    "a long number": b'{"a": ' + b"9" * 10_000 + b"}",
    **{f"{value!r} as manifest": json.dumps(value).encode() for value in ([], "x", 1, {}, None)},
}
MEMBERS = {
    **{f"{value!r} suppressed": {"counts": {"samples_suppressed": value}} for value in COUNTS},
    "no counts": {"counts": None},
    "a list of files": {"files": []},
    "no files": {"files": {}},
    "half a character for a file": {"files": {"\ud800": "x"}},
    "text for seeded": {"seeded": "x"},
}
BYTES = {
    "half a file": lambda data: data[: len(data) // 2],
    "another magic": lambda data: b"XXXX" + data[4:-4] + b"XXXX",
    "an empty file": lambda data: b"",
    "only the magic": lambda data: b"PAR1",
    "a long footer": lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
    "a negative footer": lambda data: data[:-8] + b"\xff\xff\xff\xffPAR1",
    "a footer of zeros": lambda data: data[:-200] + bytes(192) + data[-8:],
    "zeros": lambda data: bytes(1000),
    "another kind of file": lambda data: b"\x89PNG\r\n\x1a\n" + data,
}


def craft(folder, *, table=TABLE, header=HEADER, data=lambda data: data, manifest=b"", members=None):
    """Write a release whose hash is right, so that somebody reads on."""
    path = folder / "release.parquet"
    text = json.dumps(header) if isinstance(header, dict) else header
    pq.write_table(table.replace_schema_metadata({} if text is None else {"shoal": text}), path)
    path.write_bytes(data(path.read_bytes()))
    counts = {"records": 24, "samples_published": two_digits(PEOPLE.samples), "samples_suppressed": 0}
    said = {
        "shoal": HEADER,
        "counts": {**counts, "samples_created": 0},
        "seeded": False,
        "files": {"release.parquet": hashlib.sha256(path.read_bytes()).hexdigest()},
    }
    if members is not None:
        wrong = members.get("counts", {})
        changed = {"counts": None if wrong is None else {**said["counts"], **wrong}}
        said |= changed if "counts" in members else members
    if manifest is not None:
        written = folder / "release.parquet.manifest.json"
        written.write_bytes(manifest or json.dumps(said).encode())
    return path


CASES = {
    **{name: {"table": table} for name, table in TABLES.items()},
    **{name: {"header": header} for name, header in HEADERS.items()},
    **{name: {"manifest": manifest or b"\n"} for name, manifest in MANIFESTS.items() if manifest is not None},
    "no manifest": {"manifest": None},
    **{name: {"members": members} for name, members in MEMBERS.items()},
    **{name: {"data": data} for name, data in BYTES.items()},
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_no_release_is_not_read(name, tmp_path):
    path = craft(tmp_path, **CASES[name])
    with pytest.raises(ShoalError) as caught:
        shoal.read_release(path)
    assert "\ud800" not in str(caught.value)
    for judge in (shoal.verify, shoal.evaluate):
        try:
            verdict = judge(PEOPLE, path)
        except ShoalError:
            continue
        assert judge is shoal.evaluate or not verdict.ok


def test_a_crafted_release_that_is_right_is_read(tmp_path):
    assert len(shoal.read_release(craft(tmp_path))) == len(DRAFT.records)
    assert shoal.verify(PEOPLE, craft(tmp_path)).ok


# What is no file is not waited for


def a_pipe(path):
    os.mkfifo(path)


def a_device(path):
    path.symlink_to("/dev/zero")


def a_folder(path):
    path.mkdir()


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as here:
        os.chdir(path.parent)  # names of sockets are short
        here.bind(path.name)


KINDS = [a_pipe, a_device, a_folder, a_socket]


@pytest.fixture
def release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return DRAFT.write(tmp_path)


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", ["other.parquet", "other.csv"])
def test_a_release_is_a_file(make, name, release, tmp_path):
    make(tmp_path / name)
    for judge in (shoal.verify, shoal.evaluate):
        with pytest.raises(CannotCheck, match="the release can't be read"):
            judge(PEOPLE, tmp_path / name)
    with pytest.raises(UnreadableFile):
        shoal.read_release(tmp_path / name)


@pytest.mark.parametrize("make", KINDS)
def test_a_manifest_is_a_file(make, release, tmp_path):
    manifest = tmp_path / "release.parquet.manifest.json"
    manifest.unlink()
    make(manifest)
    with pytest.raises(CannotCheck, match="the manifest can't be read"):
        shoal.verify(PEOPLE, release[0])
    with pytest.raises(UnreadableFile):
        shoal.read_release(release[0])


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("name", ["other.parquet", "other.csv"])
def test_an_audit_is_a_file(make, name, release, tmp_path):
    make(tmp_path / name)
    with pytest.raises(CannotCheck, match="the audit file can't be read"):
        shoal.verify(PEOPLE, release[0], audit=tmp_path / name)


@pytest.mark.parametrize("make", KINDS)
def test_a_run_record_is_a_file(make, release, tmp_path):
    make(tmp_path / "record.json")
    with pytest.raises(CannotCheck, match="the run record can't be read"):
        shoal.verify("in.csv", release[0], run_record=tmp_path / "record.json")


@pytest.mark.parametrize("make", KINDS)
def test_a_ledger_is_a_file(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "ledger")
    with pytest.raises(LedgerError, match=r"^the ledger (ledger|zero) can't be opened"):
        open_file(tmp_path / "ledger")
