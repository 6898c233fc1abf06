"""Readers are fed mutated files: they give trajectories or a ShoalError, nothing else, and no value in the message."""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.run import Run
from tests.draws import examples

SECRET = "s3cr3t"
LINES = [
    "uid,datetime,lat,lng,note",
    f"{SECRET},2026-03-01T08:00:00Z,39.9,116.4,x",
    f"{SECRET},2026-03-01 08:00:00+02:00,39.91,116.41,",
    f'{SECRET}2,1772352000,39.9,116.4,"a ""quoted""\nnote"',
    f"{SECRET}3,2026-03-01,39.9,116.4,y",
]
CSV = "\n".join(LINES).encode() + b"\n"
TOKENS = [*(bytes([one]) for one in b'\0"\n\r,;\t\xff'), b"", b"\xef\xbb\xbf", b"nan", b"-inf", b"1e999", b"9" * 30]


def _parquet() -> bytes:
    table = pa.table(
        {
            "uid": [SECRET, SECRET, f"{SECRET}2"] * 5,
            "datetime": pa.array([1_772_352_000, None, 1_772_352_600] * 5, pa.timestamp("s")),
            "lat": [39.9, 39.8, float("nan")] * 5,
            "lng": [116.4] * 15,
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


PARQUET = _parquet()


@st.composite
def mutated(draw, original, tokens):
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        if draw(st.booleans()):
            data[at:at] = draw(st.sampled_from(tokens))
        else:
            data[at : at + draw(st.integers(1, 20))] = draw(st.binary(max_size=8))
    return bytes(data)


def read_or_refuse(data: bytes, name: str) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        path = folder / name
        path.write_bytes(data)
        people = shoal.read(path, run=Run(threads=1, work_dir=folder))
        account = people.account
        assert people.samples == account.kept_rows == account.rows_read - sum(account.dropped.values())
        assert sorted(p.name for p in folder.iterdir()) == [name]
    except shoal.ShoalError as error:
        assert SECRET not in str(error)  # noqa: PT017  an error is one of the two good ends
    finally:
        shutil.rmtree(folder)


@examples(60)
@given(mutated(CSV, TOKENS))
def test_mutated_csv(data):
    read_or_refuse(data, "a.csv")


@examples(60)
@given(mutated(PARQUET, [b"\0", b"\xff\xff\xff\x7f", b"PAR1"]))
def test_mutated_parquet(data):
    read_or_refuse(data, "a.parquet")


@examples(60)
@given(mutated(gzip.compress(CSV, mtime=0), [b"\0", b"\x1f\x8b"]))
def test_mutated_gzip(data):
    read_or_refuse(data, "a.csv.gz")


@examples(60)
@given(st.binary(max_size=200), st.sampled_from(["a.csv", "a.tsv", "a.parquet", "a.csv.gz", "a.csv.zst"]))
def test_any_bytes(data, name):
    read_or_refuse(data, name)


@examples(60)
@given(st.lists(st.lists(st.text(max_size=12), min_size=4, max_size=4), max_size=8))
def test_any_text_in_the_cells(cells):
    lines = ["uid,datetime,lat,lng", *(",".join('"' + c.replace('"', '""') + '"' for c in row) for row in cells)]
    read_or_refuse("\n".join(lines).encode("utf-8", "surrogatepass"), "a.csv")


PLACE = '{"type": "Point", "coordinates": [116.4, 39.9]}'
FEATURE = f'{{"type": "Feature", "properties": {{"uid": "{SECRET}", "time": 1772352000}}, "geometry": {PLACE}}}'
GEO = {
    "a.geojson": f'{{"type": "FeatureCollection", "features": [{FEATURE}, {FEATURE}]}}',
    "a.geojsonl": f"{FEATURE}\n{FEATURE}\n",
    "a.csv": f"uid;trip\n{SECRET};[POINT(116.4 39.9)@2026-03-01 08:00:00+00, POINT(1 2)@2026-03-01 09:00:00+00]\n",
    "b.csv": f"uid,time,geom\n{SECRET},1772352000,POINT(116.4 39.9)\n{SECRET},1772352000,0101000000{'0' * 32}\n",
    "c.csv": f"uid,time,geohash\n{SECRET},1772352000,wx4g0ec1\n",
}
GEO_TOKENS = [*TOKENS, *(bytes([one]) for one in b"[]{}:@();"), b"null", b"1e400", b"SRID=32650;", b"LINESTRING"]


@examples(60)
@given(st.data())
def test_mutated_places(data):
    name = data.draw(st.sampled_from(sorted(GEO)))
    read_or_refuse(data.draw(mutated(GEO[name].encode(), GEO_TOKENS)), name)


def _wkb() -> bytes:
    sink = io.BytesIO()
    points = [bytes.fromhex("0101000000") + bytes(16), bytes.fromhex("0101000020E6100000") + bytes(16)]
    table = pa.table({"uid": [SECRET, SECRET], "time": [1_772_352_000] * 2, "geometry": points})
    geo = b'{"primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB", "geometry_types": []}}}'
    pq.write_table(table.replace_schema_metadata({"geo": geo}), sink)
    return sink.getvalue()


WKB = _wkb()


@examples(30)
@given(mutated(WKB, TOKENS))
def test_mutated_geoparquet(data):
    read_or_refuse(data, "a.parquet")


FIX = '<trkpt lat="1" lon="2"><time>2026-03-01T08:00:00Z</time></trkpt>'
GPX = f'<?xml version="1.0"?><gpx><trk><trkseg>{FIX}</trkseg></trk></gpx>'


@examples(30)
@given(mutated(GPX.encode(), [*TOKENS, b"<", b"<!DOCTYPE a>", b"&#0;", b"</trk>"]))
def test_mutated_gpx(data):
    """The name of the file is the user, which makes it no value of the data."""
    folder = Path(tempfile.mkdtemp())
    try:
        (folder / "a.gpx").write_bytes(data)
        assert len(shoal.read(folder / "a.gpx", columns="user=@file", run=Run(threads=1, work_dir=folder))) == 1
    except shoal.ShoalError:
        pass
    finally:
        shutil.rmtree(folder)
