"""The attacks `top-locations` and `home-work`: the adversary knows places where the victim often is, without dates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, to_arrow_array
from shoal.attacks.knowledge import anyone, percent, promised, row_of
from shoal.attacks.matching import KnownPoints, PlaceMatcher, SampleMatcher, axes_of, count_people, pack, unpack
from shoal.attacks.outcome import Attack, Outcome, rate, register
from shoal.attacks.target import draw_victims
from shoal.errors import CannotCheck, TooLarge
from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import fresh, spread
from shoal.settings import Settings, setting
from shoal.streams import Stream, draw_from

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.attacks.target import Target
    from shoal.seen.original import Original

__all__ = ["HOME_WORK", "TOP_LOCATIONS", "home_work_attack", "top_locations_attack"]

_MOST = 5
_NIGHT, _OFFICE = (22, 6), (9, 17)  # local hours, from the first to before the second
_SLOTS = 50_000_000  # of a period: 95 years of minutes


class _Visits(NamedTuple):
    """The cells of each user, the most visited first (ties by x, then y); those of user u start at offsets[u]."""

    offsets: NDArray[np.int64]
    x: NDArray[Any]
    y: NDArray[Any]

    def top(self, users: NDArray[np.int64], most: int) -> KnownPoints:
        """Return the first `most` cells of these users, without times (slot 0)."""
        counts = np.minimum(np.diff(self.offsets)[users], most)
        which = spread(counts)
        rows = np.arange(len(which)) + (self.offsets[users] - offsets_of(counts)[:-1])[which]
        return KnownPoints(offsets_of(counts), np.zeros(len(rows), dtype=np.int64), self.x[rows], self.y[rows])

    def cells(self, most: int) -> NDArray[np.int64]:
        """Return everybody's first `most` cells as numbers, a column each; the least int64 where a user has fewer."""
        place = np.arange(len(self.x)) - self.offsets[:-1][spread(np.diff(self.offsets))]
        chosen = place < most
        cells = np.full((len(self.offsets) - 1, most), np.iinfo(np.int64).min)
        user = spread(np.diff(self.offsets))[chosen]
        cells[user, place[chosen]] = _cell_number(self.x[chosen], self.y[chosen])
        return cells


def top_locations_attack(
    target: Target, *, victims: int = 1000, seed: int = 0, locations: int | None = None, run: Run = LOCAL
) -> Outcome:
    """Single people out by the cells where most of their samples are: `locations` of them (None: 1…5), no times.

    A record fits if each of the cells lies in one of its boxes. Control: users who have a sample in each cell.
    `control_ranked`: users whose own most visited cells are the same, which is the attack of the literature. Of a
    victim with fewer cells all are known. Cost: a sort of everybody's cells; a search per victim and row.
    """
    chance = draw_from(seed, Stream.TOP_LOCATIONS)
    drawn = draw_victims(anyone(target), victims, chance)
    people, boxes = target.people, target.records.unique.boxes
    seen = _seen(people, np.zeros(len(people.t), dtype=np.int64), np.ones(len(people.t), dtype=bool))
    visits, raw = _visits(seen, len(people)), _cell_matcher(seen, len(people))
    records = PlaceMatcher(target.records.unique, np.zeros((len(boxes), 2), dtype=np.int64))
    rows = []
    numbers = range(1, _MOST + 1) if locations is None else [locations]
    with run.stage("attack top-locations", len(numbers)) as advance:
        for number in numbers:
            known = visits.top(drawn, number)
            people_left, control = (count_people(one, known, run=run) for one in (records, raw))
            same = _as_many(np.sort(visits.cells(number), axis=1), np.arange(len(people)))[drawn]
            ranked = rate("control_ranked", int((same == 1).sum()), len(drawn))
            rows.append({"locations": number, **row_of(target, people_left, control), **ranked})
            advance(1)
    settings = {"locations": locations, "victims": victims, "seed": seed}
    row = rows[-1]
    said = (
        f"Somebody who knows the {row['locations']} cells where a person is most often, without times, singles out "
        f"the person in {percent(row['success'])} of cases; in raw data in {percent(row['control'])} "
        f"({percent(row['control_ranked'])} if ranks are compared)."
    )
    return Outcome("top-locations", settings, len(drawn), rows, promised(target), (said,))


def home_work_attack(target: Target, *, victims: int = 1000, seed: int = 0, run: Run = LOCAL) -> Outcome:
    """Single people out by home (the cell most visited from 22 to 6 h, local) and work (9 to 17 h), without dates.

    Victims are users who have samples in both; there is a row for home, for work, and for both. A record fits if one
    box holds the home and some time of the night hours, and one box the work place and some time of the office hours.
    Control: users with such samples; `control_ranked`: users whose own home and work are the same.
    Cost: a sort of everybody's cells; a search per victim and row.
    """
    clock = _clock(target)
    people = target.people
    slot = people.t.astype(np.int64) - clock.first
    night, office = clock.night[slot], clock.office[slot]
    seen = _seen(people, office.astype(np.int64), night | office)
    homes, works = (_visits(seen.of(category), len(people)) for category in (0, 1))
    at_both = np.flatnonzero((np.diff(homes.offsets) > 0) & (np.diff(works.offsets) > 0))
    eligible = np.intersect1d(anyone(target), at_both)
    if not len(eligible):
        raise CannotCheck("nobody has samples both from 22 to 6 h and from 9 to 17 h; is the time zone right (`tz`)?")
    drawn = draw_victims(eligible, victims, draw_from(seed, Stream.HOME_AND_WORK))
    home, work = homes.top(drawn, 1), works.top(drawn, 1)._replace(t=np.ones(len(drawn), dtype=np.int64))
    both = KnownPoints(
        np.arange(len(drawn) + 1) * 2, *(np.stack(pair, 1).ravel() for pair in zip(home[1:], work[1:], strict=True))
    )
    raw = _cell_matcher(seen, len(people))
    records = PlaceMatcher(target.records.unique, clock.hours(target.records.unique.boxes))
    rows, tops = [], [one.cells(1) for one in (homes, works)]
    with run.stage("attack home-work", 3) as advance:
        for name, known, own in (("home", home, tops[:1]), ("work", work, tops[1:]), ("home and work", both, tops)):
            people_left, control = (count_people(one, known, run=run) for one in (records, raw))
            same = _as_many(np.concatenate(own, axis=1), at_both)[drawn]
            ranked = rate("control_ranked", int((same == 1).sum()), len(drawn))
            rows.append({"known": name, **row_of(target, people_left, control), **ranked})
            advance(1)
    row = rows[-1]
    said = (
        "Somebody who knows where a person lives and works, to the cell, singles out the person in "
        f"{percent(row['success'])} of cases; in raw data in {percent(row['control'])} "
        f"({percent(row['control_ranked'])} if everybody's home and work place are computed and compared)."
    )
    figures = promised(target) | {"with_home_and_work": len(eligible)}
    settings = {"victims": victims, "seed": seed, "tz": target.tz}
    return Outcome("home-work", settings, len(drawn), rows, figures, (said,))


