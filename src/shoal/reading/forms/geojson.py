"""GeoJSON: points and timed lines with their properties; collections, lists of features (one a line), MF-JSON."""

from __future__ import annotations

import io
import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import TooLarge, UnreadableFile
from shoal.reading.columns import means
from shoal.reading.forms import Brought
from shoal.reading.forms.json_stream import JsonStream
from shoal.reading.forms.rows import RowWriter
from shoal.reading.limits import MAX_PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["bring_geojson"]

_LOOK = 10_000  # rows whose properties are taken for those of all
_TIMES = ("times", "coordTimes", "timestamps", "datetimes")
_POINT = struct.Struct("<BIdd")  # well-known binary: byte order, type, x, y

Row = tuple[bytes | None, dict[str, Any]]


def bring_geojson(path: Path, folder: Path, name: str) -> list[Brought]:
    """Write the points of a GeoJSON file as rows: geometry, properties, and the `id` of the feature as `feature`.

    The positions of lines and moving points are written one by one, with their times. Places are those of the
    geometry; properties that are named like places are left out. Memory: one feature, and some thousand rows. The file
    is read twice if its first features do not have all properties.

    Raises UnreadableFile for what is no GeoJSON, and for areas and lines without times.
    """
    target = folder / "rows.parquet"
    known = _Known(name)
    while not _write(path, target, known):
        target.unlink()
    return [Brought(target)]


@dataclass
class _Known:
    """What is known of a file: the names of its properties, and its CRS if it states one."""

    name: str
    names: dict[str, None] = field(default_factory=dict)
    stated: dict[str, Any] = field(default_factory=dict)

    def learn(self, properties: dict[str, Any]) -> bool:
        """Remember the names of some properties; return whether there were new ones."""
        before = len(self.names)
        self.names.update(dict.fromkeys(properties))
        if len(self.names) > MAX_PROPERTIES:
            raise TooLarge(
                f"{self.name}: more than {MAX_PROPERTIES:,} different properties; keep those for user and time"
            )
        return len(self.names) > before

    def learn_crs(self, crs: Any) -> None:
        """Remember the CRS that a collection or a moving point states; raises UnreadableFile if it differs."""
        named = crs.get("properties") if isinstance(crs, dict) else None
        name = named.get("name") if isinstance(named, dict) else None
        if (crs is not None and not isinstance(name, str)) or self.stated.setdefault("crs", name) != name:
            raise UnreadableFile(f"{self.name}: its `crs` can't be read; transform it to WGS84 (EPSG:4326) first")

    def metadata(self) -> str:
        """Return the metadata that tell the reader where the points are."""
        column = {"encoding": "WKB", "geometry_types": ["Point"], **self.stated}
        return json.dumps({"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}})


def _write(path: Path, target: Path, known: _Known) -> bool:
    """Write the rows of a file; return whether all its properties were known in time."""
    first: list[Row] = []
    late = False
    with path.open("rb") as file, io.TextIOWrapper(file, "utf-8-sig") as text:
        rows = _rows(JsonStream(text, known.name), known)
        for row in rows:
            known.learn(row[1])
            first.append(row)
            if len(first) >= _LOOK:
                break
        names = list(known.names)
        schema = pa.schema([("geometry", pa.binary()), *((name, pa.string()) for name in names)])
        with RowWriter(target, schema) as writer:
            for some in (first, rows):
                for place, properties in some:
                    late |= known.learn(properties)
                    if not late:
                        writer.add((place, *(_text(properties.get(name)) for name in names)))
            writer.note("geo", known.metadata())
    return not late


def _rows(stream: JsonStream, known: _Known) -> Iterator[Row]:
    for what, value in stream.features():
        if what == "feature":
            yield from _points(value, known)
        elif what == "crs":
            known.learn_crs(value)


def _points(feature: Any, known: _Known) -> Iterator[Row]:
    """Yield the points of a feature with its properties."""
    if not isinstance(feature, dict):
        raise UnreadableFile(f"{known.name}: not GeoJSON: it holds no features")
    given = feature.get("properties")
    properties = {name: value for name, value in (given if isinstance(given, dict) else {}).items() if _is_kept(name)}
    if "id" in feature and "feature" not in properties:
        properties["feature"] = feature["id"]
    shape = feature.get("temporalGeometry") or (feature if "type" in feature else None)
    if isinstance(shape, dict) and shape.get("type") in ("MovingPoint", "MovingGeomPoint"):
        if "crs" in shape:
            known.learn_crs(shape["crs"])
        for part in _dicts(shape.get("sequences") or [shape], known):
            yield from _timed(part, part.get("datetimes"), properties, known)
        return
    geometry = feature if feature.get("type") != "Feature" else feature.get("geometry")
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if geometry is None:
        yield None, properties
    elif kind == "Point":
        yield _place(geometry.get("coordinates")), properties
    elif kind in ("LineString", "MultiLineString"):
        yield from _timed(geometry, _times(given), properties, known)
    else:
        raise _unfit(known)


def _dicts(parts: Any, known: _Known) -> list[dict[str, Any]]:
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise _unfit(known)
    return parts


def _is_kept(name: str) -> bool:
    return name != "geometry" and not means(name, "lat", "lng")


def _times(properties: Any) -> Any:
    """Return the list of times that a line's properties hold, as several tools write it; None if there is none."""
    if not isinstance(properties, dict):
        return None
    inner = properties.get("coordinateProperties")
    for holder in (properties, inner if isinstance(inner, dict) else {}):
        for name in _TIMES:
            if isinstance(holder.get(name), list):
                return holder[name]
    return None


def _timed(geometry: dict[str, Any], times: Any, properties: dict[str, Any], known: _Known) -> Iterator[Row]:
    """Yield the positions of a line, each with its time."""
    positions = geometry.get("coordinates")
    if geometry.get("type") == "MultiLineString" and isinstance(positions, list):
        positions = [position for line in positions if isinstance(line, list) for position in line]
        if isinstance(times, list) and times and all(isinstance(some, list) for some in times):
            times = [time for some in times for time in some]
    if not isinstance(positions, list) or not isinstance(times, list) or len(positions) != len(times):
        raise _unfit(known)
    kept = {name: value for name, value in properties.items() if name not in _TIMES and not means(name, "time", "date")}
    for position, time in zip(positions, times, strict=True):
        yield _place(position), {"time": time, **kept}


def _unfit(known: _Known) -> UnreadableFile:
    return UnreadableFile(
        f"{known.name}: holds areas, or lines without a time for each position; give one point for each time and place "
        "of a person, or lines with a property times or coordTimes"
    )


def _place(position: Any) -> bytes | None:
    """Return a position as well-known binary; None if it is none."""
    if not isinstance(position, list) or len(position) < 2:
        return None
    x, y = position[:2]
    if type(x) not in {int, float} or type(y) not in {int, float}:
        return None
    try:
        return _POINT.pack(1, 1, x, y)
    except (OverflowError, struct.error):  # a whole number larger than any float
        return None


def _text(value: Any) -> str | None:
    """Return a property as text; None for lists and objects."""
    if value is None or isinstance(value, str):
        return value
    return None if isinstance(value, list | dict) else json.dumps(value)
