"""A file is written again and compared, byte for byte; what no reader shows is found."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import CannotCheck
from shoal.seen.codes import NOT_CHECKED
from shoal.seen.file import open_release_file
from shoal.seen.findings import Findings
from shoal.verifier import rewritten, verify
from tests.releases import grouped, toy_people
from tests.tracks import traces_of, walk

PEOPLE = toy_people(users=30, samples=8, seed=2)
DRAFT = grouped(PEOPLE, 3)


def found(path):
    findings = Findings()
    rewritten.check_rewritten(findings, open_release_file(path))
    return [finding.code for finding in findings.found], findings.skipped


def again(path, **how):
    """Write a release again, with other settings, and its manifest."""
    pq.write_table(pq.read_table(path), path, **how)
    manifest = path.with_name(f"{path.name}.manifest.json")
    said = json.loads(manifest.read_text())
    said["files"] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    manifest.write_text(json.dumps(said))
    return path


@pytest.mark.parametrize("geo", [False, True])
def test_what_shoal_writes_is_what_arrow_writes(geo, tmp_path):
    people = traces_of({n: walk(n, fixes=80) for n in range(5)})
    for name, release in (("smooth", shoal.Promesse(step=100)), ("noisy", shoal.GeoIndistinguishability(epsilon=0.1))):
        release.anonymize(people).write(tmp_path / f"{name}.parquet", geo=geo)
        assert found(tmp_path / f"{name}.parquet") == ([], [])
    shoal.Shoal(k=3).anonymize(PEOPLE).write(tmp_path / "boxes.parquet", geo=geo, compact=geo)
    assert found(tmp_path / "boxes.parquet") == ([], [])


OTHERS = [
    *({"compression": codec} for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd")),
    *({"row_group_size": rows} for rows in (1, 7)),
    *({"use_dictionary": names} for names in (False, ["uid"])),
]
STRANGE = [
    {"compression": "zstd", "compression_level": 19},
    {"data_page_version": "2.0"},
    {"write_page_checksum": True},
    {"write_statistics": False},
    {"version": "1.0"},
]


@pytest.mark.parametrize("how", OTHERS, ids=str)
def test_other_codecs_and_encodings_hold(how, tmp_path):
    path = again(DRAFT.write(tmp_path)[0], **how)
    assert verify(PEOPLE, path).ok


@pytest.mark.parametrize("how", STRANGE, ids=str)
def test_settings_that_shoal_does_not_use_are_named(how, tmp_path):
    path = again(DRAFT.write(tmp_path)[0], **how)
    assert verify(PEOPLE, path).codes == ("leaks/bytes",)


def test_a_file_without_rows_is_written_again(tmp_path):
    path, _ = DRAFT.write(tmp_path)
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert found(path) == ([], [])


def test_larger_row_groups_than_any_are_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(rewritten, "_ROWS", 5)
    assert found(DRAFT.write(tmp_path)[0]) == (["leaks/bytes"], [])


def chunk_of(path, name):
    """Return where a column's pages begin and end."""
    group = pq.read_metadata(path).row_group(0)
    chunk = next(c for n in range(group.num_columns) if (c := group.column(n)).path_in_schema == name)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    return start, start + chunk.total_compressed_size


@pytest.mark.parametrize("name", ["uid", "lat"])
def test_a_byte_of_a_page_that_readers_skip(name, tmp_path):
    """Entries of a dictionary that no row uses, or bits between values, are found by their bytes alone."""
    path, _ = DRAFT.write(tmp_path)
    pq.write_table(pq.read_table(path), path, compression="none")
    assert found(path) == ([], [])
    rows, data = pq.read_table(path), bytearray(path.read_bytes())
    start, stop = chunk_of(path, name)
    silent = 0
    for place in range(start, stop):
        for bit in (0, 7):
            data[place] ^= 1 << bit
            path.write_bytes(data)
            data[place] ^= 1 << bit
            try:
                same = pq.read_table(path).equals(rows)
            except (OSError, pa.ArrowException):
                continue
            if same:
                silent += 1
                try:
                    assert found(path)[0] == ["leaks/bytes"]
                except CannotCheck:
                    continue
    assert silent > 5


# Another version of Arrow


def as_old(path, spoil=lambda data: data):
    data = spoil(path.read_bytes())
    assert data.count(pa.cpp_version.encode()) == 1
    path.write_bytes(data.replace(pa.cpp_version.encode(), b"1.0.0".ljust(len(pa.cpp_version), b"0")))
    return path


def test_files_of_another_version_are_looked_at_and_it_is_said(tmp_path):
    path, _ = DRAFT.write(tmp_path)
    assert found(as_old(path)) == ([], [NOT_CHECKED["bytes"]])


def test_statistics_are_those_of_the_rows(tmp_path):
    path, _ = DRAFT.write(tmp_path)
    group = pq.read_metadata(path).row_group(0)
    least = next(c for n in range(group.num_columns) if (c := group.column(n)).path_in_schema == "lat").statistics.min
    value = np.float64(least).tobytes()
    home = np.float64(39.904).tobytes()

    def spoil(data):
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        assert value in data[footer:]
        return data[:footer] + data[footer:].replace(value, home)

    path.write_bytes(spoil(path.read_bytes()))
    assert found(path) == (["leaks/bytes"], [])
    assert found(as_old(path)) == (["leaks/statistics"], [NOT_CHECKED["bytes"]])
