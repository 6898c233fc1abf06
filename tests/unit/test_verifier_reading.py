"""How the verifier reads: published columns, their values and metadata, polygons, the grid, and the original."""

import base64
import json
import struct
from collections import Counter
from datetime import UTC, datetime
from itertools import chain, pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Transformer

from shoal.claim import Claim
from shoal.errors import CannotCheck, TooLarge
from shoal.frame import Frame
from shoal.layouts import Boxes
from shoal.reading.events import Events
from shoal.reading.options import ReadOptions
from shoal.release import Release
from shoal.run import Run
from shoal.seen import file as published
from shoal.seen import grid as grids
from shoal.seen import original, scan
from shoal.seen import people as crowd
from shoal.seen import polygons as geometry
from shoal.seen.arrays import blocks
from shoal.seen.codes import NOT_CHECKED
from shoal.seen.file import BOX, POINT, Batch, open_release_file, read_columns, read_points
from shoal.seen.findings import Findings
from shoal.seen.grid import Grid
from shoal.seen.original import Original, arranged, from_events, from_trajectories
from shoal.seen.people import Crowd, crowd_of, open_crowd
from shoal.seen.polygons import Polygons
from shoal.seen.records import records_of_release
from shoal.seen.scan import report_form, scan_file
from shoal.trajectories import Trajectories
from shoal.verifier import leaks
from tests.draws import examples
from tests.releases import CRS, FRAME, people_of, with_derived, write_csv

TIME = pa.timestamp("ms", "UTC")
GRID = Grid(CRS, 100, 60)
BARE = Grid(None, 100, 60)
DAY = 86_400_000


# The grid


