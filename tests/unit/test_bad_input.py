"""Bad input, one row of the table each: it ends in a typed error or in an account, in bounded time.

`fewer than k users` belongs to the methods and is tested there.
"""

from __future__ import annotations

import gzip
import time
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import errors
from shoal.run import Run

CANARY = "canary-7319"
PLACE = "39.731973", "116.731973"
HEADER = "uid,datetime,lat,lng\n"
GOOD = f"{CANARY},2026-03-01T08:00:00Z,{PLACE[0]},{PLACE[1]}\n"
BAD_PLACE = "place can't be read"
BAD_RANGE = "coordinates out of range"
BAD_TIME = "time can't be read"
BAD_YEAR = "time before 1970 or after 2099"
BAD_ROW = "not a row of the table"
DUPLICATE = "same user, same granule"


def text(*lines, name="a.csv", header=HEADER):
    def write(folder):
        data = header.encode() + b"".join(line if isinstance(line, bytes) else line.encode() for line in lines)
        (folder / name).write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)
        return folder / name

    return write


def row(user=CANARY, time="2026-03-01T08:00:00Z", lat=PLACE[0], lng=PLACE[1]):
    return f"{user},{time},{lat},{lng}\n"


def parquet(table, damage=lambda data: data, name="a.parquet"):
    def write(folder):
        pq.write_table(table() if callable(table) else table, folder / name)
        (folder / name).write_bytes(damage((folder / name).read_bytes()))
        return folder / name

    return write


def people(users=3, samples=4):
    n = users * samples
    return pa.table(
        {
            "uid": [f"{CANARY}-{i // samples}" for i in range(n)],
            "datetime": pa.array([1_772_352_000 + 600 * i for i in range(n)], pa.timestamp("s")),
            "lat": [39.7 + 0.01 * i for i in range(n)],
            "lng": [116.7] * n,
        }
    )


def wide_parquet():
    return pa.table({f"c{i}": pa.array([1], pa.int8()) for i in range(10_001)})


