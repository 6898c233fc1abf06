"""Granules: the frame that fits the data, and events on its grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import SettingsError
from shoal.frame import Frame, floor_cells, local_crs, transformer
from shoal.lists import ranges_of
from shoal.reading.project import project_cells, projection_table
from shoal.units import INT32

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.reading.events import Events
    from shoal.reading.options import ReadOptions
    from shoal.reading.spread import Spread
    from shoal.run import Run

__all__ = ["central_crs", "choose_crs", "cut_open", "granules", "make_frame"]

_CHUNK = 1 << 16  # rows that stay in the cache
_RANGE = 1 << 20  # rows between two looks at Ctrl-C
_DAY_S = 86_400


def make_frame(crs: str | None, first_ms: int, last_ms: int, options: ReadOptions) -> Frame:
    """Return the frame whose slot 0 is at the UTC midnight before the first event.

    Raises SettingsError if the slots to the last event do not fit 32 bits.
    """
    slot_s = options.slot
    origin = first_ms // 1000 // _DAY_S * _DAY_S // slot_s
    if last_ms // 1000 // slot_s - origin >= INT32:
        raise SettingsError("the slots do not fit 32 bits; give a longer `slot` or a shorter `period`")
    return Frame(crs=crs, cell_m=options.cell, slot_s=slot_s, origin_slot=origin, tz=options.tz)


def central_crs(places: NDArray[np.int64]) -> str:
    """Return the local CRS around the median place, from counts by whole degree (see `Spread`).

    The median is the lower one; longitudes are cut open where the largest arc without data is, so that the
    antimeridian is a place like others.

    >>> places = np.zeros((181, 361), int)
    >>> places[130, 296] = 1
    >>> central_crs(places)[:31]
    '+proj=laea +lat_0=40 +lon_0=116'
    """
    around, start = cut_open(places)
    centre = (start + _lower_median(around.sum(axis=0))) % 360 - 180
    return local_crs(centre, _lower_median(places.sum(axis=1)) - 90)


def cut_open(places: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Return counts by whole degree from the longitude on after the largest arc without data, and its index.

    -180 and 180 are one meridian: there are 360 longitudes, and index 0 is -180.
    """
    around = places[:, :360].copy()
    around[:, 0] += places[:, 360]
    start = _after_largest_gap(around.sum(axis=0))
    return np.roll(around, -start, axis=1), start


def choose_crs(spread: Spread, options: ReadOptions) -> str | None:
    """Return the CRS to use: the one asked for, else the local one around the median in whole degrees.

    None for gridded data without geography.
    """
    return options.crs if options.crs is not None or spread.places is None else central_crs(spread.places)


def granules(
    events: Events, frame: Frame, run: Run, advance: Callable[[float], None]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return (user, t, x, y) of every event that the CRS can hold; linear, 12 bytes an event."""
    t, x, y = (np.empty(len(events), dtype=np.int32) for _ in range(3))
    misfits: list[tuple[slice, NDArray[np.bool_]]] = []
    cells = _cells(events, frame)

    def work(first: int, last: int) -> None:
        for start in range(first, last, _CHUNK):
            part = slice(start, min(start + _CHUNK, last))
            t[part] = events.epoch_ms[part] // (1000 * frame.slot_s) - frame.origin_slot
            x[part], y[part], fits = cells(part)
            if fits is not None:
                misfits.append((part, fits))

    run.ranges(work, ranges_of(len(events), _RANGE), advance=advance)
    users = events.users
    if misfits:
        kept = np.ones(len(events), dtype=np.bool_)
        for part, fits in misfits:
            kept[part] = fits
        users = users[kept]  # one after the other, which takes less memory
        t = t[kept]
        x = x[kept]
        y = y[kept]
    return users, t, x, y


def _cells(events: Events, frame: Frame) -> Callable[[slice], tuple[Any, Any, Any]]:
    """Return a function from a slice of events to their cells (x, y) and which of them fit; threads may share it."""
    lng, lat, east, north, cell_m = events.lng, events.lat, events.east, events.north, frame.cell_m
    if east is not None and north is not None:
        return lambda part: floor_cells(east[part], north[part], cell_m)
    if lng is None or lat is None or frame.crs is None:
        raise SettingsError("degrees need a CRS to become metres; give one or leave it to choose_crs")
    transform = transformer(frame.crs)
    table = projection_table(lng, lat, frame.crs) if frame.crs.startswith("+proj=laea ") else None
    return lambda part: project_cells(lng[part], lat[part], transform, cell_m, table)


def _after_largest_gap(counts: NDArray[np.int64]) -> int:
    """Return the degree after the longest run of empty degrees around the circle."""
    full = np.flatnonzero(counts)
    gaps = np.diff(full, prepend=full[-1] - len(counts))
    return int(full[np.argmax(gaps)])


def _lower_median(counts: NDArray[np.int64]) -> int:
    cumulated = np.cumsum(counts)
    return int(np.searchsorted(cumulated, (cumulated[-1] + 1) // 2))
