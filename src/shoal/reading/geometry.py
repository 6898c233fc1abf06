"""Geometry: points as geographic software writes them (WKB, WKT, EWKT, structs) become degrees, a column at a time."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, to_arrow_array
from shoal.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = [
    "Geo",
    "Points",
    "PointsOf",
    "geo_of",
    "geo_of_schema",
    "is_point_struct",
    "is_wgs84",
    "known_crs",
    "text_points",
    "wkb_points",
]

_STRUCT = re.compile(r'STRUCT\("?(\w+)"? (?:DOUBLE|FLOAT), "?(\w+)"? (?:DOUBLE|FLOAT)\b.*\)', re.IGNORECASE)
_FIELDS = {("x", "y"), ("lng", "lat"), ("lon", "lat"), ("long", "lat"), ("longitude", "latitude")}
_DEGREES = {0, 4326}  # an SRID of 0 says nothing: then the file's CRS holds, or degrees
_PLAIN_TYPES = ("Point", "MultiPoint", "LineString", "MultiLineString", "Polygon", "MultiPolygon", "GeometryCollection")
_TYPES = {f"{kind}{more}" for kind in _PLAIN_TYPES for more in ("", " Z", " M", " ZM")}
_EWKB_SRID = 0x20000000
_KIND = 0x0FFFFFFF
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_WKT = (
    rf"(?i)^\s*(?:SRID\s*=\s*(?P<srid>\d{{1,6}})\s*;)?\s*POINT\s*(?:ZM|Z|M)?\s*\("
    rf"\s*(?P<x>{_NUMBER})\s+(?P<y>{_NUMBER})(?:\s+{_NUMBER}){{0,2}}\s*\)\s*$"
)
_OTHER = r"(?i)^\s*(?:SRID\s*=\s*\d+\s*;)?\s*(?:MULTI|LINESTRING|POLYGON|GEOMETRYCOLLECTION|CURVE|CIRCULAR|COMPOUND)"
_HEX = r"^\s*(?:[0-9A-Fa-f]{2})+\s*$"
_NIBBLES = np.full(256, 255, np.uint8)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    _NIBBLES[np.frombuffer(_digits, np.uint8)] = np.arange(16, dtype=np.uint8)


@dataclass(frozen=True)
class Geo:
    """What a file says of its column of geometry: the CRS as JSON, if it is stated, and the types of geometry."""

    column: str
    crs: str | None = None
    types: tuple[str, ...] = ()

    def points_of(self, where: str) -> PointsOf:
        """Return a decoder of the column; raises InputError for an unknown CRS, and for lines and areas."""
        if self.types and not any(kind.startswith("Point") for kind in self.types):
            raise InputError(
                f"{where}: its geometry holds {' and '.join(self.types)}, not points; give one row for each time and "
                "place of a person"
            )
        if self.crs is None:
            return PointsOf()
        if self.crs == "null":
            raise InputError(
                f"{where}: its geometry has no CRS; write the file again with one, e.g. in GeoPandas "
                '`frame.set_crs("EPSG:4326")`'
            )
        return PointsOf(known_crs(self.crs, where))


def geo_of_schema(schema: pa.Schema) -> Geo | None:
    """Return what a table says of its points: in its metadata, or in those of a column, as GeoArrow does."""
    for column in schema:
        said = column.metadata or {}
        if said.get(b"ARROW:extension:name", b"").startswith(b"geoarrow."):
            geo = {"primary_column": column.name, "columns": {column.name: {"crs": _crs_of(said)}}}
            return geo_of({b"geo": json.dumps(geo).encode()})
    return geo_of(schema.metadata or {})


def _crs_of(said: Mapping[bytes, bytes]) -> Any:
    """Return the CRS in the metadata of a GeoArrow column; None if none is stated."""
    try:
        return json.loads(said[b"ARROW:extension:metadata"]).get("crs")
    except (KeyError, ValueError, AttributeError, RecursionError):
        return None


def geo_of(metadata: Mapping[bytes, bytes]) -> Geo | None:
    """Return what the metadata of a GeoParquet file say of its points; None if it is no such file.

    >>> geo_of({b"geo": b'{"primary_column": "g", "columns": {"g": {"encoding": "WKB", "geometry_types": ["Point"]}}}'})
    Geo(column='g', crs=None, types=('Point',))
    """
    try:
        geo = json.loads(metadata[b"geo"])
        name = str(geo["primary_column"])
        said = geo["columns"][name]
        types = tuple(str(kind) for kind in said.get("geometry_types", ()) if kind in _TYPES)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None
    if "crs" not in said:
        return Geo(name, None, types)
    return Geo(name, said["crs"] if isinstance(said["crs"], str) else json.dumps(said["crs"], sort_keys=True), types)


@dataclass(frozen=True, eq=False)
class Points:
    """Coordinates of points (NaN where there is no point) and their SRID; `other` if there are other geometries."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    srid: NDArray[np.int64]
    other: bool = False


