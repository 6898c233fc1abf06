"""Places as geographic software writes them: geometry, trips, H3 and geohash cells, GeoJSON, GPX, GeoDataFrames."""

from __future__ import annotations

import json
import struct

import geopandas
import h3
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import BadRows, ColumnsNotFound, InputError, LikelySwapped, NoValidRows, UnreadableFile
from shoal.reading import codes, geometry
from shoal.reading.forms import json_stream
from shoal.reading.options import ReadOptions
from shoal.reading.parts import event_parts

# Three samples of two people, and what every form below must read as: user, UTC second, longitude, latitude.
ROWS = [("ann", 1_772_352_000, 116.4, 39.9), ("ann", 1_772_355_600, 116.5, 39.8), ("bob", 1_772_352_060, -0.25, -33.5)]
TIMES = ["2026-03-01T08:00:00Z", "2026-03-01T09:00:00Z", "2026-03-01T08:01:00Z"]
USERS = [row[0] for row in ROWS]
POINTS = [shapely.Point(row[2:]) for row in ROWS]


def read_back(source, **options):
    """Read a source as it stands, with nothing merged or put on a grid."""
    with event_parts(source, ReadOptions(**options)) as parts:
        events = parts.take()
    labels = np.array(events.labels.to_pylist(), object)[events.users]
    found = zip(labels, events.epoch_ms // 1000, events.lng.round(9), events.lat.round(9), strict=True)
    return sorted((str(u), int(t), float(x), float(y)) for u, t, x, y in found), events.account


def text_file(path, header, rows, sep=","):
    lines = [sep.join(f'"{value}"' if sep in value else value for value in map(str, row)) for row in rows]
    path.write_text("\n".join([sep.join(header), *lines]) + "\n")
    return path


def csv_of(name, places):
    return lambda folder: text_file(
        folder / "a.csv", ["user_id", "time", name], zip(USERS, TIMES, places, strict=True), sep=";"
    )


def parquet_of(name, places, metadata=None, **options):
    def write(folder):
        table = pa.table({"user_id": USERS, "time": TIMES, name: places})
        pq.write_table(table.replace_schema_metadata(metadata), folder / "a.parquet", **options)
        return folder / "a.parquet"

    return write


def frame(crs=4326, **columns):
    whole = geopandas.GeoDataFrame({"user_id": USERS, "time": TIMES, **columns}, geometry=POINTS, crs=4326)
    return whole if crs == 4326 else whole.to_crs(crs)


def geoparquet(crs=4326, **options):
    def write(folder):
        frame(crs).to_parquet(folder / "a.parquet", **options)
        return folder / "a.parquet"

    return write


def renamed(folder):
    frame().rename_geometry("spot").to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def wkb(*, order="<", srid=None, z=False):
    def one(point):
        kind = 1 | (0x20000000 if srid else 0) | (0x80000000 if z else 0)
        head = struct.pack(f"{order}BI", order == "<", kind) + (struct.pack(f"{order}I", srid) if srid else b"")
        return head + struct.pack(f"{order}{'ddd' if z else 'dd'}", point.x, point.y, *([7.0] if z else []))

    return [one(point) for point in POINTS]


def structs(x, y):
    return pa.StructArray.from_arrays([[p.x for p in POINTS], [p.y for p in POINTS]], names=[x, y])


def feature(user, time, place, **more):
    return {"type": "Feature", "properties": {"user_id": user, "time": time}, "geometry": place, **more}


FEATURES = [
    feature(u, t, {"type": "Point", "coordinates": [p.x, p.y]}) for u, t, p in zip(USERS, TIMES, POINTS, strict=True)
]
LINES = [
    feature("ann", "2020-01-01T00:00:00Z", {"type": "LineString", "coordinates": [[116.4, 39.9, 3], [116.5, 39.8, 4]]}),
    feature("bob", None, {"type": "LineString", "coordinates": [[-0.25, -33.5]]}),
]
COLLECTION = {"type": "FeatureCollection", "name": "x", "features": FEATURES}


def timed(*times):
    return [{**line, "properties": {**line["properties"], **t}} for line, t in zip(LINES, times, strict=True)]


def written(name, *values, end="\n"):
    def write(folder):
        (folder / name).write_text(end.join(value if isinstance(value, str) else json.dumps(value) for value in values))
        return folder / name

    return write


def moving(user, rows):
    times, places = [row[0] for row in rows], [row[1] for row in rows]
    shape = {"type": "MovingPoint", "datetimes": times, "coordinates": places, "interpolation": "Linear"}
    return {"type": "Feature", "properties": {"user_id": user}, "temporalGeometry": shape}


UTM = frame(32650).geometry
EWKT = [f"SRID=32650;{point.wkt}" for point in UTM]
TRIPS = [
    ("ann", "[POINT(116.4 39.9)@2026-03-01 08:00:00+00, POINT(116.5 39.8)@2026-03-01 09:00:00+00]"),
    ("bob", "{POINT(-0.25 -33.5)@2026-03-01 09:01:00+01}"),
]
SETS = [
    (
        "ann",
        (
            "SRID=4326;Interp=Step;{[POINT(116.4 39.9)@2026-03-01 08:00:00+00], "
            "(POINT Z (116.5 39.8 2)@2026-03-01 09:00:00Z)}"
        ),
    ),
    ("bob", "POINT(-0.25 -33.5)@2026-03-01 08:01:00"),
]

SHAPES = {
    "GeoParquet": geoparquet(),
    "GeoParquet, UTM": geoparquet(32650),
    "GeoParquet, another datum": geoparquet(4269),
    "GeoParquet, points as structs": geoparquet(geometry_encoding="geoarrow"),
    "GeoParquet, structs in UTM": geoparquet(32650, geometry_encoding="geoarrow"),
    "GeoParquet, an unusual name": renamed,
    "Parquet with WKB": parquet_of("geometry", wkb()),
    "WKB, big endian": parquet_of("geom", wkb(order=">")),
    "EWKB": parquet_of("wkb_geometry", wkb(srid=4326)),
    "EWKB with heights": parquet_of("the_geom", wkb(srid=4326, z=True)),
    "WKB of both orders": parquet_of("wkb", [*wkb()[:1], *wkb(order=">", z=True)[1:]]),
    "Parquet with structs": parquet_of("point", structs("lng", "lat")),
    "WKT": csv_of("wkt", [p.wkt for p in POINTS]),
    "WKT with heights": csv_of("geometry", [f"point z({p.x}  {p.y} 12.5 )" for p in POINTS]),
    "EWKT": csv_of("geom", [f"SRID=4326;POINT({p.x} {p.y})" for p in POINTS]),
    "EWKT in UTM": csv_of("geom", EWKT),
    "EWKT in two CRSs": csv_of("geom", [*EWKT[:1], *(f"SRID=4326;{p.wkt}" for p in POINTS[1:])]),
    "hexadecimal EWKB, as PostGIS prints it": csv_of("geom", [value.hex().upper() for value in wkb(srid=4326)]),
    "hexadecimal WKB and WKT": csv_of("geom", [wkb()[0].hex(), *(p.wkt for p in POINTS[1:])]),
    "WKT in Parquet": parquet_of("wkt", [p.wkt for p in POINTS]),
    "tgeompoint": lambda folder: text_file(folder / "a.csv", ["user_id", "trip"], TRIPS, sep=";"),
    "tgeompoint, sets": lambda folder: text_file(folder / "a.csv", ["user_id", "tgeompoint"], SETS, sep=";"),
    "tgeompoint in quotes": lambda folder: text_file(folder / "a.csv", ["user_id", "trip"], TRIPS),
    "tgeompoint in Parquet": lambda folder: pq.write_table(
        pa.table({"user_id": ["ann", "bob"], "trip": [trip for _, trip in TRIPS]}), folder / "a.parquet"
    ),
    "GeoJSON": written("a.geojson", COLLECTION),
    "GeoJSON, features first": written("a.geojson", {"features": FEATURES, "type": "FeatureCollection"}),
    "GeoJSON, a byte order mark": written("a.geojson", "\ufeff" + json.dumps(COLLECTION, indent=2)),
    "GeoJSON in UTM": written(
        "a.geojson",
        {
            "features": [
                {**f, "geometry": {"type": "Point", "coordinates": [p.x, p.y]}}
                for f, p in zip(FEATURES, UTM, strict=True)
            ],
            "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32650"}},
        },
    ),
    "GeoJSON, places also as properties": written(
        "a.geojson",
        {"features": [{**f, "properties": {**f["properties"], "lat": 1, "Longitude": 2}} for f in FEATURES]},
    ),
    "GeoJSON features, one a line": written("a.geojsonl", *FEATURES),
    "GeoJSON text sequence": written("a.geojsons", *("\x1e" + json.dumps(one) for one in FEATURES)),
    "GeoJSON lines with coordTimes": written(
        "a.geojson", {"features": timed({"coordTimes": TIMES[:2]}, {"coordTimes": TIMES[2:]})}
    ),
    "GeoJSON lines with coordinateProperties": written(
        "a.geojson",
        {
            "features": timed(
                {"coordinateProperties": {"times": TIMES[:2]}}, {"coordinateProperties": {"times": TIMES[2:]}}
            )
        },
    ),
    "GeoJSON lines with times that are numbers": written(
        "a.geojson", {"features": timed({"times": [ROWS[0][1], ROWS[1][1]]}, {"times": [ROWS[2][1]]})}
    ),
    "GeoJSON, several lines in one": written(
        "a.geojson",
        {
            "features": [
                {
                    "type": "Feature",
                    "properties": {"user_id": "ann", "coordTimes": [TIMES[:1], TIMES[1:2]]},
                    "geometry": {"type": "MultiLineString", "coordinates": [[[116.4, 39.9]], [[116.5, 39.8]]]},
                },
                FEATURES[2],
            ]
        },
    ),
    "MF-JSON": written(
        "a.mfjson",
        {
            "features": [
                moving("ann", [(TIMES[0], [116.4, 39.9]), (TIMES[1], [116.5, 39.8])]),
                moving("bob", [(TIMES[2], [-0.25, -33.5])]),
            ]
        },
    ),
}


