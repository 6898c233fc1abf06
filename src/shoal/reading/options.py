"""ReadOptions: everything that decides how files become trajectories, in one frozen object."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path  # noqa: TC003  pydantic needs it
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from pydantic import ValidationInfo, field_validator

from shoal.errors import SettingsError
from shoal.frame import is_public_crs
from shoal.names import nearest
from shoal.reading.dates import check_time_format
from shoal.reading.texts import check_encoding
from shoal.reading.times import zone_info, zone_name
from shoal.settings import Settings, setting
from shoal.units import Metres, Seconds, checked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CONFIRM", "ROLES", "ReadOptions", "Reading", "ReadingRules", "read_options"]

_BBOX = "four numbers, west,south,east,north"
_PERIOD = "two ISO times, start,end"
_Box = tuple[float, float, float, float]
CONFIRM = ("many-rows", "one-sample", "swapped", "zero-zero")
ROLES = (
    *("user", "time", "date", "day", "slot"),
    *("lat", "lng", "x", "y", "geometry", "trip", "cell", "h3", "geohash"),
)


def _roles(value: Any) -> Any:
    """Read the roles of columns: a mapping, or text such as `user=msisdn,time=start_time`."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part]
    if not all(equals and column for _, equals, column in pairs):
        raise SettingsError("give role=column pairs, e.g. user=msisdn,time=start_time")
    return {role.strip(): column.strip() for role, _, column in pairs}