def wkb_points(values: pa.Array) -> Points:
    """Return the points of an array of WKB or EWKB, in either byte order; NaN for what is no point.

    >>> wkb = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    >>> points = wkb_points(pa.array([wkb, None]))
    >>> points.x.tolist(), points.y.tolist(), points.srid.tolist()
    ([1.0, nan], [2.0, nan], [0, 0])
    """
    values = values.cast(pa.large_binary())
    starts, ends, data = _bytes_of(values)
    x, y = np.full(len(values), np.nan), np.full(len(values), np.nan)
    srid, other = np.zeros(len(values), np.int64), False
    whole = np.flatnonzero((ends - starts >= 5) & (data[np.minimum(starts, len(data) - 1)] <= 1) if len(data) else [])
    little = data[starts[whole]] == 1 if len(whole) else np.zeros(0, np.bool_)
    for order, rows in (("<", whole[little]), (">", whole[~little])):
        if not len(rows):
            continue
        kind = _numbers(data, starts[rows] + 1, f"{order}u4").astype(np.int64)
        has_srid = kind & _EWKB_SRID > 0
        point = (kind & _KIND) % 1000 == 1
        other |= bool((~point).any())
        body = starts[rows] + np.where(has_srid, 9, 5)
        point &= ends[rows] >= body + 16
        at, told = rows[point], rows[point & has_srid]
        x[at] = _numbers(data, body[point], f"{order}f8")
        y[at] = _numbers(data, body[point] + 8, f"{order}f8")
        srid[told] = _numbers(data, starts[told] + 5, f"{order}u4")
    return Points(x, y, srid, other)


def text_points(values: pa.Array) -> Points:
    """Return the points of an array of WKT, EWKT or hexadecimal WKB; NaN for what is no point.

    >>> points = text_points(pa.array(["POINT (1 2)", "SRID=32650;POINT(3 4)", "POINT EMPTY"]))
    >>> points.x.tolist(), points.srid.tolist()
    ([1.0, 3.0, nan], [0, 32650, 0])
    """
    found = pc.extract_regex(values, _WKT)
    x, y = (_floats(pc.struct_field(found, name)) for name in ("x", "y"))
    srid = pc.struct_field(found, "srid")
    srid = pc.fill_null(pc.if_else(pc.equal(srid, ""), "0", srid), "0").cast(pa.int64())
    srid = np.array(from_arrow_array(srid))
    missing = pc.and_(found.is_null(), values.is_valid())
    other = bool(pc.any(pc.match_substring_regex(pc.filter(values, missing), _OTHER)).as_py())
    packed = np.flatnonzero(_mask(pc.match_substring_regex(values, _HEX)))
    if len(packed):
        points = wkb_points(_unhexed(values.take(to_arrow_array(packed))))
        x[packed], y[packed], srid[packed] = points.x, points.y, points.srid
        other |= points.other
    return Points(x, y, srid, other)


@dataclass
class PointsOf:
    """Decodes one column of points into longitude and latitude; remembers whether it met other geometries."""

    crs: str | None = None
    others: bool = field(default=False, init=False)
    # The engine's threads come and go; PROJ keeps something for each thread, so it has one thread of its own.
    _proj: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1), init=False, repr=False)
    _transformers: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def degrees(self, values: Any) -> pa.Array:
        """Return structs (a, b) of longitude and latitude; NaN for what is no point, or no place of its CRS."""
        flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        points = self._points(flat)
        self.others |= points.other
        lng, lat = np.array(points.x), np.array(points.y)
        stated = np.unique(points.srid).tolist()
        for srid in stated:
            rows = points.srid == srid if len(stated) > 1 else slice(None)
            crs = self.crs if srid == 0 else None if srid in _DEGREES else f"EPSG:{srid}"
            if crs is not None and len(lng):
                lng[rows], lat[rows] = self._proj.submit(self._to_degrees, lng[rows], lat[rows], crs).result()
        return pa.StructArray.from_arrays([to_arrow_array(lng), to_arrow_array(lat)], names=["a", "b"])

    def _to_degrees(self, x: Any, y: Any, crs: str) -> tuple[Any, Any]:
        """Return degrees of coordinates in a CRS; NaN where it is not known or has no such place."""
        if crs not in self._transformers:
            self._transformers[crs] = _transformer(crs)
        transformer = self._transformers[crs]
        if transformer is None:  # an SRID that nobody knows
            return np.full(len(x), np.nan), np.full(len(x), np.nan)
        lng, lat = transformer.transform(x, y)
        lost = ~np.isfinite(lng + lat)
        return np.where(lost, np.nan, lng), np.where(lost, np.nan, lat)

    @staticmethod
    def _points(values: pa.Array) -> Points:
        if pa.types.is_struct(values.type):
            fields = (values.type.field(i).name for i in range(2))
            x, y = (_floats(pc.struct_field(values, name)) for name in fields)
            return Points(x, y, np.zeros(len(values), np.int64))
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            return text_points(values)
        return wkb_points(values)


