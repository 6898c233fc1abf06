"""Parquet files whose sizes can't be true are refused before anything is unpacked; those of all writers are read."""

import io
from contextlib import nullcontext
from random import Random

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import CannotCheck, TooLarge
from shoal.run import Run
from shoal.seen.audit import audit_rows
from shoal.seen.file import open_release_file
from shoal.seen.pages import _footer, open_parquet, require_true_sizes, unpacked
from shoal.seen.thrift import NotThrift, read_struct
from tests.fuzz.thrift import damaged_parquet, varint
from tests.people import LAEA, random_people

ROWS = 5000


def table():
    rng = np.random.default_rng(1)
    number = rng.integers(0, 2**40, ROWS)
    return pa.table(
        {
            "number": number,
            "few": number % 7,
            "text": [f"person {n % 90}" if n % 11 else None for n in range(ROWS)],
            "long": ["x" * (n % 300) for n in range(ROWS)],
            "place": rng.random(ROWS),
            "yes": number % 2 == 0,
            "when": pa.array(number % 2**31 * 1000, pa.timestamp("ms", "UTC")),
            "lists": [list(range(n % 4)) for n in range(ROWS)],
            "pairs": [{"a": n, "b": None} for n in range(ROWS)],
        }
    )


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"use_dictionary": False},
        {"data_page_version": "2.0", "data_page_size": 900},
        {"row_group_size": 300, "write_page_index": True, "write_page_checksum": True},
    ],
)
def test_files_of_arrow_are_read(codec, how, tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(table(), path, compression=codec, **how)
    with open_parquet(path) as file:
        assert file.read().equals(table())


def test_files_of_others_are_read(tmp_path):
    plain = table().drop_columns(["lists", "pairs"])
    pl.from_arrow(plain).write_parquet(tmp_path / "polars.parquet")
    duckdb.sql("FROM plain").write_parquet(str(tmp_path / "duckdb.parquet"))
    plain.to_pandas().to_parquet(tmp_path / "pandas.parquet")
    pq.write_table(plain.slice(0, 0), tmp_path / "empty.parquet")
    same = pa.table({"same": np.zeros(3_000_000, np.int64)})
    for codec in ("zstd", "brotli", "gzip"):
        pq.write_table(same, tmp_path / f"{codec}.parquet", compression=codec, use_dictionary=False)
    for path in tmp_path.iterdir():
        with open_parquet(path) as file:
            assert file.read().num_rows == file.metadata.num_rows


def as_large_as_can_be(data, at):
    """The file with the number at a position replaced by the largest of as many bytes, and where the number ends."""
    end = at
    while data[end] >= 0x80:
        end += 1
    return data[:at] + b"\xfe" + b"\xff" * (end - at - 1) + b"\x7f" + data[end + 1 :], end + 1


def test_a_page_that_says_too_much_is_refused(tmp_path):
    """The second field of a page's header is how large it is when unpacked, the third how large it is."""
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"number": np.arange(500_000)}), path, use_dictionary=False)
    data = path.read_bytes()
    start = pq.ParquetFile(path).metadata.row_group(0).column(0).data_page_offset
    assert data[start : start + 3] == b"\x15\x00\x15"  # a page of data, then a number
    require_true_sizes(io.BufferedReader(io.BytesIO(data)))
    unpacked, end = as_large_as_can_be(data, start + 3)
    packed, _ = as_large_as_can_be(data, end + 1)
    for wrong in (unpacked, packed):
        with pytest.raises(OSError, match="damaged"):
            require_true_sizes(io.BufferedReader(io.BytesIO(wrong)))


def test_whatever_is_damaged_is_read_or_refused(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(table().slice(0, 60), path, row_group_size=20)
    data, refused = path.read_bytes(), 0
    for number in range(600):
        try:
            require_true_sizes(io.BufferedReader(io.BytesIO(damaged_parquet(Random(number), data))))
        except OSError:
            refused += 1
    assert 60 < refused < 600


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1\0\0\0\0PAR1", b"\xff\xff\xff\x7fPAR1", b"PAR1\x15\x01\0\0\0PAR1"]
)
def test_no_parquet_at_all(data):
    with pytest.raises(OSError, match="damaged"):
        require_true_sizes(io.BufferedReader(io.BytesIO(data)))


def number(value):
    """A whole number as Thrift writes it, of any size."""
    value, out = 2 * value, b""
    while value > 0x7F:
        value, out = value >> 7, out + bytes([value & 0x7F | 0x80])
    return out + bytes([value])


