"""Parquet and Arrow: types, nulls, nested columns, dictionaries, encodings, metadata, and damage inside the file."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from tests.fuzz.case import CANARY, LAT, LNG, Case, Kind
from tests.fuzz.mutate import FLOATS, TEXTS, any_bytes, as_json, value
from tests.fuzz.tables import header, options, read_case, row
from tests.fuzz.thrift import damaged_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_NOON = datetime(2026, 3, 1, 7, 31, 37, tzinfo=UTC)
_WKB = bytes.fromhex("0101000000") + bytes(16)
_GEO = {
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": []}},
    "version": "1.0.0",
}


def _users(draw: Random, n: int) -> Any:
    names = [f"{CANARY}-{draw.randrange(5)}" for _ in range(n)]
    numbers = [draw.choice((7, 8, 9, 0, -1, 1 << 23)) for _ in range(n)]
    big = [draw.choice((0, 1, 1 << 63, (1 << 64) - 1)) for _ in range(n)]
    return draw.choice(
        (
            *[lambda: pa.array(names)] * 4,
            lambda: pa.array([draw.choice((*TEXTS, CANARY)) for _ in range(n)]),
            lambda: pa.array(numbers, draw.choice((pa.int32(), pa.int64(), pa.float64(), pa.float32()))),
            lambda: pa.array(big, pa.uint64()),
            lambda: pa.array(names).dictionary_encode(),
            lambda: pa.array(names, pa.large_string()),
            lambda: pa.array(names, pa.string_view()),
            lambda: pa.array([name.encode() for name in names], pa.binary()),
            lambda: pa.array([b"\xff" * 16] * n, pa.binary(16)),
            lambda: pa.array([Decimal(7319)] * n, pa.decimal128(draw.choice((4, 10, 38)), 0)),
            lambda: pa.array([Decimal(7319)] * n, pa.decimal256(70, 0)),
            lambda: pa.array([FLOATS[draw.randrange(len(FLOATS))] for _ in range(n)], pa.float64()),
            lambda: pa.array([i % 2 == 0 for i in range(n)]),
        )
    )()


def _times(draw: Random, n: int) -> Any:
    moments = [_NOON + timedelta(minutes=10 * i) for i in range(n)]
    seconds = [int(moment.timestamp()) for moment in moments]
    return draw.choice(
        (
            *[lambda: pa.array(moments, pa.timestamp(draw.choice(("s", "ms", "us", "ns")), "UTC"))] * 4,
            lambda: pa.array(seconds, pa.timestamp("s", draw.choice((None, "Asia/Tokyo", "+05:30", "Nowhere/Land")))),
            lambda: pa.array([draw.choice((0, -1, (1 << 63) - 1, -(1 << 63))) for _ in range(n)], pa.int64()).cast(
                pa.timestamp("us")
            ),
            lambda: pa.array(seconds),
            lambda: pa.array([float(second) for second in seconds]),
            lambda: pa.array([20260301] * n, draw.choice((pa.int32(), pa.int64(), pa.float64()))),
            lambda: pa.array([46082.3] * n),
            lambda: pa.array([draw.choice(FLOATS) for _ in range(n)], pa.float64()),
            lambda: pa.array([1 << 63] * n, pa.uint64()),
            lambda: pa.array([moment.isoformat() for moment in moments]),
            lambda: pa.array([row(draw)["time"] for _ in range(n)]),
            lambda: pa.array([moment.date() for moment in moments], draw.choice((pa.date32(), pa.date64()))),
            lambda: pa.array([moment.time() for moment in moments], draw.choice((pa.time64("us"), pa.time32("s")))),
            lambda: pa.array([timedelta(seconds=5)] * n, pa.duration("s")),
            lambda: pa.array([Decimal(second) for second in seconds], pa.decimal128(20, 3)),
        )
    )()


def _degrees(draw: Random, n: int, usual: str) -> Any:
    numbers = [float(usual) + draw.random() / 10 for _ in range(n)]
    return draw.choice(
        (
            *[lambda: pa.array(numbers)] * 4,
            lambda: pa.array(numbers, pa.float32()),
            lambda: pa.array([39] * n, draw.choice((pa.int8(), pa.int32(), pa.uint64()))),
            lambda: pa.array([397_319_730] * n),
            lambda: pa.array([draw.choice((*FLOATS, float(usual))) for _ in range(n)], pa.float64()),
            lambda: pa.array([usual] * n),
            lambda: pa.array([row(draw)["lat"] for _ in range(n)]),
            lambda: pa.array([Decimal(usual)] * n, pa.decimal128(9, 6)),
            lambda: (
                pa.array([Decimal("39.5")] * n, pa.decimal32(3, 1)) if hasattr(pa, "decimal32") else pa.array(numbers)
            ),
            lambda: pa.array(numbers).cast(pa.float16()) if n == 0 else pa.array(numbers),
            lambda: pa.array([usual.encode()] * n, pa.binary()),
            lambda: pa.array([usual] * n).dictionary_encode(),
        )
    )()


def _notes(draw: Random, n: int) -> Any:
    return draw.choice(
        (
            lambda: pa.array([CANARY] * n),
            lambda: pa.nulls(n),
            lambda: pa.array([{"lat": float(LAT), "lng": float(LNG), "uid": CANARY}] * n),
            lambda: pa.array([[1, 2]] * n, pa.list_(pa.int64())),
            lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
            lambda: pa.array([_WKB] * n, pa.binary()),
            lambda: pa.array(
                [draw.choice((_WKB, b"", b"\1", draw.randbytes(21), _WKB[:5] + b"\xff" * 16)) for _ in range(n)],
                pa.binary(),
            ),
            lambda: pa.array([f"POINT({LNG} {LAT})"] * n),
            lambda: pa.array([0x8931AA5A127FFFF] * n, pa.uint64()),
            lambda: pa.array([[[1.0]]] * n),
        )
    )()


_MAKERS: dict[str, Callable[[Random, int], Any]] = {
    "user": _users,
    "time": _times,
    "lat": lambda draw, n: _degrees(draw, n, LAT),
    "lng": lambda draw, n: _degrees(draw, n, LNG),
    "note": _notes,
}
_PLAIN: dict[str, Callable[[int], Any]] = {
    "user": lambda n: pa.array([f"{CANARY}-{i % 5}" for i in range(n)], pa.string()),
    "time": lambda n: pa.array([_NOON + timedelta(minutes=10 * i) for i in range(n)], pa.timestamp("us", "UTC")),
    "lat": lambda n: pa.array([float(LAT)] * n, pa.float64()),
    "lng": lambda n: pa.array([float(LNG)] * n, pa.float64()),
    "note": lambda n: pa.array([CANARY] * n, pa.string()),
}


def table(draw: Random) -> pa.Table:
    """Return a table of events with columns of any type; sometimes with gaps, or with names that stand twice."""
    n = draw.choice((0, 1, 5, 12, 12))
    columns, names = [], []
    odd = draw.sample(list(_MAKERS), draw.choice((0, 1, 1, 2)))
    for role, name in header(draw):
        made = _MAKERS[role](draw, n) if role in odd else _PLAIN[role](n)
        if draw.random() < 0.1 and n and not pa.types.is_string_view(made.type):
            made = made.take(pa.array([None if i == 0 or draw.random() < 0.3 else i for i in range(n)], pa.int64()))
        columns.append(made)
        names.append("geometry" if role == "note" and draw.random() < 0.1 else name)
    return pa.Table.from_arrays(columns, names=names)


def _metadata(draw: Random, made: pa.Table) -> pa.Table:
    geo = as_json(draw, draw.choice((_GEO, {"primary_column": "geometry"}, {"columns": value(draw)}, value(draw), [])))
    return made.replace_schema_metadata(
        draw.choice(({"geo": geo}, {"pandas": geo}, {"ARROW:schema": "AAAA"}, {CANARY: CANARY}))
    )


def parquet(draw: Random) -> bytes:
    """Return a Parquet file, written in one of many ways."""
    made = table(draw)
    if draw.random() < 0.15:
        made = _metadata(draw, made)
    sink = io.BytesIO()
    ways: dict[str, tuple[Any, ...]] = {
        "compression": ("zstd", "snappy", "none", "gzip", "brotli", "lz4"),
        "version": ("1.0", "2.4", "2.6"),
        "data_page_version": ("1.0", "2.0"),
        "use_dictionary": (True, False),
        "row_group_size": (1, 5, 1000),
        "data_page_size": (1, 1000),
        "write_statistics": (True, False),
        "store_schema": (True, False),
        "write_page_index": (True, False),
        "use_byte_stream_split": (False,),
    }
    chosen = {name: draw.choice(values) for name, values in ways.items() if draw.random() < 0.3}
    try:
        pq.write_table(made, sink, **chosen)
    except (pa.ArrowException, ValueError):  # a type that Parquet does not have
        sink = io.BytesIO()
        pq.write_table(pa.table({"uid": [CANARY], "datetime": [_NOON], "lat": [float(LAT)], "lng": [float(LNG)]}), sink)
    return sink.getvalue()


def draw_parquet(draw: Random) -> Case:
    data, what = parquet(draw), draw.random()
    if what < 0.35:
        data = damaged_parquet(draw, data)
    elif what < 0.5:
        data = any_bytes(draw, data, 3)
    name = draw.choice(("a.parquet",) * 8 + ("a.pq", "lat=48.5/a.parquet", "events[1].parquet"))
    return Case({name: data}, options(draw))


def arrow(draw: Random) -> tuple[str, bytes]:
    """Return a file of Arrow: a stream, a file, or Feather."""
    made, sink = table(draw), io.BytesIO()
    if draw.random() < 0.1:
        made = _metadata(draw, made)
    form = draw.choice(("stream", "file", "feather"))
    try:
        if form == "feather":
            feather.write_feather(made, sink, compression=draw.choice(("zstd", "lz4", "uncompressed")))
        else:
            new = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
            with new(sink, made.schema) as writer:
                writer.write_table(made)
    except (pa.ArrowException, ValueError):
        return "a.arrow", b""
    return "a.feather" if form == "feather" else draw.choice(("a.arrow", "a.feather", "a.ipc")), sink.getvalue()


def draw_arrow(draw: Random) -> Case:
    name, data = arrow(draw)
    if draw.random() < 0.35:
        data = any_bytes(draw, data, 3)
    return Case({name: data}, options(draw))


PARQUET = Kind("parquet", draw_parquet, read_case)
ARROW = Kind("arrow", draw_arrow, read_case)