def _words(value: Any) -> Any:
    """Read words that are separated by commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _several(n: int, what: str) -> Callable[[Any], Any]:
    """Return a parser of n values, given as a sequence or as text separated by commas."""

    def parse(value: Any) -> Any:
        parts = [part.strip() for part in value.split(",")] if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or len(parts) != n:
            raise SettingsError(f"give {what}")
        return tuple(parts)

    return parse


class ReadOptions(Settings):
    """How to read data. The options have the same names in Python, on the command line and in TOML.

    Parameters
    ----------
    columns
        The names of columns by role: user, time, date, lat, lng, x, y, geometry, trip, cell, h3, geohash, day, slot.
        Usual names are recognised. A file without names has numbers: `"user=1,time=2,lat=3,lng=4"`. `user=@file` and
        `user=@folder` take the user from the name of each file or of its folder. `date` is for a date beside a column
        with the time of day.
    tz, time_unit
        The zone of times without a zone (a name, or an offset such as `"+02:00"`), and the unit of times that are
        numbers: `auto`, `s`, `ms`, `us`, or `excel` for days as spreadsheets store them.
    time_format
        The form of times as in Python's `strptime`, e.g. `"%d.%m.%Y %H:%M"`; `%Z` leaves out a zone's abbreviation.
        Or only the order of numeric dates: `dmy`, `mdy` or `ymd`. None: known forms are recognised, and the order is
        the only one that fits all dates.
    encoding
        The encoding of text files. None: UTF-8 (or UTF-16 with its mark), else Windows-1252 where it fits.
    crs
        A projected CRS in metres, e.g. `"EPSG:32628"`; None for a local equal-area projection around the data.
    cell, slot
        The grid: a number is metres or seconds; text has a unit: `"500m"`, `"30min"`.
    cells
        A file (id, lat, lng) with the places of antennas, for events that name an antenna.
    min_samples, min_active_days
        Leave out users with fewer samples, or with samples on fewer days.
    bbox, period
        Keep only this area (west, south, east, north in degrees) and this period (ISO start and end, without the end).
    align_days, split_gap
        For point methods only: keep everyone's first days with data, moved to follow each other from the first day of
        the data on; split a trace where nothing is logged for this long.
    strict
        Raise BadRows if a row is bad; by default bad rows are dropped and counted.
    confirm
        What is right although it looks like a mistake: `many-rows` (a file has far more rows than files of its size
        have), `one-sample` (most people have one sample only), `swapped`
        (people live where the places are, not where they would be with latitude and longitude exchanged) and
        `zero-zero` (0, 0 is a place like others). Without it, the data is refused, or the rows are dropped.

    >>> options = ReadOptions(cell="500m", slot="30min", columns="user=msisdn", bbox=[-18, 12, -11, 17])
    >>> options.cell, options.slot, options.columns
    (500, 1800, {'user': 'msisdn'})
    """

    columns: Annotated[dict[str, str], checked(_roles)] = setting(
        {}, help="Names of columns, e.g. user=msisdn,time=start_time,lat=…,lng=… (or x, y, cell)."
    )
    tz: str = setting("UTC", help="Time zone of times without a zone, e.g. Africa/Dakar.")
    time_unit: Literal["auto", "s", "ms", "us", "excel"] = setting(
        "auto", help="Unit of times that are numbers: s, ms, us or excel (days); auto decides by their size."
    )
    time_format: str | None = setting(
        None, help="Form of times, e.g. '%d.%m.%Y %H:%M', or the order of dates: dmy, mdy or ymd."
    )
    encoding: str | None = setting(None, help="Encoding of text files, e.g. cp1252; by default UTF-8 where it fits.")
    crs: str | None = setting(
        None, help="Map projection (CRS) in metres, e.g. EPSG:32628; by default equal-area, centred on the data."
    )
    cell: Metres = setting(100, unit="m", help="Side of a grid cell, e.g. 100m.", ge=1)
    slot: Seconds = setting(60, unit="s", help="Length of a time slot of the grid, e.g. 60s.", ge=1)
    cells: Path | None = setting(
        None, help="File with the places of antennas (id, lat, lng), for events that name an antenna."
    )
    min_samples: int = setting(1, help="Leave out users with fewer samples than this.", ge=0)
    min_active_days: int = setting(0, help="Leave out users with samples on fewer days than this.", ge=0)
    bbox: Annotated[_Box, checked(_several(4, _BBOX))] | None = setting(
        None, help="Keep only this area: west,south,east,north in degrees, e.g. -18,12,-11,17."
    )
    period: Annotated[tuple[str, str], checked(_several(2, _PERIOD))] | None = setting(
        None, help="Keep only times from the first up to, not including, the second, e.g. 2026-03-01,2026-03-15."
    )
    align_days: int = setting(
        0, help="Point methods: keep everyone's first N days with data, moved to the same start.", ge=0
    )
    split_gap: Seconds | None = setting(
        None, unit="s", help="Point methods: split a trace where nothing is logged for this long, e.g. 4h.", gt=0
    )
    strict: bool = setting(False, help="Stop with an error if a row is bad; by default bad rows are dropped.")  # noqa: FBT003

    confirm: Annotated[tuple[str, ...], checked(_words)] = setting(
        (), help=f"What is right although it looks like a mistake: {', '.join(CONFIRM)}."
    )

    @field_validator("confirm")
    @classmethod
    def _known_codes(cls, confirm: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := [code for code in confirm if code not in CONFIRM]:
            raise ValueError(f"there is nothing of that name to confirm; {nearest(unknown[0], CONFIRM)}")
        return confirm

    @field_validator("columns")
    @classmethod
    def _known_roles(cls, columns: dict[str, str]) -> dict[str, str]:
        if unknown := set(columns) - set(ROLES):
            raise ValueError(f"no such role: {', '.join(sorted(unknown))}; the roles are {', '.join(ROLES)}")
        return columns

    @field_validator("tz")
    @classmethod
    def _known_zone(cls, tz: str) -> str:
        return zone_name(tz)

    @field_validator("time_format")
    @classmethod
    def _real_format(cls, time_format: str | None) -> str | None:
        return time_format if time_format is None else check_time_format(time_format)

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str | None) -> str | None:
        return encoding if encoding is None else check_encoding(encoding)

    @field_validator("crs")
    @classmethod
    def _public_crs(cls, crs: str | None) -> str | None:
        if crs is not None and not is_public_crs(crs):
            raise ValueError(
                "give the CRS by its code, e.g. EPSG:32650: a projection in words could reveal where the data is"
            )
        return crs

    @field_validator("bbox")
    @classmethod
    def _real_bbox(cls, bbox: _Box | None) -> _Box | None:
        west, south, east, north = bbox or (-180, -90, 180, 90)
        if not (-180 <= west <= 180 and -180 <= east <= 180 and -90 <= south < north <= 90 and west != east):
            raise ValueError("a bounding box is west, south, east, north in degrees, with south < north")
        return bbox

    @field_validator("period")
    @classmethod
    def _real_period(cls, period: tuple[str, str] | None, others: ValidationInfo) -> tuple[str, str] | None:
        if period is not None and "tz" in others.data:
            start, end = (_instant_ms(text, others.data["tz"]) for text in period)
            if start >= end:
                raise ValueError("the period ends before it starts; give start and end, e.g. 2026-03-01,2026-03-15")
        return period

    def period_ms(self) -> tuple[int, int] | None:
        """Return the period in UTC milliseconds, start included, end left out."""
        if self.period is None:
            return None
        start, end = self.period
        return _instant_ms(start, self.tz), _instant_ms(end, self.tz)

    def to_record(self) -> dict[str, Any]:
        """Return plain types for the private run record; a relative path becomes absolute."""
        cells = {} if self.cells is None else {"cells": str(self.cells.absolute())}
        return {**self.model_dump(mode="json"), **cells}

    def require_whole_users(self) -> None:
        """Raise SettingsError if traces are split, since a person would then be hidden among their own parts."""
        if self.split_gap is not None or self.align_days:
            raise SettingsError(
                "`split_gap` and `align_days` are for point methods. Other methods need each person as one whole "
                "trajectory; remove these two options"
            )


class ReadingRules(TypedDict, total=False):
    """The fields of ReadOptions besides the CRS, as keywords of a function."""

    columns: dict[str, str] | str
    tz: str
    time_unit: Literal["auto", "s", "ms", "us", "excel"]
    time_format: str | None
    encoding: str | None
    cell: float | str
    slot: float | str
    cells: str | Path | None
    min_samples: int
    min_active_days: int
    bbox: Sequence[float] | str | None
    period: Sequence[str] | str | None
    align_days: int
    split_gap: float | str | None
    strict: bool
    confirm: Sequence[str] | str


class Reading(ReadingRules, total=False):
    """The fields of ReadOptions as keywords of a function."""

    crs: str | None


def _instant_ms(text: str, tz: str) -> int:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("a period is two ISO times, start and end, e.g. 2026-03-01,2026-03-15T12:00") from None
    aware = instant if instant.tzinfo else instant.replace(tzinfo=zone_info(tz))
    return round(aware.timestamp() * 1000)


def read_options(options: ReadOptions | None = None, **fields: Any) -> ReadOptions:
    """Return ReadOptions made from keywords (on top of `options`, if given).

    >>> read_options(cell="1km").cell
    1000
    """
    given = options.model_dump(exclude_unset=True) if options is not None else {}
    return ReadOptions(**{**given, **fields})
