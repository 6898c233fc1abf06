"""The optional polygons of a release: each must be the corners of its box and nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verifier.grid import Grid
    from shoal.verifier.published import Columns
    from shoal.verifier.verdict import Findings

__all__ = ["check_geometry"]

# Well-known binary of a polygon of one ring of five points: order, type, rings, points, coordinates.
_POLYGON = np.dtype([("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4"), ("ring", "<f8", (5, 2))])
_COLUMN_KEYS = {"encoding", "geometry_types", "crs", "edges", "orientation", "bbox"}


def check_geometry(findings: Findings, columns: Columns, grid: Grid, geo: bytes | None) -> None:
    """Check that each polygon is its box, corner by corner and bit by bit, in one ordering for all rows."""
    polygons = _parse(columns.geometry)
    if polygons is None or grid.crs is None:
        findings.fail("leaks", "The geometry is not a column of plain boxes.")
        return
    east = np.stack([columns[name] for name in ("x_min", "x_max", "x_max", "x_min")], axis=1).astype(np.float64)
    north = np.stack([columns[name] for name in ("y_min", "y_min", "y_max", "y_max")], axis=1).astype(np.float64)
    lng, lat = grid.degrees(east.ravel(), north.ravel())
    corners = np.stack([lng, lat], axis=1).reshape(-1, 4, 2)
    turns = [(np.arange(5) * step + start) % 4 for start in range(4) for step in (1, -1)]
    fits = any(np.array_equal(corners[:, turn].view(np.int64), polygons.view(np.int64)) for turn in turns)
    findings.fail_if(not fits, "leaks", "Geometries are not the corners of their boxes.")
    findings.fail_if(not _plain_geo(geo, corners), "leaks", "The geo metadata holds more than the format needs.")


def _parse(geometry: Any) -> NDArray[np.float64] | None:
    """Give the rings of a column of polygons, straight from its buffers; None if one is not a plain polygon."""
    rings = [np.empty((0, 5, 2))]
    for chunk in geometry.chunks:
        if chunk.null_count:
            return None
        if not len(chunk):
            continue
        _, offsets, data = chunk.buffers()
        edges = np.frombuffer(offsets, np.int32, len(chunk) + 1, chunk.offset * 4)
        if (np.diff(edges) != _POLYGON.itemsize).any():
            return None
        rows = np.frombuffer(data, _POLYGON, len(chunk), int(edges[0]))
        plain = (rows["order"] == 1) & (rows["kind"] == 3) & (rows["rings"] == 1) & (rows["points"] == 5)
        if not plain.all():
            return None
        rings.append(rows["ring"])
    return np.concatenate(rings)


def _plain_geo(geo: bytes | None, corners: NDArray[np.float64]) -> bool:
    try:
        stated = json.loads(geo or b"")
    except (ValueError, RecursionError):
        return False
    if not isinstance(stated, dict) or set(stated) != {"version", "primary_column", "columns"}:
        return False
    column = stated["columns"].get("geometry") if isinstance(stated["columns"], dict) else None
    if not isinstance(column, dict) or set(stated["columns"]) != {"geometry"} or not set(column) <= _COLUMN_KEYS:
        return False
    if not len(corners):
        return "bbox" not in column
    bounds = [*corners.min(axis=(0, 1)).tolist(), *corners.max(axis=(0, 1)).tolist()]
    return bool(column.get("bbox", bounds) == bounds)