@pytest.mark.parametrize("write", SHAPES.values(), ids=SHAPES)
def test_shapes(write, tmp_path):
    write(tmp_path)
    rows, account = read_back(tmp_path)
    assert rows == sorted(ROWS)
    assert not account.dropped


POLYGON = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
DOCTYPE = '<!DOCTYPE gpx [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
ERRORS = {
    "areas in GeoParquet": (
        lambda folder: frame().set_geometry([shapely.box(0, 0, 1, 1)] * 3).to_parquet(folder / "a.parquet"),
        InputError,
        "holds Polygon, not points",
    ),
    "GeoParquet without CRS": (
        lambda folder: frame().set_crs(None, allow_override=True).to_parquet(folder / "a.parquet"),
        InputError,
        "no CRS; write the file again with one",
    ),
    "GeoParquet with a CRS nobody knows": (
        parquet_of(
            "geometry",
            wkb(),
            {"geo": json.dumps({"primary_column": "geometry", "columns": {"geometry": {"crs": {"type": "no"}}}})},
        ),
        InputError,
        "CRS of its geometry is not known",
    ),
    "areas as WKB": (
        parquet_of("geometry", [shapely.box(0, 0, 1, 1).wkb] * 3),
        NoValidRows,
        "holds lines or areas: give one point for each row",
    ),
    "lines as WKT": (csv_of("wkt", ["LINESTRING(1 2, 3 4)"] * 3), NoValidRows, "holds lines or areas"),
    "numbers as geometry": (parquet_of("geometry", [1, 2, 3]), ColumnsNotFound, "for geometry has type BIGINT"),
    "latitude first": (
        csv_of("wkt", [f"POINT({p.y} {p.x})" for p in POINTS]),
        LikelySwapped,
        "write the longitude of each point before its latitude",
    ),
    "H3 as floats": (parquet_of("h3", [1.0, 2.0, 3.0]), ColumnsNotFound, "for h3 has type DOUBLE"),
    "an SRID nobody knows": (csv_of("geom", ["SRID=999999;POINT(1 2)"] * 3), NoValidRows, "place can't be read"),
    "a trip of numbers": (parquet_of("trip", [1, 2, 3]), ColumnsNotFound, "columns for the place|for trip has type"),
    "lines without times": (
        written("a.geojson", {"features": LINES}),
        UnreadableFile,
        "a property times or coordTimes",
    ),
    "times that do not match": (
        written("a.geojson", {"features": timed({"times": TIMES}, {"times": TIMES})}),
        UnreadableFile,
        "without a time for each position",
    ),
    "areas in GeoJSON": (written("a.geojson", feature("ann", TIMES[0], POLYGON)), UnreadableFile, "holds areas"),
    "JSON cut off": (written("a.geojson", json.dumps(COLLECTION)[:-20]), UnreadableFile, "cut off or damaged"),
    "JSON of another kind": (written("a.geojson", [1, 2]), UnreadableFile, "not GeoJSON"),
    "no JSON": (written("a.geojson", "uid,time"), UnreadableFile, "cut off or damaged"),
    "nested without end": (written("a.geojson", "[" * 100_000), UnreadableFile, "cut off or damaged"),
    "another CRS twice": (
        written("a.mfjson", *[{**moving("ann", []), "crs": None}, {"features": [], "crs": {"type": "link"}}]),
        UnreadableFile,
        "`crs` can't be read",
    ),
    "GPX with entities": (
        written("a.gpx", f"{DOCTYPE}<gpx><trk><name>&b;</name></trk></gpx>"),
        UnreadableFile,
        "DOCTYPE",
    ),
    "GPX cut off": (
        written("a.gpx", '<gpx><trk><trkseg><trkpt lat="1" lon="2">'),
        UnreadableFile,
        "cut off or damaged",
    ),
    "XML of another kind": (written("a.gpx", "<kml></kml>"), UnreadableFile, "not GPX"),
    "GPX says nobody": (written("a.gpx", "<gpx></gpx>"), ColumnsNotFound, 'columns="user=@file"'),
}


