"""Units: read lengths, durations and sizes as people write them, as whole metres, seconds and bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from shoal.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "INT32",
    "Bytes",
    "Metres",
    "Seconds",
    "Worth",
    "checked",
    "parse_bytes",
    "parse_metres",
    "parse_seconds",
    "parse_worth",
]

INT32 = 2**31 - 1  # the largest whole number of a grid and of a claim
_METRES = {"": 1, "m": 1, "km": 1_000}
_SECONDS = {"": 1, "s": 1, "sec": 1, "min": 60, "h": 3_600, "d": 86_400}
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_QUANTITY = re.compile(r"\s*(\d{1,12})(?:\.(\d{1,9}))?\s*([a-z]*)\s*", re.ASCII)


def parse_metres(value: Any) -> int:
    """Read a length: a whole number of metres, or text such as `200m`, `1.5km`.

    >>> parse_metres("1.5km"), parse_metres(100)
    (1500, 100)
    """
    return _parse(value, _METRES, "a length", "200m or 15km")


def parse_seconds(value: Any) -> int:
    """Read a duration: a whole number of seconds, or text such as `30s`, `60min`, `6h`, `14d`.

    >>> parse_seconds("60min"), parse_seconds("14d")
    (3600, 1209600)
    """
    return _parse(value, _SECONDS, "a duration", "60s, 30min, 6h or 14d")


def parse_worth(value: Any) -> tuple[int, int]:
    """Read what a length is worth in time: text such as `1km=30min`, or a pair of metres and seconds.

    >>> parse_worth("1km=30min"), parse_worth((500, 60))
    ((1000, 1800), (500, 60))
    """
    pair = value.split("=") if isinstance(value, str) else value
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise SettingsError("a length is worth a duration, such as 1km=30min")
    metres, seconds = parse_metres(pair[0]), parse_seconds(pair[1])
    if metres < 1 or seconds < 1:
        raise SettingsError("a length is worth a duration, both above zero, such as 1km=30min")
    return metres, seconds


def parse_bytes(value: Any) -> int:
    """Read a size: a whole number of bytes, or text such as `500MB`, `8GB`.

    >>> parse_bytes("1.5GB"), parse_bytes(1024)
    (1500000000, 1024)
    """
    return _parse(value, _BYTES, "a size", "500MB or 8GB")


def _parse(value: Any, units: dict[str, int], what: str, example: str) -> int:
    problem = f"{what} takes a number and a unit, such as {example}, and no fraction of the smallest unit"
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise SettingsError(problem)
    if isinstance(value, int):
        return value
    match = _QUANTITY.fullmatch(value.lower())
    if match is None or match[3] not in units:
        raise SettingsError(problem)
    fraction = match[2] or ""
    scaled, rest = divmod(int(match[1] + fraction) * units[match[3]], int(10 ** len(fraction)))
    if rest:
        raise SettingsError(problem)
    return scaled


def checked(parse: Callable[[Any], Any]) -> BeforeValidator:
    """Return a validator for a setting, so that its error names the setting too."""

    def validate(value: Any) -> Any:
        try:
            return parse(value)
        except SettingsError as error:
            raise ValueError(str(error)) from None

    return BeforeValidator(validate)


Metres = Annotated[int, checked(parse_metres)]
Seconds = Annotated[int, checked(parse_seconds)]
Worth = Annotated[tuple[int, int], checked(parse_worth)]
Bytes = Annotated[int, checked(parse_bytes)]
