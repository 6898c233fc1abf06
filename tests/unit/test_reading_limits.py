"""Small files that stand for very much: each is refused with an error that names its limit, in little memory."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import ColumnsNotFound, TooLarge, UnreadableFile
from shoal.reading import limits
from shoal.run import Run

HEADER = "uid,datetime,lat,lng\n"
ROW = "ann,2026-03-01T08:00:00Z,39.9,116.4\n"
LONG = "x" * 1_000_000
ROWS = 200_000


def repeated(value, rows=ROWS):
    """A column of one value, which takes no room in a file."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([value]))


def table(rows=ROWS, **columns):
    plain = {"uid": np.arange(rows), "datetime": np.full(rows, 1_772_352_000), "lat": np.full(rows, 39.9)}
    return pa.table({**plain, "lng": np.full(rows, 116.4), **columns})


def parquet(**columns):
    return lambda path: pq.write_table(table(**columns), path)


def geometries(path):
    trip = "[POINT(116.4 39.9)@2026-03-01 08:00:00+00" + ", POINT(116.4 39.9)@2026-03-01 08:00:00+00" * 1_000 + "]"
    pq.write_table(pa.table({"uid": np.arange(ROWS), "trip": repeated(trip)}), path)


def rows(path):
    one = pa.array(np.lib.stride_tricks.as_strided(np.zeros(1), (20_000_000,), (0,)))
    pq.write_table(pa.table(dict.fromkeys(["uid", "datetime", "lat", "lng"], one)), path)


def arrow(path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, pa.schema([("uid", pa.null())])) as writer:
        writer.write_batch(pa.record_batch([pa.nulls(2**31 - 2)], names=["uid"]))


def text(*parts):
    return lambda path: path.write_text("".join((HEADER, ROW, *parts)))


def written(whole):
    return lambda path: path.write_text(whole)


def shared(path):
    """One long text that a hundred thousand cells show."""
    cells = "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, 100_001))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", f"<sst><si><t>{LONG[:30_000]}</t></si></sst>")
        archive.writestr("xl/worksheets/sheet1.xml", f"<sheetData>{cells}</sheetData>")


BOMBS = {
    "label.parquet": (parquet(uid=repeated(LONG)), "column for the user has more than 1,000 characters"),
    "time.parquet": (parquet(datetime=repeated(LONG)), "column for the time has more than 1,000"),
    "place.parquet": (parquet(lat=repeated(LONG)), "column for the place has more than 1,000"),
    "trips.parquet": (geometries, "unpacks to more than 500 times"),
    "rows.parquet": (rows, "nearly all rows are equal"),
    "rows.arrow": (arrow, "nearly all rows are equal"),
    "label.csv": (text(f"{LONG},2026-03-01T08:00:00Z,39.9,116.4\n"), "column for the user has more than 1,000"),
    "line.csv": (text("x" * 3_000_000, "\n", ROW), "a line has more than 2,000,000 bytes"),
    "huge-line.csv": (text(LONG * 40, "\n", ROW), "a line has more than 2,000,000 bytes"),
    "cell.csv": (
        text('"', ROW * 100_000, '",2026-03-01T08:00:00Z,39.9,116.4\n', ROW),
        "a line has more than 2,000,000",
    ),
    "huge-line.csv.gz": (
        lambda path: path.write_bytes(gzip.compress((HEADER + ROW + LONG * 40 + "\n" + ROW).encode(), 1)),
        "a line has more than 2,000,000 bytes",
    ),
    "shared.xlsx": (shared, "texts of up to 30,0.. bytes in 100,000 cells are too much"),
    "deep.gpx": (written("<gpx>" + "<a>" * 1_000), "more than 100 elements inside each other"),
    "tag.gpx": (written(f'<gpx><a b="{LONG * 20}'), "a tag has more than 16 MB"),
}
DAMAGED = {
    "quote.csv": (text('"', ROW * 3), "a quote is opened and not closed"),
    "late-quote.csv": (text(ROW * 200_000, '"', ROW * 200_000), "a quote is opened and not closed"),
    "deep.json": (written("[" * 1_000_000), "not a list of records"),
    "deep.jsonl": (written('{"a":' * 1_000_000), "not a list of records"),
    "deep.geojson": (written('{"features":' + "[" * 1_000_000), "not whole, valid JSON"),
    "twice.json": (written('[{"uid": 1, "uid": 2}]'), "a record has a field twice"),
}
# The peak of the program itself: ru_maxrss would be that of the process of the tests, which it was forked from.
READ = """
import pathlib, re, shoal, sys
for name in sys.argv[1:]:
    try:
        shoal.read(name, run=shoal.Run(memory="1GB"), **({"columns": "user=@file"} if name.endswith("gpx") else {}))
    except shoal.ShoalError as error:
        print(name.rpartition("/")[2], type(error).__name__)
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) >> 10)
"""