@pytest.mark.parametrize(("write", "kind", "said"), ERRORS.values(), ids=ERRORS)
def test_errors_say_what_to_do(write, kind, said, tmp_path):
    write(tmp_path)
    with pytest.raises(kind, match=said) as caught:
        shoal.read(tmp_path)
    assert not any(str(value) in str(caught.value) for row in ROWS for value in (row[0], row[2]))


def test_geometries_that_are_no_points_are_counted(tmp_path):
    rows, account = read_back(csv_of("wkt", [POINTS[0].wkt, "LINESTRING(1 2, 3 4)", "nowhere"])(tmp_path))
    assert rows == sorted(ROWS)[:1]
    assert account.dropped == {"place can't be read": 2}
    assert "geometries other than points were not read" in account.notes


def test_a_trip_that_is_none_is_one_bad_sample(tmp_path):
    bad = [("eve", "[POINT(1 2)@2026-03-01 08:00:00+00, nowhere@2026-03-01 09:00:00+00]"), ("eve", "POINT(1 2)")]
    path = text_file(tmp_path / "a.csv", ["user_id", "trip"], [*TRIPS, *bad], sep=";")
    rows, account = read_back(path)
    assert rows == sorted(ROWS)
    assert account.dropped == {"time can't be read": 2}
    assert any("its samples were read" in note for note in account.notes)
    with pytest.raises(BadRows, match="sample 4"):
        shoal.read(path, strict=True)


