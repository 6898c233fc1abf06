"""Rows for the witness: users, times and places of one file, and which rows are kept by the stated rules."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array, to_text_array
from shoal.seen.digest import Digest, People, text_hashes, user_hashes
from shoal.seen.witness_files import Unseen
from shoal.seen.witness_tables import batches_of
from shoal.seen.witness_values import (
    GOOD,
    STRANGE,
    Column,
    days_and_slots,
    is_text,
    joined,
    numbers,
    state_of,
    times,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from shoal.reading.account import Account
    from shoal.reading.options import ReadOptions
    from shoal.seen.witness_files import Found

__all__ = ["OF_PLACE", "OF_TIME", "Case", "Plan", "Rows", "Seen", "TooStrange", "rows_of"]

_LAST_MS = 4_102_444_800_000  # 2100-01-01
_UNIT = re.compile(r".*[_(\[ ](ms|s)[)\]]?", re.IGNORECASE)
_INT32 = 2**31 - 1
# The rules of the account that take rows because of their time, of their place, and because they are no rows.
OF_TIME = ("time can't be read", "time before 1970 or after 2099", "outside the period")
OF_PLACE = (
    "place can't be read",
    "coordinates out of range",
    "place 0, 0, which devices write without a fix",
    "unknown cell",
    "outside the bounding box",
)


@dataclass(frozen=True)
class Plan:
    """What is compared row by row; `kind` is the type that the times of a text are tried as, None: all are texts."""

    time: bool
    place: bool
    kind: pa.DataType | None


class TooStrange(Exception):
    """Raised where the reader has read what the witness can't: `part` is `time` or `place`."""

    def __init__(self, part: str) -> None:
        super().__init__(part)
        self.part = part


