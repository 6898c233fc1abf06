"""Parquet files whose sizes can't be true are refused before anything is unpacked; those of all writers are read."""

import io
from random import Random

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.errors import CannotCheck, TooLarge
from shoal.run import Run
from shoal.seen.audit import audit_rows
from shoal.seen.pages import open_parquet, require_true_sizes
from shoal.seen.thrift import NotThrift, read_struct
from tests.fuzz.thrift import damaged_parquet

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
    pq.write_table(pa.table({"same": np.zeros(3_000_000, np.int64)}), tmp_path / "same.parquet", compression="zstd")
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


@pytest.mark.parametrize(
    "data", [b"\x15", b"\x1c" * 40 + b"\x00" * 40, b"\x19\xf5\xff\xff\xff\xff\x7f", b"\x18\x7fhi\x00", b"\x1b\x00\x00"]
)
def test_no_structure(data):
    with pytest.raises(NotThrift):
        read_struct(data)


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