@pytest.mark.parametrize(
    ("header", "given", "role"),
    [
        ("user_id,time,lat,lng,geometry,h3,trip", {}, "lat"),
        ("user_id,time,x,y,geom", {}, "geometry"),
        ("user_id,time,x,y,h3_09", {}, "x"),
        ("user_id,time,geohash7,cell_id", {}, "geohash"),
        ("user_id,time,lat,lng,hexes", {"h3": "hexes"}, "h3"),
        ("user_id,time,lat,lng,spot", {"geometry": "spot"}, "geometry"),
        ("user_id,time,lat,lng,trip", {"trip": "trip"}, "trip"),
    ],
)
def test_which_columns_are_taken(header, given, role):
    from shoal.reading.columns import find_columns

    found = find_columns(header.split(","), given, "a.csv")
    assert found.trip == "trip" if role == "trip" else role in found.of


# Cells.


def slow_geohash(code):
    """The centre of a geohash, by halving (https://en.wikipedia.org/wiki/Geohash)."""
    low, high, axis = [-180.0, -90.0], [180.0, 90.0], 0
    for sign in code:
        for shift in (4, 3, 2, 1, 0):
            middle = (low[axis] + high[axis]) / 2
            bit = "0123456789bcdefghjkmnpqrstuvwxyz".index(sign) >> shift & 1
            low[axis], high[axis] = (middle, high[axis]) if bit else (low[axis], middle)
            axis = 1 - axis
    return (low[0] + high[0]) / 2, (low[1] + high[1]) / 2


@given(st.lists(st.text("0123456789bcdefghjkmnpqrstuvwxyz", min_size=1, max_size=12), min_size=1, max_size=20))
def test_geohashes_are_what_halving_gives(texts):
    lng, lat, lengths = codes.geohash_centres(pa.array(texts))
    assert list(zip(lng.tolist(), lat.tolist(), strict=True)) == [slow_geohash(text) for text in texts]
    assert lengths.tolist() == [len(text) for text in texts]


