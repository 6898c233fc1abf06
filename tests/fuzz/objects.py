"""JSON, GeoJSON and GPX: types, depth, keys that stand twice, numbers that are none, and places of every form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.fuzz.case import CANARY, CLOCK, LAT, LNG, Case, Kind
from tests.fuzz.mutate import EDGES, FLOATS, TEXTS, any_bytes, as_json, lines, tree, value
from tests.fuzz.tables import header, options, read_case, row

if TYPE_CHECKING:
    from random import Random


def _record(draw: Random) -> dict[str, Any]:
    one = row(draw)
    numbers = draw.random() < 0.7
    made = {name: one[role] for role, name in header(draw)}
    for name in ("lat", "lng"):
        if numbers and name in made:
            made[name] = float(LAT if name == "lat" else LNG)
    return made


def _place(draw: Random) -> list[Any]:
    if draw.random() < 0.85:
        return [float(LNG), float(LAT)]
    return [draw.choice((*FLOATS, *EDGES, float(LAT), None, LAT, True, [1])) for _ in range(draw.randrange(5))]


def _geometry(draw: Random) -> Any:
    kind = draw.choice(("Point",) * 8 + ("LineString", "MultiLineString", "MultiPoint", "Polygon", "point", []))
    if kind in ("Point", "point"):
        return {"type": kind, "coordinates": _place(draw)}
    line = [_place(draw), _place(draw)]
    return {"type": kind, "coordinates": [line] if kind == "MultiLineString" and draw.random() < 0.8 else line}


def _moving(draw: Random) -> dict[str, Any]:
    """Return a feature that moves, as MF-JSON has it."""
    times = draw.choice((["2026-03-01T08:00:00Z", "2026-03-01T09:00:00Z"], [1, 2], ["x"], None, {}))
    path = {
        "type": draw.choice(("MovingPoint", "MovingGeomPoint")),
        "coordinates": [_place(draw), _place(draw)],
        "datetimes": times,
    }
    if draw.random() < 0.4:
        path = {"type": "MovingPoint", "sequences": draw.choice(([path, path], [path, 1], path, "x"))}
    return {"type": "Feature", "properties": {"uid": CANARY}, "temporalGeometry": path, "geometry": None}


def _feature(draw: Random) -> dict[str, Any]:
    if draw.random() < 0.15:
        return _moving(draw)
    one = row(draw)
    moment: Any = one["time"] if draw.random() < 0.5 else 1_772_352_000 + draw.randrange(100_000)
    properties = {"uid": one["user"], "time": moment}
    if draw.random() < 0.1:
        properties[draw.choice(("times", "coordTimes", "coordinateProperties"))] = draw.choice(
            ([1, 2], [[1, 2]], {}, 3)
        )
    return {"type": "Feature", "properties": properties, "geometry": _geometry(draw)}


def _collection(draw: Random, made: list[Any]) -> bytes:
    whole = {"type": "FeatureCollection", "features": made}
    if draw.random() < 0.2:
        whole = draw.choice(
            ({"features": made, **whole}, {"crs": value(draw), **whole}, {**whole, "bbox": [1, 2, 3, 4]})
        )
    if draw.random() < 0.3:
        whole = tree(draw, whole)
    return as_json(draw, whole)


def _fix(draw: Random) -> str:
    moment = f"<time>2026-03-0{draw.randint(1, 9)}T{CLOCK}Z</time>"
    inside = draw.choice((moment,) * 8 + ("", "<time/>", moment * 2))
    return f'<trkpt lat="{row(draw)["lat"]}" lon="{LNG}">{inside}</trkpt>'


def _gpx(draw: Random) -> bytes:
    before = draw.choice(
        ('<?xml version="1.0"?>',) * 6
        + ("", '<?xml version="1.0" encoding="utf-7"?>', '<!DOCTYPE a [<!ENTITY b "c">]>')
    )
    space = draw.choice(("", ' xmlns="http://www.topografix.com/GPX/1/1"'))
    fixes = "".join(_fix(draw) for _ in range(draw.choice((0, 1, 5))))
    deep = draw.choice((0,) * 30 + (5_000,))
    name = draw.choice(
        ("", f"<name>{CANARY}</name>", "<extensions><a>&b;</a></extensions>", "<!-- -->", "<![CDATA[x]]>")
    )
    return f"{before}<gpx{space}>{'<a>' * deep}{'</a>' * deep}<trk>{name}<trkseg>{fixes}</trkseg></trk></gpx>".encode()


def draw_objects(draw: Random) -> Case:
    n, what = draw.choice((0, 1, 4, 4)), draw.randrange(8)
    chosen = options(draw)
    if what < 2:
        made: Any = [_record(draw) for _ in range(n)]
        data, name = as_json(draw, tree(draw, made) if n and draw.random() < 0.4 else made), "a.json"
    elif what < 4:
        data, name = b"\n".join(as_json(draw, _record(draw)) for _ in range(n)), draw.choice(("a.jsonl", "a.ndjson"))
    elif what < 6:
        data, name = (
            _collection(draw, [_feature(draw) for _ in range(n)]),
            draw.choice(("a.geojson", "a.geojson", "a.json")),
        )
    elif what == 6:
        data, name = (
            b"\n".join(json.dumps(_feature(draw)).encode() for _ in range(n)),
            draw.choice(("a.geojsonl", "a.geojsons")),
        )
    else:
        data, name = (
            _gpx(draw),
            f"a{draw.choice(('', draw.choice(TEXTS).replace('/', '').replace(chr(0), '')))}.gpx"[:80],
        )
        chosen = {**chosen, "columns": "user=@file"}
    if draw.random() < 0.25:
        data = any_bytes(draw, data, 3)
    if draw.random() < 0.1:
        data = lines(draw, data)
    return Case({name if name.count(CANARY) == 0 else "a.gpx": data}, chosen)


JSON = Kind("json", draw_objects, read_case)
