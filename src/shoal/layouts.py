"""Layouts: the rows of a record, boxes or points, and how they become published columns.

Generic code asks a layout what it can do, never which layout it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.errors import SettingsError, TooLarge
from shoal.units import INT32

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.frame import Frame

    Edges = tuple[NDArray[np.int64], ...]

__all__ = ["DECIMALS", "TIME", "Boxes", "Layout", "Points"]

DECIMALS = 7  # of published degrees: a centimetre; further digits could only carry hidden information
TIME = pa.timestamp("ms", tz="UTC")
# Well-known binary, little-endian: a polygon (type 3) of one ring of five points, and a point (type 1).
_WKB = np.dtype([("order", "u1"), ("kind", "<u4"), ("rings", "<u4"), ("points", "<u4"), ("ring", "<f8", (5, 2))])
_WKB_POINT = np.dtype([("order", "u1"), ("kind", "<u4"), ("place", "<f8", 2)])


class Layout(Protocol):
    """The rows of all records, one record after the other.

    `name` is what rows are called, `shape` the type of geometry of a row on a map.
    `traced` says whether it is made of traces of fixes, some of which may be discarded.
    `encoding` are the options with which Parquet holds such columns in little room.
    """

    name: ClassVar[str]
    shape: ClassVar[str]
    traced: ClassVar[bool]
    encoding: ClassVar[dict[str, Any]]

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        ...

    def empty(self, n: int) -> Self:
        """Return room for n rows."""
        ...

    def put(self, start: int, stop: int, source: Self, rows: NDArray[np.int64]) -> None:
        """Fill the rows from start to stop with some rows of another object of the same layout."""
        ...

    def period_s(self, frame: Frame) -> tuple[int, int]:
        """Return the first and the last UTC second that any row covers."""
        ...

    def columns(self, frame: Frame, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the published columns of some rows."""
        ...

    def geometry(self, frame: Frame, rows: NDArray[np.int64]) -> pa.Array:
        """Return some rows as WGS84 polygons or points (WKB); raises SettingsError where they can't be drawn."""
        ...

    def precision(self, frame: Frame) -> dict[str, float]:
        """Return figures of how precise the rows are; none where they have no size."""
        ...


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes in space and time: an (m, 6) int32 array `t0, t1, x0, x1, y0, y1` of inclusive granules of the frame."""

    name: ClassVar[str] = "boxes"
    shape: ClassVar[str] = "Polygon"
    traced: ClassVar[bool] = False
    encoding: ClassVar[dict[str, Any]] = {}  # boxes share edges, which dictionaries hold once

    edges: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.edges)

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        return self.edges.nbytes

    def empty(self, n: int) -> Boxes:
        """Return room for n boxes."""
        return Boxes(np.empty((n, 6), self.edges.dtype))

    def put(self, start: int, stop: int, source: Boxes, rows: NDArray[np.int64]) -> None:
        """Fill the boxes from start to stop with some of another layout's."""
        self.edges[start:stop] = source.edges[rows]

    def period_s(self, frame: Frame) -> tuple[int, int]:
        """Return the first and the last UTC second that any box covers."""
        first, last = frame.epoch_s(np.array([self.edges[:, 0].min(), self.edges[:, 1].max()])).tolist()
        return first, last

    def columns(self, frame: Frame, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the published columns: half-open edges in seconds and metres, and the middle of each box.

        Without a CRS there are no degrees. Raises TooLarge if metres do not fit 32 bits.
        """
        start_s, end_s, west, east, south, north = edges = self._half_open(frame, rows)
        if len(west) and max(int(np.abs(edge).max()) for edge in edges[2:]) > INT32:
            raise TooLarge("box edges do not fit 32-bit metres; use a CRS whose origin is closer to the data")
        columns: dict[str, pa.Array] = {
            "t_start": to_arrow_array(start_s * 1000).cast(TIME),
            "t_end": to_arrow_array(end_s * 1000).cast(TIME),
            "x_min": to_arrow_array(west.astype(np.int32)),
            "y_min": to_arrow_array(south.astype(np.int32)),
            "x_max": to_arrow_array(east.astype(np.int32)),
            "y_max": to_arrow_array(north.astype(np.int32)),
            "datetime": to_arrow_array((start_s + end_s) * 500).cast(TIME),
        }
        if frame.crs is not None:
            lng, lat = frame.degrees((west + east) / 2, (south + north) / 2)
            columns |= {"lat": to_arrow_array(lat), "lng": to_arrow_array(lng)}
        return columns

    def geometry(self, frame: Frame, rows: NDArray[np.int64]) -> pa.Array:
        """Return the corners of some boxes in degrees as WKB, counter-clockwise."""
        if frame.crs is None:
            raise SettingsError("polygons need geography: this data came as grid cells without a CRS")
        _, _, west, east, south, north = self._half_open(frame, rows)
        wkb = np.zeros(len(west), _WKB)
        wkb["order"], wkb["kind"], wkb["rings"], wkb["points"] = 1, 3, 1, 5
        corners = ((west, south), (east, south), (east, north), (west, north), (west, south))
        for n, (easting, northing) in enumerate(corners):
            lng, lat = frame.degrees(easting.astype(np.float64), northing.astype(np.float64))
            wkb["ring"][:, n, 0], wkb["ring"][:, n, 1] = lng, lat
        return _binary(wkb)

    def spans(self, frame: Frame) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each box's mean side (Δx+Δy)/2 in metres and its duration in seconds."""
        t0, t1, x0, x1, y0, y1 = self.edges.T.astype(np.float64)
        side = ((x1 - x0 + 1) + (y1 - y0 + 1)) / 2 * frame.cell_m
        return side, (t1 - t0 + 1) * frame.slot_s

    def precision(self, frame: Frame) -> dict[str, float]:
        """Return the median and mean side and duration of a box."""
        side_m, duration_s = self.spans(frame)
        return {
            "side_m_median": float(np.median(side_m)),
            "side_m_mean": float(side_m.mean()),
            "duration_s_median": float(np.median(duration_s)),
            "duration_s_mean": float(duration_s.mean()),
        }

    def _half_open(self, frame: Frame, rows: NDArray[np.int64]) -> Edges:
        """Return the half-open edges of some boxes: start and end in seconds, west, east, south, north in metres."""
        t0, t1, x0, x1, y0, y1 = self.edges[rows].T.astype(np.int64)
        metres = (edge * frame.cell_m for edge in (x0, x1 + 1, y0, y1 + 1))
        return (frame.epoch_s(t0), frame.epoch_s(t1 + 1), *metres)


@dataclass(frozen=True, eq=False)
class Points:
    """Places and times: `ms` (UTC milliseconds), `lng` and `lat` (WGS84 degrees, at most seven decimals)."""

    name: ClassVar[str] = "points"
    shape: ClassVar[str] = "Point"
    traced: ClassVar[bool] = True
    # Points share almost nothing but their steps.
    encoding: ClassVar[dict[str, Any]] = {
        "use_dictionary": ["uid"],
        "column_encoding": {"datetime": "DELTA_BINARY_PACKED"},
    }

    ms: NDArray[np.int64]
    lng: NDArray[np.float64]
    lat: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ms)

    @property
    def nbytes(self) -> int:
        """How much memory the rows take."""
        return self.ms.nbytes + self.lng.nbytes + self.lat.nbytes

    def empty(self, n: int) -> Points:
        """Return room for n points."""
        return Points(np.empty(n, self.ms.dtype), np.empty(n, self.lng.dtype), np.empty(n, self.lat.dtype))

    def put(self, start: int, stop: int, source: Points, rows: NDArray[np.int64]) -> None:
        """Fill the points from start to stop with some of another layout's."""
        self.ms[start:stop], self.lng[start:stop] = source.ms[rows], source.lng[rows]
        self.lat[start:stop] = source.lat[rows]

    def period_s(self, frame: Frame) -> tuple[int, int]:  # noqa: ARG002  points are not on the grid
        """Return the first and the last UTC second of any point."""
        return int(self.ms.min()) // 1000, int(self.ms.max()) // 1000

    def columns(self, frame: Frame, rows: NDArray[np.int64]) -> dict[str, pa.Array]:  # noqa: ARG002
        """Return the published columns: time, latitude, longitude."""
        return {
            "datetime": to_arrow_array(self.ms[rows]).cast(TIME),
            "lat": to_arrow_array(self.lat[rows]),
            "lng": to_arrow_array(self.lng[rows]),
        }

    def geometry(self, frame: Frame, rows: NDArray[np.int64]) -> pa.Array:  # noqa: ARG002
        """Return some points as WKB."""
        wkb = np.zeros(len(rows), _WKB_POINT)
        wkb["order"], wkb["kind"] = 1, 1
        wkb["place"][:, 0], wkb["place"][:, 1] = self.lng[rows], self.lat[rows]
        return _binary(wkb)

    def precision(self, frame: Frame) -> dict[str, float]:  # noqa: ARG002
        """Return nothing: a point has no size."""
        return {}


def _binary(rows: NDArray[Any]) -> pa.Array:
    """Return records of equal size as an array of bytes; nothing is copied."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * np.int32(rows.dtype.itemsize)
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(rows)])
