"""Shapes of input as people have them: see `tests/shapes.py` for the table."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zipfile
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.cli.stdin import with_stdin
from shoal.errors import BadRows, ColumnsNotFound, InputError, LikelySwapped, NoValidRows, TooLarge
from shoal.reading.shapes import shape_of
from shoal.run import Run
from tests.draws import examples
from tests.shapes import SHAPES, csv, packed, sheet, table


def write(shape, folder):
    files = shape.content if isinstance(shape.content, dict) else {shape.name: shape.content}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / shape.name


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.what for shape in SHAPES])
def test_each_shape_reads_right_or_says_what_to_type(shape, tmp_path):
    path = write(shape, tmp_path / "in")
    run = Run(threads=1, work_dir=tmp_path)
    if shape.says:
        with pytest.raises(shoal.ShoalError) as caught:
            shoal.read_traces(path, run=run, **shape.options)
        missing = [words for words in shape.says if words not in str(caught.value)]
        assert not missing, str(caught.value)
    elif shape.places is None and shape.times is None and "cell" in shape.options:
        assert shoal.read(path, run=run, **shape.options).labels.to_pylist() == shape.labels
    else:
        check(shoal.read_traces(path, run=run, **shape.options), shape)
    assert [one.name for one in tmp_path.iterdir()] == ["in"], "nothing is left of what was brought"


def check(traces, shape):
    assert traces.account.dropped == {}
    assert traces.labels.to_pylist() == shape.labels
    if shape.times is not None:
        found = [datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S") for ms in traces.ms]
        assert found == shape.times
    if shape.places is not None:
        places = np.array([traces.lat, traces.lng]).T
        np.testing.assert_allclose(places, np.array(shape.places * len(places))[: len(places)], atol=1e-9)
    for words in shape.notes:
        assert any(words in note for note in traces.account.notes), traces.account.notes


def test_there_are_enough_shapes_each_with_its_own_name():
    assert len(SHAPES) >= 100
    assert len({shape.what for shape in SHAPES}) == len(SHAPES)


DAYS = st.dates(date(1971, 1, 1), date(2099, 12, 30))
WRITTEN = {"dmy": "{0.day:02}.{0.month:02}.{0.year} 08:00", "mdy": "{0.month:02}.{0.day:02}.{0.year} 08:00"}


def outcome(source, **options):
    """What is read, or the class and the words of the error."""
    try:
        traces = shoal.read_traces(source, run=Run(threads=1), **options)
    except shoal.ShoalError as error:
        return type(error), str(error).partition(": ")[2]
    return traces.ms.tolist(), traces.account.notes, traces.account.dropped


@examples(40)
@given(st.lists(st.tuples(DAYS, st.sampled_from(sorted(WRITTEN))), min_size=1, max_size=12), st.randoms(), st.data())
def test_the_order_of_dates_never_depends_on_the_order_or_split_of_rows(days, random, data):
    rows = [f"a,{WRITTEN[order].format(day)},39.9,116.4" for day, order in days]
    shuffled = random.sample(rows, len(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    with TemporaryDirectory() as folder:
        (whole := Path(folder, "a.csv")).write_text(csv(*rows))
        parts = Path(folder, "parts")
        parts.mkdir()
        for i, (start, end) in enumerate(pairwise([0, *cuts, len(rows)])):
            (parts / f"{i}.csv").write_text(csv(*shuffled[start:end]))
        assert outcome(parts) == outcome(whole)
        typed = pa.table({"uid": ["a"] * len(rows), "time": [row.split(",")[1] for row in shuffled]})
        typed = typed.append_column("lat", pa.array([39.9] * len(rows))).append_column(
            "lng", pa.array([116.4] * len(rows))
        )
        assert outcome(typed) == outcome(whole), "text in a table is read as in a file"


def slow_twin(texts):
    """What the order of dates must be, from Python's own datetime: milliseconds, or None if it can't be known."""
    fits = {}
    for order, way in (("dmy", "%d.%m.%Y %H:%M"), ("mdy", "%m.%d.%Y %H:%M")):
        for text in texts:
            try:
                read = datetime.strptime(text, way).replace(tzinfo=UTC)
            except ValueError:
                continue
            fits.setdefault(text, {})[order] = round(read.timestamp() * 1000)
    possible = set.intersection(*map(set, fits.values())) if fits else set()
    return sorted(found[min(possible)] for found in fits.values()) if len(possible) == 1 else None


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 32), st.integers(0, 32)), min_size=1, max_size=6, unique=True))
def test_the_order_of_dates_is_that_of_the_slow_twin(days):
    texts = [f"{first:02}.{second:02}.2012 08:00" for first, second in days]
    found = outcome(
        pa.table({"uid": range(len(texts)), "time": texts, "lat": [39.9] * len(texts), "lng": [116.4] * len(texts)})
    )
    expected = slow_twin(texts)
    if expected is None:
        assert found[0] in {InputError, NoValidRows}
    else:
        assert sorted(found[0]) == expected


SHAPED = [
    "03.04.2012 18:00", "3/4/2012 6:00 PM", "Tue Apr 03 18:00:09 +0200 2012", "2012/04/03 18:00:09.25", "3-Apr-2012",
    "April 3, 2012 6:00:09 PM", "Tue, 03 Apr 2012 18:00:09", "20120403T180009", "20120403 180009",
    "03/Apr/2012:20:00:09 +0200",
    "2012-04-03_18-00-09", "03.04.2012 18.00.09", "18:00 03/04/2012", "3 April 2012", "2012年4月3日 18时00分09秒",
]  # fmt: skip


@pytest.mark.parametrize("text", SHAPED)
def test_each_format_reads_as_in_python(text):
    shape = shape_of(re.sub(r"\d", "9", text))
    for order, way in shape.formats:
        expected = datetime.strptime(text, way)
        expected = expected if expected.tzinfo else expected.replace(tzinfo=UTC)
        told = {"time_format": order} if order else {}
        (ms,), *_ = outcome(pa.table({"uid": [1], "time": [text], "lat": [39.9], "lng": [116.4]}), **told)
        assert ms == round(expected.timestamp() * 1000)
        (ms,), *_ = outcome(pa.table({"uid": [1], "time": [text], "lat": [39.9], "lng": [116.4]}), time_format=way)
        assert ms == round(expected.timestamp() * 1000)


@examples(60)
@given(st.lists(st.text("0129 .:/-TZ+ApMrs,'%\u00a0\ue000", max_size=24), min_size=1, max_size=5))
def test_any_text_as_a_time_is_read_counted_or_refused(texts):
    n = len(texts)
    outcome(pa.table({"uid": range(n), "time": texts, "lat": texts, "lng": [116.4] * n}))


def test_strict_knows_what_all_files_decided(tmp_path):
    (tmp_path / "a.csv").write_text(csv("a,03/04/2012 18:00,39.9,116.4", "a,03/04/2012 19:00,x,116.4"))
    (tmp_path / "b.csv").write_text(csv("a,23/04/2012 18:00,39.9,116.4"))
    with pytest.raises(BadRows, match=r"a\.csv, row 2, column lat and lng: place can't be read"):
        shoal.read_traces(tmp_path, strict=True)


def test_strict_counts_rows_after_lines_that_are_passed_over(tmp_path):
    (tmp_path / "a.txt").write_text("\n# made by hand\nuid,time,lat,lng\na,0,1,2\na,0\n")
    with pytest.raises(BadRows, match=r"a\.txt, row 2: not a row"):
        shoal.read_traces(tmp_path / "a.txt", strict=True)
    (tmp_path / "b.txt").write_text("a,0,1,2\na,0\n")
    with pytest.raises(BadRows, match=r"b\.txt, row 2: not a row"):
        shoal.read_traces(tmp_path / "b.txt", strict=True, columns="user=1,time=2,lat=3,lng=4")


def test_messages_hold_no_value(tmp_path):
    (tmp_path / "a.csv").write_text(csv("s3cr3t,07/08/2019 18:00,39.731,116.731"))
    with pytest.raises(InputError) as caught:
        shoal.read_traces(tmp_path / "a.csv")
    assert not any(secret in str(caught.value) for secret in ("s3cr3t", "2019", "07", "731"))


def test_a_folder_gives_texts_only_where_there_is_nothing_else(tmp_path):
    (tmp_path / "a.txt").write_text(csv("a,0,1,2"))
    assert shoal.read_traces(tmp_path).labels.to_pylist() == ["a"]
    (tmp_path / "b.csv").write_text(csv("b,0,1,2"))
    assert shoal.read_traces(tmp_path).labels.to_pylist() == ["b"]


def test_zip_bombs_are_refused_by_what_they_unpack_to(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for i in range(3):
            file.writestr(f"{i}.csv", b"uid,time,lat,lng\n" + bytes(30 << 20))
    with pytest.raises(TooLarge, match="500 times"):
        shoal.read_traces(tmp_path / "a.zip", run=Run(work_dir=tmp_path))
    assert [one.name for one in tmp_path.iterdir()] == ["a.zip"]


def test_without_the_package_for_spreadsheets_the_message_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match=re.escape('pip install "shoal-privacy[excel]"')):
        shoal.read_traces(tmp_path / "a.xlsx")


PIPED = {
    "text": csv("a,2012-04-03 18:00:09,39.9,116.4").encode(),
    "gzip": gzip.compress(csv("a,2012-04-03 18:00:09,39.9,116.4").encode()),
    "JSON": b'[{"uid": "a", "time": 1333476009, "lat": 39.9, "lng": 116.4}]',
    "Parquet": table(uid=["a"], time=[1333476009], lat=[39.9], lng=[116.4]),
    "zip": packed({"a.csv": csv("a,2012-04-03 18:00:09,39.9,116.4")}),
    "xlsx": sheet(["uid", "time", "lat", "lng"], ["a", datetime(2012, 4, 3, 18, 0, 9), 39.9, 116.4]),
}


@pytest.mark.parametrize("piped", PIPED.values(), ids=PIPED)
def test_what_is_piped_is_read_by_its_first_bytes(piped, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    with with_stdin(["inspect", "-", "--work-dir", str(tmp_path)]) as told:
        path = Path(told[1])
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert shoal.read_traces(path).labels.to_pylist() == ["a"]
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_copied_without_a_hyphen():
    with with_stdin(["inspect", "a.csv"]) as told:
        assert told == ["inspect", "a.csv"]


def test_lines_that_are_not_utf8_are_dropped_with_a_note(tmp_path):
    rows = csv(*(f"a,{i},39.9,116.4" for i in range(60_000))).encode()
    (tmp_path / "late.csv").write_bytes(rows + "Jürgen,7,39.9,116.4\n".encode("cp1252"))
    traces = shoal.read_traces(tmp_path / "late.csv")
    assert traces.account.dropped == {"not a row of the table": 1}
    assert any("not UTF-8 and were dropped" in note for note in traces.account.notes)
    told = shoal.read_traces(tmp_path / "late.csv", encoding="cp1252")
    assert told.labels.to_pylist() == ["Jürgen", "a"]


def test_several_sheets_need_the_same_columns(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    for name, header in (("same.xlsx", "lng"), ("other.xlsx", "lon")):
        book = openpyxl.Workbook()
        book.active.append(["uid", "time", "lat", "lng"])
        book.active.append(["a", datetime(2012, 4, 3), 39.9, 116.4])
        book.create_sheet()
        second = book.create_sheet()
        second.append(["uid", "time", "lat", header])
        second.append(["b", datetime(2012, 4, 3), 39.9, 116.4])
        book.save(tmp_path / name)
    assert shoal.read_traces(tmp_path / "same.xlsx").labels.to_pylist() == ["a", "b"]
    with pytest.raises(InputError, match="several sheets"):
        shoal.read_traces(tmp_path / "other.xlsx")


def test_columns_without_names_are_called_by_their_numbers(tmp_path):
    (tmp_path / "a.txt").write_text("1,2008-02-02 15:36:08,116.51172,39.92123,7\n")
    traces = shoal.read_traces(tmp_path / "a.txt", columns="user=1,time=2,lng=3,lat=#4")
    assert "ignored columns: #5" in traces.account.notes
    with pytest.raises(LikelySwapped, match=re.escape('`columns="lat=#4,lng=#3"`')):
        shoal.read_traces(tmp_path / "a.txt", columns="user=1,time=2,lat=3,lng=4")


def test_users_are_told_by_files_of_any_kind(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("ann", "bob.smith"):
        data = table(time=[1333476009], lat=[39.9], lng=[116.4])
        (tmp_path / "in" / f"{name}.parquet").write_bytes(data)
    (tmp_path / "in" / "jörg.a.csv").write_bytes("time;lat;lng;größe\n1333476009;39,9;116,4;1\n".encode("cp1252"))
    traces = shoal.read_traces(tmp_path / "in", columns="user=@file")
    assert traces.labels.to_pylist() == ["ann", "bob.smith", "jörg.a"]
    (tmp_path / "in" / "eve.b.xlsx").write_bytes(sheet(["time", "lat", "lng"], [datetime(2012, 4, 3), 39.9, 116.4]))
    assert shoal.read_traces(tmp_path / "in", columns="user=@file").labels.to_pylist()[2] == "eve.b"
    assert shoal.read_traces(tmp_path / "in", columns="user=@folder").labels.to_pylist() == ["in"]
    rows = pa.table({"time": [0], "lat": [1.0], "lng": [2.0]})
    with pytest.raises(ColumnsNotFound, match="a table has no file"):
        shoal.from_arrow(rows, columns="user=@file")


def test_antennas_as_a_german_spreadsheet(tmp_path):
    (tmp_path / "calls.csv").write_text(csv("a,2012-04-03 18:00:09,Köln", header="msisdn,time,cell_id"))
    (tmp_path / "cells.csv").write_bytes("cell_id;Breite;Länge\nKöln;50,94;6,96 E\n".encode("cp1252"))
    traces = shoal.read_traces(tmp_path / "calls.csv", cells=tmp_path / "cells.csv")
    assert (traces.lat.tolist(), traces.lng.tolist()) == ([50.94], [6.96])
