"""The grid that a release declares, and its projection, computed here with pyproj alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import CannotCheck
from shoal.lists import ranges_of
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Grid"]

_BATCH = 1 << 16


@dataclass(frozen=True)
class Grid:
    """Cells of `cell_m` metres in `crs` (None: no geography) and slots of `slot_s` seconds since the epoch."""

    crs: str | None
    cell_m: int
    slot_s: int

    @property
    def is_known(self) -> bool:
        """Whether pyproj knows the CRS as a projected one in metres."""
        try:
            return self.crs is not None and _transformer(self.crs) is not None
        except CannotCheck:
            return False

    def cells(self, lng: NDArray[np.float64], lat: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return floor(metres / cell_m) of WGS84 degrees as float64; not finite where the projection is not defined."""
        east, north = self._transform(lng, lat, "FORWARD")
        return np.floor(east / self.cell_m), np.floor(north / self.cell_m)

    def degrees(
        self, east: NDArray[np.float64], north: NDArray[np.float64], *, run: Run = LOCAL
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the WGS84 longitude and latitude of metres."""
        lng, lat = np.empty_like(east), np.empty_like(north)

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            lng[part], lat[part] = self._transform(east[part], north[part], "INVERSE")

        run.ranges(work, ranges_of(len(east), _BATCH))
        return lng, lat

    def slots(self, epoch_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return floor(UTC epoch seconds / slot_s)."""
        return np.floor_divide(epoch_ms, 1000 * self.slot_s)

    def _transform(self, first: Any, second: Any, direction: str) -> tuple[Any, Any]:
        if self.crs is None:
            raise CannotCheck("degrees can't be put on a grid without geography; give the release's CRS: `crs`")
        return _transformer(self.crs).transform(first, second, direction=direction)  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def _transformer(crs: str) -> Any:
    from pyproj import CRS, Transformer
    from pyproj.exceptions import ProjError

    try:
        projected = CRS.from_user_input(crs)
        usable = projected.is_projected and all(axis.unit_name == "metre" for axis in projected.axis_info)
        if usable:
            return Transformer.from_crs("OGC:CRS84", projected, always_xy=True)
    except (ProjError, UnicodeError):
        raise CannotCheck("the CRS of the release is not one that pyproj knows") from None
    raise CannotCheck("the CRS of the release is not a projected one in metres")