class _Clock(NamedTuple):
    """Which slots from `first` on begin in the night and in office hours."""

    first: int
    night: NDArray[np.bool_]
    office: NDArray[np.bool_]

    def hours(self, boxes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the first and the last category of each box: 0 is night, 1 is office hours; (1, 0) if neither."""
        low, high = (boxes[:, column].astype(np.int64) - self.first for column in (0, 1))
        low, high = np.clip(low, 0, len(self.night)), np.clip(high + 1, 0, len(self.night))
        any_night, any_office = (
            before[np.maximum(low, high)] > before[low] for before in (offsets_of(self.night), offsets_of(self.office))
        )
        return np.stack([np.where(any_night, 0, 1), np.where(any_office, 1, 0)], axis=1)


def _clock(target: Target) -> _Clock:
    """Find the night and office slots, in local time, of the period in which people have samples."""
    t = target.people.t
    first, last = int(t.min(initial=np.iinfo(t.dtype).max)), int(t.max(initial=np.iinfo(t.dtype).min))
    if last - first > _SLOTS:
        raise TooLarge("the period has too many slots to tell day from night; attack a shorter one (`period`)")
    slots = np.arange(first, last + 1, dtype=np.int64)
    zone = pa.timestamp("s", target.tz)
    local: Any = pc.local_timestamp(
        to_arrow_array(slots * target.grid.slot_s).cast(pa.timestamp("s", "UTC")).cast(zone)
    )
    hour = from_arrow_array(local.cast(pa.int64())) % 86_400 // 3_600
    return _Clock(first, (hour >= _NIGHT[0]) | (hour < _NIGHT[1]), (hour >= _OFFICE[0]) & (hour < _OFFICE[1]))


def _cell_number(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
    return (x.astype(np.int64) << 32) | (y.astype(np.int64) & 0xFFFFFFFF)


class _Seen(NamedTuple):
    """How often each user was in each cell in each category of hours; sorted by user, category, x, y."""

    user: NDArray[np.int64]
    category: NDArray[np.int64]
    x: NDArray[np.int64]
    y: NDArray[np.int64]
    times: NDArray[np.int64]

    def of(self, category: int) -> _Seen:
        """Return the rows of one category."""
        return _Seen(*(column[self.category == category] for column in self))


def _seen(people: Original, category: NDArray[np.int64], samples: NDArray[np.bool_]) -> _Seen:
    """Count the chosen samples by user, category and cell. Cost: a sort of one number per sample."""
    rows = (spread(people.counts)[samples], category[samples], people.x[samples], people.y[samples])
    axes = axes_of(*rows)
    packed = np.sort(pack(axes, *rows))
    first = np.flatnonzero(fresh(packed)) if len(packed) else np.empty(0, np.int64)
    user, kind, x, y = unpack(axes, packed[first])
    return _Seen(user, kind, x, y, np.diff(first, append=len(packed)))


def _visits(seen: _Seen, n_users: int) -> _Visits:
    """Return the cells of each user, those with most samples first."""
    order = np.lexsort((-seen.times, seen.user))  # stable: ties stay sorted by place
    return _Visits(offsets_of(np.bincount(seen.user, minlength=n_users)), seen.x[order], seen.y[order])


def _cell_matcher(seen: _Seen, n_users: int) -> SampleMatcher:
    """Return a matcher of raw samples by cell and category instead of time."""
    return SampleMatcher(offsets_of(np.bincount(seen.user, minlength=n_users)), seen.category, seen.x, seen.y)


def _as_many(cells: NDArray[np.int64], among: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count for each user in `among` how many users in `among` have the same row of cells; 0 for other users."""
    order = among[np.lexsort(cells[among].T)]
    group = np.cumsum(fresh(*cells[order].T)) - 1
    many = np.zeros(len(cells), dtype=np.int64)
    many[order] = np.bincount(group)[group]
    return many


class TopLocationsSettings(Settings):
    """The settings of the attack `top-locations`."""

    locations: int | None = setting(None, help="How many places are known; by default 1 to 5.", ge=1)


TOP_LOCATIONS = register(
    Attack(
        "top-locations",
        top_locations_attack,
        "the cells where the victim is most often, without times",
        TopLocationsSettings,
        sample_bytes=48,
        box_bytes=144,
    )
)
HOME_WORK = register(
    Attack(
        "home-work",
        home_work_attack,
        "where the victim lives and works, to the cell",
        sample_bytes=48,
        box_bytes=128,
    )
)