def test_cells_and_degrees_are_those_of_the_projection(monkeypatch):
    monkeypatch.setattr(grids, "_BATCH", 2)
    to_metres = Transformer.from_crs("OGC:CRS84", CRS, always_xy=True)
    lng, lat = np.array([116.0, 115.9, 116.3, 117.0, 115.5]), np.array([40.0, 39.8, 40.2, 41.0, 39.0])
    east, north = to_metres.transform(lng, lat)
    x, y = Grid(CRS, 700, 60).cells(lng[1:], lat[1:])
    assert x.tolist() == [e // 700 for e in east[1:].tolist()]
    assert y.tolist() == [n // 700 for n in north[1:].tolist()]
    back = GRID.degrees(east, north, run=Run(threads=1))
    assert np.array_equal(back, to_metres.transform(east, north, direction="INVERSE"))
    assert [len(axis) for axis in GRID.degrees(np.empty(0), np.empty(0))] == [0, 0]


def test_easting_comes_first_whatever_the_order_of_the_crs():
    x, y = Grid("EPSG:3035", 7000, 60).cells(np.array([10.0]), np.array([52.0]))
    assert (x.tolist(), y.tolist()) == ([617], [458])


def test_slots_are_whole_and_start_at_the_epoch():
    assert BARE.slots(np.array([-60_001, -1, 0, 59_999, 60_000])).tolist() == [-2, -1, 0, 0, 1]


@pytest.mark.parametrize(
    ("crs", "message"),
    [
        (None, "degrees can't be put on a grid without geography; give the release's CRS: `crs`"),
        ("EPSG:999999", "the CRS of the release is not one that pyproj knows"),
        *((f"EPSG:{n}", "the CRS of the release is not a projected one in metres") for n in (4326, 4978, 2263)),
    ],
)
def test_only_projections_in_metres_have_cells(crs, message):
    for ask in (Grid(crs, 100, 60).cells, Grid(crs, 100, 60).degrees):
        with pytest.raises(CannotCheck) as caught:
            ask(np.zeros(1), np.zeros(1))
        assert str(caught.value) == message


# Polygons

TURNS = [
    [0, 1, 2, 3, 0],
    [0, 3, 2, 1, 0],
    [1, 2, 3, 0, 1],
    [1, 0, 3, 2, 1],
    [2, 3, 0, 1, 2],
    [2, 1, 0, 3, 2],
    [3, 0, 1, 2, 3],
    [3, 2, 1, 0, 3],
]
SQUARES = [(0, 0, 100, 200), (-300, 100, 400, 700), (200, -500, 300, 100)]


def corners_of(square):
    x0, y0, x1, y1 = square
    return np.stack(FRAME.degrees([x0, x1, x1, x0], [y0, y0, y1, y1]), axis=1)


def wkb(points, order=1, kind=3, rings=1, size=5):
    return struct.pack("<BIII10d", order, kind, rings, size, *np.asarray(points).ravel())


def squares_with(squares, polygons):
    names = ("x_min", "y_min", "x_max", "y_max")
    edges = np.array(squares, dtype=np.int32).reshape(-1, 4)
    values = {name: edges[:, n] for n, name in enumerate(names)}
    return Batch(np.ones(len(edges), dtype=bool), values, pa.array(polygons, pa.binary()))


COLUMN = {"encoding": "WKB", "geometry_types": ["Polygon"]}
GEO = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": COLUMN}}


def geo_of(**column):
    return json.dumps({**GEO, "columns": {"geometry": {**COLUMN, **column}}}).encode()


def seen(*batches, grid=GRID, geo=None):
    """Return the codes of problems of polygons in batches of (squares, polygons)."""
    polygons, findings = Polygons(), Findings()
    for batch in batches:
        polygons.look(squares_with(*batch), grid, Run(threads=1))
    polygons.report(findings, geo_of() if geo is None else geo)
    assert findings.checked == ["leaks"]
    return findings.codes


def good_rings(turn=TURNS[0]):
    return [wkb(corners_of(square)[turn]) for square in SQUARES]


def test_a_ring_may_start_at_any_corner_and_go_either_way():
    assert [turn.tolist() for turn in Polygons().turns] == TURNS
    for turn in TURNS:
        assert seen((SQUARES, good_rings(turn))) == []
    for crossed_or_open in ([0, 2, 1, 3, 0], [0, 1, 2, 3, 1]):
        assert seen((SQUARES, good_rings(crossed_or_open))) == ["leaks/geometry-corners"]


def test_all_rings_go_the_same_way():
    for turn in TURNS[1:]:
        rings = [*good_rings(turn)[:1], *good_rings()[1:]]
        assert seen((SQUARES, rings)) == ["leaks/geometry-corners"]
        assert seen((SQUARES[:1], rings[:1]), (SQUARES[1:], rings[1:])) == ["leaks/geometry-corners"]
        assert seen((SQUARES[:1], rings[:1]), ([], [])) == []


def test_what_are_no_polygons_of_five_points_is_told():
    good, points = good_rings(), corners_of(SQUARES[1])[TURNS[0]]
    headers = [wkb(points, **change) for change in ({"order": 0}, {"kind": 2}, {"rings": 2}, {"size": 4})]
    for bad in (*headers, wkb(points) + b"!", wkb(points)[:-1], None):
        assert seen((SQUARES, [good[0], bad, good[2]])) == ["leaks/geometry-form"]
        assert seen((SQUARES, [good[0], bad, good[2]]), (SQUARES, good)) == ["leaks/geometry-form"]
    assert seen((SQUARES, good), grid=BARE) == ["leaks/geometry-form"]
    assert geometry._rings(pa.array([], pa.binary())).shape == (0, 5, 2)
    assert geometry._rings(pa.array(good))[1].tolist() == points.tolist()
    assert geometry._rings(pa.array([b"long ago", *good]).slice(2, 1)).tolist() == [points.tolist()]
    assert geometry._rings(pa.array([good[0], good[1] + b"!", good[2][:-1]])) is None


def test_the_bounds_of_all_batches_may_be_told():
    batches = [([square], [polygon]) for square, polygon in zip(SQUARES, good_rings(), strict=True)]
    every = np.concatenate([corners_of(square) for square in SQUARES])
    bounds = [*every.min(axis=0).tolist(), *every.max(axis=0).tolist()]
    assert seen(*batches, geo=geo_of(bbox=bounds)) == []
    for place in range(4):
        other = [edge + 1e-9 * (n == place) for n, edge in enumerate(bounds)]
        assert seen(*batches, geo=geo_of(bbox=other)) == ["leaks/geo-metadata"]


@pytest.mark.parametrize(
    ("geo", "plain"),
    [
        (GEO, True),
        ({**GEO, "columns": {"geometry": {}}}, False),
        ({**GEO, "columns": {"geometry": {**COLUMN, "bbox": []}}}, True),
        *(
            ({**GEO, "columns": {"geometry": {**COLUMN, **change}}}, False)
            for change in ({"bbox": [1]}, {"edges": "ann"}, {"encoding": "wkb"})
        ),
        *(({**GEO, "columns": columns}, False) for columns in ({**GEO["columns"], "other": {}}, {"other": {}})),
        *(({**GEO, "columns": columns}, False) for columns in ({"geometry": ["encoding"]}, ["geometry"])),
        *(({**GEO, **change}, False) for change in ({"version": "1.1.1"}, {"primary_column": "ann"}, {"by": "x"})),
        ({"version": "1.1.0", "columns": GEO["columns"]}, False),
        (["version", "primary_column", "columns"], False),
    ],
)
def test_geo_metadata_is_plain(geo, plain):
    assert geometry._plain_geo(json.dumps(geo).encode(), "Polygon", []) == plain


def test_geo_metadata_that_can_not_be_read_is_not_plain():
    assert not any(geometry._plain_geo(geo, "Polygon", []) for geo in (None, b"", b"{", b"\xff", b"[" * 100_000))


# Metadata and bytes


def written(folder, table=None, **options):
    path = folder / "small.parquet"
    table = table or pa.table({"uid": [1, 2, 3, 4, 5], "x": [5, 6, 7, 8, 9]})
    pq.write_table(table, path, **options)
    return open_release_file(path)


def file_of(file, *, footer=None, schema=None, writer=None):
    schema = file.schema if schema is None else schema
    return SimpleNamespace(
        path=file.path,
        footer=file.footer if footer is None else footer,
        schema=schema,
        names=schema.names,
        parquet=file.parquet,
        chunks=file.chunks,
        writer=file.writer if writer is None else writer,
        is_csv=False,
    )


def metadata_problems(file, *, own=True):
    findings = Findings()
    leaks.check_metadata(findings, file, own=own)
    assert findings.checked == ["leaks"]
    return findings.found


def embedded(schema, before=b"", after=b""):
    return {b"ARROW:schema": before + base64.b64encode(schema.serialize().to_pybytes() + after)}


PLAIN = pa.schema([("uid", pa.int64()), ("x", pa.int64())])
SHAPED = pa.schema([*PLAIN, ("geometry", pa.binary())])


OTHER, INSIDE = ("leaks/inner-schema", {}), ("leaks/schema-metadata", {})


def noted(schema, *columns):
    """Return a schema some of whose columns carry metadata."""
    return pa.schema([field.with_metadata({"a": "x"}) if field.name in columns else field for field in schema])


@pytest.mark.parametrize(
    ("footer", "schema", "found"),
    [
        ({}, PLAIN, []),
        ({b"shoal": b"{}"}, PLAIN.with_metadata({"shoal": "{}"}), []),
        ({b"shoal": b"{}", b"a": b"", b"b": b""}, PLAIN, [("leaks/metadata-keys", {"n": 2})]),
        ({b"shoal": b"{}"}, PLAIN.with_metadata({"shoal": "[]"}), [INSIDE]),
        ({b"a": b"x"}, PLAIN.with_metadata({"a": "x"}), [("leaks/metadata-keys", {"n": 1}), INSIDE]),
        ({}, PLAIN.with_metadata({"a": "x"}), [INSIDE]),
        ({b"geo": b"{}"}, PLAIN, [("leaks/geometry-alone", {})]),
        ({}, SHAPED, [("leaks/geometry-alone", {})]),
        ({b"geo": b"{}"}, SHAPED, []),
        (embedded(PLAIN), PLAIN, []),
        (embedded(SHAPED), PLAIN, [OTHER]),
        (embedded(pa.schema([("uid", pa.int64()), ("ann", pa.int64())])), PLAIN, [OTHER]),
        (embedded(pa.schema([("uid", pa.int64()), ("x", pa.int32())])), PLAIN, [OTHER]),
        (embedded(PLAIN, after=b"more"), PLAIN, [OTHER]),
        (embedded(PLAIN, before=b"*"), PLAIN, [OTHER]),
        *((embedded(PLAIN.with_metadata({key: "x"})), PLAIN, [INSIDE]) for key in ("a", "geo")),
        (embedded(noted(PLAIN, "uid", "x")), PLAIN, [("leaks/column-metadata", {"n": 2})]),
        (embedded(PLAIN), noted(PLAIN, "uid"), [("leaks/column-metadata", {"n": 1})]),
        *(({b"ARROW:schema": text}, PLAIN, [OTHER]) for text in (b"?", base64.b64encode(b"nothing of the kind"))),
    ],
)
def test_metadata_of_a_release(footer, schema, found, tmp_path):
    assert metadata_problems(file_of(written(tmp_path), footer=footer, schema=schema)) == found


def test_metadata_of_text_and_of_other_tools_is_not_looked_at(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("uid,x\n1,2\n")
    text, noted = open_release_file(path), file_of(written(tmp_path), footer={b"a": b"x"})
    for file, own, skipped in ((text, True, []), (text, False, ["form"]), (noted, False, ["form"])):
        findings = Findings()
        leaks.check_metadata(findings, file, own=own)
        assert (findings.checked, findings.found) == (["leaks"], [])
        assert findings.skipped == [NOT_CHECKED[what] for what in skipped]


@pytest.mark.parametrize("options", [{}, {"row_group_size": 2}, {"use_dictionary": False}, {"compression": "zstd"}])
def test_columns_fill_a_file_to_the_last_byte(options, tmp_path):
    file = written(tmp_path, **options)
    assert metadata_problems(file) == []
    data = file.path.read_bytes()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    file.path.write_bytes(data[:footer] + b"!" + data[footer:])
    assert metadata_problems(open_release_file(file.path)) == [("leaks/stray-bytes", {})]


def chunk_of(first, size, dictionary=None, **more):
    offsets = {"dictionary_page_offset": dictionary, "data_page_offset": first, "total_compressed_size": size}
    return SimpleNamespace(**{"file_path": "", "metadata": None, **offsets, **more})


@pytest.mark.parametrize(
    ("chunks", "tiled"),
    [
        ([[chunk_of(4, 46), chunk_of(50, 38)]], True),
        ([[chunk_of(50, 38)], [chunk_of(4, 46)]], True),
        ([[chunk_of(10, 46, dictionary=4), chunk_of(50, 38, dictionary=0)]], True),
        ([[chunk_of(4, 46, file_path="x"), chunk_of(50, 38)]], False),
        ([[chunk_of(4, 46), chunk_of(50, 38, metadata={b"a": b"x"})]], False),
        *(([[chunk_of(*first), chunk_of(50, 38)]], False) for first in ((5, 45), (4, 45), (4, 47), (4, 84))),
        ([[chunk_of(4, 46), chunk_of(50, 37)]], False),
    ],
)
def test_chunks_leave_no_gap(chunks, tiled, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    file = SimpleNamespace(path=path, parquet=SimpleNamespace(serialized_size=4), chunks=lambda: [*chain(*chunks)])
    assert leaks._is_tiled(file) == tiled


def test_every_chunk_of_every_row_group_is_looked_at(tmp_path):
    file = written(tmp_path, row_group_size=2)
    starts = [chunk.data_page_offset for chunk in file.chunks()]
    assert [chunk.path_in_schema for chunk in file.chunks()] == ["uid", "x"] * 3
    assert starts == sorted(set(starts))


def test_the_writer_is_arrow_and_says_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(leaks, "_is_tiled", lambda _: True)
    file, arrow = written(tmp_path), "parquet-cpp-arrow version 21.0.0"
    for writer in (arrow, f"{arrow}-SNAPSHOT"):
        assert metadata_problems(file_of(file, writer=writer)) == []
    for writer in (f"{arrow} by x", "parquet-mr", ""):
        assert metadata_problems(file_of(file, writer=writer)) == [("leaks/writer", {})]


def test_every_byte_of_text_is_accounted_for(tmp_path):
    path = tmp_path / "small.csv"
    path.write_text("uid,x\n1,2\n")
    for values, codes in ((4, []), (3, ["leaks/stray-bytes"]), (5, ["leaks/stray-bytes"])):
        findings = Findings()
        leaks.check_bytes(findings, values, open_release_file(path))
        assert (findings.checked, findings.codes) == (["leaks"], codes)


# Values that were counted


def value_problems(uids=(0, 1, 2), odd=None, count=None, claim="k-anonymity", own=True, polygons=None, footer=None):
    findings = Findings()
    found = SimpleNamespace(
        records=SimpleNamespace(uids=np.array(uids, dtype=np.int64)),
        odd=Counter(odd or {}),
        count=None if count is None else np.array(count, dtype=np.int32),
        polygons=polygons,
    )
    leaks.check_values(findings, found, 3, SimpleNamespace(footer=footer or {}), claim=claim, own=own)
    assert findings.checked == ["leaks"]
    return findings.found


def test_numbers_begin_with_nought_and_have_no_gaps():
    assert value_problems() == value_problems([]) == value_problems([], own=False) == []
    assert value_problems([1, 2], own=False) == value_problems([-5, -4, -3], own=False) == []
    for uids, own in (([1, 2], True), ([0, 2], True), ([0, 1, 1], True), ([1, 3], False)):
        assert value_problems(uids, own=own) == [("leaks/numbering", {})]


def test_what_was_counted_is_told():
    for kind in ("fractions", "off", "empty", "wild", "times", "places"):
        assert value_problems(odd={kind: 1_234}) == [(f"leaks/{kind}", {"n": 1_234})]
    assert value_problems(odd={"unsorted": 1_234}) == [("leaks/unsorted", {})]
    assert value_problems(odd={"uneven": 5}) == []


def test_counts_are_of_identical_groups_of_k():
    assert value_problems(count=[3, 4]) == []
    assert value_problems(count=[3, 2, 0]) == [("leaks/small-count", {"n": 2, "k": 3})]
    assert value_problems(count=[1] * 1_234) == [("leaks/small-count", {"n": 1_234, "k": 3})]
    assert value_problems(count=[3], claim="cover") == [("leaks/count-column", {})]
    assert value_problems(count=[3], odd={"uneven": 1_234}) == [("leaks/uneven-count", {"n": 1_234})]


def test_polygons_are_reported_with_the_metadata_of_the_file():
    assert value_problems(polygons=Polygons(), footer={b"geo": geo_of()}) == []
    assert value_problems(polygons=Polygons()) == [("leaks/geo-metadata", {})]


def test_values_missing_or_of_another_form_are_told():
    places = {"form of uid": 1_234, "form of lat": 2, "digits of lat": 1_235, "range of x_min": 1}
    odd = Counter({**places, "nulls": 1_236, "holes": 1_237})
    rest = [("leaks/missing-values", {"n": 1_236}), ("leaks/not-numbers", {"n": 1_237})]
    in_text = [
        ("leaks/value-form", {"n": 1_234}),
        ("leaks/range", {}),
        ("leaks/value-form", {"n": 2}),
        ("leaks/number-form", {"n": 1_235}),
    ]
    for is_csv, wanted in ((True, [*in_text, *rest]), (False, rest)):
        findings = Findings()
        report_form(findings, SimpleNamespace(is_csv=is_csv, names=["uid", "x_min", "lat"]), odd)
        assert findings.found == wanted
        findings = Findings()
        report_form(findings, SimpleNamespace(is_csv=is_csv, names=["uid"]), Counter())
        assert (findings.found, findings.checked) == ([], ["leaks"])


# Batch as they are published


def rows_of(*rows, crs=None, count=None):
    """Make a table of rows (uid, minutes from, to, x_min, y_min, x_max, y_max)."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 7
    kinds = [pa.int64(), pa.int64(), pa.int64(), *[pa.int32()] * 4]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    for place in (1, 2):
        arrays[place] = pa.array(np.array(columns[place], dtype=np.int64) * 60_000, pa.int64()).cast(TIME)
    table = with_derived(pa.table(dict(zip(("uid", *BOX), arrays, strict=True))), crs)
    return table if count is None else table.append_column("count", pa.array(count, pa.int32()))


ROWS = [(0, 5, 7, 0, 100, 200, 300), (0, 8, 9, 100, 100, 200, 400), (1, 5, 9, -300, -200, -100, 0)]


def put(table, name, values):
    kind = table.schema.field(name).type if name in table.column_names else None
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)
    if name not in table.column_names:
        return table.append_column(name, column)
    return table.set_column(table.column_names.index(name), name, column)


def as_file(table, folder, name="boxes.parquet"):
    path = folder / name
    if path.suffix == ".csv":
        write_csv(table, path)
    else:
        pq.write_table(table, path)
    return open_release_file(path)


def columns_of(file, *, own=True, crs=None, points=False):
    """Read all columns; give them, what was odd, and the findings."""
    findings, odd = Findings(), Counter()
    reader = read_points(findings, file, odd) if points else read_columns(findings, file, crs, odd, own=own)
    found = list(reader)
    return found, {kind: count for kind, count in odd.items() if count}, findings


def other_columns(missing, extra):
    return [("leaks/columns", {"missing": missing, "extra": extra})]


@pytest.mark.parametrize("name", ["boxes.parquet", "boxes.csv"])
@pytest.mark.parametrize("crs", [None, CRS])
def test_columns_of_a_release_are_arrays(name, crs, tmp_path):
    file = as_file(rows_of(*ROWS, crs=crs, count=[3, 3, 4]), tmp_path, name)
    (columns,), odd, findings = columns_of(file, crs=crs)
    assert (findings.found, findings.checked) == ([], ["leaks"])
    assert (len(columns), columns.whole.tolist(), columns.geometry) == (3, [True] * 3, None)
    wanted = {"uid": [0, 0, 1], "t_start": [300_000, 480_000, 300_000], "datetime": [360_000, 510_000, 420_000]}
    for column, values in {**wanted, "y_min": [100, 100, -200], "count": [3, 3, 4]}.items():
        assert columns[column].tolist() == values
    assert ("lat" in columns) == ("lng" in columns) == (crs is not None)
    size = file.path.stat().st_size - len(file.path.read_bytes().split(b"\n")[0]) - 1
    assert odd == ({"bytes": size} if file.is_csv else {})


@pytest.mark.parametrize(
    ("edit", "told", "readable"),
    [
        (lambda table: table.append_column("a", table["uid"]), other_columns(0, 1), True),
        (lambda table: table.select(["t_start", "uid", *table.column_names[2:]]), other_columns(0, 0), True),
        (lambda table: table.drop_columns(["datetime"]), other_columns(1, 0), True),
        (lambda table: table.drop_columns(["x_min", "y_max"]), other_columns(2, 0), False),
        (lambda table: table.drop_columns(["uid"]), other_columns(1, 0), False),
        (lambda table: table.append_column("uid", table["uid"]), other_columns(0, 1), False),
        (
            lambda table: pa.table([*table.columns, table["uid"], table["uid"]], [*table.column_names, "a", "b"]),
            other_columns(0, 2),
            True,
        ),
        (lambda table: table.append_column("lat", pa.array([0.0] * 3)), other_columns(0, 1), True),
        (
            lambda table: put(put(table, "uid", table["uid"].cast(pa.int32())), "x_min", table["x_min"].cast("int64")),
            [("leaks/column-types", {"n": 2})],
            True,
        ),
        (
            lambda table: put(table, "x_min", pa.array(["a", "b", "c"])),
            [("leaks/column-types", {"n": 1})],
            False,
        ),
    ],
    ids=range(10),
)
def test_other_columns_than_those_of_a_release_are_told(edit, told, readable, tmp_path):
    found, odd, findings = columns_of(as_file(edit(rows_of(*ROWS)), tmp_path))
    assert findings.found == told
    assert (found != [None]) == readable
    assert len(found) == 1
    assert odd == {}
    if readable:
        assert found[0]["x_min"].tolist() == [0, 100, -300]


def test_nothing_more_is_read_behind_what_can_not_be(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_BATCH", 1)
    table = put(rows_of(*ROWS), "x_min", pa.array(["1", "b", "c"]))
    found, odd, _ = columns_of(as_file(table, tmp_path))
    assert [columns is None for columns in found] == [False, True]
    assert odd == {}


def test_points_are_no_boxes(tmp_path):
    table = rows_of(*ROWS, crs=CRS).select(POINT)
    file = as_file(table, tmp_path)
    for own in (True, False):
        with pytest.raises(CannotCheck) as caught:
            columns_of(file, own=own)
        assert str(caught.value) == "the release holds points, not boxes; this claim can't be checked on points"
    for name in ("points.csv", "points.parquet"):
        (columns,), _, findings = columns_of(as_file(table, tmp_path, name), points=True)
        assert (findings.found, findings.checked) == ([], ["leaks"])
        assert columns["datetime"].tolist() == [360_000, 510_000, 420_000]
        assert columns["lat"].tolist() == table["lat"].to_pylist()
    for names, readable in ((["datetime", "uid", "lat", "lng"], True), (["uid", "datetime", "lat"], False)):
        found, _, findings = columns_of(as_file(table.select(names), tmp_path), points=True)
        assert findings.codes == ["leaks/point-columns"]
        assert (found != [None]) == readable


def test_columns_of_another_tool(tmp_path):
    table = rows_of(*ROWS, crs=CRS)
    found, odd, findings = columns_of(as_file(table.select(table.column_names[6::-1]), tmp_path), own=False)
    assert (findings.found, findings.checked, odd) == ([], ["leaks"], {})
    assert found[0]["x_max"].tolist() == [200, 200, -100]
    more = put(put(table, "a", [1, 2, 3]), "b", [1, 2, 3])
    for crs, others in ((CRS, 2), (None, 4)):
        (columns,), _, findings = columns_of(as_file(more, tmp_path), own=False, crs=crs)
        assert findings.found == [("leaks/foreign-columns", {"n": others})]
        assert ("lat" in columns, "a" in columns, "datetime" in columns) == (crs is not None, False, True)
    must = "the release must have the columns uid, t_start, t_end, x_min, y_min, x_max, y_max, each once"
    for wrong in (table.drop_columns(["x_max"]), table.append_column("uid", table["uid"])):
        with pytest.raises(CannotCheck) as caught:
            columns_of(as_file(wrong, tmp_path), own=False)
        assert str(caught.value) == must


def test_files_of_another_tool_are_read_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_BATCH", 2)
    found, _, _ = columns_of(as_file(rows_of(*ROWS), tmp_path), own=False)
    assert [columns["x_min"].tolist() for columns in found] == [[0, 100], [-300]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_numbers_and_times_of_another_tool_may_be_text(kind):
    def read(texts, wanted):
        column = published._loosely(pa.array(texts, kind), wanted)
        assert column.type == wanted
        return column.cast(pa.int64() if wanted == TIME else wanted).to_pylist()

    assert read(["5", "-7.0", "100.000", None], pa.int32()) == [5, -7, 100, None]
    assert read(["40.0", "1e-3"], pa.float64()) == [40.0, 0.001]
    times = ["1970-01-01 00:01:00", "1970-01-01T00:00:00.250", "1970-01-01T00:00:01Z", "1970-01-01 01:00:00+01:00"]
    assert read(times, TIME) == [60_000, 250, 1_000, 0]
    for texts, wanted in ((["1.5"], pa.int64()), (["1970-01-01 00:00:00.0005"], TIME), (["noon"], TIME)):
        batch = pa.RecordBatch.from_arrays([pa.array(texts, kind)], ["uid" if wanted != TIME else "t_start"])
        with pytest.raises(CannotCheck) as caught:
            published._as_boxes(batch)
        assert str(caught.value) == (
            "the columns can't be read as boxes: uid and metres must be whole numbers, t_start and t_end timestamps or "
            "ISO 8601 text"
        )


NAMES = ["uid", *BOX, "datetime", "lat", "lng"]


def csv_of(folder, **changed):
    """Write two rows of text, some values changed, and open the file."""
    instants = {"t_start": "00:05", "t_end": "00:07", "datetime": "00:06"}
    times = {name: [f"1970-01-01T{time}:00.000Z"] * 2 for name, time in instants.items()}
    places = {"x_min": ["0", "-100"], "y_min": ["0", "0"], "x_max": ["100", "100"], "y_max": ["100", "100"]}
    values = {"uid": ["0", "1"], **times, **places, "lat": ["40.25", "-7"], "lng": ["116.5", "1e-7"], **changed}
    row = {name: values[name] for name in NAMES}
    path = folder / "boxes.csv"
    path.write_text("\n".join([",".join(row), *map(",".join, zip(*row.values(), strict=True))]) + "\n")
    return open_release_file(path)


@pytest.mark.parametrize(
    ("changed", "odd"),
    [
        ({}, {}),
        ({"uid": ["00", "-0"]}, {"form of uid": 2, "nulls": 2}),
        ({"uid": ["+1", "2"]}, {"form of uid": 1, "nulls": 1}),
        ({"x_min": ["", "5"]}, {"nulls": 1}),
        ({"x_min": ["", ""], "lat": ["", "4"]}, {"nulls": 3}),
        ({"x_min": ["1.0", "1e3"]}, {"form of x_min": 2, "nulls": 2}),
        ({"t_start": ["1970-01-01 00:05:00.000Z", "1970-01-01T00:05:00Z"]}, {"form of t_start": 2, "nulls": 2}),
        ({"lat": ["40.250", "4"]}, {"digits of lat": 1}),
        ({"lat": ["040", "4.50"], "lng": ["+1", "nan"]}, {"digits of lat": 2, "form of lng": 2, "nulls": 2}),
        ({"x_max": ["100", "99999999999"]}, {"range of x_max": 1}),
        ({"t_end": ["1970-13-01T00:05:00.000Z"] * 2}, {"range of t_end": 1}),
    ],
    ids=range(11),
)
def test_text_is_read_to_the_letter(changed, odd, tmp_path):
    file = csv_of(tmp_path, **changed)
    found, seen_odd, findings = columns_of(file, crs=CRS)
    _, _, rest = file.path.read_text().partition("\n")
    assert findings.found == []
    assert seen_odd == {**odd, "bytes": len(rest)}
    assert (found == [None]) == any(kind.startswith("range") for kind in odd)


def test_text_of_nobody_has_no_bytes(tmp_path):
    found, odd, _ = columns_of(csv_of(tmp_path, **dict.fromkeys(NAMES, ())), crs=CRS)
    assert sum(map(len, found)) == 0
    assert odd == {}


def test_what_is_missing_is_nought_and_makes_a_row_no_whole_one():
    def column(values, missing, kind):
        return pa.array(np.array(values), kind, mask=np.array(missing))

    typed = {
        "uid": column([7, 8, 9], [True, False, False], pa.int64()),
        "t_start": column([5, 6, 7], [False, False, False], pa.int64()).cast(TIME),
        "t_end": column([15, 16, 17], [False, True, False], pa.int64()).cast(TIME),
        "lat": column([1.5, np.nan, np.nan], [False, False, False], pa.float64()),
        "lng": column([np.nan, 2.5, 3.5], [False, True, False], pa.float64()),
        "geometry": pa.array([b"x", b"y", b"z"]),
    }
    odd = Counter()
    columns = published._arrays(typed, odd)
    assert odd == {"nulls": 3, "holes": 3}
    assert columns.whole.tolist() == [False, False, True]
    assert columns["uid"].tolist() == [0, 8, 9]
    assert columns["t_end"].tolist() == [15, 0, 17]
    assert columns["lng"][1:].tolist() == [0, 3.5]
    assert "geometry" not in columns
    assert columns.geometry.to_pylist() == [b"x", b"y", b"z"]


def test_times_are_of_years_one_to_9999():
    def ms(*moment):
        return int((datetime(*moment, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1000

    first, last = ms(1, 1, 1), ms(9999, 12, 31, 23, 59, 59) + 999
    edges = pa.array([first - 1, first, 0, last, last + 1], pa.int64()).cast(TIME)
    inside = pa.array([0] * 5, pa.int64()).cast(TIME)
    uid = pa.array(range(5))
    for typed in (
        {"t_start": edges, "t_end": inside},
        {"t_start": inside, "t_end": edges},
        {"datetime": edges},
        {"t_start": edges, "t_end": inside, "datetime": inside},
    ):
        assert published._arrays({"uid": uid, **typed}, Counter()).whole.tolist() == [False, True, True, True, False]
    calm = {"uid": uid, "t_start": inside, "t_end": inside, "datetime": edges}
    assert published._arrays(calm, Counter()).whole.all()


def test_what_can_not_be_read_is_said(tmp_path, monkeypatch):
    told = "the release can't be read; give a Parquet or CSV file of a release"

    def refused(act):
        with pytest.raises(CannotCheck) as caught:
            act()
        assert str(caught.value) == told

    for name in ("nowhere.parquet", "nowhere.csv"):
        refused(lambda name=name: open_release_file(tmp_path / name))
    file = as_file(rows_of(*ROWS), tmp_path)
    data = file.path.read_bytes()
    file.path.write_bytes(data[:4] + bytes(len(data) - 4 - 500) + data[-500:])
    refused(lambda: list(file.batches(["uid"])))
    text = csv_of(tmp_path).path.read_text()
    monkeypatch.setattr(published, "_BLOCK", 300)
    path = tmp_path / "broken.CSV"
    path.write_text(text + text.split("\n")[1] + "\n1,2\n")
    broken = open_release_file(path)
    assert broken.is_csv
    refused(lambda: list(broken.batches(["uid"])))


def test_an_empty_line_is_a_row_in_which_all_is_missing(tmp_path):
    path = csv_of(tmp_path).path
    path.write_text(path.read_text() + "\n")
    (columns,), odd, _ = columns_of(open_release_file(path), crs=CRS)
    assert columns.whole.tolist() == [True, True, False]
    assert odd["nulls"] == len(NAMES)


def test_what_a_file_states(tmp_path):
    table = pa.table({"uid": [1]})
    bare = written(tmp_path, table, store_schema=False)
    assert (bare.footer, bare.stated, bare.is_csv, bare.names) == ({}, None, False, ["uid"])
    telling = written(tmp_path, table.replace_schema_metadata({"shoal": '{"k": 3}'}))
    assert telling.stated == {"k": 3}
    assert set(telling.footer) == {b"shoal", b"ARROW:schema"}
    assert telling.parquet.num_rows == 1
    path = tmp_path / "x.csv"
    path.write_text("uid\n1\n")
    text = open_release_file(path)
    assert (text.footer, text.stated, text.is_csv, text.parquet) == ({}, None, True, None)


# One pass through a file


def scanned(table, folder, *, grid=BARE, **options):
    findings = Findings()
    found = scan_file(findings, as_file(table, folder), grid, run=Run(threads=1), **options)
    return found, {kind: count for kind, count in found.odd.items() if count}, findings


def boxes_of(found):
    """Return {uid: its boxes}."""
    unique = found.records.unique
    return {
        int(uid): unique.boxes[unique.offsets[group] : unique.offsets[group + 1]].tolist()
        for uid, group in zip(found.records.uids, found.records.groups, strict=True)
    }


BOXES = {0: [[5, 6, 0, 1, 1, 2], [8, 8, 1, 1, 1, 3]], 1: [[5, 8, -3, -2, -2, -1]]}


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_a_pass_gives_the_records(batch, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_BATCH", batch)
    for grid in (BARE, GRID):
        found, odd, findings = scanned(rows_of(*ROWS, crs=grid.crs), tmp_path, grid=grid)
        assert (findings.found, odd, found.count, found.polygons) == ([], {}, None, None)
        assert boxes_of(found) == BOXES
        assert found.records.weights.tolist() == [1, 1]
        assert found.records.unique.boxes.dtype == np.int32
    found, odd, _ = scanned(rows_of(*ROWS, count=[3, 3, 4]), tmp_path)
    assert odd == {}
    assert found.count.tolist() == [3, 3, 4]
    assert found.records.weights.tolist() == [3, 4]
    found, odd, _ = scanned(rows_of(*ROWS, count=[3, 4, 4]), tmp_path)
    assert odd == {"uneven": 1}
    assert scanned(rows_of(*ROWS, count=[3, 4, 3]), tmp_path)[1] == {"uneven": 1}


def test_a_pass_through_no_rows(tmp_path):
    for count in (None, []):
        found, odd, findings = scanned(rows_of(count=count), tmp_path)
        assert (findings.found, odd, len(found.records), found.count) == ([], {}, 0, None)
        assert found.records.unique.boxes.shape == (0, 6)
        assert found.records.unique.boxes.dtype == np.int32


def test_a_release_to_the_letter_is_expected_unless_it_is_said(tmp_path):
    table = rows_of(*ROWS).drop_columns(["datetime"])
    assert scanned(table, tmp_path)[2].found == other_columns(1, 0)
    assert scanned(table, tmp_path, own=False)[2].found == []
    findings = Findings()
    assert scan_file(findings, as_file(table.drop_columns(["uid"]), tmp_path), BARE) is None
    assert findings.found == other_columns(2, 0)


@pytest.mark.parametrize("batch", [1, 2, 3, 9])
def test_rows_out_of_order_are_counted_and_sorted(batch, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_BATCH", batch)
    rows = [
        (1, 5, 30, 0, 0, 100, 100),
        (0, 7, 9, 0, 0, 200, 100),
        (0, 7, 8, 0, 0, 300, 100),
        (0, 4, 20, 0, 0, 400, 100),
        (1, 2, 3, 0, 0, 500, 100),
        (2, 1, 2, 0, 0, 600, 100),
    ]
    found, odd, _ = scanned(rows_of(*rows, count=[7, 3, 3, 3, 7, 8]), tmp_path)
    assert odd == {"unsorted": 2}
    assert found.records.uids.tolist() == [0, 1, 2]
    assert found.records.weights.tolist() == [3, 7, 8]
    assert {uid: [(box[0], box[3]) for box in own] for uid, own in boxes_of(found).items()} == {
        0: [(4, 3), (7, 1), (7, 2)],
        1: [(2, 4), (5, 0)],
        2: [(1, 5)],
    }


def values_of(**values):
    whole = values.pop("whole", None)
    arrays = {name: np.array(column) for name, column in values.items()}
    size = len(next(iter(arrays.values())))
    return Batch(np.ones(size, dtype=bool) if whole is None else np.array(whole), arrays, None)


def test_order_is_seen_across_batches():
    def counted(*batches):
        odd, rows = Counter(), scan._Rows()
        for uid, start, *count in batches:
            more = {"count": np.array(count[0], np.int32)} if count else {}
            scan._count_order(odd, values_of(uid=uid, t_start=start, **more), rows)
        return odd["unsorted"], odd["uneven"]

    assert counted(([], []), ([0, 0], [1, 1]), ([], []), ([0], [1]), ([1], [0])) == (0, 0)
    assert counted(([0, 1], [1, 5]), ([1], [4])) == counted(([0, 1], [1, 5]), ([0], [9])) == (1, 0)
    assert counted(([1, 0, 0], [1, 5, 4])) == (2, 0)
    assert counted(([0, 0], [1, 2], [3, 3]), ([0], [3], [3]), ([0, 1], [4, 0], [3, 5])) == (0, 0)
    assert counted(([0, 0], [1, 2], [3, 3]), ([0], [3], [4]), ([1], [0], [5])) == (0, 1)
    assert counted(([0, 0, 1], [1, 2, 3], [3, 4, 5])) == (0, 1)


edges = st.integers(-3, 4)


@examples(100)
@given(
    st.lists(st.tuples(edges, edges, edges, edges, edges, edges, st.booleans()), max_size=6),
    st.sampled_from([1, 500, 1500, 2000]),
    st.sampled_from([1, 2, 3]),
)
def test_boxes_are_the_granules_wholly_inside(rows, step_ms, cell_m):
    """Edges on and off the grid, compared with counting granules one by one."""
    t0, t1, x0, x1, y0, y1, whole = (list(column) for column in zip(*rows, strict=True)) if rows else [[]] * 7
    columns = values_of(
        whole=np.array(whole, dtype=bool),
        t_start=np.array(t0, np.int64) * step_ms,
        t_end=np.array(t1, np.int64) * step_ms,
        x_min=np.array(x0, np.int32),
        x_max=np.array(x1, np.int32),
        y_min=np.array(y0, np.int32),
        y_max=np.array(y1, np.int32),
    )
    odd = Counter()
    boxes = scan._granules(odd, columns, Grid(None, cell_m, 2))
    wanted, counts = [], Counter(dict.fromkeys(("fractions", "off", "empty", "wild"), 0))
    for n, row in enumerate(rows):
        spans = [(row[0] * step_ms, row[1] * step_ms, 2000), (*row[2:4], cell_m), (*row[4:6], cell_m)]
        box = []
        for low, high, size in spans:
            box += [-(-low // size), high // size - 1]
        wanted.append(box if row[6] else [0, -1, 0, -1, 0, -1])
        counts["off"] += row[6] and any(low % size or high % size for low, high, size in spans)
        counts["empty"] += row[6] and any(high <= low for low, high, _ in spans)
        counts["wild"] += not row[6]
        counts["fractions"] += bool(spans[0][0] % 1000 or spans[0][1] % 1000)
        assert columns.whole[n] == row[6]
    assert boxes.tolist() == wanted
    assert odd == counts


@pytest.mark.parametrize(("low", "high"), [("t_start", "t_end"), ("x_min", "x_max"), ("y_min", "y_max")])
def test_a_box_without_any_length_is_empty(low, high):
    for more, empty in ((-2000, 1), (0, 1), (2000, 0)):
        values = {name: [0] if name in ("t_start", "x_min", "y_min") else [2000] for name in BOX}
        odd = Counter()
        scan._granules(odd, values_of(**{**values, high: [values[low][0] + more]}), Grid(None, 1, 2))
        assert odd == {"off": 0, "empty": empty, "wild": 0}


def test_boxes_are_narrow_where_they_fit():
    def kind(start, end, slot_s=1):
        columns = values_of(t_start=[start], t_end=[end], **{name: np.array([0], np.int32) for name in BOX[2:]})
        boxes = scan._granules(Counter(), columns, Grid(None, 1, slot_s))
        assert boxes[0, :2].tolist() == [start // (slot_s * 1000), end // (slot_s * 1000) - 1]
        return boxes.dtype

    far = 2**31 * 1000
    assert kind(0, far - 1000) == np.int32
    assert kind(0, far) == kind(-far - 1000, 0) == np.int64
    assert kind(0, far, slot_s=2) == np.int32


def test_chunks_of_boxes_are_joined_in_order():
    chunks = [np.arange(12, dtype=np.int32).reshape(2, 6), np.array([[2**40] * 6]), np.full((1, 6), 3, dtype=np.int32)]
    joined = scan._joined([*chunks])
    assert joined.tolist() == [row for chunk in chunks for row in chunk.tolist()]
    assert joined.dtype == np.int64
    assert scan._joined([chunks[0], chunks[2]]).dtype == np.int32
    assert scan._joined([]).shape == (0, 6)


def test_the_middle_of_a_box_is_told_and_no_more(tmp_path):
    table = rows_of(*ROWS, crs=CRS)
    assert scanned(table, tmp_path, grid=GRID)[1] == {}
    late = put(table, "datetime", [360_001, 510_000, 419_999])
    assert scanned(late, tmp_path, grid=GRID)[1] == {"times": 2}
    for name in ("lat", "lng"):
        moved = put(table, name, np.nextafter(table[name].to_numpy(), np.array([0.0, table[name][1].as_py(), 0.0])))
        assert scanned(moved, tmp_path, grid=GRID)[1] == {"places": 2}
    both = put(put(table, "lat", [0.0, *table["lat"].to_pylist()[1:]]), "lng", [*table["lng"].to_pylist()[:2], 0.0])
    assert scanned(both, tmp_path, grid=GRID)[1] == {"places": 2}
    gone = put(put(late, "uid", [None, 0, 1]), "lat", [0.0, *table["lat"].to_pylist()[1:]])
    found, odd, findings = scanned(gone, tmp_path, grid=GRID)
    assert odd == {"nulls": 1, "wild": 1, "times": 1}
    assert findings.found == [("leaks/missing-values", {"n": 1})]
    assert boxes_of(found)[0] == [[0, -1, 0, -1, 0, -1], BOXES[0][1]]


def test_the_middle_of_a_box_of_odd_length_is_the_earlier_one():
    odd = Counter()
    columns = values_of(t_start=[0, 3, -3], t_end=[3, 6, 0], datetime=[1, 4, -2], whole=[True] * 3)
    scan._count_derived(odd, columns, BARE, Run(threads=1))
    assert odd == {"times": 0}


@pytest.mark.parametrize("name", ["lat", "lng"])
def test_one_degree_alone_is_checked_too(name, tmp_path):
    alone = rows_of(*ROWS, crs=CRS).select(["uid", *BOX, name])
    for shift, odd in ((0, {}), (1e-4, {"places": 3})):
        _, counted, findings = scanned(put(alone, name, alone[name].to_numpy() + shift), tmp_path, grid=GRID, own=False)
        assert (counted, findings.found) == (odd, [])


def test_polygons_are_looked_at_in_a_pass(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_BATCH", 2)
    rings = [wkb(corners_of(row[3:])[TURNS[0]]) for row in ROWS]
    table = rows_of(*ROWS, crs=CRS)
    for shown, turns in ((rings, 1), (rings[::-1], 0)):
        found, odd, _ = scanned(put(table, "geometry", pa.array(shown, pa.binary())), tmp_path, grid=GRID)
        assert odd == {}
        assert found.polygons.plain
        assert len(found.polygons.turns) == turns


def test_records_of_a_release_in_memory():
    def records(origin, boxes, multiplicity=None):
        release = Release(
            offsets=np.array([0, 2, 3]),
            layout=Boxes(np.array(boxes, dtype=np.int32)),
            frame=Frame(crs=None, cell_m=100, slot_s=60, origin_slot=origin),
            method="by-hand",
            parameters={},
            claim=Claim("cover", k=2),
            multiplicity=multiplicity,
        )
        return records_of_release(release, run=Run(threads=1))

    rows = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12], [1, 2, 3, 4, 5, 7]]
    plain = records(0, rows)
    assert (plain.uids.tolist(), plain.weights.tolist(), plain.unique.offsets.tolist()) == ([0, 1], [1, 1], [0, 2, 3])
    assert plain.unique.boxes.tolist() == rows
    moved = records(1000, rows, np.array([4, 5], dtype=np.int32))
    assert moved.unique.boxes.tolist() == [[t0 + 1000, t1 + 1000, *rest] for t0, t1, *rest in rows]
    assert moved.unique.boxes.dtype == np.int32
    assert moved.weights.tolist() == [4, 5]
    far = records(2**31, rows).unique.boxes
    assert (far.dtype, far[0].tolist()) == (np.int64, [2**31 + 1, 2**31 + 2, 3, 4, 5, 6])


# The original


def samples_by_label(people):
    """Return {label: [(t, x, y), …]}."""
    rows = list(zip(people.t.tolist(), people.x.tolist(), people.y.tolist(), strict=True))
    edges_of = people.offsets.tolist()
    return {
        label: rows[start:end]
        for label, start, end in zip(people.labels.to_pylist(), edges_of[:-1], edges_of[1:], strict=True)
    }


small = st.integers(-2, 2)


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 4), small, small, small), max_size=14),
    st.sampled_from([0, 2**40]),
    st.sampled_from([1, 2, 3, 100]),
)
def test_rows_are_sorted_by_user_and_made_distinct(rows, far, chunk):
    """With few and with many bits, compared with sets."""
    users, t, x, y = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
    t, x = (np.where(column == 2, far + 2, column) for column in (t, x))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(original, "_CHUNK", chunk)
        rows_of_users = users.astype(np.int32), t, x, y.astype(np.int32)
        people = arranged(*rows_of_users, pa.array(list("abcdef")), run=Run(threads=1))
    wanted = {}
    for user, *sample in zip(*(column.tolist() for column in (users, t, x, y)), strict=True):
        wanted.setdefault("abcdef"[user], set()).add(tuple(sample))
    assert samples_by_label(people) == {label: sorted(wanted[label]) for label in sorted(wanted)}
    assert list(samples_by_label(people)) == sorted(wanted)
    assert (people.t.dtype, people.y.dtype, people.offsets.dtype) == (np.int64, np.int32, np.int64)
    assert (people.outside, people.rows_outside) == ({}, {})


@pytest.mark.parametrize("highest", [20, 21, 22])
def test_rows_are_packed_only_where_there_is_room(highest):
    sides = [2**21 - 1, 2**21 - 1, 2**highest - 1]  # 62 bits, 63, 64: and one of the user
    users = np.array([1, 0, 1, 0])
    t, x, y = (np.array([side, side, 0, 0]) for side in sides)
    for who in (users, users * 2):
        people = arranged(who, t, x, y, pa.array(["a", "b", "c"]))
        far = tuple(sides)
        assert samples_by_label(people) == {"a": [(0, 0, 0), far], "abc"[who[0]]: [(0, 0, 0), far]}


@examples(100)
@given(
    st.lists(st.lists(st.tuples(small, small, small), max_size=4), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([0, 7, 2**31]),
    st.sampled_from([1, 2, 100]),
)
def test_trajectories_are_put_in_order(lists, in_order, origin, chunk):
    """Sorted or not, with people who have no samples, compared with sets."""
    lists = [sorted(set(own)) if in_order else own for own in lists]
    flat = np.array([sample for own in lists for sample in own], dtype=np.int32).reshape(-1, 3)
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in lists])]).astype(np.int64)
    frame = Frame(crs=None, cell_m=100, slot_s=60, origin_slot=origin)
    people = Trajectories(offsets, *flat.T.copy(), frame, pa.array(range(len(lists))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(original, "_CHUNK", chunk)
        made = from_trajectories(people, BARE, Run(threads=1))
        if all(lists):
            ordered = all(a < b for own in lists for a, b in pairwise(own))
            assert original._is_sorted(offsets, people.t, people.x, people.y) == ordered
    wanted = {n: sorted({(t + origin, x, y) for t, x, y in own}) for n, own in enumerate(lists) if own}
    assert samples_by_label(made) == wanted
    if origin == 7:
        assert made.t.dtype == np.int32


@pytest.mark.parametrize("grid", [Grid(CRS, 100, 60), Grid(None, 101, 60), Grid(None, 100, 61)])
def test_trajectories_must_be_on_the_grid(grid):
    people = people_of([[(1, 2, 3)]], frame=Frame(crs=None, cell_m=100, slot_s=60))
    assert len(from_trajectories(people, BARE, Run(threads=1))) == 1
    with pytest.raises(CannotCheck, match="the trajectories are on another grid than the release"):
        from_trajectories(people, grid, Run(threads=1))


def events_of(rows, labels, *, degrees=False):
    """Make events of (user, ms, east, north), or of longitude and latitude."""
    users, ms, first, second = zip(*rows, strict=True) if rows else [()] * 4
    first, second = np.array(first, dtype=np.float64), np.array(second, dtype=np.float64)
    places = (first, second, None, None) if degrees else (None, None, first, second)
    return Events(np.array(users, np.int32), pa.array(labels), np.array(ms, np.int64), *places, None)


def placed(events, grid=BARE, **options):
    return from_events(events, ReadOptions(**options), grid, Run(threads=1))


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_events_are_put_on_the_grid(chunk, monkeypatch):
    monkeypatch.setattr(original, "_CHUNK", chunk)
    far = 2.0**31 * 100
    rows = [
        (0, 60_000, 150.0, -1.0),
        (0, 119_999, 199.9, -100.0),
        (0, -1, 0.0, 0.0),
        (1, 5, far - 100, 100 - far),
        (1, 6, far, 0.0),
        (1, 6, 0.0, -far),
        (2, 7, np.inf, 0.0),
        (2, 8, 0.0, np.nan),
    ]
    people = placed(events_of(rows, ["a", "b", "c"]))
    assert samples_by_label(people) == {"a": [(-1, 0, 0), (1, 1, -1)], "b": [(0, 2**31 - 1, 1 - 2**31)]}
    assert people.outside == {"no place in the CRS": 1, "min_samples": 0, "min_active_days": 0}
    assert people.rows_outside == {"no place in the CRS": 4}
    assert people.t.dtype == people.x.dtype == np.int32


def test_degrees_are_put_on_the_grid():
    lng, lat = FRAME.degrees([150.0, -50.0], [250.0, -250.0])
    rows = [(0, 0, lng[0], lat[0]), (0, 60_000, lng[1], lat[1]), (1, 0, -64.0, -40.0)]
    people = placed(events_of(rows, ["a", "b"], degrees=True), GRID)
    assert samples_by_label(people) == {"a": [(0, 1, 2), (1, -1, -3)]}
    assert people.rows_outside == {"no place in the CRS": 1}


def test_events_need_places():
    events = Events(np.zeros(1, np.int32), pa.array(["a"]), np.zeros(1, np.int64), *[np.zeros(1), None] * 2, None)
    with pytest.raises(CannotCheck, match="the original has no places that can be put on the grid"):
        placed(events)


def test_no_events_are_nobody():
    people = placed(events_of([], ["a"]))
    assert (len(people), len(people.labels), people.t.dtype) == (0, 0, np.int32)
    assert people.outside["no place in the CRS"] == 1


def test_slots_are_narrow_where_they_fit():
    for ms, kind in ((2**31 - 1, np.int32), (2**31, np.int64), (-(2**31), np.int32), (-(2**31) - 1, np.int64)):
        for others in ([], [(0, 0, 0.0, 0.0)]):
            people = placed(events_of([(0, ms * 1000, 0.0, 0.0), *others], ["a"]), Grid(None, 1, 1))
            assert people.t.dtype == kind
            assert ms in people.t.tolist()


def test_who_has_few_samples_or_days_is_outside():
    def rows(user, *days):
        return [(user, day * DAY + n, float(n * 100), 0.0) for n, day in enumerate(days)]

    days = [(0, 1, 2), (0, 0, 0, 0), (0,), (0, 1), (3, 3, 4)]
    events = events_of([row for user, own in enumerate(days) for row in rows(user, *own)], list("abcde"))

    def kept(**options):
        people = placed(events, **options)
        assert list(samples_by_label(people)) == people.labels.to_pylist()
        outside = people.outside
        assert outside.pop("no place in the CRS") == 0
        return "".join(people.labels.to_pylist()), list(outside.values()), people.counts.tolist()

    assert kept() == ("abcde", [0, 0], [3, 4, 1, 2, 3])
    assert kept(min_samples=2) == ("abde", [1, 0], [3, 4, 2, 3])
    assert kept(min_samples=3) == ("abe", [2, 0], [3, 4, 3])
    assert kept(min_active_days=1) == ("abcde", [0, 0], [3, 4, 1, 2, 3])
    assert kept(min_active_days=2) == ("ade", [0, 2], [3, 2, 3])
    assert kept(min_active_days=3) == ("a", [0, 4], [3])
    assert kept(min_samples=2, min_active_days=2) == ("ade", [1, 1], [3, 2, 3])


@examples(60)
@given(
    st.lists(st.lists(st.integers(-100, 100), min_size=1, max_size=6), min_size=1, max_size=5),
    st.sampled_from(["UTC", "Asia/Shanghai", "America/New_York"]),
    st.sampled_from([1, 4, 1000]),
)
def test_active_days_are_local(hours, tz, rows):
    """In slots of an hour around 1970, compared with Python's own calendar."""
    from zoneinfo import ZoneInfo

    lists = [sorted(set(own)) for own in hours]
    t = np.array([hour for own in lists for hour in own], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in lists])])
    people = Original(pa.array(range(len(lists))), offsets, t, t, t)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "__defaults__", (rows,))
        days = original._active_days(people, 3600, tz)
    zone = ZoneInfo(tz)
    wanted = [len({datetime.fromtimestamp(hour * 3600, UTC).astimezone(zone).date() for hour in own}) for own in lists]
    assert days.tolist() == wanted


