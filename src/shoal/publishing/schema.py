"""The published table: from boxes of granules, or points, to the columns of the release format, and back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.errors import SettingsError, TooLarge, UnreadableFile
from shoal.frame import Frame
from shoal.lists import even_ranges, take_lists
from shoal.points import PointRelease
from shoal.release import Claim, Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.release import Tabular

    Edges = tuple[NDArray[np.int64], ...]

__all__ = ["FORMAT", "describe", "release_batches", "release_from_table", "release_table"]

FORMAT = 1
_TIME = pa.timestamp("ms", tz="UTC")
_BATCH = 1 << 20
# A WKB polygon: little-endian, type 3, one ring of five points.
_WKB = np.dtype([("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4"), ("ring", "<f8", (5, 2))])


def describe(release: Release | PointRelease) -> dict[str, Any]:
    """Return the public description of a release: the `shoal` object of its metadata and manifest."""
    return {
        "format": FORMAT,
        "method": release.method,
        "parameters": release.parameters,
        "claim": release.claim.to_dict(),
        "cell_m": release.frame.cell_m,
        "slot_s": release.frame.slot_s,
        "crs": release.frame.crs,
    }


def release_table(release: Tabular, *, geo: bool = False) -> pa.Table:
    """Return the table that is published, one row per box, sorted by (uid, t_start); metadata key `shoal`.

    Edges are half-open metres and seconds; `datetime, lat, lng` are the middle of each box. Without a CRS there
    are no degrees. `geo` adds the box as a WGS84 polygon (GeoParquet). Points have `uid, datetime, lat, lng` only.
    Cost: linear.
    """
    return pa.concat_tables(release_batches(release, geo=geo))


def release_batches(
    release: Tabular, order: NDArray[np.int64] | None = None, *, geo: bool = False
) -> Iterator[pa.Table]:
    """Return `release_table` in pieces of about a million rows, at least one; record `order[n]` gets the number n."""
    if not isinstance(release, Release | PointRelease):
        raise TypeError("a release is boxes or points")
    order = np.arange(len(release)) if order is None else order
    for start, stop in even_ranges(np.diff(release.offsets)[order], _BATCH) or [(0, 0)]:
        offsets, rows = take_lists(release.offsets, order[start:stop])
        uid = np.repeat(np.arange(start, stop, dtype=np.int64), np.diff(offsets))
        columns, metadata = {"uid": to_arrow_array(uid)}, {"shoal": json.dumps(describe(release))}
        if isinstance(release, PointRelease):
            columns |= _point_columns(release, rows)
        else:
            edges = _edges(release, rows)
            columns |= _box_columns(release.frame, edges)
            if release.multiplicity is not None:
                columns["count"] = to_arrow_array(release.multiplicity[order[uid]].astype(np.int32))
            if geo:
                columns["geometry"] = _polygons(release.frame, edges)
                metadata["geo"] = json.dumps(_GEO)
        yield pa.table(columns).replace_schema_metadata(metadata)


def _point_columns(release: PointRelease, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
    return {
        "datetime": to_arrow_array(release.ms[rows]).cast(_TIME),
        "lat": to_arrow_array(release.lat[rows]),
        "lng": to_arrow_array(release.lng[rows]),
    }


def _box_columns(frame: Frame, edges: Edges) -> dict[str, pa.Array]:
    start_s, end_s, west, east, south, north = edges
    if len(west) and max(int(np.abs(edge).max()) for edge in (west, east, south, north)) >= 2**31:
        raise TooLarge("box edges do not fit 32-bit metres; use a CRS whose origin is closer to the data")
    columns: dict[str, pa.Array] = {
        "t_start": to_arrow_array(start_s * 1000).cast(_TIME),
        "t_end": to_arrow_array(end_s * 1000).cast(_TIME),
        "x_min": to_arrow_array(west.astype(np.int32)),
        "y_min": to_arrow_array(south.astype(np.int32)),
        "x_max": to_arrow_array(east.astype(np.int32)),
        "y_max": to_arrow_array(north.astype(np.int32)),
        "datetime": to_arrow_array((start_s + end_s) * 500).cast(_TIME),
    }
    if frame.crs is not None:
        lng, lat = frame.degrees((west + east) / 2, (south + north) / 2)
        columns |= {"lat": to_arrow_array(lat), "lng": to_arrow_array(lng)}
    return columns


def _edges(release: Release, rows: NDArray[np.int64]) -> Edges:
    """Return the half-open edges of some boxes: start and end in seconds, west, east, south, north in metres."""
    frame = release.frame
    t0, t1, x0, x1, y0, y1 = release.boxes[rows].T.astype(np.int64)
    metres = (edge * frame.cell_m for edge in (x0, x1 + 1, y0, y1 + 1))
    return (frame.epoch_s(t0), frame.epoch_s(t1 + 1), *metres)


_GEO = {
    "version": "1.1.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Polygon"]}},
}


def _polygons(frame: Frame, edges: Edges) -> pa.Array:
    """Return the corners of some boxes in degrees as WKB, counter-clockwise."""
    if frame.crs is None:
        raise SettingsError("polygons need geography: this data came as grid cells without a CRS")
    _, _, west, east, south, north = edges
    wkb = np.zeros(len(west), _WKB)
    wkb["order"], wkb["kind"], wkb["rings"], wkb["points"] = 1, 3, 1, 5
    corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
    for n, (easting, northing) in enumerate(corners):
        lng, lat = frame.degrees(easting.astype(np.float64), northing.astype(np.float64))
        wkb["ring"][:, n, 0], wkb["ring"][:, n, 1] = lng, lat
    offsets = np.arange(len(wkb) + 1, dtype=np.int32) * np.int32(_WKB.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(wkb), [None, pa.py_buffer(offsets), pa.py_buffer(wkb)])


def release_from_table(
    table: pa.Table, shoal: dict[str, Any], counts: dict[str, Any], *, seeded: bool = False
) -> Release | PointRelease:
    """Rebuild a release from the published table, its `shoal` object and the manifest's counts."""
    try:
        uid = _numbers(table, "uid")
        common = {
            "offsets": np.searchsorted(uid, np.arange(int(uid[-1]) + 2 if len(uid) else 1)),
            "frame": Frame(crs=shoal["crs"], cell_m=int(shoal["cell_m"]), slot_s=int(shoal["slot_s"])),
            "method": shoal["method"],
            "parameters": shoal["parameters"],
            "claim": Claim.from_dict(shoal["claim"]),
            "suppressed": int(counts.get("samples_suppressed", 0)),
        }
        if table.column_names == ["uid", "datetime", "lat", "lng"]:
            created = int(counts.get("samples_created", 0))
            return PointRelease(**_points_of(table), **common, created=created, seeded=seeded)
        samples = int(counts.get("samples_published", 0))
        return Release(**_boxes_of(table, common["frame"], common["offsets"]), **common, samples=samples)
    except (KeyError, TypeError, ValueError):
        raise UnreadableFile("the file lacks columns or metadata of a shoal release") from None


def _boxes_of(table: pa.Table, frame: Frame, offsets: NDArray[np.int64]) -> dict[str, Any]:
    """Return the boxes in granules, half-open to inclusive, and how many records each one stands for."""
    edges = [_numbers(table, name) for name in ("t_start", "t_end", "x_min", "x_max", "y_min", "y_max")]
    steps = (frame.slot_s * 1000, frame.slot_s * 1000, *[frame.cell_m] * 4)
    boxes = np.stack([edge // step for edge, step in zip(edges, steps, strict=True)], axis=1)
    boxes[:, 1::2] -= 1
    multiplicity = _numbers(table, "count")[offsets[:-1]].astype(np.int32) if "count" in table.column_names else None
    return {"boxes": boxes.astype(np.int32), "multiplicity": multiplicity}


def _points_of(table: pa.Table) -> dict[str, Any]:
    lng, lat = (table[name].cast(pa.float64()).to_numpy() for name in ("lng", "lat"))
    return {"ms": _numbers(table, "datetime"), "lng": lng, "lat": lat}


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz="UTC"))
    numbers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return numbers