@pytest.mark.parametrize("at", [1, 2**40, 2**62, 2**64])
def test_pages_that_are_nowhere(at):
    """A chunk of the right type that begins beyond the file, even where no file can reach."""
    about = b"\x15\x04" + b"\x29\x18\x01a" + b"\x26" + number(1) + b"\x16" + number(90) + b"\x16" + number(90)
    chunk = b"\x3c" + about + b"\x26" + number(at) + b"\x00\x00"
    group = b"\x19\x1c" + chunk + b"\x26" + number(1) + b"\x00"
    schema = b"\x29\x2c" + b"\x48\x01s\x15\x02\x00" + b"\x15\x04\x38\x01a\x00"
    footer = schema + b"\x29\x1c" + group + b"\x00"
    fields, end = read_struct(footer)
    assert end == len(footer)
    assert (fields[2][1][1], fields[4][0][1][0][3][9]) == (2, at)
    data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(OSError, match="damaged"):
        require_true_sizes(io.BufferedReader(io.BytesIO(data)))


def test_a_footer_that_is_too_long_is_not_read(monkeypatch):
    """Each byte of it could be a structure of its own."""
    monkeypatch.setattr("shoal.seen.pages.read_struct", None)
    footer = b"\x19\xfc" + varint(9_000_000) + b"\x00" * 9_000_001
    data = b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    with pytest.raises(NotThrift):
        _footer(io.BufferedReader(io.BytesIO(data)))


@pytest.mark.parametrize(
    "data", [b"\x15", b"\x1c" * 40 + b"\x00" * 40, b"\x19\xf5\xff\xff\xff\xff\x7f", b"\x18\x7fhi\x00", b"\x1b\x00\x00"]
)
def test_no_structure(data):
    with pytest.raises(NotThrift):
        read_struct(data)


def long_text(name, n, rows, **how):
    """A table in which one long text stands for all rows."""
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([b"x" * n]))
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: words}), buffer, compression="zstd", store_schema=False, **how)
    return buffer.getvalue()


@pytest.mark.parametrize("how", [{}, {"use_dictionary": False}])
def test_texts_that_are_too_long_are_not_made_plain(how, tmp_path):
    path = tmp_path / "f.parquet"
    path.write_bytes(long_text("words", 100_000, 400, **how))
    assert path.stat().st_size < 50_000
    with pytest.raises(OSError, match="damaged") if how else nullcontext(), open_parquet(path, {"words": 128}) as file:
        column = file.read()["words"]
        assert column.nbytes < 1_000_000
        assert unpacked(column, 399 * 100_000) is None
        assert unpacked(column, 400 * 100_000).to_pylist() == [b"x" * 100_000] * 400


def test_a_release_with_one_large_shape_for_all_rows_takes_little(tmp_path):
    """It took 11 GB: a dictionary of a megabyte, which stood for ten thousand rows."""
    people = random_people(40, seed=1, crs=LAEA)
    path = tmp_path / "r.parquet"
    shoal.Shoal(k=3).anonymize(people).write(path, geo=True)
    assert shoal.verify(people, path).ok
    table = pq.read_table(path)
    rows = table.take(pa.array(np.arange(200_000) % len(table)))
    shapes = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows), np.int32)), pa.array([b"\1" * 1_000_000]))
    wide = rows.set_column(rows.schema.get_field_index("geometry"), "geometry", shapes)
    pq.write_table(wide.replace_schema_metadata(table.schema.metadata), path, store_schema=False)
    file = open_release_file(path)
    assert all(batch["geometry"].null_count == len(batch) for batch in file.batches(["uid", "geometry"]))
    assert "leaks/geometry-form" in shoal.verify(people, path).codes


def test_an_audit_with_one_long_label_is_refused(tmp_path):
    path, n = tmp_path / "a.parquet", 3_000
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int32)), pa.array(["x" * 1_000_000]))
    table = pa.table({"record": np.zeros(n, np.int64), "owner": words, "member": words})
    pq.write_table(table, path, store_schema=False)
    assert path.stat().st_size < 300_000
    with pytest.raises(TooLarge, match="labels of the audit file are too long"):
        audit_rows(path)


def test_an_audit_of_many_rows_is_refused(tmp_path):
    """A few kilobytes hold millions of equal rows."""
    path, n = tmp_path / "a.parquet", 3_000_000
    same = pa.array(["p"]).take(pa.array(np.zeros(n, np.int64)))
    pq.write_table(pa.table({"record": np.zeros(n, np.int64), "owner": same, "member": same}), path)
    assert path.stat().st_size < 100_000
    with pytest.raises(TooLarge, match="the audit file would take"):
        audit_rows(path, Run(memory="100MB"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CannotCheck):
        audit_rows(path)