# Everybody, part by part


def part_of(labels, *lists):
    flat = np.array([sample for own in lists for sample in own]).reshape(-1, 3)
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in lists])])
    return Original(pa.array(labels), offsets, *flat.T.copy())


PARTS = [
    part_of(["a", "b"], [(1, 2, 3), (4, 5, 6)], [(7, 8, 9)]),
    part_of(["c"], [(10, 11, 12)]),
    part_of(["d", "e"], [(13, 14, 15)], [(16, 17, 18), (19, 20, 21)]),
]


def crowd_of_parts(parts, **options):
    counts = np.concatenate([part.counts for part in parts])
    return Crowd(pa.concat_arrays([part.labels for part in parts]), counts, None, lambda: parts, **options)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_parts_make_a_whole(parts):
    made = crowd_of_parts(PARTS[:parts])
    wanted = {label: own for part in PARTS[:parts] for label, own in samples_by_label(part).items()}
    assert samples_by_label(made.whole()) == wanted
    assert (len(made), made.samples) == (len(wanted), sum(map(len, wanted.values())))
    assert [start for start, _ in made.parts()] == [0, 2, 3][:parts]
    with pytest.raises(TooLarge) as caught:
        crowd_of_parts(PARTS[:parts], kept=False).whole()
    assert str(caught.value) == (
        "this claim is checked with everybody at once, who do not fit into memory; allow more (`memory`), "
        "or check fewer users at a time"
    )


