"""Places: columns of geometry, H3 cells, geohashes and whole trips become longitudes and latitudes in the engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from shoal.errors import ColumnsNotFound
from shoal.reading.codes import CentresOf
from shoal.reading.columns import printable
from shoal.reading.geometry import PointsOf, is_point_struct, known_crs

if TYPE_CHECKING:
    from shoal.reading.columns import Columns
    from shoal.reading.geometry import Geo
    from shoal.reading.parse import Parsed

__all__ = ["DECODED", "decoder_of", "how_to_swap", "no_points", "places_notes", "point_sql", "trips_sql"]

DECODED = ("geometry", "h3", "geohash")  # roles whose columns are decoded
_CODES = {"geohash": {"VARCHAR"}, "h3": {"VARCHAR", "BIGINT", "UBIGINT"}}
_NATIVE = re.compile(r"GEOMETRY(?:\('(.*)'\))?", re.DOTALL)
_NAMES = {"h3": "H3 cells", "geohash": "geohashes"}
# A trip as MobilityDB prints it: [POINT(x y)@time, …], {…}, {[…], (…)}, each with SRID=…; and Interp=…; before it.
_SAMPLE = r"(?i)point\s*z?\s*\([^()@]*\)\s*\"?\s*@[^,\]\)\}]+"
_SRID = r"(?i)^\s*(?:interp=\w+;)?\s*(srid=\d+;)"


def decoder_of(role: str, kind: str, geo: Geo | None, where: str) -> PointsOf | CentresOf:
    """Return the decoder of a column of places, of some type; `geo` is what the file says of it.

    Raises ColumnsNotFound for a type that can't hold places, InputError for a CRS that is not known.
    """
    if role != "geometry":
        if kind not in _CODES[role]:
            raise _wrong(role, kind, where)
        return CentresOf(role, where)
    native = _NATIVE.fullmatch(kind)
    if native is None and kind not in {"BLOB", "VARCHAR"} and not is_point_struct(kind):
        raise _wrong(role, kind, where)
    if geo is not None:
        return geo.points_of(where)
    stated = native[1].replace("''", "'") if native is not None and native[1] else None
    return PointsOf(None if stated is None else known_crs(stated, where))


def _wrong(role: str, kind: str, where: str) -> ColumnsNotFound:
    kind = kind.partition("(")[0]  # a nested type spells out the names of its fields
    return ColumnsNotFound(f"{where}: the column for {role} has type {kind}, which can't hold it; see `columns`")


def point_sql(engine: Any, decoder: PointsOf | CentresOf, column: str, kind: str, number: int) -> str:
    """Give the engine a function that decodes a column of a type; return SQL that applies it."""
    native, name = _NATIVE.fullmatch(kind), f"place_{number}"
    engine.create_function(
        name,
        decoder.degrees,
        ["BLOB" if native else kind],
        "STRUCT(a DOUBLE, b DOUBLE)",
        type="arrow",
        null_handling="special",
    )
    return f"{name}(CAST({column} AS BLOB))" if native else f"{name}({column})"


def trips_sql(table: str, column: str, number: int) -> tuple[str, str, str]:
    """Return SQL for a table with one row for each sample of the trips in a column; its time, and its place as EWKT.

    A text that is no trip from its beginning to its end becomes one sample without time and place.
    """
    samples, sample = f"regexp_extract_all({column}, '{_SAMPLE}')", f"sample_{number}"
    whole = f"len({samples}) > 0 AND len({samples}) = strlen({column}) - strlen(replace({column}, '@', ''))"
    srid = f"regexp_extract({column}, '{_SRID}', 1)"
    rows = f"(SELECT *, {srid} AS srid_{number}, unnest(CASE WHEN {whole} THEN {samples} ELSE [NULL] END) AS {sample} FROM {table})"  # noqa: E501, S608
    at = f"strpos({sample}, '@')"
    time = f"trim(substr({sample}, {at} + 1))"
    place = f"concat(srid_{number}, replace(left({sample}, {at} - 1), '\"', ''))"
    return rows, time, place


def places_notes(parsed: Parsed) -> list[str]:
    """Return what to tell once about how places were read."""
    notes = []
    for system in ("h3", "geohash"):
        widths = [
            decoder.width_m()
            for decoder in parsed.decoders
            if isinstance(decoder, CentresOf) and decoder.system == system
        ]
        if known := [width for width in widths if width is not None]:
            notes.append(f"places are centres of {_NAMES[system]}, about {_metres(max(known))} wide")
    if any(isinstance(decoder, PointsOf) and decoder.others for decoder in parsed.decoders):
        notes.append("geometries other than points were not read")
    if parsed.columns.trip is not None:
        notes.append("each row holds a trip; its samples were read, nothing between them")
    return notes


def how_to_swap(columns: Columns) -> str:
    """Return what to do where latitude and longitude are exchanged."""
    if "geometry" in columns.of:
        return "write the longitude of each point before its latitude"
    lat, lng = (printable(columns.of[role]) for role in ("lat", "lng"))
    return f'give `columns="lat={lng},lng={lat}"`'


def no_points(parsed: Parsed) -> str:
    """Return what to add to the message that no row can be used, if that is because of lines or areas."""
    others = any(isinstance(decoder, PointsOf) and decoder.others for decoder in parsed.decoders)
    return "; the column of geometry holds lines or areas: give one point for each row" if others else ""


def _metres(width: float) -> str:
    """Return a width with two digits.

    >>> _metres(858.7), _metres(1223.0), _metres(0.9)
    ('860 m', '1.2 km', '0.9 m')
    """
    rounded = float(f"{width:.2g}")
    return f"{rounded / 1000:g} km" if rounded >= 1000 else f"{rounded:g} m"
