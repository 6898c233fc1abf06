"""The witness: a second parser agrees with the reader on every honest file, and says what it can't compare."""

from __future__ import annotations

import csv
import gzip
import io
import random
import zipfile
from collections import Counter
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import InputError
from shoal.reading.times import zone
from shoal.seen.codes import NOT_CHECKED
from shoal.seen.digest import Digest, People, text_hashes, user_hashes
from shoal.seen.witness_values import times
from tests.shapes import SHAPES
from tests.witness import dirty_rows, findings_of

READ = [shape for shape in SHAPES if not shape.says]
PLAIN = ["uid", "datetime", "lat", "lng"]


def written(shape, folder):
    files = shape.content if isinstance(shape.content, dict) else {shape.name: shape.content}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / shape.name


def test_both_parsers_agree_on_every_shape(tmp_path):
    compared = Counter()
    for n, shape in enumerate(READ):
        findings = findings_of(written(shape, tmp_path / str(n)), **shape.options)
        assert findings.codes == [], shape.what
        compared[" ".join(finding.code for finding in findings.found)] += 1
        assert (findings.skipped == [NOT_CHECKED["original"]]) == ("original" not in findings.checked)
    assert compared[""] > len(READ) / 2
    assert set(compared) <= {"", "original-partly", "original-one-parser"}
    assert compared["original-one-parser"] <= 3, "spreadsheets"


def text_of(rows, draw):
    """Write rows as CSV in a random dialect, with lines that are no rows."""
    out = io.StringIO(newline="")
    end, delimiter = draw.choice(["\n", "\r\n"]), draw.choice(",;\t|")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=draw.choice([0, 1]))
    order = draw.choice([[0, 1, 2, 3], [3, 2, 1, 0]])
    for row in [PLAIN, *rows]:
        writer.writerow([row[i] for i in order])
        out.write(draw.choice([end, delimiter.join("abc") + end, delimiter.join("abcdef") + end] + [""] * 40))
    return out.getvalue().encode(draw.choice(["utf-8", "utf-8-sig"])) + draw.choice([b"", b"", b"\xff,a,b,c\n"])


@pytest.mark.parametrize(
    "first", [0, 20, *(pytest.param(first, marks=pytest.mark.slow) for first in range(40, 400, 20))]
)
def test_both_parsers_agree_on_dirty_rows(first, tmp_path):
    compared = Counter()
    for seed in range(first, first + 20):
        rows, options = dirty_rows(seed)
        draw = random.Random(f"files {seed}")
        folder = tmp_path / str(seed)
        folder.mkdir()
        for n, some in enumerate([rows[:17], rows[17:]]):
            text = text_of(some, draw)
            packed = draw.random() < 0.3
            name = folder / f"part[{n}]*.csv{'.gz' if packed else ''}"
            name.write_bytes(gzip.compress(text) if packed else text)
        try:
            findings = findings_of(folder, **options)
        except InputError:
            continue
        assert findings.codes == [], (seed, options)
        compared.update(findings.checked)
    assert compared["original"] > 5


def table(**columns):
    made = {
        "uid": ["a", "a", "b"],
        "datetime": [10**9, 10**9 + 60, 10**9 + 120],
        "lat": [39.9, 39.8, 39.7],
        "lng": [116.4, 116.3, 116.2],
    }
    return pa.table({**made, **columns})


