"""Screen: select the users who are kept, in canonical order, and count the users and rows that are not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import NoValidRows
from shoal.reading.account import BAD_CRS, DUPLICATE, FEW_DAYS, FEW_SAMPLES, LATER_DAY, NO_ROWS, SAME_FIX, Account
from shoal.reading.times import zone

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.kernels.order import Packed
    from shoal.reading.options import ReadOptions

__all__ = ["Lost", "complete", "screen"]

_ROWS = (BAD_CRS, DUPLICATE, SAME_FIX, FEW_SAMPLES, FEW_DAYS, LATER_DAY)
_USERS = (NO_ROWS, FEW_SAMPLES, FEW_DAYS)
_DAY_MS = 86_400_000
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Lost:
    """Counts of rows and users that the grid and the screening dropped, by rule; several parts can share one object."""

    rows: Counter[str] = field(default_factory=Counter)
    users: Counter[str] = field(default_factory=Counter)


def screen(packed: Packed, rows: int, frame: Frame, options: ReadOptions, lost: Lost) -> NDArray[np.int64]:
    """Return the users who are kept, in canonical order; count the others and their rows in `lost`.

    Input: packed rows, and how many `rows` there were before those that the CRS can't hold were left out.
    """
    from shoal.kernels.order import packed_order

    counts = packed.counts
    few = (counts < options.min_samples) & (counts > 0)
    idle = _idle(packed, frame, options) & ~few
    lost.rows.update(
        {
            BAD_CRS: rows - len(packed.keys),
            DUPLICATE: len(packed.keys) - int(counts.sum()),
            FEW_SAMPLES: int(counts[few].sum()),
            FEW_DAYS: int(counts[idle].sum()),
        }
    )
    lost.users.update({NO_ROWS: int((counts == 0).sum()), FEW_SAMPLES: int(few.sum()), FEW_DAYS: int(idle.sum())})
    order = packed_order(packed)
    return order[(counts > 0)[order] & ~(few | idle)[order]]


def complete(account: Account, lost: Lost) -> Account:
    """Return the account with the losses of the grid and the screening. Raises NoValidRows if nobody is left.

    >>> complete(Account(rows_read=3, kept_rows=3), Lost(Counter({DUPLICATE: 1}))).table()
    [('rows read', 3), ('same user, same granule', 1), ('kept', 2)]
    """
    kept = account.kept_rows - sum(lost.rows.values())
    if kept == 0:
        raise NoValidRows("no user is left; lower `min_samples` or `min_active_days`")
    people = Counter(account.users_dropped) + lost.users
    return replace(
        account,
        dropped={**account.dropped, **{rule: lost.rows[rule] for rule in _ROWS if lost.rows[rule]}},
        users_dropped={rule: people[rule] for rule in _USERS if people[rule]},
        kept_rows=kept,
    )


def _idle(packed: Packed, frame: Frame, options: ReadOptions) -> NDArray[np.bool_]:
    """Return the users with too few active days; a few users at a time, because it takes 50 bytes a row."""
    from shoal.kernels.order import packed_slots

    idle = np.zeros(len(packed.counts), dtype=np.bool_)
    if options.min_active_days <= 1:
        return idle
    first = 0
    while first < len(idle):
        end = int(np.searchsorted(packed.offsets, packed.offsets[first] + _ROWS_AT_ONCE, side="right")) - 1
        some = np.arange(first, max(first + 1, end))
        users, t = packed_slots(packed, some)
        days = zone(options.tz).to_local(frame.epoch_s(t) * 1000) // _DAY_MS
        pairs = np.sort(((users - first) << 32) + days + 1)  # west of Greenwich the first day is -1
        active = np.bincount(pairs[np.diff(pairs, prepend=-1) > 0] >> 32, minlength=len(some))
        idle[some] = (active < options.min_active_days) & (packed.counts[some] > 0)
        first += len(some)
    return idle
