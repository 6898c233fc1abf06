"""Sanity: refuse data that reads without an error but looks like a mistake, and note what would spoil a release.

What is refused can be confirmed (`ReadOptions.confirm`). Only those who make releases ask; a check of a release takes
the original as it is.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import Implausible, LikelySwapped, NaiveTimes
from shoal.reading.account import BAD_ZERO
from shoal.reading.granules import cut_open
from shoal.reading.world import inhabited

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.reading.account import Account
    from shoal.reading.options import ReadOptions
    from shoal.reading.spread import Spread

__all__ = ["require_sane", "warn_of_naive_times"]

_FEW = 10  # of fewer people, or rows, nothing is said
_SINGLE = 0.9  # a larger share of people with one row means that the column does not name people
_HERE, _THERE = 0.1, 0.9  # at most, at least this share of places is where people live
_STRAY = 0.01  # a smaller share of rows apart from the rest are strays
_APART = 2  # whole degrees without rows between strays and the rest
_APART_DAYS = 90
_WHO = (
    'Name the column that says who it is, `columns="user=…"`; '
    'if people really have one sample each (or one in each file), `confirm="one-sample"`'
)


def require_sane(account: Account, spread: Spread, options: ReadOptions) -> Account:
    """Return the account with notes on rows that would spoil a release.

    Raises Implausible if almost everybody has one row only, and LikelySwapped if nobody lives where the places are;
    `options.confirm` allows both.
    """
    if "one-sample" not in options.confirm:
        _require_samples(account)
    if "swapped" not in options.confirm and spread.places is not None and _swapped(spread.places):
        raise LikelySwapped(_swap_advice(account))
    return replace(account, notes=(*account.notes, *_notes(account, spread)))


def warn_of_naive_times(account: Account, options: ReadOptions) -> None:
    """Warn callers in Python if times without a zone were read as UTC although nobody said so."""
    if account.naive and "tz" not in options.model_fields_set:
        warnings.warn(
            'times without a zone were read as UTC; give their zone: tz="Africa/Dakar"', NaiveTimes, stacklevel=3
        )


def _require_samples(account: Account) -> None:
    if account.people < _FEW:
        return
    user = account.columns.get("user", "user")
    if account.renumbered:
        raise Implausible(
            f"no value of column {user} stands twice in one file: it seems to number the rows of each file, not "
            f"people, and rows of different people would become one. {_WHO}"
        )
    if account.single < _SINGLE * account.people:
        return
    share = "every" if account.single == account.people else f"{account.single / account.people:.0%} of all"
    raise Implausible(
        f"{share} value of column {user} stands in one row only: it seems to number rows, not people, who would then "
        f"be hidden among their own rows. {_WHO}"
    )


def _swapped(places: NDArray[np.int64]) -> bool:
    """Return whether hardly anybody lives at the places, but almost everywhere with the axes exchanged."""
    rows = places.sum()
    low = slice(90, 271)  # longitudes that can be latitudes
    here = (places * inhabited()).sum()
    there = (places[:, low].T * inhabited()[:, low]).sum()
    return bool(rows >= _FEW and here < _HERE * rows and there > _THERE * rows)


def _swap_advice(account: Account) -> str:
    lat, lng = account.columns.get("lat"), account.columns.get("lng")
    if lat and lng:
        what = f'give `columns="lat={lng},lng={lat}"`'
    elif "cell" in account.columns:
        what = "correct the file of cells"
    else:
        what = "write the longitude of each point before its latitude"
    return (
        "latitude and longitude seem to be exchanged: hardly anybody lives where the places are, but people live "
        f'where they would be with both exchanged; {what}. If the places are right, `confirm="swapped"`'
    )


def _notes(account: Account, spread: Spread) -> Iterator[str]:
    if zero := account.dropped.get(BAD_ZERO):
        yield f'{zero:,} rows at 0, 0 were dropped; if that is a place like others, `confirm="zero-zero"`'
    if spread.places is not None:
        yield from _stray_places(spread.places)
    yield from _stray_days(spread.days)


def _stray_places(places: NDArray[np.int64]) -> Iterator[str]:
    """Note a few rows far from the rest; longitudes are cut open where the largest arc without rows is."""
    columns, cut = cut_open(places)
    rows = places.sum()
    west, east = _main(columns.sum(axis=0), _APART)
    south, north = _main(columns[:, west : east + 1].sum(axis=1), _APART)
    strays = int(rows - columns[south : north + 1, west : east + 1].sum())
    if 0 < strays <= _STRAY * rows:
        west, east = ((degree + cut) % 360 - 180 for degree in (west - 1, east + 1))
        box = f"{west},{max(south - 91, -90)},{east},{min(north - 89, 90)}"
        yield (
            f"{_rows(strays)} far away from the rest. One stray place widens the boxes of everybody in its group; "
            f'to keep the others only: `bbox="{box}"`'
        )


def _stray_days(days: NDArray[np.int64]) -> Iterator[str]:
    """Note a few rows long before or after the rest, and days without rows."""
    rows = days.sum()
    first, last = _main(days, _APART_DAYS)
    strays = int(rows - days[first : last + 1].sum())
    if 0 < strays <= _STRAY * rows:
        start, end = (str(np.datetime64(day, "D")) for day in (first, last + 1))
        yield (f'{_rows(strays)} months before or after the rest; to keep the others only: `period="{start},{end}"`')
    full = np.flatnonzero(days)
    missing = int(full[-1] - full[0] + 1 - len(full)) if not strays else 0
    if missing:
        yield f"on {missing:,} of {full[-1] - full[0] + 1:,} days there is no row: is the data complete?"


def _rows(count: int) -> str:
    return f"{count:,} rows are" if count > 1 else "one row is"


def _main(counts: NDArray[np.int64], apart: int) -> tuple[int, int]:
    """Return the first and last index of the run around the median in which gaps are at most `apart` long."""
    full = np.flatnonzero(counts)
    middle = np.searchsorted(np.cumsum(counts[full]), (counts.sum() + 1) // 2)
    breaks = np.flatnonzero(np.diff(full) > apart + 1)
    first = breaks[breaks < middle]
    last = breaks[breaks >= middle]
    return int(full[first[-1] + 1 if len(first) else 0]), int(full[last[0] if len(last) else -1])