@pytest.mark.parametrize("name", BOMBS)
def test_each_bomb_is_refused_by_the_name_of_its_limit(name, tmp_path):
    write, said = BOMBS[name]
    write(tmp_path / name)
    options = {"columns": "user=@file"} if name.endswith(".gpx") else {}
    with pytest.raises(TooLarge, match=said):
        shoal.read(tmp_path / name, **options)


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_that_would_lose_rows_is_refused(name, tmp_path):
    write, said = DAMAGED[name]
    write(tmp_path / name)
    with pytest.raises(UnreadableFile, match=said):
        shoal.read(tmp_path / name)


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_all_bombs_take_little_memory(tmp_path):
    for name, (write, _) in BOMBS.items():
        write(tmp_path / name)
    names = [str(tmp_path / name) for name in BOMBS]
    done = subprocess.run([sys.executable, "-c", READ, *names], capture_output=True, text=True, check=True)
    *refused, peak = done.stdout.split("\n")[:-1]
    assert refused == [f"{name} TooLarge" for name in BOMBS]
    assert int(peak) < 1_000


def test_what_is_just_within_the_limits_is_read(tmp_path):
    label = "x" * 1_000
    (tmp_path / "a.csv").write_text(HEADER + ROW.replace("ann", label) + ROW + '"an unclosed quote in the last line\n')
    people = shoal.read(tmp_path / "a.csv")
    assert people.labels.to_pylist() == ["ann", label]
    assert people.account.dropped == {"not a row of the table": 1}
    pq.write_table(table(uid=repeated(label)), tmp_path / "a.parquet")
    assert shoal.read(tmp_path / "a.parquet").labels.to_pylist() == [label]


def test_many_equal_rows_can_be_confirmed(tmp_path, monkeypatch):
    pq.write_table(table(uid=repeated("ann")), tmp_path / "a.parquet")
    monkeypatch.setattr(limits, "LEAST_ROWS", 1_000)
    with pytest.raises(TooLarge, match='`confirm="many-rows"`'):
        shoal.read(tmp_path / "a.parquet")
    assert shoal.read(tmp_path / "a.parquet", confirm="many-rows", run=Run(threads=1)).samples == 1


def test_too_many_lines_that_are_no_rows(tmp_path, monkeypatch):
    from shoal.reading import parse, rejects

    (tmp_path / "a.csv").write_text(HEADER + ROW * 10 + "a,b\n" * 3_000)
    assert shoal.read(tmp_path / "a.csv").account.dropped["not a row of the table"] == 3_000
    for module in (parse, rejects):
        monkeypatch.setattr(module, "MAX_REJECTS", 1_000)
    with pytest.raises(TooLarge, match="some 1,000 lines are not rows of the table"):
        shoal.read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    "whole",
    [
        "uid,datetime,lat,lncanary-7319,2026-03-01T08:00:00Z,39.9,116.4\n" + ROW,
        "uid,datetime,lat,canary\n".replace("\n", "") + "," + ROW * 2,
        "uid,datetcanary\n" + ROW,
        "canary,home,work,lat\n",
        "uid,datetime,lat,canary73190\n" + ROW,
    ],
)
def test_a_header_that_was_cut_or_joined_shows_nothing_of_the_data(whole, tmp_path):
    (tmp_path / "a.csv").write_text(whole)
    with pytest.raises(ColumnsNotFound) as caught:
        shoal.read(tmp_path / "a.csv")
    assert "canary" not in str(caught.value) or whole.count("\n") == 1