def bomb():
    """Equal rows by the million: some kB on disk, more than the memory there is (see below) when unpacked."""
    n = 20_000_000
    one = np.zeros(1)
    same = pa.array(np.lib.stride_tricks.as_strided(one, (1_000_000,), (0,)))
    return pa.table({name: pa.chunked_array([same] * (n // 1_000_000)) for name in ("uid", "time", "lat", "lng")})


def flip(data):
    """Damage the pages, not the footer."""
    middle = bytearray(data)
    for at in range(4, len(data) // 2, 7):
        middle[at] ^= 0xA5
    return bytes(middle)


def packed_zeros(ending, compression):
    """A hundred megabytes of empty lines in a small file."""

    def write(folder):
        path = folder / f"a.csv.{ending}"
        with pa.output_stream(str(path), compression=compression) as file:
            file.write(HEADER.encode() + b"\n" * (100 << 20))
        return path

    return write


def float_users(*users):
    """Rows of users as floats, which is how numbers with gaps come from pandas."""
    n = len(users)
    return pa.table({"uid": pa.array(users, pa.float64()), "time": [0] * n, "lat": [39.7] * n, "lng": [116.7] * n})


# name: (how to write it, expected error, options) or (how to write it, expected account of dropped rows, options)
TABLE = {
    "empty file": (text(header=""), errors.UnreadableFile),
    "empty Parquet": (parquet(people().slice(0, 0)), errors.NoValidRows),
    "header only": (text(), errors.NoValidRows),
    "no such file": (lambda folder: folder / "nothing.csv", errors.UnreadableFile),
    "a name too long": (lambda folder: folder / ("n" * 5_000), errors.UnreadableFile),
    "empty folder": (lambda folder: folder, errors.UnreadableFile),
    "unknown ending": (text(GOOD, name="a.xlsx"), errors.UnreadableFile),
    "no header": (text(GOOD, GOOD, header=""), errors.ColumnsNotFound),
    "no valid row": (text(row(lat="x"), row(time="y"), row(user="")), errors.NoValidRows),
    "NaN": (text(GOOD, row(lat="NaN"), row(lng="nan")), {BAD_PLACE: 2}),
    "infinite": (text(GOOD, row(lat="inf"), row(lng="-Infinity")), {BAD_PLACE: 2}),
    "latitude 91": (text(GOOD, GOOD, GOOD, GOOD, GOOD, row(lat="91.0")), {BAD_RANGE: 1, DUPLICATE: 4}),
    "longitude -181": (text(GOOD, row(lng="-181")), {BAD_RANGE: 1}),
    "latitude and longitude swapped": (text(row(lat=PLACE[1], lng=PLACE[0]), GOOD), errors.LikelySwapped),
    "one user": (text(GOOD), {}),
    "a user with one sample": (text(GOOD, row(user="other"), row(user="other", lat="39.1")), {}),
    "a user with one sample, screened": (
        text(GOOD, row(user="other"), row(user="other", lat="39.1")),
        {"of users with too few samples": 1},
        {"min_samples": 2},
    ),
    "all users too short": (text(GOOD), errors.NoValidRows, {"min_samples": 2}),
    "a million samples in a minute": (text(GOOD * 1_000_000), {DUPLICATE: 999_999}),
    "all users identical": (text(*(row(user=f"u{i}") for i in range(1_000))), {}, {"confirm": "one-sample"}),
    "before 1970, after 2100": (
        text(GOOD, row(time="1969-12-31 23:59:59"), row(time="2100-01-01 00:00:00"), row(time="9" * 25)),
        {BAD_YEAR: 3},
    ),
    "unreadable times": (text(GOOD, row(time=""), row(time="noon"), row(time="2026-13-01")), {BAD_TIME: 3}),
    "mixed zones": (
        text(GOOD, row(time="2026-03-01T10:00:00+02:00"), row(time="2026-03-01 09:00:00"), row(time="1772352000")),
        {DUPLICATE: 3},
        {"tz": "Europe/Paris"},
    ),
    "DST fold": (
        text(row(time="2026-10-25 02:30:00"), row(time="2026-10-25T02:30:00+02:00")),
        {DUPLICATE: 1},
        {"tz": "Europe/Paris"},
    ),
    "DST gap": (
        text(row(time="2026-03-29 02:30:00"), row(time="2026-03-29T03:30:00+02:00")),
        {DUPLICATE: 1},
        {"tz": "Europe/Paris"},
    ),
    "BOM": (text(GOOD, header="\ufeff" + HEADER), {}),
    "UTF-16": (
        text(header=HEADER + GOOD, name="a.csv"),
        {},
        {},
        lambda d: d.decode().encode("utf-16"),
    ),
    "users NaN, infinite and missing": (
        parquet(float_users(7.0, float("nan"), float("inf"), -float("inf"), None)),
        {"no user": 4},
    ),
    "no user but NaN": (parquet(float_users(float("nan"))), errors.NoValidRows),
    "NUL in a user": (text(GOOD, row(user="a\0b")), {"no user": 1}),
    "NUL in a place": (text(GOOD, row(lat="39\0")), {BAD_PLACE: 1}),
    "NUL in the header": (text(GOOD, header="uid,da\0tetime,lat,lng\n"), errors.UnreadableFile),
    "UTF-16 without its mark": (
        text(header=HEADER + GOOD, name="a.csv"),
        errors.UnreadableFile,
        {},
        lambda d: d.decode().encode("utf-16-le"),
    ),
    "neither UTF-8 nor Windows-1252": (text(GOOD, b"\x81\xfe" + GOOD.encode()), {BAD_ROW: 1}),
    "a row in UTF-8, one in another encoding": (
        text(GOOD, b"\xff\xfe" + GOOD.encode(), row(user="\u00e9")),
        {BAD_ROW: 1},
    ),
    "quoted newlines": (text(f'"{CANARY}\n2",2026-03-01T08:00:00Z,"{PLACE[0]}",{PLACE[1]}\n', GOOD), {}),
    "unbalanced quote": (text(GOOD, f'"{CANARY},2026-03-01T08:00:00Z,1,2\n'), {BAD_ROW: 1}),
    "too short and too long rows": (text(GOOD, "a,b\n", GOOD.strip() + ",1,2\n"), {BAD_ROW: 2}),
    "10^6 columns": (text(header=",".join(f"{CANARY}{i}" for i in range(1_000_000)) + "\n"), errors.ShoalError),
    "20,000 columns": (text(header=",".join(f"c{i}" for i in range(20_000)) + "\n"), errors.TooLarge),
    "10,001 columns of Parquet": (parquet(wide_parquet), errors.TooLarge),
    "truncated Parquet": (parquet(people(), lambda data: data[: len(data) // 2]), errors.UnreadableFile),
    "Parquet without its end": (parquet(people(), lambda data: data[:-1]), errors.UnreadableFile),
    "a text called Parquet": (text(GOOD, name="a.parquet"), errors.UnreadableFile),
    "corrupted Parquet pages": (parquet(lambda: people(50, 50), flip), errors.UnreadableFile),
    "corrupted Parquet footer": (
        parquet(people(), lambda data: data[:-60] + bytes(b ^ 0xFF for b in data[-60:-8]) + data[-8:]),
        errors.UnreadableFile,
    ),
    "a footer that claims too much": (
        parquet(people(), lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1"),
        errors.UnreadableFile,
    ),
    "decompression bomb, Parquet": (parquet(bomb), errors.TooLarge),
    "decompression bomb, gzip": (packed_zeros("gz", "gzip"), errors.TooLarge),
    "decompression bomb, zstd": (packed_zeros("zst", "zstd"), errors.TooLarge),
    "truncated gzip": (text(GOOD * 999, name="a.csv.gz"), errors.UnreadableFile, {}, lambda data: data[:-9]),
    "not gzip at all": (text(GOOD, name="a.csv.gz"), errors.UnreadableFile, {}, gzip.decompress),
}


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory):
    """Compile the kernels first: the bound on time is about the input."""
    shoal.read(text(GOOD)(tmp_path_factory.mktemp("good")))


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE)
def test_bad_input_gives_a_typed_error_or_an_account(case, tmp_path):
    write, expected, options, damage = (*case, {}, None)[:4] if len(case) < 4 else case
    path = write(tmp_path)
    if damage:
        path.write_bytes(damage(path.read_bytes()))
    work = tmp_path / "work"
    work.mkdir()
    start = time.process_time()  # which a busy machine does not change
    if isinstance(expected, dict):
        account = shoal.read(path, run=Run(memory=2**29, work_dir=work), **options).account
        assert account.dropped == expected
        assert account.rows_read == account.kept_rows + sum(expected.values())
    else:
        with pytest.raises(expected) as caught:
            shoal.read(path, run=Run(memory=2**29, work_dir=work), **options)
        shown = "".join(traceback.format_exception_only(caught.value)) + str(caught.value.__cause__)
        assert not any(secret in shown for secret in (CANARY, *PLACE, "2026"))
        assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert time.process_time() - start < 30
    assert list(work.iterdir()) == []


STRICT = {
    "no user": (row(user=""), "uid"),
    "time can't be read": (row(time="noon"), "datetime"),
    "time before 1970 or after 2099": (row(time="1900-01-01"), "datetime"),
    "place can't be read": (row(lat="x731"), "lat and lng"),
    "coordinates out of range": (row(lat="91.731"), "lat and lng"),
    "not a row of the table": ("731\n", ""),
}


@pytest.mark.parametrize(("rule", "case"), STRICT.items(), ids=STRICT)
def test_strict_names_file_row_column_and_rule(rule, case, tmp_path):
    line, column = case
    (tmp_path / "good.csv").write_text(HEADER + GOOD * 10)
    (tmp_path / "late.csv").write_text(HEADER + GOOD * 4_999 + line + GOOD * 10 + line)
    with pytest.raises(errors.BadRows) as caught:
        shoal.read(tmp_path, strict=True)
    where = f", column {column}" if column else ""
    assert str(caught.value).startswith(f"late.csv, row 5,000{where}: {rule};")
    assert "731" not in str(caught.value).replace("7319", "")
    assert shoal.read(tmp_path / "good.csv", strict=True).samples == 1


def test_strict_does_not_mind_filters(tmp_path):
    path = text(GOOD, row(time="2027-01-01"))(tmp_path)
    kept = shoal.read(path, strict=True, period=("2026-01-01", "2026-12-31"))
    assert kept.account.dropped == {"outside the period": 1}


def test_strict_finds_rows_of_parquet_and_tables(tmp_path):
    table = people(4, 250).set_column(2, "lat", pa.array([1.0] * 700 + [None] + [1.0] * 299))
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    with pytest.raises(errors.BadRows, match=r"a.parquet, row 701, column lat and lng: place can't be read"):
        shoal.read(tmp_path / "a.parquet", strict=True)
    with pytest.raises(errors.BadRows, match=r"table, row 701, "):
        shoal.from_arrow(table, strict=True)