def test_samples_are_kept_part_by_part():
    made = crowd_of_parts(PARTS)
    masks = [np.array([False, True, True]), np.array([False]), np.array([True, True, False])]
    kept = made.keep(masks, np.array([1, 1, 0, 1, 1]))
    for _ in range(2):
        published_samples = {"b": [(7, 8, 9)], "c": [], "d": [(13, 14, 15)], "e": [(16, 17, 18)]}
        assert samples_by_label(kept.whole()) == {"a": [(4, 5, 6)], **published_samples}
    assert kept.samples == 4
    with pytest.raises(ValueError, match="zip"):
        list(made.keep(masks[:2], made.counts).parts())


def test_the_first_sample_of_everybody_is_known():
    made = crowd_of(PARTS[2])
    assert made.first.tolist() == [[13, 14, 15], [16, 17, 18]]
    assert made.first.dtype == np.int64
    assert (made.kept, made.outside, made.rows_outside) == (True, {}, {})
    assert samples_by_label(made.whole()) == samples_by_label(PARTS[2])


def gridded(folder, lists):
    """Write samples (t, x, y) in slots of half an hour as gridded rows."""
    rows = [(user, t // 48, t % 48, x, y) for user, own in enumerate(lists) for t, x, y in own]
    pq.write_table(
        pa.table(list(map(pa.array, zip(*rows, strict=True))), ["uid", "d", "t", "x", "y"]), folder / "events.parquet"
    )
    return folder / "events.parquet"


LISTS = [[(480 + user + step * 48, user % 7, step) for step in range(1 + user % 4)] for user in range(24)]
HALF_HOURS = Grid(None, 500, 1800)


def opened(events, folder, memory, options=None):
    return open_crowd(events, options, HALF_HOURS, run=Run(memory=memory, threads=1, work_dir=folder))


@pytest.mark.parametrize("memory", [None, 30_000, 4_000, 1_500])
def test_everybody_is_counted_however_little_memory_there_is(memory, tmp_path):
    events = gridded(tmp_path, LISTS)
    folder = tmp_path / "work"
    folder.mkdir()
    with opened(events, folder, memory, ReadOptions(min_samples=2, min_active_days=3)) as made:
        parts = dict(made.parts())
        assert (len(parts) > 1) == (memory is not None and memory < 30_000)
        found = {label: own for part in parts.values() for label, own in samples_by_label(part).items()}
        assert found == {user: own for user, own in enumerate(LISTS) if len(own) > 2}
        assert made.labels.to_pylist() == list(found)
        assert made.counts.tolist() == [len(own) for own in found.values()]
        assert made.first.tolist() == [list(own[0]) for own in found.values()]
        assert list(parts) == np.cumsum([0, *map(len, parts.values())])[:-1].tolist()
        assert made.outside == {"min_samples": 6, "min_active_days": 6}
        assert all(type(count) is int for count in made.outside.values())
        assert made.rows_outside == {}
        assert made.kept == (memory != 1_500)
        assert bool(list(folder.iterdir())) == (not made.kept)
    assert list(folder.iterdir()) == []


def test_samples_are_kept_if_they_fit(tmp_path):
    events = gridded(tmp_path, LISTS)
    rows = sum(map(len, LISTS))
    for memory, kept in ((rows * 40, True), (rows * 40 - 1, False)):
        with opened(events, tmp_path, memory) as made:
            assert made.kept == kept
            assert len(made) == len(LISTS)


def test_the_grid_of_the_release_goes_before_the_options(tmp_path):
    events = gridded(tmp_path, LISTS)
    for options in (None, ReadOptions(cell=7, slot=60, crs="EPSG:32650")):
        with opened(events, tmp_path, None, options) as made:
            assert samples_by_label(made.whole()) == dict(enumerate(LISTS))


def test_an_original_that_can_not_be_read_is_said(tmp_path):
    with (
        pytest.raises(CannotCheck, match="the original can't be read: "),
        opened(tmp_path / "nowhere.parquet", tmp_path, None),
    ):
        pass


def test_rows_left_out_are_counted_part_by_part(tmp_path):
    account = SimpleNamespace(users_dropped={"a": 2, "b": 0}, dropped={"c": 3})
    events = [0, 1, 2]

    class Parts(list):
        pass

    parts = Parts(events)
    parts.account = account
    outside = [{"a": 1, "d": 0}, {"e": 2}, {"e": 3}]
    rows = [{"c": 1}, {"f": 1}, {"f": 0}]
    placed = []

    def place(n):
        placed.append(n)
        part = PARTS[n]
        return Original(part.labels, part.offsets, part.t, part.x, part.y, outside[n], rows[n])

    for keep in (True, False):
        placed.clear()
        made = crowd._gather(parts, place, keep=keep)
        assert placed == events
        assert (made.outside, made.rows_outside) == ({"a": 3, "e": 5}, {"c": 4, "f": 1})
        assert (made.kept, made.labels.to_pylist()) == (keep, list("abcde"))
        assert made.first[:, 0].tolist() == [1, 7, 10, 13, 16]
        assert [len(part) for _, part in made.parts()] == [2, 1, 2]
        assert placed == events * (1 if keep else 2)
