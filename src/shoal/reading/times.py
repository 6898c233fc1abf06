"""Times: convert all forms of time in files to UTC milliseconds.

Times without a zone are local times of the zone `tz`. The rule for clock changes is Python's own (PEP 495,
fold=0): a time that occurs twice is the first of the two, a time that was skipped is moved forward by the gap.
Numbers are epoch times; with the unit `auto` their size decides: below 10^11 seconds, below 10^14
milliseconds, else microseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FIRST_MS",
    "LAST_MS",
    "LOCAL",
    "NO_TIME",
    "NUMBER",
    "ZONED",
    "ZULU",
    "Zone",
    "days_sql",
    "kind_sql",
    "number_sql",
    "offset_sql",
    "text_sql",
    "zone",
    "zone_info",
    "zone_name",
]

FIRST_MS = 0
LAST_MS = 4_102_444_800_000  # 2100-01-01, left out
NO_TIME = -(2**63)
_OUT_OF_RANGE = -1
ZONED, ZULU, LOCAL, NUMBER = 0, 1, 2, 3  # kinds of time: with an offset, in UTC, without a zone, epoch


@dataclass(frozen=True, eq=False)
class Zone:
    """A zone's clock changes from 1970 to 2100: `offsets[i]` holds before `utc[i]`, `offsets[i+1]` from it on (ms)."""

    name: str
    utc: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def to_utc(self, local_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert local times to UTC; linear, a single subtraction if no clock change lies between them.

        >>> zone("Europe/Paris").to_utc(np.array([1_774_751_400_000])).tolist()  # 02:30 was skipped: 03:30
        [1774747800000]
        """
        wall = np.maximum.accumulate(self.utc + np.maximum(self.offsets[:-1], self.offsets[1:]))
        return local_ms - _pick(wall, self.offsets, local_ms)

    def to_local(self, utc_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        """Convert UTC times to local times.

        >>> zone("Asia/Shanghai").to_local(np.array([1_774_747_800_000])).tolist()
        [1774776600000]
        """
        return utc_ms + _pick(self.utc, self.offsets, utc_ms)


def _pick(bounds: NDArray[np.int64], values: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64] | np.int64:
    """Return values[number of bounds ≤ at]; a single value if no bound lies between the smallest and the largest."""
    if len(at) == 0:
        return np.int64(0)
    low, high = np.searchsorted(bounds, [at.min(), at.max()], side="right")
    if low == high:
        return np.int64(values[low])
    found: NDArray[np.int64] = values[low:][np.searchsorted(bounds[low:high], at, side="right")]
    return found


_OFFSET = re.compile(r"(?:UTC)?([+-])(\d{1,2})(?::?([0-5]\d))?")


def _offset_s(found: re.Match[str]) -> int:
    seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60
    return -seconds if found[1] == "-" else seconds


def zone_name(text: str) -> str:
    """Return the name of a zone as it is kept: a fixed offset from UTC has the form +02:00.

    Raises ValueError for a zone that is not known.

    >>> zone_name("UTC+2"), zone_name("-0330"), zone_name("Africa/Dakar")
    ('+02:00', '-03:30', 'Africa/Dakar')
    """
    if found := _OFFSET.fullmatch(text.strip()):
        seconds = abs(_offset_s(found))
        if seconds > 50_400:
            raise ValueError("an offset from UTC is at most 14 hours, e.g. +02:00")
        return "UTC" if seconds == 0 else f"{found[1]}{seconds // 3600:02}:{seconds // 60 % 60:02}"
    if re.fullmatch(r"GMT ?[+-].*", text.strip(), re.IGNORECASE):
        raise ValueError("GMT with an offset has two meanings; give e.g. +02:00 for two hours east of Greenwich")
    try:
        ZoneInfo(text)
    except (KeyError, OSError, ValueError):
        near = get_close_matches(text, available_timezones(), n=1)
        said = f"did you mean {near[0]}?" if near else "give a name such as Africa/Dakar, or +02:00, or UTC"
        raise ValueError(f"the time zone is not known; {said}") from None
    return text


def zone_info(name: str) -> tzinfo:
    """Return Python's own object for a zone."""
    found = _OFFSET.fullmatch(name)
    return timezone(timedelta(seconds=_offset_s(found))) if found else ZoneInfo(name)


@lru_cache(maxsize=32)
def zone(name: str) -> Zone:
    """Find a zone's clock changes: check every day from 1970 to 2100, then bisect to the second."""
    if offset := _OFFSET.fullmatch(name):
        return Zone(name, np.zeros(0, dtype=np.int64), np.array([_offset_s(offset) * 1000], dtype=np.int64))
    info = ZoneInfo(name)
    start = datetime(1970, 1, 1, tzinfo=UTC)

    def offset_at(second: int) -> int:
        local = (start + timedelta(seconds=second)).astimezone(info).utcoffset()
        return 0 if local is None else round(local.total_seconds())

    changes, offsets = [], [offset_at(-86_400)]
    for day in range(LAST_MS // 86_400_000 + 1):
        if offset_at(day * 86_400) == offsets[-1]:
            continue
        before, after = (day - 1) * 86_400, day * 86_400
        while after - before > 1:
            middle = (before + after) // 2
            before, after = (middle, after) if offset_at(middle) == offsets[-1] else (before, middle)
        changes.append(after)
        offsets.append(offset_at(after))
    return Zone(name, np.array(changes, dtype=np.int64) * 1000, np.array(offsets, dtype=np.int64) * 1000)


def number_sql(number: str, unit: str) -> str:
    """Return SQL for epoch milliseconds of a DOUBLE; NULL where there is no number.

    TRY_CAST, because the engine takes the statistics of a Parquet file, which leave out NaN, for all of it, and
    believes any comparison that they imply.

    >>> number_sql("v", "ms")
    'CASE WHEN isnan(v) THEN NULL WHEN abs(v) < 1e+17 THEN TRY_CAST(floor(v) AS BIGINT) WHEN v IS NOT NULL THEN -1 END'
    """
    s = f"TRY_CAST(floor({number} * 1000) AS BIGINT)"
    ms = f"TRY_CAST(floor({number}) AS BIGINT)"
    us = f"TRY_CAST(floor({number} / 1000) AS BIGINT)"
    if unit == "excel":  # days since 1899-12-30; rounded, since a second is no whole part of a day
        ms = f"TRY_CAST(round(({number} - 25569) * 86400000) AS BIGINT)"
    bounds = {
        "excel": [(1e8, ms)],
        "s": [(1e14, s)],
        "ms": [(1e17, ms)],
        "us": [(1e18, us)],
        "auto": [(1e11, s), (1e14, ms), (1e17, us)],
    }[unit]
    cases = " ".join(f"WHEN abs({number}) < {bound:g} THEN {value}" for bound, value in bounds)
    return f"CASE WHEN isnan({number}) THEN NULL {cases} WHEN {number} IS NOT NULL THEN {_OUT_OF_RANGE} END"


def kind_sql(text: str) -> str:
    """Return SQL for the kind of time in a VARCHAR: LOCAL, ZULU, ZONED or NUMBER.

    The engine's cast to TIMESTAMP silently ignores an offset, and the one to TIMESTAMPTZ is slow: the first
    must be used only where no zone is written (or Z). The two usual shapes are told by three characters.
    """
    clock = f"substr({text}, 14, 1) = ':' AND substr({text}, 17, 1) = ':'"
    tail = f"substr({text}, 9)"  # the part after the date's last hyphen
    is_local = (
        f"right(rtrim({text}), 1) BETWEEN '0' AND '9' AND NOT contains({tail}, '+') AND NOT contains({tail}, '-')"
    )
    return (
        f"CAST(CASE WHEN strlen({text}) = 19 AND {clock} THEN {LOCAL} "
        f"WHEN strlen({text}) = 20 AND {clock} AND suffix({text}, 'Z') THEN {ZULU} "
        f"WHEN substr({text}, 5, 1) <> '-' THEN {NUMBER} "
        f"WHEN {is_local} THEN {LOCAL} ELSE {ZONED} END AS UTINYINT)"
    )


def text_sql(text: str, kind: str, unit: str) -> str:
    """Return SQL for epoch milliseconds of a VARCHAR whose kind is known; NULL where it can't be read."""
    # DuckDB 1.5 does not know an offset after minutes: 08:00+02:00.
    # Other names of zones than UTC have several meanings (CST is in America and in China): they are not read.
    seconds = rf"regexp_replace({text}, '([T ]\d?\d:\d\d)([+Z-])', '\1:00\2')"
    zoned = f"epoch_ms(coalesce(TRY_CAST({text} AS TIMESTAMPTZ), TRY_CAST({seconds} AS TIMESTAMPTZ)))"
    return (
        f"CASE WHEN {kind} IN ({LOCAL}, {ZULU}) THEN epoch_ms(TRY_CAST({text} AS TIMESTAMP)) WHEN {kind} = {ZONED} "
        f"THEN CASE WHEN regexp_matches({text}, '[0-9Zz] *$|(UTC|GMT) *$') AND NOT contains({text}, '/') "
        f"AND {offset_sql(text)} THEN {zoned} END "
        f"ELSE {number_sql(f'TRY_CAST({text} AS DOUBLE)', unit)} END"
    )


def offset_sql(text: str) -> str:
    """Return SQL that is false for a text whose offset from UTC is none: beyond 14 hours, or of 60 minutes and more.

    The engine takes any two digits for hours.
    """
    offset = r":\d\d(?:[.,]\d+)? ?(?:UTC|GMT)? ?[+-](?:1[5-9]|[2-9]\d|14:?(?:[1-9]|0[1-9])|\d\d:?[6-9])"
    return f"NOT regexp_matches({text}, '{offset}')"


def days_sql(day: str, slot: str, slot_s: int) -> str:
    """Return SQL for epoch milliseconds of a day number and a slot number in it; day 0 is 1970-01-01."""
    seconds = f"({day} * 86400 + {slot} * {slot_s})"
    return f"CASE WHEN {slot} < 0 OR {slot} * {slot_s} >= 86400 THEN NULL ELSE {number_sql(seconds, 's')} END"
