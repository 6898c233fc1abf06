"""Names of files and folders decide nothing about the data: the engine never sees them."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import UnreadableFile

TIMES = [1_772_352_000 + 600 * i for i in range(4)]


def table(user):
    return pa.table(
        {"uid": [user] * 4, "datetime": TIMES, "lat": [39.9 + i / 100 for i in range(4)], "lng": [116.4] * 4}
    )


def text(user):
    rows = zip(*table(user).to_pydict().values(), strict=True)
    return "uid,datetime,lat,lng\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def packed_in_zip(path, user):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lat=48.5/[m]*.csv", text(user))


def features(path, user):
    rows = table(user).to_pylist()
    path.write_text(
        "\n".join(
            json.dumps({"type": "Point", "coordinates": [row["lng"], row["lat"]]}).join(
                [
                    '{"type": "Feature", "geometry": ',
                    f', "properties": {json.dumps({k: row[k] for k in ("uid", "datetime")})}}}',
                ]
            )
            for row in rows
        )
    )


WRITERS = {
    ".parquet": lambda path, user: pq.write_table(table(user), path),
    ".pq": lambda path, user: pq.write_table(table(user), path),
    ".csv": lambda path, user: path.write_text(text(user)),
    ".TSV": lambda path, user: path.write_text(text(user).replace(",", "\t")),
    ".csv.gz": lambda path, user: path.write_bytes(gzip.compress(text(user).encode())),
    ".csv.bz2": lambda path, user: path.write_bytes(bz2.compress(text(user).encode())),
    ".utf16.csv": lambda path, user: path.write_bytes(text(user).encode("utf-16")),
    ".zip": packed_in_zip,
    ".feather": lambda path, user: pa.feather.write_feather(table(user), str(path)),
    ".jsonl": lambda path, user: path.write_text("".join(json.dumps(row) + "\n" for row in table(user).to_pylist())),
    ".geojsonl": features,
}
ENDINGS = pytest.mark.parametrize("ending", WRITERS)


def read(*paths, **options):
    people = shoal.read([str(path) for path in paths], **options)
    return dict(zip(people.labels.to_pylist(), people.counts.tolist(), strict=True)), people


@ENDINGS
def test_a_folder_named_like_a_column_changes_nothing(ending, tmp_path):
    folder = tmp_path / "lat=48.5" / "uid=nobody" / "datetime=2020-01-01"
    folder.mkdir(parents=True)
    for user in ("ann", "bob"):
        WRITERS[ending](folder / f"{user}{ending}", user)
        WRITERS[ending](tmp_path / f"{user}{ending}", user)
    found, inside = read(folder)
    assert found == {"ann": 4, "bob": 4}
    _, plain = read(tmp_path / f"ann{ending}", tmp_path / f"bob{ending}")
    assert inside.x.tolist() == plain.x.tolist()
    assert inside.t.tolist() == plain.t.tolist()
    assert inside.account.columns == plain.account.columns


ODD = ["e[1]", "e?", "e*", "e**", "e{1,2}", "e\\[1]", "e\\", "e[!x]", "é'\"\n", "s3:", "e1", "e2", "ex"]


@ENDINGS
def test_a_name_with_the_signs_of_a_pattern_is_one_file(ending, tmp_path):
    for number, name in enumerate(ODD):
        WRITERS[ending](tmp_path / f"{name}{ending}", f"u{number}")
    everybody = {f"u{number}": 4 for number in range(len(ODD))}
    assert read(tmp_path)[0] == everybody
    for number in (0, 1, 5):
        assert read(tmp_path / f"{ODD[number]}{ending}")[0] == {f"u{number}": 4}
    if ending not in {".zip", ".utf16.csv"}:
        assert read(*(tmp_path / f"{name}{ending}" for name in ODD), columns="user=@file")[0] == dict.fromkeys(ODD, 4)


@ENDINGS
def test_a_name_that_is_not_utf_8_or_very_long(ending, tmp_path):
    names = {os.fsdecode(b"caf\xe9"), os.fsdecode(b"caf\xea"), "n" * (255 - len(ending))}
    for number, name in enumerate(names):
        WRITERS[ending](tmp_path / f"plain{ending}", f"u{number}")
        (tmp_path / f"plain{ending}").rename(tmp_path / f"{name}{ending}")
    assert read(tmp_path)[0] == {"u0": 4, "u1": 4, "u2": 4}
    if ending not in {".zip", ".utf16.csv"}:
        assert set(read(tmp_path, columns="user=@file")[0]) == {"caf\\xe9", "caf\\xea", "n" * (255 - len(ending))}


def test_errors_name_such_files_in_plain_text(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9\x1b[2J.csv")
    path.write_text("")
    with pytest.raises(UnreadableFile, match=r"^caf��.2J.csv: the file is empty"):
        shoal.read(path)


def test_names_of_members_may_be_longer_than_those_of_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for user in ("ann", "bob"):
            archive.writestr(f"{'long' * 200}/{user * 100}.csv", text(user))
    assert read(tmp_path / "a.zip", columns="user=@file")[0] == {"ann" * 100: 4, "bob" * 100: 4}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for user in ("ann", "bob"):
            archive.writestr("a.csv", text(user))
    with pytest.raises(UnreadableFile, match="two files in it have one name"):
        shoal.read(tmp_path / "a.zip")


@pytest.mark.parametrize("odd", ["pipe.csv", "zero.csv"])
def test_pipes_and_devices_are_never_opened(odd, tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "good.csv").write_text(text("ann"))
    with pytest.raises(UnreadableFile, match="a pipe or a device"):
        shoal.read(tmp_path / odd)
    with pytest.raises(UnreadableFile, match="a pipe or a device"):
        shoal.read(tmp_path / "good.csv", cells=tmp_path / odd)
    assert read(tmp_path)[0] == {"ann": 4}, "in a folder they are passed over"


def test_a_work_folder_without_links_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(text("ann"))

    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "symlink_to", refused)
    with pytest.raises(shoal.ShoalError, match="can't hold links"):
        shoal.read(tmp_path / "a.csv")