def test_odd_geohashes():
    given = [" ezs42 ", "EZS42", "", None, "a", "ezs42!", "ezs42" * 6, "ezs42ezs42ezs42"]
    for codes_given in (pa.array(given), pa.array(["x", *given]).slice(1)):
        lng, _, length = codes.geohash_centres(codes_given)
        assert length.tolist() == [5, 5, -1, -1, -1, -1, -1, 15]
        assert np.isnan(lng[2:4]).all()
        assert np.isinf(lng[4:7]).all()
    assert codes.geohash_centres(pa.array([], pa.string()))[0].tolist() == []


HASHES = ["wx4g0ec1", "wx4dy5", "q3x"]
CELLS = [h3.latlng_to_cell(p.y, p.x, 8) for p in POINTS]


@pytest.mark.parametrize(
    "write",
    [
        csv_of("h3", CELLS),
        csv_of("h3_index", [cell.upper() for cell in CELLS]),
        csv_of("hex_id", [h3.str_to_int(cell) for cell in CELLS]),
        parquet_of("h3_08", pa.array([h3.str_to_int(cell) for cell in CELLS], pa.uint64())),
        parquet_of("h3_cell", pa.array([h3.str_to_int(cell) for cell in CELLS], pa.int64())),
    ],
)
def test_h3_cells(write, tmp_path):
    rows, account = read_back(write(tmp_path))
    centres = [h3.cell_to_latlng(cell) for cell in CELLS]
    assert rows == sorted(
        (*row[:2], round(lng, 9), round(lat, 9)) for row, (lat, lng) in zip(ROWS, centres, strict=True)
    )
    assert account.notes[:1] == ("places are centres of H3 cells, about 860 m wide",)


def test_geohash_cells(tmp_path):
    rows, account = read_back(csv_of("geohash", HASHES)(tmp_path))
    assert rows == sorted(
        (*r[:2], *(round(d, 9) for d in slow_geohash(code))) for r, code in zip(ROWS, HASHES, strict=True)
    )
    assert "places are centres of geohashes, about 160 km wide" in account.notes


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("h3", [CELLS[0], "8928308280fffff0ff", ""]),
        ("h3", pa.array([h3.str_to_int(CELLS[0]), 7, None], pa.uint64())),
        ("geohash", ["wx4", "ail", None]),
    ],
)
def test_unknown_cells_are_counted(name, places, tmp_path):
    _, account = read_back(parquet_of(name, places)(tmp_path))
    assert account.dropped == {"place can't be read": 1, "unknown cell": 1}


def test_h3_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h3", None)
    with pytest.raises(UnreadableFile, match=r"pip install .shoal-privacy\[h3\]"):
        shoal.read(csv_of("h3", CELLS)(tmp_path))


def test_remembered_cells_are_few(monkeypatch):
    monkeypatch.setattr(codes, "_REMEMBERED", 2)
    known = {}
    for _ in range(3):
        lng, _, _ = codes.h3_centres(pa.array(CELLS), known)
        assert len(known) == 3
    assert lng.round(6).tolist() == [round(h3.cell_to_latlng(cell)[1], 6) for cell in CELLS]


# Arrays of geometry.


def test_points_of_slices_and_odd_bytes():
    whole = pa.array([b"", b"\1", None, *wkb(), b"\2\1\0\0\0" + bytes(16), wkb()[0][:20], shapely.LineString().wkb])
    for values in (whole, pa.concat_arrays([whole[:2], whole]).slice(2)):
        points = geometry.wkb_points(values)
        assert points.x[3:6].tolist() == [p.x for p in POINTS]
        assert np.isnan(np.delete(points.x, [3, 4, 5])).all()
        assert points.other
    assert geometry.wkb_points(pa.array([], pa.binary())).x.tolist() == []


def test_points_of_odd_texts():
    given = [
        "POINT(+1 .5)",
        "POINT(1. -1e1)",
        "POINT(1,2)",
        "POINT(1 2",
        "POINT EMPTY",
        "0101",
        "0x01",
        "POINT(1 2)x",
        "",
    ]
    points = geometry.text_points(pa.array([*given, None]))
    assert points.x[:2].tolist() == [1, 1]
    assert points.y[:2].tolist() == [0.5, -10]
    assert np.isnan(points.x[2:]).all()
    assert not points.other