@dataclass(frozen=True)
class Case:
    """The files, and what the reader says about them."""

    found: Sequence[Found]
    options: ReadOptions
    account: Account

    @property
    def roles(self) -> dict[str, str]:
        """Which column became what."""
        return self.account.columns

    @property
    def unit(self) -> str:
        """The unit of times that are numbers, from the options or the name of the column."""
        named = _UNIT.fullmatch(self.roles["time"].strip())
        return named[1].lower() if named and self.options.time_unit == "auto" else self.options.time_unit

    @property
    def place(self) -> tuple[str, str] | None:
        """The columns of the place, if they hold numbers."""
        return next(((self.roles[a], self.roles[b]) for a, b in (("lng", "lat"), ("x", "y")) if a in self.roles), None)

    @property
    def cell(self) -> int | None:
        """The metres of a cell, where places are numbers of cells."""
        return self.options.cell if "x" in self.roles and self.options.crs is None else None

    def dropped(self, *rules: str) -> int:
        """Return how many rows the reader set aside by these rules."""
        return sum(self.account.dropped.get(rule, 0) for rule in rules)

    def comparable(self, plan: Plan) -> bool:
        """Return whether the rows that are kept can be told: no rule took rows for what is not compared."""
        return (plan.time or not self.dropped(*OF_TIME)) and (plan.place or not self.dropped(*OF_PLACE))

    def in_range(self, a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which places can be: degrees that are, not 0, 0, or metres and cells on Earth."""
        most_a, most_b = (180.0, 90.0) if "lng" in self.roles else (1e8, 1e8)
        if self.cell:
            most_a = most_b = _INT32 // self.cell - 1
        found: NDArray[np.bool_] = (np.abs(a) <= most_a) & (np.abs(b) <= most_b)
        if "lng" in self.roles and "zero-zero" not in self.options.confirm:
            found &= (a != 0) | (b != 0)
        return found

    def in_filters(self, ms: Any, a: Any, b: Any) -> NDArray[np.bool_] | bool:
        """Return which rows are in the period and in the bounding box that were asked for."""
        inside: NDArray[np.bool_] | bool = True
        if ms is not None and (period := self.options.period_ms()) is not None:
            inside = (ms >= period[0]) & (ms < period[1])
        if a is not None and b is not None and self.options.bbox is not None:
            west, south, east, north = self.options.bbox
            between = (a >= west) & (a <= east) if west <= east else (a >= west) | (a <= east)
            inside = inside & between & (b >= south) & (b <= north)
        return inside


@dataclass(frozen=True)
class Rows:
    """Rows of a batch: the hashes of some users, which of them each row has (-1: none), its time and place."""

    hashes: NDArray[np.uint64]
    users: NDArray[np.int64]
    time: Column | None
    a: Column | None
    b: Column | None


def rows_of(case: Case, plan: Plan, found: Found, kind: pa.DataType | None) -> Iterator[Rows]:
    """Yield the rows of a file."""
    roles, options = case.roles, case.options
    of_file = roles["user"] in ("@file", "@folder")
    timed = [roles[role] for role in ("date", "time", "day", "slot") if role in roles]
    placed = list(case.place or ()) if plan.place else []
    names = list(dict.fromkeys([*([] if of_file else [roles["user"]]), *timed, *placed]))
    kinds: dict[str, pa.DataType] = {}
    if kind is not None:
        kinds = dict.fromkeys(placed, pa.float64())
        kinds |= {timed[0]: kind} if plan.time and len(timed) == 1 else {}
    kinds.pop(roles["user"], None)
    for batch in batches_of(found, names, kinds, options.encoding):
        size = len(batch[names[0]])
        if of_file:
            hashes, users = text_hashes(to_text_array(found.user(roles["user"]))), np.zeros(size, np.int64)
        else:
            hashes, users = _users(batch[roles["user"]])
        time = _time(case, [batch[name] for name in timed]) if plan.time else None
        a, b = (numbers(batch[name], commas="lng" in roles) for name in placed) if placed else (None, None)
        yield Rows(hashes, users, time, a, b)


def _users(column: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes of a batch's users, and which of them each row has; raises Unseen for what has no one text."""
    kind = column.type
    if pa.types.is_floating(kind):
        known = numbers(column)
        values = known.values[known.state == GOOD]
        if ((values != np.floor(values)) | (np.abs(values) >= 1e15)).any():
            raise Unseen("users")
        whole = np.where(known.state == GOOD, known.values, 0.0).astype(np.int64)
        hashes, users = user_hashes(to_arrow_array(whole))
        return hashes, np.where(known.state == GOOD, users, -1)
    if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise Unseen("users")
    return user_hashes(column)


def _time(case: Case, columns: list[pa.Array]) -> Column:
    if "day" in case.roles:
        return days_and_slots(columns, case.options.slot)
    if "date" not in case.roles:
        return times(columns[0], case.unit, case.options.tz)
    whole = joined(*columns)
    if whole is None:
        raise TooStrange("time")
    return times(whole, "s", case.options.tz)


@dataclass
class Seen:
    """What the witness counts: rows, people, the rows that are kept, and rows without a time or place it can read.

    `no` counts rows that have no time, or no place, as far as the witness can tell; `strange` those of them that have
    something only the reader may understand.
    """

    rows: int = 0
    people: People = field(default_factory=People)
    kept: Digest = field(default_factory=Digest)
    no: Counter[str] = field(default_factory=Counter)
    strange: Counter[str] = field(default_factory=Counter)

    def merge(self, other: Seen) -> None:
        """Add the counts of another file, whose people are here already."""
        self.rows += other.rows
        self.kept.merge(other.kept)
        self.no += other.no
        self.strange += other.strange

    def add(self, case: Case, rows: Rows) -> None:
        """Count the rows of a batch, by the rules that the documents state, in their order."""
        self.rows += len(rows.users)
        kept = rows.users >= 0
        named = np.zeros(len(rows.hashes), bool)
        named[rows.users[kept]] = True
        self.people.add(rows.hashes[named])
        ms, a, b = None, None, None
        if rows.time is not None:
            ms = rows.time.values
            kept = self._read(kept, rows.time.state, "time") & (ms >= 0) & (ms < _LAST_MS)
        if rows.a is not None and rows.b is not None:
            a, b = rows.a.values, rows.b.values
            kept = self._read(kept, state_of(rows.a, rows.b), "place") & case.in_range(a, b)
        kept &= case.in_filters(ms, a, b)
        which = slice(None) if kept.all() else kept
        ms, a, b = (None if column is None else column[which] for column in (ms, a, b))
        if case.cell and a is not None and b is not None:
            a, b = a * case.cell, b * case.cell
        self.kept.add_by(rows.hashes, rows.users[which], ms, a, b)

    def _read(self, kept: NDArray[np.bool_], state: NDArray[np.uint8], part: str) -> NDArray[np.bool_]:
        """Return which rows have a time or place; count those that have none that can be read here."""
        self.no[part] += int((kept & (state != GOOD)).sum())
        self.strange[part] += int((kept & (state == STRANGE)).sum())
        found: NDArray[np.bool_] = kept & (state == GOOD)
        return found
