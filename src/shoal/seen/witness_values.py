"""Values for the witness: numbers and times of Arrow columns, read with Arrow and Python alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, scalar_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["GOOD", "MISSING", "STRANGE", "Column", "days_and_slots", "joined", "numbers", "texts", "times"]

MISSING, GOOD, STRANGE = 0, 1, 2  # no value; a value; something that only the reader may understand

_LAST_MS = 4_102_444_800_000
_DAY_MS = 86_400_000
_NUMBER = r"^-?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_DATE = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
_COMMA = r"^-?[0-9]+,[0-9]+$"
_LOCAL = f"^{_DATE}([ T]{_CLOCK})?$"
_ZONED = f"^{_DATE}[ T]{_CLOCK}(Z|[+-](0[0-9]|1[0-3])(:?[0-5][0-9])?)$"
# Numbers that may be dates without signs, or days as spreadsheets store them.
_MAYBE_DATES = ((1, 99_999_999), (196_999_999_999, 210_000_000_000), (19_699_999_999_999, 21_000_000_000_000))
_FALSE, _ZERO, _NAN = scalar_of(value=False), scalar_of(0), scalar_of(float("nan"))
_EMPTY, _BLANK, _QUESTION = scalar_of(""), scalar_of(" "), scalar_of("?")
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)")


class Column(NamedTuple):
    """Values and, for each, MISSING, GOOD or STRANGE."""

    values: NDArray[Any]
    state: NDArray[np.uint8]


def texts(array: pa.Array) -> pa.Array:
    """Return a column of text, plain or dictionary-encoded, as plain strings."""
    return pc.cast(array.dictionary_decode() if pa.types.is_dictionary(array.type) else array, pa.large_string())


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column holds text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind))


def _mask(array: pa.Array) -> NDArray[np.bool_]:
    """Return a boolean column as an array; nulls are false."""
    return from_arrow_array(pc.cast(pc.fill_null(array, _FALSE), pa.uint8())).astype(bool)


def _present(array: pa.Array) -> NDArray[np.bool_]:
    return np.ones(len(array), bool) if array.null_count == 0 else _mask(pc.is_valid(array))


def _strange(array: pa.Array, *, dtype: Any) -> Column:
    return Column(np.zeros(len(array), dtype), np.where(_present(array), STRANGE, MISSING).astype(np.uint8))


def numbers(array: pa.Array, *, commas: bool = False) -> Column:
    """Return numbers; those that are not finite are missing. With `commas`, `52,5` is 52.5.

    >>> import pyarrow as pa
    >>> numbers(pa.array(["1.5", "", None, "1,5"])).state.tolist()
    [1, 0, 0, 2]
    """
    if _is_number(array.type):
        values = from_arrow_array(pc.fill_null(pc.cast(array, pa.float64(), safe=False), _NAN))
        return Column(values, np.isfinite(values).astype(np.uint8))
    if is_text(array.type):
        found = texts(array)
        try:
            return numbers(pc.cast(found, pa.float64()))
        except pa.ArrowInvalid:
            return _numbers_of(found, commas=commas)
    return _strange(array, dtype=np.float64)


def _numbers_of(found: pa.Array, *, commas: bool) -> Column:
    """Return the numbers in texts, some of which are none."""
    found = pc.ascii_trim_whitespace(found)
    if commas:
        has_comma = pc.fill_null(pc.match_substring_regex(found, _COMMA), _FALSE)
        found = pc.if_else(has_comma, pc.replace_substring(found, ",", "."), found)
    plain = _mask(pc.match_substring_regex(found, _NUMBER))
    values = np.zeros(len(found))
    values[plain] = numbers(pc.cast(found.filter(pc.match_substring_regex(found, _NUMBER)), pa.float64())).values
    state = np.full(len(found), STRANGE, np.uint8)
    state[plain] = np.isfinite(values[plain])
    no_number = "^(?i:nan|[+-]?inf(inity)?|)$"
    state[_mask(pc.match_substring_regex(found, no_number)) | ~_present(found)] = MISSING
    return Column(values, state)


def times(array: pa.Array, unit: str, tz: str) -> Column:
    """Return times as milliseconds since the epoch in UTC.

    `unit` is that of numbers (`auto`: by their size), `tz` the zone of times without one.

    >>> import pyarrow as pa
    >>> times(pa.array(["1970-01-01 08:00:00", "1970-01-01T00:00:01Z", "1.1.1970"]), "auto", "+08:00")
    Column(values=array([   0, 1000,    0]), state=array([1, 1, 2], dtype=uint8))
    """
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values, state = _stamps(array)
        return Column(values if getattr(kind, "tz", None) else _to_utc(values, tz), state)
    if _is_number(kind):
        return _epochs(numbers(array), unit, tz)
    return _written(array, unit, tz) if is_text(kind) else _strange(array, dtype=np.int64)


def _stamps(array: pa.Array) -> Column:
    """Return timestamps and dates as milliseconds; fractions are rounded, those of µs first."""
    if pa.types.is_date(array.type):
        array = pc.cast(array, pa.timestamp("ms"))
    state = _present(array).astype(np.uint8)
    ticks = from_arrow_array(pc.fill_null(pc.cast(array, pa.int64()), _ZERO))
    if array.type.unit == "s":
        return Column(ticks * 1000, state)
    for _ in range({"ms": 0, "us": 1, "ns": 2}[array.type.unit]):
        ticks = (ticks + 500) // 1000
    return Column(ticks, state)


def _epochs(found: Column, unit: str, tz: str) -> Column:
    """Return numbers as times; numbers of another size than any time are before 1970."""
    values, state = np.where(found.state == GOOD, found.values, 0.0), found.state.copy()
    size = np.abs(values)
    if unit == "auto":
        for low, high in _MAYBE_DATES:
            state[(state == GOOD) & (size >= low) & (size <= high)] = STRANGE
        ms = np.where(size < 1e11, values * 1000, np.where(size < 1e14, values, values / 1000))
        most = 1e17
    elif unit == "excel":
        ms, most = np.rint((values - 25569) * _DAY_MS), 1e8
    else:
        ms, most = {"s": (values * 1000, 1e14), "ms": (values, 1e17), "us": (values / 1000, 1e18)}[unit]
    whole = np.where(size < most, np.floor(ms), -1).astype(np.int64)
    return Column(_to_utc(whole, tz) if unit == "excel" else whole, state)


def _written(array: pa.Array, unit: str, tz: str) -> Column:
    """Return the times in texts: ISO 8601, or numbers."""
    found = pc.ascii_trim_whitespace(texts(array))
    ms, state = np.zeros(len(found), np.int64), np.full(len(found), STRANGE, np.uint8)
    state[~_present(found) | _mask(pc.equal(found, _EMPTY))] = MISSING
    forms = [(_LOCAL, pa.timestamp("us")), (_ZONED, pa.timestamp("us", "UTC"))]
    for pattern, kind in forms if unit != "excel" else []:
        which = pc.fill_null(pc.match_substring_regex(found, pattern), _FALSE)
        rows = np.flatnonzero(_mask(which))
        if len(rows):
            read = _iso(found.filter(which), kind)
            ms[rows], state[rows] = (read.values if kind.tz else _to_utc(read.values, tz)), read.state
    if (state == STRANGE).any():
        which = pc.fill_null(pc.match_substring_regex(found, _NUMBER), _FALSE)
        rows = np.flatnonzero(_mask(which))
        read = _epochs(numbers(pc.cast(found.filter(which), pa.float64())), unit, tz)
        ms[rows], state[rows] = read
    return Column(ms, state)


def _iso(found: pa.Array, kind: pa.DataType) -> Column:
    try:
        return _stamps(pc.cast(found, kind))
    except pa.ArrowInvalid:  # a day such as the 30th of February
        pass
    ms, state = np.zeros(len(found), np.int64), np.full(len(found), STRANGE, np.uint8)
    for row, text in enumerate(found.to_pylist()):
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            continue
        since = when.replace(tzinfo=when.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
        ms[row], state[row] = (since + timedelta(microseconds=500)) // timedelta(milliseconds=1), GOOD
    return Column(ms, state)


def joined(date: pa.Array, clock: pa.Array) -> pa.Array | None:
    """Return a date and a time of day as one text; None if they are of a form that is not joined here."""
    if pa.types.is_date(date.type):
        date = pc.cast(pc.cast(date, pa.date32()), pa.string())
    if pa.types.is_time(clock.type):
        clock = pc.cast(clock, pa.string())
    if not (is_text(date.type) and is_text(clock.type)):
        return None
    date, clock = pc.ascii_trim_whitespace(texts(date)), pc.ascii_trim_whitespace(texts(clock))
    both = pc.and_(pc.match_substring_regex(date, f"^{_DATE}$"), pc.match_substring_regex(clock, f"^{_CLOCK}$"))
    # What is not both is left as a text that no rule reads.
    strange = pc.binary_join_element_wise(date, clock, _QUESTION, null_handling="skip")
    return pc.if_else(pc.fill_null(both, _FALSE), pc.binary_join_element_wise(date, clock, _BLANK), strange)


def state_of(one: Column, other: Column) -> NDArray[np.uint8]:
    """Return the state of two columns that are read together."""
    strange = (one.state == STRANGE) | (other.state == STRANGE)
    return np.where(strange, STRANGE, np.minimum(one.state, other.state)).astype(np.uint8)


def days_and_slots(columns: Sequence[pa.Array], slot_s: int) -> Column:
    """Return the times of numbers of days since the epoch and of slots in each."""
    days, slots = (numbers(column) for column in columns)
    seconds = np.where(slots.state == GOOD, slots.values, 0.0) * slot_s
    state = np.where((seconds < 0) | (seconds >= 86_400), MISSING, state_of(days, slots)).astype(np.uint8)
    total = np.where(days.state == GOOD, days.values, 0.0) * 86_400 + seconds
    return Column(np.where(np.abs(total) < 1e14, np.floor(total * 1000), -1).astype(np.int64), state)


def _to_utc(ms: NDArray[np.int64], tz: str) -> NDArray[np.int64]:
    """Return local times in UTC; of a time that occurs twice the first, a skipped one moved forward (PEP 495)."""
    if tz == "UTC" or len(ms) == 0:
        return ms
    if fixed := _OFFSET.fullmatch(tz):
        shift = (int(fixed[2]) * 60 + int(fixed[3])) * 60_000
        return ms + (shift if fixed[1] == "-" else -shift)
    zone = ZoneInfo(tz)
    ms = np.clip(ms, -2 * _DAY_MS, _LAST_MS + 2 * _DAY_MS)  # what is outside is no time of a row that is kept
    day = ms // _DAY_MS
    low = int(day.min())
    shifts = np.zeros(int(day.max()) - low + 1, np.int64)
    changing = np.zeros(len(shifts), bool)
    for number in np.flatnonzero(np.bincount(day - low)).tolist():
        start = (low + number) * 86_400
        shifts[number] = _shift(zone, start)
        changing[number] = _shift(zone, start + 86_399) != shifts[number]
    moved = ms - shifts[day - low]
    rows = np.flatnonzero(changing[day - low])
    if len(rows):
        seconds, where = np.unique(ms[rows] // 1000, return_inverse=True)
        moved[rows] = ms[rows] - np.array([_shift(zone, second) for second in seconds.tolist()], np.int64)[where]
    return moved


def _shift(zone: ZoneInfo, second: int) -> int:
    """Return how far a zone is ahead of UTC at a local time, in milliseconds."""
    local = datetime(1970, 1, 1) + timedelta(seconds=second)
    ahead = local.replace(tzinfo=zone).utcoffset()
    return 0 if ahead is None else round(ahead.total_seconds() * 1000)