def _transformer(crs: str) -> Any:
    """Return the transform from a CRS to degrees; None if nobody knows the CRS."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        return Transformer.from_crs(crs, "OGC:CRS84", always_xy=True)
    except ProjError:
        return None


def known_crs(crs: Any, where: str) -> str | None:
    """Return a CRS given as text or PROJJSON, as text for `PointsOf`; None for degrees of WGS84.

    Raises InputError where nobody knows it.

    >>> known_crs("EPSG:4326", "a.parquet") is None, known_crs("EPSG:32650", "a.parquet")
    (True, 'EPSG:32650')
    """
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        read = CRS.from_user_input(crs)
    except CRSError:
        raise InputError(
            f"{where}: the CRS of its geometry is not known; transform the points to WGS84 (EPSG:4326) first"
        ) from None
    if is_wgs84(read):
        return None
    authority = read.to_authority(min_confidence=100)
    return ":".join(authority) if authority else str(read.to_wkt())


def is_wgs84(crs: Any) -> bool:
    """Return whether a pyproj CRS has the degrees of WGS84.

    >>> from pyproj import CRS
    >>> is_wgs84(CRS("OGC:CRS84")), is_wgs84(CRS("EPSG:4979")), is_wgs84(CRS("EPSG:4269"))
    (True, True, False)
    """
    return bool(crs.is_geographic) and crs.to_2d().equals(_wgs84(), ignore_axis_order=True)


@lru_cache(maxsize=1)
def _wgs84() -> Any:
    from pyproj import CRS

    return CRS("EPSG:4326")


def _bytes_of(values: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Return where each value of a large_binary array starts and ends in its data; missing values are empty."""
    _, offsets, data = values.buffers()
    edges = np.frombuffer(offsets, np.int64, len(values) + 1, values.offset * 8) if len(values) else np.zeros(1, int)
    bare = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    starts, ends = edges[:-1], edges[1:]
    if values.null_count:
        ends = np.where(_mask(values.is_valid()), ends, starts)
    return starts, ends, bare


def _numbers(data: NDArray[np.uint8], at: NDArray[np.int64], kind: str) -> NDArray[Any]:
    """Return the numbers that begin at some bytes of data."""
    size = np.dtype(kind).itemsize
    return np.ascontiguousarray(data[at[:, None] + np.arange(size)]).view(kind)[:, 0]


def _floats(texts: pa.Array) -> NDArray[np.float64]:
    """Return numbers, written or not; NaN where there is none. The array may be written to."""
    return np.array(from_arrow_array(pc.fill_null(texts.cast(pa.float64()), np.nan)))


def _mask(values: pa.Array) -> NDArray[np.bool_]:
    """Return booleans, False where they are missing."""
    mask: NDArray[np.bool_] = from_arrow_array(pc.fill_null(values.cast(pa.uint8()), 0)) == 1
    return mask


def _unhexed(texts: pa.Array) -> pa.Array:
    """Return the bytes that hexadecimal texts spell; all are valid."""
    texts = pc.utf8_trim_whitespace(texts).cast(pa.large_string()).cast(pa.large_binary())
    starts, ends, data = _bytes_of(texts)
    first, last = (int(starts[0]), int(ends[-1])) if len(texts) else (0, 0)
    nibbles = _NIBBLES[data[first:last]]
    packed = (nibbles[::2] << 4) | nibbles[1::2]
    offsets = np.append(starts, last) - first
    return pa.Array.from_buffers(
        pa.large_binary(), len(texts), [None, pa.py_buffer((offsets // 2).astype(np.int64)), pa.py_buffer(packed)]
    )


def is_point_struct(kind: str) -> bool:
    """Return whether a type of the engine is a struct of longitude and latitude, or x and y, in this order.

    >>> is_point_struct("STRUCT(x DOUBLE, y DOUBLE)"), is_point_struct("STRUCT(xmin FLOAT, ymin FLOAT)")
    (True, False)
    """
    found = _STRUCT.fullmatch(kind)
    return found is not None and (found[1].lower(), found[2].lower()) in _FIELDS