@pytest.mark.parametrize(
    "geo", [b"", b"{", b"[]", b'{"primary_column": "a"}', b'{"primary_column":"a","columns":{"a":3}}']
)
def test_odd_metadata_are_none(geo):
    assert geometry.geo_of({b"geo": geo}) is None


# The user from the path.


def test_the_user_is_the_file_or_the_folder(tmp_path):
    for number, (name, when) in enumerate([("000/Trajectory/1", 0), ("000/Trajectory/2", 1), ("001/Trajectory/1", 2)]):
        path = tmp_path / "Data" / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        text_file(path, ["time", "lat", "lng"], [(TIMES[when], 39.9, 116.4 + number)])

    def labels(source, kind):
        return sorted({row[0] for row in read_back(source, columns=f"user={kind}")[0]})

    data = tmp_path / "Data"
    for source in (data, f"{data}/*/Trajectory/*.csv", [data / "000", data / "001"]):
        assert labels(source, "@folder") == ["000", "001"]
        assert labels(source, "@file") == ["1", "2"]
    rows, _ = read_back(data, columns="user=@folder")
    assert [(row[0], row[2]) for row in rows] == [("000", 116.4), ("000", 117.4), ("001", 118.4)]


def test_a_table_has_no_path():
    table = pa.table({"time": [0], "lat": [1.0], "lng": [1.0]})
    with pytest.raises(ColumnsNotFound, match="a table has no file"):
        shoal.from_arrow(table, columns="user=@file")


def gpx(*points, name="run"):
    inside = "".join(f'<trkpt lat="{y}" lon="{x}"><ele>3</ele><time>{t}</time></trkpt>' for t, x, y in points)
    return (
        '<?xml version="1.0"?><gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><metadata><time>'
        f'2020-01-01T00:00:00Z</time></metadata><wpt lat="1" lon="2"><time>{TIMES[0]}</time></wpt><trk>'
        f"<name> {name} </name><trkseg>{inside}</trkseg></trk></gpx>"
    )


def test_gpx(tmp_path):
    points = [(t, *row[2:]) for t, row in zip(TIMES, ROWS, strict=True)]
    (tmp_path / "ann.gpx").write_text(gpx(*points[:2], name="ann"))
    (tmp_path / "bob.GPX").write_text(gpx(points[2], name="bob"))
    for columns in ("user=@file", "user=track"):
        rows, account = read_back(tmp_path, columns=columns)
        assert rows == sorted(ROWS)
        assert not account.dropped
    assert {row[0] for row in read_back(tmp_path, columns="user=@folder")[0]} == {tmp_path.name}


def test_track_points_without_time_are_counted(tmp_path):
    (tmp_path / "ann.gpx").write_text(gpx((TIMES[0], 1, 2)).replace("</trkseg>", '<trkpt lat="1" lon="2"/></trkseg>'))
    rows, account = read_back(tmp_path, columns="user=@file")
    assert rows == [("ann", ROWS[0][1], 1.0, 2.0)]
    assert account.dropped == {"time can't be read": 1}


# GeoJSON in pieces.


@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_json_in_chunks(chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "_CHUNK", chunk)
    for shape in [name for name in SHAPES if "JSON" in name]:
        folder = tmp_path / shape
        folder.mkdir()
        SHAPES[shape](folder)
        assert read_back(folder)[0] == sorted(ROWS)


