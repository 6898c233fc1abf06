"""Tracks: published places (in degrees) and times; a box counts as its middle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.arrow import from_arrow_array
from shoal.errors import CannotCheck
from shoal.seen.arrays import fresh, spread
from shoal.seen.file import BOX, POINT, typed_loosely
from shoal.seen.grid import Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release import Release
    from shoal.seen.file import File

__all__ = ["Track", "track_of_file", "track_of_release"]

_NOTHING: NDArray[Any] = np.empty(0)
_NO_DEGREES = "the release has no points in degrees: it needs the columns uid, datetime, lat, lng"


@dataclass(frozen=True, eq=False)
class Track:
    """Places and times: list r is rows `offsets[r]:offsets[r+1]` of `ms`, `lng`, `lat`, in order of time.

    `covered` is the first and the last millisecond of the boxes that the places are the middles of, if they are.
    """

    offsets: NDArray[np.int64]
    ms: NDArray[np.int64]
    lng: NDArray[np.float64]
    lat: NDArray[np.float64]
    covered: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def fixes(self) -> int:
        """How many places and times there are in all."""
        return len(self.ms)

    @property
    def nbytes(self) -> int:
        """How many bytes the places and times take."""
        return self.offsets.nbytes + self.ms.nbytes + self.lng.nbytes + self.lat.nbytes

    @property
    def seconds(self) -> tuple[int, int]:
        """The first and the last second."""
        first, last = self.covered or ((self.ms.min(), self.ms.max()) if len(self.ms) else (0, 0))
        return int(first) // 1000, int(last) // 1000


def track_of_file(file: File) -> tuple[NDArray[np.int64], Track]:
    """Return the numbers and points of a file's records: `uid, datetime, lat, lng` of any release with degrees.

    Raises CannotCheck if these can't be read.
    """
    if not set(POINT) <= set(file.names) or len(set(file.names)) < len(file.names):
        raise CannotCheck(_NO_DEGREES)
    names = [*POINT, *(name for name in BOX[:2] if name in file.names)]
    parts: list[list[NDArray[Any]]] = [[] for _ in POINT]
    covered: list[int] = []
    for batch in file.batches(names):
        try:
            typed = typed_loosely(batch.select(names))
        except pa.ArrowException:
            raise CannotCheck("the columns uid, datetime, lat, lng of the release can't be read") from None
        for part, name in zip(parts, POINT, strict=True):
            part.append(_plain(typed[name]))
        for name in names[len(POINT) :]:
            edges = _plain(typed[name])
            covered += [int(edges.min()), int(edges.max())] if len(edges) else []
    uid, ms, lat, lng = (np.concatenate(part) if part else _NOTHING for part in parts)
    uids, track = _by_record(uid, ms, lng, lat)
    return uids, replace(track, covered=(min(covered), max(covered)) if covered else None)


def track_of_release(release: Release) -> tuple[NDArray[np.int64], Track]:
    """Return the numbers and points of the records of a release in memory; numbers follow their order there."""
    uid = spread(np.diff(release.offsets))
    return _by_record(uid, *_PLACES[release.layout.name](release))


def _places_of_points(release: Release) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    points = release.points
    return points.ms, points.lng, points.lat


def _places_of_boxes(release: Release) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the middles of boxes; edges are half-open."""
    frame = release.frame
    if frame.crs is None:
        raise CannotCheck(_NO_DEGREES)
    edges = release.boxes.reshape(-1, 6).astype(np.int64)
    edges[:, 1::2] += 1
    edges[:, :2] += frame.origin_slot
    ms = (edges[:, 0] + edges[:, 1]) * (frame.slot_s * 500)
    east, north = ((edges[:, low] + edges[:, low + 1]) * frame.cell_m / 2 for low in (2, 4))
    return ms, *Grid(frame.crs, frame.cell_m, frame.slot_s).degrees(east, north)


_PLACES = {"boxes": _places_of_boxes, "points": _places_of_points}


def _plain(column: Any) -> NDArray[Any]:
    if column.null_count:
        raise CannotCheck("the release has missing values; check it with shoal verify")
    return from_arrow_array(column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column)


def _by_record(
    uid: NDArray[np.int64], ms: NDArray[np.int64], lng: NDArray[np.float64], lat: NDArray[np.float64]
) -> tuple[NDArray[np.int64], Track]:
    """Sort rows by record and time, if they are not sorted."""
    if not len(uid) or not (np.isfinite(lat).all() and np.isfinite(lng).all()):
        raise CannotCheck("the release has no points, or some that are no places")
    later = (uid[1:] > uid[:-1]) | ((uid[1:] == uid[:-1]) & (ms[1:] >= ms[:-1]))
    if not later.all():
        order = np.lexsort((ms, uid))
        uid, ms, lng, lat = uid[order], ms[order], lng[order], lat[order]
    starts = np.flatnonzero(fresh(uid))
    return uid[starts], Track(np.append(starts, len(uid)), ms, lng, lat)
