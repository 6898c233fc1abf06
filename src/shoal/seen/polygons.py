"""The optional polygons of a release: each must be the corners of its box and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.run import LOCAL, Run
from shoal.seen.header import parse_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.file import Batch
    from shoal.seen.findings import Findings
    from shoal.seen.grid import Grid

__all__ = ["Polygons"]

# Well-known binary of a polygon of one ring of five points: order, type, rings, points, coordinates.
_POLYGON = np.dtype([("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4"), ("ring", "<f8", (5, 2))])
_GEO = {"version": "1.1.0", "primary_column": "geometry"}
_COLUMN = {"encoding": "WKB", "geometry_types": ["Polygon"]}


class Polygons:
    """The result of a pass through the polygons of a release.

    Each polygon must equal its box, corner by corner and bit by bit, in one ordering for all rows.
    """

    def __init__(self) -> None:
        self.plain = True
        self.turns = [(np.arange(5) * step + start) % 4 for start in range(4) for step in (1, -1)]
        self.low, self.high = np.full(2, np.inf), np.full(2, -np.inf)

    def look(self, columns: Batch, grid: Grid, run: Run = LOCAL) -> None:
        """Compare some rows' polygons with their boxes."""
        polygons = _parse(columns.geometry)
        if polygons is None or grid.crs is None:
            self.plain = False
            return
        if not len(polygons):
            return
        east = np.stack([columns[name] for name in ("x_min", "x_max", "x_max", "x_min")], axis=1).astype(np.float64)
        north = np.stack([columns[name] for name in ("y_min", "y_min", "y_max", "y_max")], axis=1).astype(np.float64)
        lng, lat = grid.degrees(east.ravel(), north.ravel(), run=run)
        corners = np.stack([lng, lat], axis=1).reshape(-1, 4, 2)
        bits = corners.view(np.int64), polygons.view(np.int64)
        self.turns = [turn for turn in self.turns if np.array_equal(bits[0][:, turn], bits[1])]
        self.low = np.minimum(self.low, corners.min(axis=(0, 1)))
        self.high = np.maximum(self.high, corners.max(axis=(0, 1)))

    def report(self, findings: Findings, geo: bytes | None) -> None:
        """Note what was found, and check the geo metadata."""
        if not self.plain:
            findings.fail("leaks/geometry-form")
            return
        findings.fail_if(not self.turns, "leaks/geometry-corners")
        bounds = [*self.low.tolist(), *self.high.tolist()]
        findings.fail_if(not _plain_geo(geo, bounds), "leaks/geo-metadata")


def _parse(geometry: Any) -> NDArray[np.float64] | None:
    """Return the rings of a column of polygons, straight from its buffers; None if one is not a plain polygon."""
    if geometry.null_count:
        return None
    if not len(geometry):
        return np.empty((0, 5, 2))
    _, offsets, data = geometry.buffers()
    edges = np.frombuffer(offsets, np.int32, len(geometry) + 1, geometry.offset * 4)
    if (np.diff(edges) != _POLYGON.itemsize).any():
        return None
    rows = np.frombuffer(data, _POLYGON, len(geometry), int(edges[0]))
    plain = (rows["order"] == 1) & (rows["kind"] == 3) & (rows["rings"] == 1) & (rows["points"] == 5)
    return np.ascontiguousarray(rows["ring"]) if plain.all() else None


def _plain_geo(geo: bytes | None, bounds: list[float]) -> bool:
    """Return whether the metadata are exactly those of polygons in degrees; they may also have the overall bounds."""
    forms = (_COLUMN, {**_COLUMN, "bbox": bounds})
    return parse_json(geo or b"") in [{**_GEO, "columns": {"geometry": form}} for form in forms]