def test_properties_that_come_late(tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.reading.forms.geojson._LOOK", 2)
    late = [{**FEATURES[2], "properties": {**FEATURES[2]["properties"], "new": [1], "flag": True}}]
    written("a.geojson", {"features": [*FEATURES[:2], *late, feature(None, TIMES[0], None)]})(tmp_path)
    rows, account = read_back(tmp_path)
    assert rows == sorted(ROWS)
    assert account.dropped == {"no user": 1}
    assert "ignored columns: new, flag" in account.notes


def test_values_keep_their_spelling(tmp_path):
    some = [
        feature(7, ROWS[0][1] * 1000, FEATURES[0]["geometry"], id=3),
        feature(1.5, TIMES[0], FEATURES[0]["geometry"]),
    ]
    rows, account = read_back(written("a.geojsonl", *some)(tmp_path))
    assert [row[0] for row in rows] == ["1.5", "7"]
    assert "ignored columns: feature" in account.notes


def test_too_many_properties(tmp_path):
    features = [{**FEATURES[0], "properties": {f"p{n}": 1 for n in range(1_001)}}]
    with pytest.raises(shoal.ShoalError, match="1,000 different properties"):
        shoal.read(written("a.geojson", {"features": features})(tmp_path))


# Frames.


@pytest.mark.parametrize("crs", [4326, 4269, 32650])
def test_geodataframes(crs):
    given = frame(crs, lat=[0, 0, 0], speed=[1, 2, 3])
    options = {"crs": "EPSG:32650", "bbox": (100, 0, 120, 60)}
    people = shoal.from_geopandas(given, **options)
    plain = pd.DataFrame({"user_id": USERS, "time": TIMES, "lng": [p.x for p in POINTS], "lat": [p.y for p in POINTS]})
    expected = shoal.from_pandas(plain, **options)
    assert (people.x.tolist(), people.y.tolist()) == (expected.x.tolist(), expected.y.tolist())
    assert people.account.table() == expected.account.table()
    assert list(given.columns) == ["user_id", "time", "lat", "speed", "geometry"]


def test_a_geodataframe_with_missing_points_and_an_index_of_times():
    given = frame().drop(columns="time").set_index(pd.to_datetime(TIMES))
    given.loc[given.index[0], "geometry"] = None
    people = shoal.from_geopandas(given)
    assert people.account.dropped == {"place can't be read": 1}
    assert sorted(people.labels.to_pylist()) == ["ann", "bob"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (frame().set_crs(None, allow_override=True), r'set_crs\("EPSG:4326"\)'),
        (frame().set_geometry([shapely.box(0, 0, 1, 1)] * 3), "lines or areas, not points"),
        (pd.DataFrame({"a": [1]}), r"takes a geopandas\.GeoDataFrame"),
        (frame(odd=[1, "a", b"b"]), "a column mixes types"),
    ],
)
def test_geodataframes_that_can_not_be_used(given, said):
    with pytest.raises(InputError, match=said):
        shoal.from_geopandas(given)


def test_trajectories_of_movingpandas():
    """Its collections have `to_point_gdf`, a frame with an index of times."""

    class Collection:
        def to_point_gdf(self):
            return frame().drop(columns="time").set_index(pd.DatetimeIndex(pd.to_datetime(TIMES), name="t"))

    assert len(shoal.from_geopandas(Collection())) == 2


@pytest.mark.parametrize("crs", [4326, 32650])
def test_arrow_tables_of_geopandas(crs):
    rows, _ = read_back(pa.table(frame(crs).to_arrow()))
    assert rows == sorted(ROWS)


def test_arrow_tables_without_crs():
    table = pa.table(frame().set_crs(None, allow_override=True).to_arrow())
    with pytest.raises(InputError, match="no CRS"):
        shoal.from_arrow(table)


def test_threads_and_memory_do_not_matter(tmp_path):
    n = 6_000
    rng = np.random.default_rng(4)
    points = geopandas.points_from_xy(rng.uniform(116, 117, n), rng.uniform(39, 40, n), crs=4326).to_crs(32650)
    given = geopandas.GeoDataFrame({"uid": np.arange(n) % 50, "time": np.arange(n) * 60}, geometry=points)
    given.to_parquet(tmp_path / "a.parquet", row_group_size=500)
    plain = pd.DataFrame(
        {"uid": given.uid, "time": given.time, "lng": points.to_crs(4326).x, "lat": points.to_crs(4326).y}
    )
    expected = shoal.from_pandas(plain)
    for run in (shoal.Run(threads=1), shoal.Run(threads=2), shoal.Run(memory=50_000)):
        people = shoal.read(tmp_path, run=run)
        for name in ("offsets", "t", "x", "y"):
            np.testing.assert_array_equal(getattr(people, name), getattr(expected, name))


def test_every_way_in_takes_a_geodataframe():
    """`shoal.read`, `read_traces` and a method read its points, not the columns beside them."""
    given = frame(32650, lat=[0, 0, 0], lng=[0, 0, 0])
    for people in (shoal.read(given), shoal.read_traces(given)):
        assert len(people) == 2
        assert people.account.kept_rows == 3
    traces = shoal.read_traces(given)
    assert sorted(zip(traces.lng.round(9).tolist(), traces.lat.round(9).tolist(), strict=True)) == sorted(
        row[2:] for row in ROWS
    )
