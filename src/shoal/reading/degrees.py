"""Degrees: read places that are texts but no plain numbers, such as `52,5163`, `39.9N` or `39°54'27"N`."""

from __future__ import annotations

__all__ = ["odd_number_sql"]

_BLANKS = "\u00a0\u2007\u2009\u202f\u3000\t "
_MINUS = "−–"


def odd_number_sql(text: str, role: str) -> str:
    """Return SQL for the number in a text that is none for the engine; NULL if it can't be read safely.

    Blanks within a number are left out. In degrees a comma is a decimal comma (`52,5163`), since a degree has no
    thousands; in metres (x, y) a comma is not read. A hemisphere must fit the axis: O, which is west in French and
    east in German, is not read.
    """
    bare = f"translate(upper({text}), '{_BLANKS}{_MINUS}º', '{' ' * len(_BLANKS)}--°')"
    bare = f"replace({bare}, ' ', '')"
    if role not in {"lat", "lng"}:
        return f"TRY_CAST(CASE WHEN regexp_full_match({bare}, '[+-]?\\d+([.]\\d*)?') THEN {bare} END AS DOUBLE)"
    sides = "NS" if role == "lat" else "EW"
    point = f"replace({bare}, ',', '.')"
    signed = f"regexp_full_match({point}, '[+-]?\\d+([.]\\d*)?°?')"
    sided = f"regexp_full_match({point}, '([{sides}]\\d+([.]\\d*)?°?|\\d+([.]\\d*)?°?[{sides}])')"
    sign = f"CASE WHEN contains({bare}, '{sides[1]}') THEN -1 ELSE 1 END"
    number = f"TRY_CAST(regexp_extract({point}, '[+-]?\\d+([.]\\d*)?') AS DOUBLE)"
    return (
        f"CASE WHEN {signed} THEN {number} WHEN {sided} THEN {sign} * {number} "
        f"WHEN contains({bare}, '°') THEN {_sexagesimal(point, sides, sign)} END"
    )


def _sexagesimal(text: str, sides: str, sign: str) -> str:
    """Return SQL for degrees, minutes and seconds with a hemisphere: 39°54'27.5"N."""
    form = f"(\\d{{1,3}})°(\\d{{1,2}}(?:[.]\\d+)?)[''′’](?:(\\d{{1,2}}(?:[.]\\d+)?)(?:[\"″”]|''''))?[{sides}]"
    parts = [f"regexp_extract({text}, '{form}', {i})" for i in (1, 2, 3)]
    degrees, minutes, seconds = (f"CAST('0' || {part} AS DOUBLE)" for part in parts)
    fits = f"regexp_full_match({text}, '{form}') AND {minutes} < 60 AND {seconds} < 60"
    return f"CASE WHEN {fits} THEN {sign} * ({degrees} + {minutes} / 60 + {seconds} / 3600) END"
