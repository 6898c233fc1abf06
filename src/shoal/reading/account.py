"""Account: how many rows were read, and how many were dropped for which reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "BAD_CELL",
    "BAD_CRS",
    "BAD_PLACE",
    "BAD_RANGE",
    "BAD_ROW",
    "BAD_TIME",
    "BAD_USER",
    "BAD_YEAR",
    "BAD_ZERO",
    "DUPLICATE",
    "FEW_DAYS",
    "FEW_SAMPLES",
    "LATER_DAY",
    "NO_ROWS",
    "OUTSIDE_BBOX",
    "OUTSIDE_PERIOD",
    "ROW_RULES",
    "SAME_FIX",
    "Account",
]

BAD_ROW = "not a row of the table"
BAD_USER = "no user"
BAD_TIME = "time can't be read"
BAD_YEAR = "time before 1970 or after 2099"
BAD_PLACE = "place can't be read"
BAD_RANGE = "coordinates out of range"
BAD_ZERO = "place 0, 0, which devices write without a fix"
BAD_CELL = "unknown cell"
OUTSIDE_PERIOD = "outside the period"
OUTSIDE_BBOX = "outside the bounding box"
BAD_CRS = "place that the CRS can't hold"
DUPLICATE = "same user, same granule"
SAME_FIX = "same user, time and place"
LATER_DAY = "of later days than were asked for"
FEW_SAMPLES = "of users with too few samples"
FEW_DAYS = "of users with too few active days"
NO_ROWS = "no usable rows"  # of people all of whose rows broke a rule

# A row is counted under the first rule that it breaks; the position is the code used while reading.
ROW_RULES = (
    BAD_ROW,
    BAD_USER,
    BAD_TIME,
    BAD_YEAR,
    BAD_PLACE,
    BAD_RANGE,
    BAD_ZERO,
    BAD_CELL,
    OUTSIDE_PERIOD,
    OUTSIDE_BBOX,
)


@dataclass(frozen=True)
class Account:
    """The account of reading and cleaning: `rows_read` = everything `dropped` + `kept_rows`.

    `dropped` says how many rows each rule took, in the order in which rules are applied, `users_dropped` how
    many people are out because no row was left or the screening took them; only rules that fired are there.
    `columns` says which column became what. `people` counts all people in the input, `single` those with one row only.
    `renumbered` says that no user has two rows in one file, `naive` that times without a zone were read. `notes` are
    messages to show once, and `read` is what the run record says of the reading options. An account holds counts and
    column names, no value of the data.
    """

    rows_read: int
    dropped: dict[str, int] = field(default_factory=dict)
    users_dropped: dict[str, int] = field(default_factory=dict)
    kept_rows: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    people: int = 0
    single: int = 0
    naive: bool = False
    renumbered: bool = False
    read: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def roles(self) -> str:
        """Which column became what, in one line.

        >>> Account(rows_read=0, columns={"user": "msisdn", "time": "start_time"}).roles
        'user = msisdn, time = start_time'
        """
        return ", ".join(f"{role} = {column}" for role, column in self.columns.items())

    def table(self) -> list[tuple[str, int]]:
        """Return the account as printable rows: name and count."""
        users = [(f"users: {rule.removeprefix('of users with ')}", count) for rule, count in self.users_dropped.items()]
        return [("rows read", self.rows_read), *self.dropped.items(), ("kept", self.kept_rows), *users]

    def to_dict(self) -> dict[str, Any]:
        """Return the account as a dictionary, as it is stored in the private run record."""
        return {
            "columns": dict(self.columns),
            "rows_read": self.rows_read,
            "dropped": dict(self.dropped),
            "users_dropped": dict(self.users_dropped),
            "kept_rows": self.kept_rows,
            "notes": list(self.notes),
        }
