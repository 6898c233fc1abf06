"""Shapes: tell how texts of dates and times are to be read from their shape, such as `99/99/9999 99:99`.

A shape is the text with every digit as 9. All texts of an input with one shape are read with one format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shoal.reading.times import LOCAL, ZONED, ZULU

__all__ = ["ORDERS", "Shape", "shape_of"]

ORDERS = {"dmy": "day/month/year", "mdy": "month/day/year", "ymd": "year/month/day"}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_LONG_MONTHS = ["january", "february", "march", "april", "may", "june", "july", "august", "september"]
_LONG_MONTHS += ["october", "november", "december"]
_DAYS = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_LONG_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_CLOCK = re.compile(r"(?<![9.])99?:99(?P<s>:99)?(?P<f>[.,]9{1,9})?(?P<half> ?[AaPp][Mm])?(?![9:])")
_CLOCK_MARK, _ZONE_MARK = "\ue000", "\ue001"
_OFFSET = re.compile(r"(?P<utc> ?(?:UTC|GMT))?(?P<gap> ?)[+-]99(?::?99)?(?![9:])")
_UTC = re.compile(rf"(?<=[9{_CLOCK_MARK}])Z|(?<=[ 9{_CLOCK_MARK}])(?:UTC|GMT)")
_ABBREVIATION = re.compile(rf"(?<=[ 9{_CLOCK_MARK}])[A-Z]{{2,5}}(?![A-Za-z])")
_NAME_AFTER = re.compile(r" \([A-Za-z 9+:-]+\)$")
_MARKS = {"T", "t", "h", "H", "at", "um", "de", "Uhr"}  # words that may stand in a date
_BETWEEN = set(" -/.,_:'年月日时時点分秒년월일시분초" + _CLOCK_MARK + _ZONE_MARK)


@dataclass(frozen=True)
class Shape:
    """How a shape may be read: formats by the order of day, month and year (`""` if there is only one).

    `kind` is that of the time. `abbreviated` is set where a zone's abbreviation stands in the text, which has several
    meanings; `number` for digits that are a date (20260301), but could also be an epoch time.
    """

    formats: tuple[tuple[str, str], ...]
    kind: int
    abbreviated: bool = False
    number: bool = False


def shape_of(shape: str) -> Shape | None:
    """Return how texts of a shape may be read; None if they are no times.

    >>> shape_of("99.99.9999 99:99").formats
    (('dmy', '%d.%m.%Y %H:%M'), ('mdy', '%m.%d.%Y %H:%M'))
    >>> shape_of("Tue Apr 99 99:99:99 +9999 9999").formats
    (('', '%a %b %d %H:%M:%S %z %Y'),)
    """
    if _CLOCK_MARK in shape or _ZONE_MARK in shape:
        return None
    text, words, kind = shape.replace("%", "%%"), {}, LOCAL
    if found := _CLOCK.search(text):
        words[_CLOCK_MARK] = _clock_format(found)
        text = text[: found.start()] + _CLOCK_MARK + text[found.end() :]
        # An offset stands after the clock; before it, a hyphen and digits are part of the date.
        if offset := _OFFSET.match(text, found.start() + 1):
            kind, words[_ZONE_MARK] = ZONED, (offset["utc"] or "") + offset["gap"] + "%z"
            text = _NAME_AFTER.sub("", text[: offset.start()] + _ZONE_MARK + text[offset.end() :])
            words[_ZONE_MARK] += shape[len(shape) - len(_after(shape)) :]
    abbreviated = False
    if kind == LOCAL and (utc := _UTC.search(text)):
        kind, words[_ZONE_MARK] = ZULU, utc[0]
        text = text[: utc.start()] + _ZONE_MARK + text[utc.end() :]
    elif kind == LOCAL and (zone := _ABBREVIATION.search(text)) and _word(zone[0]) is None:
        abbreviated, words[_ZONE_MARK] = True, "%Z"
        text = text[: zone.start()] + _ZONE_MARK + text[zone.end() :]
    formats = _formats(text, has_clock=_CLOCK_MARK in words)
    if formats is None:
        return None

    def whole(one: str) -> str:
        for mark, word in words.items():
            one = one.replace(mark, word)
        return one

    return Shape(tuple((order, whole(one)) for order, one in formats), kind, abbreviated, number=set(shape) == {"9"})


def _after(shape: str) -> str:
    """Return the name of the zone that JavaScript writes after the offset, in parentheses."""
    found = _NAME_AFTER.search(shape)
    return found[0] if found else ""


def _clock_format(found: re.Match[str]) -> str:
    fraction, half = found["f"] or "", found["half"] or ""
    text = ("%I" if half else "%H") + ":%M" + (":%S" if found["s"] else "")
    text += fraction[:1] + ("%f" if len(fraction) <= 7 else "%n") if fraction else ""
    return text + (half[:-2] + "%p" if half else "")


def _word(text: str) -> str | None:
    """Return the format of the name of a month or a day, the word itself if it has no meaning, None for others."""
    low = text.lower()
    for names, code in ((_MONTHS, "%b"), (_LONG_MONTHS, "%B"), (_DAYS, "%a"), (_LONG_DAYS, "%A")):
        if low in names:
            return code
    return text if text in _MARKS else None


def _formats(text: str, *, has_clock: bool) -> list[tuple[str, str]] | None:
    """Return the formats of the date in a text, by order; without a clock its last numbers may be one."""
    tokens = re.findall(r"9+|[A-Za-z]+|.", text)
    numbers = [i for i, token in enumerate(tokens) if token[0] == "9"]
    named = False
    for i, token in enumerate(tokens):
        if token.isascii() and token.isalpha():
            word = _word(token)
            if word is None or (word in {"%b", "%B"} and named):
                return None
            named |= word in {"%b", "%B"}
            tokens[i] = word
        elif (
            token[0] != "9"
            and token not in _BETWEEN
            and token[0] > "\5"
            and token[0] not in "年月日时時点분초시분초分秒일월년()%"
        ):
            return None
    lengths = [len(tokens[i]) for i in numbers]
    days = 2 if named else 3
    codes = _compact(lengths, has_clock=has_clock) if not named else None
    if codes is not None:
        return [("", _filled(tokens, numbers, codes))]
    clock = lengths[days:]
    if not has_clock and len(clock) in (2, 3) and clock[0] <= 2 and set(clock[1:]) == {2}:
        rest = ["%H", "%M", "%S"][: len(clock)]
    elif clock or len(lengths) < days:
        return None
    else:
        rest = []
    orders = _named_orders(lengths[:2]) if named else _orders(lengths[:3])
    return [(order, _filled(tokens, numbers, [*codes, *rest])) for order, codes in orders] or None


def _filled(tokens: list[str], numbers: list[int], codes: list[str]) -> str:
    filled = list(tokens)
    for i, code in zip(numbers, codes, strict=True):
        filled[i] = code
    return "".join(filled)


def _compact(lengths: list[int], *, has_clock: bool) -> list[str] | None:
    """Return the codes of digits without signs between them: 20080202, 200802021333, 20080202 133300."""
    if has_clock:
        return ["%Y%m%d"] if lengths == [8] else None
    known: dict[tuple[int, ...], list[str]] = {(8,): ["%Y%m%d"], (12,): ["%Y%m%d%H%M"], (14,): ["%Y%m%d%H%M%S"]}
    known |= {(8, 4): ["%Y%m%d", "%H%M"], (8, 6): ["%Y%m%d", "%H%M%S"]}
    return known.get(tuple(lengths))


def _orders(lengths: list[int]) -> list[tuple[str, list[str]]]:
    first, second, third = lengths
    if first == 4 and second <= 2 and third <= 2:
        return [("", ["%Y", "%m", "%d"])]
    if first > 2 or second > 2:
        return []
    if third == 4:
        return [("dmy", ["%d", "%m", "%Y"]), ("mdy", ["%m", "%d", "%Y"])]
    short = [("dmy", ["%d", "%m", "%y"]), ("mdy", ["%m", "%d", "%y"])] if third == 2 else []
    return [*short, ("ymd", ["%y", "%m", "%d"])] if first == 2 and third <= 2 else short


def _named_orders(lengths: list[int]) -> list[tuple[str, list[str]]]:
    first, second = lengths
    if first == 4 and second <= 2:
        return [("", ["%Y", "%d"])]
    if first <= 2 and second == 4:
        return [("", ["%d", "%Y"])]
    if second == 2 and first <= 2:
        return [("dmy", ["%d", "%y"]), *([("ymd", ["%y", "%d"])] if first == 2 else [])]
    return []
