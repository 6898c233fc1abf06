"""Frame: how a place and an instant become a granule of the integer grid, and back."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InputError, SettingsError
from shoal.units import INT32

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyproj import Transformer

__all__ = ["Frame", "floor_cells", "is_public_crs", "local_crs", "transformer"]

_CODE = re.compile(r"(EPSG|epsg|ESRI|esri):[0-9]{4,6}|(IGNF|OGC):[A-Za-z0-9_.]{1,20}")
_CENTRE = re.compile(r"\+proj=laea \+lat_0=(-?[0-9]{1,2}) \+lon_0=(-?[0-9]{1,3}) .*")


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The grid of trajectories and releases.

    Parameters
    ----------
    crs
        Any string that pyproj's `CRS.from_user_input` takes; None for gridded data without geography.
    cell_m, slot_s
        The side of a cell in whole metres, and the length of a slot in whole seconds.
    origin_slot
        The slot that counts as t = 0.
    tz
        The zone in which times without a zone were read: a note that is not used afterwards.

    Guarantee: cell = floor(metres / cell_m) in `crs`, t = floor(UTC epoch seconds / slot_s) - origin_slot.

    >>> frame = Frame(crs="EPSG:32650", cell_m=100, slot_s=60)
    >>> frame.cells([116.4], [39.9])[0].tolist()
    [4487]
    """

    crs: str | None
    cell_m: int = 100
    slot_s: int = 60
    origin_slot: int = 0
    tz: str = field(default="UTC", compare=False)

    def __post_init__(self) -> None:
        """Check that sizes are at least one and that the CRS is in metres."""
        if self.cell_m < 1 or self.slot_s < 1:
            raise SettingsError("cell_m must be at least 1 m, and slot_s at least 1 s")
        if self.crs is not None:
            transformer(self.crs)

    def cells(self, lng: Any, lat: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the cells (x, y) of WGS84 degrees; cost linear, about 0.15 µs a point.

        Raises InputError if the CRS can't hold a point, SettingsError if a cell does not fit 32 bits.
        """
        if self.crs is None:
            raise SettingsError("this frame has no geography: its data came as grid cells, not as degrees")
        east, north = transformer(self.crs).transform(np.asarray(lng), np.asarray(lat))
        x, y, fits = floor_cells(east, north, self.cell_m)
        if fits is not None:
            raise InputError("the CRS can't hold some of the places; leave them out or choose another `crs`")
        return x.astype(np.int32), y.astype(np.int32)

    def degrees(self, east: Any, north: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return WGS84 (lng, lat) of metres in this frame's CRS."""
        if self.crs is None:
            raise SettingsError("this frame has no geography: it can't give degrees")
        lng, lat = transformer(self.crs).transform(np.asarray(east), np.asarray(north), direction="INVERSE")
        return lng, lat

    def epoch_s(self, t: NDArray[Any]) -> NDArray[np.int64]:
        """Return the UTC epoch second at which slot t starts."""
        seconds: NDArray[np.int64] = (t.astype(np.int64) + self.origin_slot) * self.slot_s
        return seconds


def floor_cells(
    east: NDArray[np.float64], north: NDArray[np.float64], cell_m: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return the cells of coordinates in metres, and which are finite (None: all; the others get cell 0).

    Raises SettingsError if a cell's edge in metres does not fit 32 bits. Linear.

    >>> x, y, fits = floor_cells(np.array([-1.0, np.inf]), np.array([250.0, 0.0]), 100)
    >>> x.tolist(), y.tolist(), fits.tolist()
    ([-1.0, 0.0], [2.0, 0.0], [True, False])
    """
    x, y = np.floor(east / cell_m), np.floor(north / cell_m)
    fits = None
    if not np.isfinite(x.sum() + y.sum()):
        fits = np.isfinite(x) & np.isfinite(y)
        x, y = np.where(fits, x, 0.0), np.where(fits, y, 0.0)
    farthest = max(x.max(initial=0) + 1, -x.min(initial=0), y.max(initial=0) + 1, -y.min(initial=0))
    if farthest * cell_m > INT32:
        raise SettingsError("the cells do not fit 32 bits; give a larger `cell` or another `crs`")
    return x, y, fits


def local_crs(lng: int, lat: int) -> str:
    """Return the local Lambert azimuthal equal-area CRS around a centre in whole degrees.

    >>> local_crs(116, 40)
    '+proj=laea +lat_0=40 +lon_0=116 +datum=WGS84 +units=m +no_defs +type=crs'
    """
    return f"+proj=laea +lat_0={lat} +lon_0={lng} +datum=WGS84 +units=m +no_defs +type=crs"


def is_public_crs(crs: str) -> bool:
    """Return whether a CRS may be published: the code of an authority, or a local CRS around whole degrees.

    >>> is_public_crs("EPSG:32650"), is_public_crs(local_crs(116, 40)), is_public_crs("+proj=laea +lat_0=39.904")
    (True, True, False)
    """
    centre = _CENTRE.fullmatch(crs)
    if centre is not None:
        lat, lng = int(centre[1]), int(centre[2])
        return abs(lat) <= 90 and abs(lng) <= 180 and crs == local_crs(lng, lat)
    return _CODE.fullmatch(crs) is not None


@lru_cache(maxsize=16)
def transformer(crs: str) -> Transformer:
    """Return the transform WGS84 (lng, lat) → metres of a projected CRS; raises SettingsError for others."""
    from pyproj import CRS, Transformer
    from pyproj.exceptions import ProjError

    try:
        parsed = CRS.from_user_input(crs)
    except ProjError as error:
        raise SettingsError('the CRS is not one that pyproj knows; give e.g. `crs="EPSG:32650"`') from error
    if not parsed.is_projected or {axis.unit_name for axis in parsed.axis_info} != {"metre"}:
        raise SettingsError('the CRS must be projected, in metres; give e.g. the UTM zone: `crs="EPSG:32650"`')
    return Transformer.from_crs("OGC:CRS84", parsed, always_xy=True)
