"""Odd: what the engine can't read as a time or a place at once, and how it is read after all rows were looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shoal.reading.dates import NO_DATES, Dates, shaped_sql, survey
from shoal.reading.degrees import odd_number_sql
from shoal.reading.shapes import ORDERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.reading.options import ReadOptions

__all__ = ["PLAIN", "Odd", "Part", "digits_sql", "has_odd_numbers", "joined_sql", "not_plain_sql", "survey_odd"]

# Numbers that may be dates without signs or serial days, see `dates.py`.
_ODD_NUMBERS = ((1, 99_999_999), (196_999_999_999, 210_000_000_000), (19_699_999_999_999, 21_000_000_000_000))
_CLOCK = r"^\s*(\d{1,2}([:h]\d\d|[.]\d\d([.]\d\d)?\s*$)|\d{4}\s*$|\d{6}\s*$)"
_PLAIN_TIME = r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d([.]\d+)?Z?"
_MIDNIGHT = r"[ T]+0?0[:.]00([:.]00([.]0+)?)?\s*$"


@dataclass(frozen=True)
class Part:
    """A query over files of one shape: u, kind, ms, a, b and, with `has_odd`, the texts odd, oa, ob.

    `roles` are those of a and b; `by_size` says whether odd numbers are surveyed, None if there are no odd times. The
    shapes of odd texts are there if it is `shaped`. `check` is a query that tells, more quickly, whether all is plain.
    """

    query: str
    roles: tuple[str, ...] = ()
    by_size: bool | None = None
    has_odd: bool = False
    shaped: bool = False
    check: str | None = None


@dataclass(frozen=True)
class Odd:
    """What was decided about the odd texts of an input."""

    dates: Dates = NO_DATES
    places: bool = False
    notes: tuple[str, ...] = ()

    def filled(self, part: Part, engine: Any) -> str:
        """Return a query for u, kind, ms, a, b of a part, with its odd texts read."""
        if not part.has_odd:
            return part.query
        a, b = "a", "b"
        if self.places and part.roles:
            a, b = (
                f"coalesce({n}, {odd_number_sql('o' + n, r)}) AS {n}" for n, r in zip("ab", part.roles, strict=True)
            )
        if not self.dates.formats or part.by_size is None:
            return f"SELECT u, kind, ms, {a}, {b} FROM ({part.query})"  # noqa: S608
        query = part.query if part.shaped else shaped_sql(part.query)
        return self.dates.sql(f"SELECT u, kind, ms, {a}, {b}, odd, shape FROM ({query})", engine)  # noqa: S608


PLAIN = Odd()


def survey_odd(engine: Any, parts: list[Part], options: ReadOptions, where: str) -> Odd:
    """Decide from all rows how odd texts are read; see `dates.survey` for what is refused.

    Parts with odd texts are replaced in the list by tables with the shapes of these.
    """
    for i, part in enumerate(parts):
        if part.check is not None and engine.execute(part.check).fetchall()[0][0] == 0:
            parts[i] = replace(part, query=f"SELECT u, kind, ms, a, b FROM ({part.query})", has_odd=False)  # noqa: S608
    whole = _together(parts, "odd, oa, ob")
    if not whole:
        return PLAIN
    commas = "contains(oa, ',') OR contains(ob, ',')"
    counts = f"count(odd), count(oa) + count(ob), count(*) FILTER ({commas})"
    odd, places, with_comma = engine.execute(f"SELECT {counts} FROM ({whole})").fetchall()[0]  # noqa: S608
    notes: list[str] = []
    dates = NO_DATES
    if odd:
        order = options.time_format if options.time_format in ORDERS else None
        by_size = any(part.by_size for part in parts)
        for i, part in enumerate(parts):
            if part.has_odd and part.by_size is not None:
                # The shapes are found once; what stood in a table before is not needed any longer.
                engine.execute(f"CREATE TEMP TABLE shaped_{i} AS {shaped_sql(part.query)}")
                engine.execute(f"DROP TABLE IF EXISTS part_{i}")
                parts[i] = replace(part, query=f"SELECT * FROM shaped_{i}", shaped=True)  # noqa: S608
        dated = [part for part in parts if part.shaped]
        dates = survey(engine, _together(dated, "kind, ms, odd, shape"), where, order, by_size=by_size)
        notes += dates.notes
    if with_comma:
        degrees = any("lat" in part.roles for part in parts)
        notes.append(
            "numbers with a comma were read as decimal fractions"
            if degrees
            else "x and y with a comma were not read, since it can separate thousands or decimals; write a point"
        )
    return Odd(dates, bool(places), tuple(notes))


def _together(parts: Sequence[Part], columns: str) -> str:
    """Return a query over the odd texts of all parts; empty if none has any."""
    return " UNION ALL ".join(f"SELECT {columns} FROM ({part.query})" for part in parts if part.has_odd)  # noqa: S608


def not_plain_sql(table: str, text: str) -> str:
    """Return a query for the number of texts that are no times of the most common form.

    >>> not_plain_sql("t", "x").partition("(x")[0]
    'SELECT count(*) FROM t WHERE NOT regexp_full_match'
    """
    return f"SELECT count(*) FROM {table} WHERE NOT regexp_full_match({text}, '{_PLAIN_TIME}')"  # noqa: S608


def has_odd_numbers(engine: Any, table: str, column: str) -> bool:
    """Return whether a column of numbers has some that may be no epoch times; cost: one pass over the column."""
    number = f"CAST({column} AS DOUBLE)"
    ranges = " OR ".join(f"{number} BETWEEN {low} AND {high}" for low, high in _ODD_NUMBERS)
    found = engine.execute(f"SELECT count(*) FILTER ({ranges}) FROM {table}").fetchall()[0][0]  # noqa: S608
    return bool(found)


def digits_sql(column: str) -> str:
    """Return SQL for the text of a number, without a point if it is whole."""
    whole = f"CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR)"
    return f"CASE WHEN {column} = floor({column}) THEN {whole} ELSE CAST({column} AS VARCHAR) END"


def joined_sql(date: str, kind: str, time: str) -> str:
    """Return SQL for date and time in one text where the time is only a time of day, else for the time alone."""
    day = f"CAST(CAST({date} AS DATE) AS VARCHAR)" if kind.startswith("TIMESTAMP") else f"CAST({date} AS VARCHAR)"
    if kind == "DOUBLE":
        day = digits_sql(date)
    day = f"regexp_replace(trim({day}), '{_MIDNIGHT}', '')"
    return f"CASE WHEN regexp_matches({time}, '{_CLOCK}') THEN concat({day}, ' ', {time}) ELSE {time} END"