KINDS = {
    "plain": {},
    "uid int8": {"uid": pa.array([1, 1, 2], pa.int8())},
    "uid uint64": {"uid": pa.array([1, 1, 2**63 + 5], pa.uint64())},
    "uid float with nulls": {"uid": pa.array([1.0, None, 2.0])},
    "uid bool": {"uid": pa.array([True, True, False])},
    "uid dictionary": {"uid": pa.array(["a", None, "b"]).dictionary_encode()},
    "uid large": {"uid": pa.array(["a", "", "b"], pa.large_string())},
    "time s": {"datetime": pa.array([0, 60, None], pa.timestamp("s"))},
    "time ns": {"datetime": pa.array([499_999, 10**18 + 1_499_999, 10**18 + 499_499], pa.timestamp("ns"))},
    "time us in UTC": {"datetime": pa.array([999, 10**15 + 499, 10**15 + 1500], pa.timestamp("us", "UTC"))},
    "time in a zone": {"datetime": pa.array([0, 60_000, 10**12], pa.timestamp("ms", "Asia/Tokyo"))},
    "date": {"datetime": pa.array([1, 2, 15_000], pa.date32())},
    "time int64 in µs": {"datetime": pa.array([10**15, 10**15 + 1, None])},
    "time float": {"datetime": pa.array([1.5e9, 1.5e9 + 0.25, float("nan")])},
    "time text": {"datetime": pa.array(["2012-03-25 02:30:00", "2012-10-28 02:30:00", None])},
    "floats of 32 bits": {"lat": pa.array([39.9, 39.8, float("nan")], pa.float32())},
    "whole degrees": {"lat": pa.array([39, 40, None], pa.int16()), "lng": pa.array([116, 117, 118], pa.uint8())},
    "text degrees": {"lat": pa.array(["39.9", " 39.8", "39,7"])},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_both_parsers_agree_on_typed_columns(kind, ending, tmp_path):
    made = table(**KINDS[kind])
    if ending == "parquet":
        pq.write_table(made, tmp_path / "a.parquet")
    else:
        with pa.ipc.new_file(tmp_path / "a.arrow", made.schema) as out:
            out.write_table(made)
    findings = findings_of(tmp_path, tz="America/New_York")
    assert (findings.codes, findings.messages, findings.checked) == ([], [], ["original"])


@pytest.mark.parametrize("kind", ["decimal", "times that look like dates"])
def test_what_only_the_reader_understands_is_said(kind, tmp_path):
    columns = {
        "decimal": {"lat": pa.array(["39.9", "39.8", "39.7"]).cast(pa.decimal128(9, 4))},
        "times that look like dates": {"datetime": [20120403, 20120404, 20120405]},
    }
    pq.write_table(table(**columns[kind]), tmp_path / "a.parquet")
    findings = findings_of(tmp_path)
    assert [finding.code for finding in findings.found] == ["original-partly"]
    assert findings.found[0].facts == {"what": "places" if kind == "decimal" else "times"}


def test_places_of_antennas_are_counted_only(tmp_path):
    (tmp_path / "cells.csv").write_text("id,lat,lng\n1,39.9,116.4\n2,39.8,116.3\n")
    (tmp_path / "a.csv").write_text("uid,datetime,cell_id\na,2026-03-01 08:00:00,1\nb,2026-03-01 08:00:00,9\n")
    findings = findings_of(tmp_path / "a.csv", cells=tmp_path / "cells.csv")
    assert [finding.code for finding in findings.found] == ["original-counted"]
    assert findings.checked == ["original"]


@pytest.mark.parametrize("options", [{"cell": 500, "slot": 1800}, {"crs": "EPSG:32650"}])
def test_metres_and_cells_are_compared(options, tmp_path):
    rows = "\n".join(f"{user},{step // 48},{step % 50},{4000 + user},{step}" for user in range(3) for step in range(60))
    (tmp_path / "a.csv").write_text(f"uid,d,t,x,y\n{rows}\n,0,0,1,1\n4,0,-1,1,1\n5,0,0,1e9,1\n")
    findings = findings_of(tmp_path, **{"slot": 1800, **options})
    assert (findings.codes, findings.messages) == ([], [])


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_spilled_rows_are_heard_part_by_part(ending, tmp_path):
    people = shoal.synthesize(users=40, scene="town", days=1, seed=1).slice(0, 1_000)
    if ending == ".csv":
        pa.csv.write_csv(people, tmp_path / "a.csv")
    else:
        pq.write_table(people, tmp_path / "a.parquet")
    for memory in (None, 20_000):
        assert findings_of(tmp_path, memory=memory).messages == []


def test_files_of_other_columns_and_broken_members_are_not_compared(tmp_path):
    (tmp_path / "a.csv").write_text("uid,datetime,lat,lng\na,2026-03-01 08:00:00,39.9,116.4\n")
    (tmp_path / "b.csv").write_text("user,time,lat,lon\na,2026-03-01 08:00:00,39.9,116.4\n")
    findings = findings_of(tmp_path)
    assert [finding.code for finding in findings.found] == ["original-one-parser"]
    assert findings.skipped == [NOT_CHECKED["original"]]


def test_a_folder_that_is_named_like_a_column_changes_nothing(tmp_path):
    inside = tmp_path / "in" / "lat=48.5" / "uid=7"
    inside.mkdir(parents=True)
    pq.write_table(table(datetime=[10**9] * 3), inside / "a.parquet")
    assert findings_of(tmp_path / "in").messages == []


def test_members_of_archives_tell_their_user(tmp_path):
    lines = "".join(f"2026-03-01 08:00:0{n},39.{n},116.4\n" for n in range(3))
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as inner:
        inner.writestr("deep/7.csv", "time,lat,lng\n" + lines)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as outer:
        outer.writestr("x/ann.csv.gz", gzip.compress(("time,lat,lng\n" + lines).encode()))
        outer.writestr("y/bob.csv", "time,lat,lng\n" + lines)
        outer.writestr("z/more.zip", sink.getvalue())
        outer.writestr("read.txt", "read me")
    for role in ("@file", "@folder"):
        assert findings_of(tmp_path / "a.zip", columns=f"user={role}").messages == []


# Values


@pytest.mark.parametrize(
    "tz", ["Europe/Berlin", "America/St_Johns", "Africa/Monrovia", "Australia/Lord_Howe", "-03:30"]
)
def test_local_times_are_those_of_the_reader(tz):
    draw = np.random.default_rng(1)
    ms = np.sort(draw.integers(0, 4_102_444_800_000, 3_000))
    around = [change + step for change in zone(tz).utc[-40:].tolist() for step in (-1, 0, 1, 1_800_000, 3_600_000)]
    local = zone(tz).to_local(np.concatenate([ms, np.array(around, np.int64)]))
    local = local[(local >= 0)]
    read = times(pa.Array.from_buffers(pa.timestamp("ms"), len(local), [None, pa.py_buffer(local)]), "auto", tz)
    np.testing.assert_array_equal(read.values, zone(tz).to_utc(local))


def test_texts_have_their_own_hashes():
    texts = ["", "a", "b", "ab", "ba", "a\0", "abcdefgh", "abcdefghi", "abcdefgh\0", "é" * 9, "é" * 8] + [
        "x" * n for n in range(1, 40)
    ]
    hashes = text_hashes(pa.array(texts))
    assert len(set(hashes.tolist())) == len(texts)
    some = pa.array(["skip", *texts, "more"]).slice(1, len(texts))
    assert text_hashes(some).tolist() == hashes.tolist()
    assert [int(text_hashes(pa.array([text]))[0]) for text in texts] == hashes.tolist()
    assert len(text_hashes(pa.array([], pa.string()))) == 0


def test_a_dictionary_may_hold_more_than_its_rows():
    packed = pa.DictionaryArray.from_arrays(pa.array([3, 3, None, 1, 0]), pa.array(["x", "", "z", "w", "v", "u"]))
    hashes, which = user_hashes(packed)
    assert which[2] == which[3] == -1
    assert hashes[which[[0, 1, 4]]].tolist() == text_hashes(pa.array(["w", "w", "x"])).tolist()


def test_people_are_counted_once_however_they_come():
    draw, people, known = np.random.default_rng(2), People(), set()
    for _ in range(30):
        some = draw.integers(0, 400, 50).astype(np.uint64)
        people.add(some)
        known |= set(some.tolist())
    other = People()
    other.add(np.array(sorted(known), np.uint64))
    assert (len(people), people.total) == (len(known), other.total)


def test_digests_see_every_change_of_a_row():
    draw = np.random.default_rng(3)
    users, ms = draw.integers(0, 2**63, 50).astype(np.uint64), draw.integers(0, 10**12, 50)
    a, b = draw.random(50), draw.random(50)

    def digest(*columns):
        made = Digest()
        made.add(*columns)
        return made

    whole = digest(users, ms, a, b)
    order = draw.permutation(50)
    assert digest(users[order], ms[order], a[order], b[order]) == whole
    halves = digest(users[:20], ms[:20], a[:20], b[:20])
    halves.merge(digest(users[20:], ms[20:], a[20:], b[20:]))
    assert halves == whole
    for change in range(4):
        columns = [column.copy() for column in (users, ms, a, b)]
        columns[change][[3, 4]] = columns[change][[4, 3]]
        assert digest(*columns).whole != whole.whole
    assert digest(users, ms, b, a) != whole
    assert digest(users, ms, a, -b) != whole
    assert digest(users, ms, a * 0.0, b) == digest(users, ms, a * -0.0, b)


def test_datetimes_of_python_are_the_reference():
    """Days that are none go to a slower way, which reads the others as before."""
    first = datetime(1999, 12, 31, 23, 59, 59, 999_000)
    written = [(first + timedelta(days=97 * n, milliseconds=n)).isoformat(" ") for n in range(300)]
    expected = [(datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(milliseconds=1) for text in written]
    for more in ([], ["2001-02-30 00:00:00"]):
        read = times(pa.array([*written, *more]), "auto", "UTC")
        assert read.values[:300].tolist() == expected
        assert read.state.tolist() == [1] * 300 + [2] * len(more)
