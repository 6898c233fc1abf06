"""ReadOptions: everything that decides how files become trajectories, in one frozen object."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path  # noqa: TC003  pydantic needs it
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import Field, field_validator, model_validator

from shoal.errors import SettingsError
from shoal.settings import Settings
from shoal.units import Metres, Seconds  # noqa: TC001  pydantic needs them

__all__ = ["ROLES", "ReadOptions", "read_options"]

ROLES = ("user", "time", "lat", "lng", "x", "y", "cell", "day", "slot")


class ReadOptions(Settings):
    """How to read: columns, times, grid, cleaning. The same for Python, flags and TOML.

    `columns` maps roles (user, time, lat, lng, x, y, cell, day, slot) to column names; what is not given is
    found by itself. `tz` is the zone of times that have none. `crs` is a projected CRS in metres (None: a
    local equal-area one around the data). `cells` is a file (id, lat, lng) for events that name a cell.
    `bbox` is west, south, east, north in degrees; `period` is start and end (left out) in ISO form.
    For point methods only: `align_days` moves everyone's days with data to follow each other from the first day of
    the data on, and keeps so many of them; `split_gap_s` splits a trace where so long nothing is logged.

    >>> options = ReadOptions(cell_m="500m", slot_s="30min")
    >>> options.cell_m, options.slot_s
    (500, 1800)
    """

    columns: dict[str, str] = Field(default_factory=dict)
    tz: str = "UTC"
    time_unit: Literal["auto", "s", "ms", "us"] = "auto"
    crs: str | None = None
    cell_m: Metres = 100
    slot_s: Seconds = 60
    cells: Path | None = None
    min_samples: int = 1
    min_active_days: int = 0
    bbox: tuple[float, float, float, float] | None = None
    period: tuple[str, str] | None = None
    align_days: Annotated[int, Field(ge=0)] = 0
    split_gap_s: Annotated[Seconds, Field(gt=0)] | None = None
    strict: bool = False

    @field_validator("columns")
    @classmethod
    def _known_roles(cls, columns: dict[str, str]) -> dict[str, str]:
        if unknown := set(columns) - set(ROLES):
            raise SettingsError(f"no such role: {', '.join(sorted(unknown))}; the roles are {', '.join(ROLES)}")
        return columns

    @field_validator("tz")
    @classmethod
    def _known_zone(cls, tz: str) -> str:
        try:
            ZoneInfo(tz)
        except (KeyError, OSError, ValueError):
            raise SettingsError(_ZONE) from None
        return tz

    @model_validator(mode="after")
    def _sensible(self) -> ReadOptions:
        if self.cell_m < 1 or self.slot_s < 1:
            raise SettingsError("cell and slot must be at least 1 m and 1 s; give e.g. --cell 100m --slot 60s")
        if self.min_samples < 0 or self.min_active_days < 0:
            raise SettingsError("min_samples and min_active_days can't be negative")
        if self.crs is not None and not re.fullmatch(r"[A-Za-z]+:\w+|[+]proj=[ -~]+", self.crs):
            raise SettingsError("give the CRS by its code, e.g. EPSG:32650, or as PROJ text, +proj=…")
        if self.crs is not None and "laea" in self.crs and re.search(r"[+]l(at|on)_0=-?\d*[.]\d*[1-9]", self.crs):
            raise SettingsError("the centre of a laea CRS must be in whole degrees: a finer one could tell of the data")
        self.period_ms()
        _check_bbox(self.bbox)
        return self

    def period_ms(self) -> tuple[int, int] | None:
        """Return the period in UTC milliseconds, start included, end left out."""
        if self.period is None:
            return None
        start, end = (_instant_ms(text, self.tz) for text in self.period)
        if start >= end:
            raise SettingsError("the period ends before it starts; give start and end, e.g. 2026-03-01,2026-03-15")
        return start, end

    def require_whole_users(self) -> None:
        """Raise SettingsError where traces are cut into parts, among which a person could hide from herself."""
        if self.split_gap_s is not None or self.align_days:
            raise SettingsError(
                "--split-gap and --align-days are for point methods (promesse, geo-indistinguishability): people who "
                "are hidden among k count once, whole; leave them out"
            )


_ZONE = "the time zone is not known; give a name such as Africa/Dakar or UTC"


def _instant_ms(text: str, tz: str) -> int:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError("a period is two ISO times, start and end, e.g. 2026-03-01,2026-03-15T12:00") from None
    aware = instant if instant.tzinfo else instant.replace(tzinfo=ZoneInfo(tz))
    return round(aware.timestamp() * 1000)


def _check_bbox(bbox: tuple[float, float, float, float] | None) -> None:
    if bbox is None:
        return
    west, south, east, north = bbox
    if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south < north <= 90 and west != east):
        raise SettingsError("a bounding box is west, south, east, north in degrees, with south < north")


def read_options(options: ReadOptions | None = None, **fields: Any) -> ReadOptions:
    """Make ReadOptions of keywords (on top of `options`, if given).

    >>> read_options(cell_m="1km").cell_m
    1000
    """
    given = options.model_dump(exclude_unset=True) if options is not None else {}
    return ReadOptions(**{**given, **fields})
