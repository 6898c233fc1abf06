"""The optional geometry of a release: each must be the corners of its box, or its point, and nothing else."""

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

__all__ = ["PlainPoints", "Polygons"]

# Well-known binary of a polygon of one ring of five points: order, type, rings, points, coordinates.
_POLYGON = np.dtype([("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4"), ("ring", "<f8", (5, 2))])
_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("place", "<f8", 2)])
_GEO = {"version": "1.1.0", "primary_column": "geometry"}


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
        polygons = _rings(columns.geometry)
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
        findings.fail_if(not _plain_geo(geo, "Polygon", bounds), "leaks/geo-metadata")


class PlainPoints:
    """The result of a pass through the points of a release as geometry: each must equal its degrees, bit by bit."""

    def __init__(self) -> None:
        self.plain = self.equal = True
        self.low, self.high = np.full(2, np.inf), np.full(2, -np.inf)

    def look(self, columns: Batch) -> None:
        """Compare some rows' geometry with their degrees."""
        rows = _parse(columns.geometry, _POINT)
        if rows is None or not ((rows["order"] == 1) & (rows["kind"] == 1)).all():
            self.plain = False
            return
        if not len(rows):
            return
        places = np.stack([columns["lng"], columns["lat"]], axis=1)
        self.equal &= np.array_equal(places.view(np.int64), np.ascontiguousarray(rows["place"]).view(np.int64))
        self.low, self.high = np.minimum(self.low, places.min(axis=0)), np.maximum(self.high, places.max(axis=0))

    def report(self, findings: Findings, geo: bytes | None) -> None:
        """Note what was found, and check the geo metadata."""
        if not self.plain:
            findings.fail("leaks/geometry-form")
            return
        findings.fail_if(not self.equal, "leaks/geometry-corners")
        bounds = [*self.low.tolist(), *self.high.tolist()]
        findings.fail_if(not _plain_geo(geo, "Point", bounds), "leaks/geo-metadata")


def _rings(geometry: Any) -> NDArray[np.float64] | None:
    """Return the rings of a column of polygons; None if one is not a plain polygon."""
    rows = _parse(geometry, _POLYGON)
    if rows is None:
        return None
    plain = (rows["order"] == 1) & (rows["kind"] == 3) & (rows["rings"] == 1) & (rows["points"] == 5)
    return np.ascontiguousarray(rows["ring"]) if plain.all() else None


def _parse(geometry: Any, form: np.dtype[Any]) -> NDArray[Any] | None:
    """Return a column of geometry as records, straight from its buffers; None if one has another size."""
    if geometry.null_count:
        return None
    if not len(geometry):
        return np.empty(0, form)
    _, offsets, data = geometry.buffers()
    edges = np.frombuffer(offsets, np.int32, len(geometry) + 1, geometry.offset * 4)
    if (np.diff(edges) != form.itemsize).any():
        return None
    return np.frombuffer(data, form, len(geometry), int(edges[0]))


def _plain_geo(geo: bytes | None, kind: str, bounds: list[float]) -> bool:
    """Return whether the metadata are exactly those of geometry in degrees; they may also have the overall bounds."""
    column = {"encoding": "WKB", "geometry_types": [kind]}
    forms = (column, {**column, "bbox": bounds})
    return parse_json(geo or b"") in [{**_GEO, "columns": {"geometry": form}} for form in forms]
