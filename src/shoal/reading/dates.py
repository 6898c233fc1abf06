"""Dates: decide, from all rows of all files, how times in unusual texts are read, such as `03.04.2026 08:00`.

The common forms (ISO 8601, epoch numbers) are read by `times.py`. A row whose time does not fit them keeps its text as
`odd`. Here the shapes of all such texts are surveyed. Each shape gets one format; where day, month and year could
stand in different orders, the values must rule out all but one, or the input is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError
from shoal.reading.engine import text_literal
from shoal.reading.limits import MAX_TIME
from shoal.reading.shapes import ORDERS, Shape, shape_of
from shoal.reading.times import LAST_MS, LOCAL, NUMBER, ZONED, offset_sql

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NO_DATES", "Dates", "check_time_format", "odd_sql", "shaped_sql", "survey", "told_sql"]

_MOST_SHAPES = 5_000
_BLANKS = "\u00a0\u2007\u2009\u202f\u3000\t"
_SPECIFIERS = re.compile(r"%(.)")
_KNOWN = set("aAbBdmyYHIMSfpzZjT%F")
_ZONE_WORD = re.compile(r"(?:^|(?<= ))%Z(?= |$)")
# Numbers that are dates or serial days rather than epoch times, and their bounds in epoch milliseconds read by size.
_COMPACT = "length(d) IN (8, 12, 14) AND d >= '1970' AND d < '21'"
_SERIAL = (20_000, 80_000)
_SURE = 100_000_000_000  # ms of 1973: what is later is an epoch time, and no count of seconds
_DIGITS_NOTE = (
    "times that are numbers were read as dates without signs (year, month, day, and the time of day if given)"
)


@dataclass(frozen=True)
class Dates:
    """What was decided: for each shape of odd texts its format and its kind of time, and what to tell people."""

    formats: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def sql(self, query: str, engine: Any) -> str:
        """Return a query with times and kinds of odd texts filled in; it has the columns odd and shape."""
        if not self.formats:
            return query
        ways = list(dict.fromkeys(self.formats.values()))
        rows = ", ".join(f"({text_literal(shape)}, {ways.index(way)})" for shape, way in self.formats.items())
        engine.execute(f"CREATE TEMP TABLE IF NOT EXISTS shapes AS SELECT * FROM (VALUES {rows}) AS v(shape, way)")  # noqa: S608
        ms = " ".join(f"WHEN {i} THEN epoch_ms({_parsed(way)})" for i, (way, _) in enumerate(ways))
        kind = " ".join(f"WHEN {i} THEN {kind}" for i, (_, kind) in enumerate(ways))
        return (
            f"SELECT u, CAST(CASE way {kind} ELSE kind END AS UTINYINT) AS kind, CASE way {ms} ELSE ms END AS ms, a, b "  # noqa: S608
            f"FROM ({query}) AS q LEFT JOIN shapes ON q.shape = shapes.shape"
        )


NO_DATES = Dates()


def odd_sql(raw: str, kind: str, ms: str, *, by_size: bool) -> str:
    """Return SQL for the text of a time that does not fit the common forms, else NULL.

    With `by_size` also numbers are odd that are no plausible epoch times.
    """
    number = (
        f" OR ({kind} = {NUMBER} AND ({ms} < 100000000000 OR {ms} > {LAST_MS} "
        f"OR {ms} BETWEEN 197000000000 AND 210000000000))"
    )
    return f"CASE WHEN ({ms} IS NULL{number if by_size else ''}) AND strlen({raw}) <= {MAX_TIME} THEN {raw} END"


def shaped_sql(query: str) -> str:
    """Return a query with odd texts without blanks at their ends, and their shapes beside them."""
    inner = f"SELECT u, kind, ms, a, b, oa, ob, {_clean('odd')} AS odd FROM ({query})"  # noqa: S608
    return f"SELECT *, translate(odd, '012345678', '999999999') AS shape FROM ({inner})"  # noqa: S608


def told_sql(text: str, time_format: str) -> tuple[str, int]:
    """Return SQL for the milliseconds of a text in a format that was given, and the kind of time."""
    cleaned = _clean(text)
    if zone := _ZONE_WORD.search(time_format):
        # A zone's abbreviation has several meanings: it is left out, and `tz` tells the zone.
        before = len(time_format[: zone.start()].split())
        cleaned = rf"trim(regexp_replace({cleaned}, '^((?:\S+ +){{{before}}})[A-Za-z]{{2,6}} ?', '\1'))"
        time_format = " ".join((time_format[: zone.start()] + time_format[zone.end() :]).split())
    kind = ZONED if "%z" in time_format else LOCAL
    parsed = f"epoch_ms(try_strptime({cleaned}, {text_literal(time_format)}))"
    return f"CASE WHEN {offset_sql(cleaned)} THEN {parsed} END" if kind == ZONED else parsed, kind


def check_time_format(time_format: str) -> str:
    """Return the format; raises ValueError if it can't give a date.

    >>> check_time_format("%d.%m.%Y %H:%M")
    '%d.%m.%Y %H:%M'
    """
    if time_format in ORDERS:
        return time_format
    codes = _SPECIFIERS.findall(time_format)
    example = "e.g. %d.%m.%Y %H:%M, or one of dmy, mdy, ymd for the order of day, month and year"
    if unknown := set(codes) - _KNOWN:
        raise ValueError(f"the code %{min(unknown)} is not known; {example}")
    has_day = "F" in codes or (
        {"y", "Y"} & {*codes} and ("j" in codes or ("d" in codes and {"m", "b", "B"} & {*codes}))
    )
    if not has_day:
        raise ValueError(f"a format of times has codes for day, month and year, {example}")
    if len(codes) != len(set(codes)):
        raise ValueError(f"a code stands twice in the format of times; {example}")
    if ("I" in codes) != ("p" in codes):
        raise ValueError("%I (hours to 12) and %p (AM or PM) go together; hours to 24 are %H")
    if "Z" in codes and not _ZONE_WORD.search(time_format):
        raise ValueError("%Z (a zone's abbreviation, which is left out) needs a space before and after it")
    return time_format.replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")


def survey(engine: Any, query: str, where: str, time_format: str | None, *, by_size: bool) -> Dates:
    """Decide how the odd texts of a query (kind, ms, odd, shape) are read, from all of them.

    Raises InputError where two readings are possible, where no single one fits, and where a zone's abbreviation or a
    number could mean several things. The message describes the readings and says what to type for each.
    """
    digits = by_size and _are_dates(engine, query, where)
    notes = [_DIGITS_NOTE] if digits else []
    counted = f"SELECT shape, count(*) AS n FROM ({query}) WHERE odd IS NOT NULL GROUP BY 1"  # noqa: S608
    most = f"ORDER BY n DESC, shape LIMIT {_MOST_SHAPES}"
    texts = [row[0] for row in engine.execute(f"SELECT shape FROM ({counted}) {most}").fetchall()]  # noqa: S608
    shapes = {text: shape for text in texts if len(text) <= 60 and (shape := shape_of(text)) is not None}
    shapes = {text: shape for text, shape in shapes.items() if digits or not shape.number}
    if told := next((shape for shape in shapes.values() if shape.abbreviated), None):
        raise InputError(
            f"{where}: times end in the abbreviation of a zone, which can mean several zones; say which one, and "
            f'the format, in which %Z leaves the abbreviation out: `tz="Europe/Paris"`, `time_format="{_first(told)}"`'
        )
    unclear = {text: shape for text, shape in shapes.items() if len(shape.formats) > 1}
    order = ""
    if unclear:
        order = time_format or _order(engine, query, where, unclear)
    if order:
        notes.append(f"dates were read as {ORDERS[order]}" + ("" if time_format else ", the only order that fits them"))
    formats = {}
    for text, shape in shapes.items():
        if (found := dict(shape.formats).get(order if len(shape.formats) > 1 else "")) is not None:
            formats[text] = (found, shape.kind)
    return Dates(formats, tuple(notes))


def _first(shape: Shape) -> str:
    return shape.formats[0][1]


def _order(engine: Any, query: str, where: str, unclear: Mapping[str, Shape]) -> str:
    """Return the only order of day, month and year that every date allows; `""` if no order allows any."""
    families = list(dict.fromkeys(shape.formats for shape in unclear.values()))
    rows = ", ".join(f"({text_literal(text)}, {families.index(shape.formats)})" for text, shape in unclear.items())
    fits = " ".join(
        f"WHEN {i} THEN [{', '.join(f'{_parsed(way)} IS NOT NULL' for _, way in family)}]"
        for i, family in enumerate(families)
    )
    masks = engine.execute(
        f"SELECT DISTINCT family, CASE family {fits} END FROM ({query}) AS q "  # noqa: S608
        f"JOIN (VALUES {rows}) AS v(shape, family) ON q.shape = v.shape"
    ).fetchall()
    possible = {order for family in families for order, _ in family}
    for family, mask in masks:
        if any(mask):  # a date that no order allows is dropped and counted, like any time that can't be read
            possible &= {order for (order, _), fit in zip(families[family], mask, strict=True) if fit}
    if not any(any(mask) for _, mask in masks):
        return ""
    typed = {order: f'`time_format="{order}"` for {ORDERS[order]}' for order in ORDERS}
    offered = [order for order in ORDERS if any(order == one for family in families for one, _ in family)]
    if not possible:
        raise InputError(
            f"{where}: some dates can only be read in one order of day, month and year, others only in another one; "
            f"read the files apart, or give the order; dates that do not fit it are dropped: "
            f"{', or '.join(typed[order] for order in offered)}"
        )
    # One mistyped day (31.04.12) would make a year of it: a year of two digits in front is never the only way left.
    if len(possible) > 1 or possible == {"ymd"}:
        left = [order for order in ORDERS if order in possible] if len(possible) > 1 else offered
        raise InputError(
            f"{where}: dates can be read in {len(left)} ways, and no value tells which; give "
            f"{', or '.join(typed[order] for order in left)}"
        )
    return possible.pop()


def _are_dates(engine: Any, query: str, where: str) -> bool:
    """Return whether numbers are dates (20260301); refuse those that may be epoch times or serial days as well."""
    low, high = (1000 * day for day in _SERIAL)
    number = f"kind = {NUMBER} AND ms IS NOT NULL"
    counts = engine.execute(
        f"SELECT count(*), count(*) FILTER ({number} AND ms BETWEEN {low} AND {high}), "  # noqa: S608
        f"count(*) FILTER ({number} AND (ms < {low} OR ms > {high}) AND ms < {_SURE}), "
        f"count(*) FILTER ({number} AND d IS NOT NULL AND {_COMPACT} AND ({_compact_day()})) "
        f"FROM (SELECT kind, ms, {_DIGITS} AS d FROM ({query})) WHERE {number}"
    ).fetchall()[0]
    numbers, serial, near, compact = (int(count) for count in counts)
    # Seconds counted from a start lie on both sides of the serial days. A few rows are strays, which are noted.
    if serial and (10 * serial >= 9 * numbers or (100 * serial >= numbers and 100 * near <= serial)):
        raise InputError(
            f'{where}: times are numbers such as spreadsheets store for days; give `time_unit="excel"` to read them as '
            'days of Excel, or `time_unit="s"` to read them as seconds of 1970'
        )
    if 0 < compact < numbers:
        raise InputError(
            f"{where}: some times are numbers that look like dates without signs (year, month, day), others do not; "
            'give `time_format="%Y%m%d"` (or `"%Y%m%d%H%M%S"`) to read dates, or '
            '`time_unit="s"` (or `"ms"`) to read all as epoch times'
        )
    return compact > 0


_DIGITS = "CASE WHEN shape IN ('99999999', '999999999999', '99999999999999') THEN odd END"


def _compact_day() -> str:
    ways = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
    cases = " ".join(f"WHEN {n} THEN try_strptime(d, '{way}') IS NOT NULL" for n, way in ways.items())
    return f"CASE length(d) {cases} END"


def _parsed(way: str) -> str:
    parsed = f"try_strptime(odd, {text_literal(way)})"
    return f"CASE WHEN {offset_sql('odd')} THEN {parsed} END" if "%z" in way else parsed


def _clean(text: str) -> str:
    """Return SQL for a text with plain blanks, none at its ends."""
    others = f"trim(translate({text}, '{_BLANKS}', '{' ' * len(_BLANKS)}'))"
    return (
        f"CASE WHEN strlen({text}) = length({text}) AND NOT contains({text}, '\t') THEN trim({text}) ELSE {others} END"
    )
