"""Rules: which rows are kept, and under which rule the others are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.frame import transformer
from shoal.reading.account import (
    BAD_CELL,
    BAD_PLACE,
    BAD_RANGE,
    BAD_TIME,
    BAD_USER,
    BAD_YEAR,
    BAD_ZERO,
    OUTSIDE_BBOX,
    OUTSIDE_PERIOD,
    ROW_RULES,
)
from shoal.reading.times import FIRST_MS, LAST_MS, NO_TIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KEPT", "Rows", "Rules", "in_box", "judge"]

KEPT = len(ROW_RULES)
_CODE = {rule: code for code, rule in enumerate(ROW_RULES)}


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows as parsed. Missing values are user -1, time NO_TIME (else UTC ms) and place NaN.

    With cells an infinite place means a cell that the cells file does not have.
    """

    users: NDArray[np.int32]
    ms: NDArray[np.int64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]


@dataclass(frozen=True)
class Rules:
    """The rules for a row: |a| ≤ max_a, |b| ≤ max_b (longitude and latitude, or east and north), and filters.

    `no_zero`: the place 0, 0 is none.
    """

    max_a: float
    max_b: float
    from_cells: bool = False
    no_zero: bool = False
    period_ms: tuple[int, int] | None = None
    bbox: tuple[float, float, float, float] | None = None
    crs: str | None = None  # of a, b when they are metres

    @property
    def filters(self) -> bool:
        """Whether a filter is set, which can drop rows that are not bad."""
        return self.period_ms is not None or self.bbox is not None


def judge(rows: Rows, rules: Rules) -> NDArray[np.uint8] | None:
    """Return for each row KEPT or the position in ROW_RULES of the first rule it breaks; None if all are kept.

    >>> rows = Rows(np.array([0, -1]), np.array([0, 0]), np.array([0.0, 0.0]), np.array([91.0, 0.0]))
    >>> [ROW_RULES[code] for code in judge(rows, Rules(max_a=180, max_b=90))]
    ['coordinates out of range', 'no user']
    """
    if not rules.filters and _all_good(rows, rules):
        return None
    codes = np.full(len(rows.users), KEPT, dtype=np.uint8)
    with np.errstate(invalid="ignore", over="ignore"):
        broken = [
            (BAD_USER, rows.users < 0),
            (BAD_TIME, rows.ms == NO_TIME),
            (BAD_YEAR, (rows.ms < FIRST_MS) | (rows.ms >= LAST_MS)),
            (BAD_PLACE, np.isnan(rows.a) | np.isnan(rows.b) if rules.from_cells else ~np.isfinite(rows.a + rows.b)),
            (BAD_CELL, np.isinf(rows.a) if rules.from_cells else None),
            (BAD_RANGE, (np.abs(rows.a) > rules.max_a) | (np.abs(rows.b) > rules.max_b)),
            (BAD_ZERO, (rows.a == 0) & (rows.b == 0) if rules.no_zero else None),
        ]
    for rule, mask in broken:
        if mask is not None:
            codes[mask & (codes == KEPT)] = _CODE[rule]
    if rules.period_ms is not None:
        start, end = rules.period_ms
        codes[((rows.ms < start) | (rows.ms >= end)) & (codes == KEPT)] = _CODE[OUTSIDE_PERIOD]
    if rules.bbox is not None:
        kept = np.flatnonzero(codes == KEPT)
        codes[kept[~in_box(rows.a[kept], rows.b[kept], rules)]] = _CODE[OUTSIDE_BBOX]
    return codes


def _all_good(rows: Rows, rules: Rules) -> bool:
    """Return whether no row breaks a rule; NaN makes it False. Fast, because most data is clean."""
    return bool(
        len(rows.users) == 0
        or (
            rows.users.min() >= 0
            and rows.ms.min() >= FIRST_MS
            and rows.ms.max() < LAST_MS
            and rows.a.min() >= -rules.max_a
            and rows.a.max() <= rules.max_a
            and rows.b.min() >= -rules.max_b
            and rows.b.max() <= rules.max_b
            and not (rules.no_zero and ((rows.a == 0) & (rows.b == 0)).any())
        )
    )


def in_box(a: NDArray[np.float64], b: NDArray[np.float64], rules: Rules) -> NDArray[np.bool_]:
    """Return whether places lie in the bounding box; west > east means that it crosses the antimeridian."""
    if rules.crs is not None:
        a, b = transformer(rules.crs).transform(a, b, direction="INVERSE")
    west, south, east, north = rules.bbox or (-180.0, -90.0, 180.0, 90.0)
    between = (a >= west) & (a <= east) if west <= east else (a >= west) | (a <= east)
    inside: NDArray[np.bool_] = between & (b >= south) & (b <= north)
    return inside
