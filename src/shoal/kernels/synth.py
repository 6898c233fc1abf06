"""Kernels of the population generator: one person's life, and what a network or a receiver records of it.

A life is a list of stays (place, arrive, leave) in seconds from the start of the period; between two stays the
person is under way. Every random number comes from a counter that starts at (seed, user number, stream), so a person
does not depend on who else is generated, nor in which order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.mix import GOLDEN, MIX_1, MIX_2, mix

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.mix import Words

__all__ = ["CallHabits", "Land", "Period", "calls_of", "fixes_of", "shuffled_ids"]

HOUR, DAY = 3600.0, 86400.0

# Exploration and preferential return (Song et al., Nature Physics 2010): P(new place) = RHO * S ** -GAMMA.
RHO, GAMMA = 0.6, 0.21
_STAYS_PER_DAY = 10

_S11 = np.uint64(11)

# Streams of random numbers: a user's life, calls, fixes and points at places; identifiers, and their three rounds.
_LIFE_STREAM, _CALLS_STREAM, _FIXES_STREAM, _SPOTS_STREAM = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_IDS_STREAM = np.uint64(15)
_ID_ROUND_STREAMS = np.uint64(16), np.uint64(17), np.uint64(18)


class Land(NamedTuple):
    """The places people can be at, as arrays; row i of a cumulative matrix belongs to someone at place i."""

    x: Floats  # metres
    y: Floats
    spread: Floats  # metres around a place at which its people really are
    home: Floats  # cumulative weight of living at each place
    work: Floats  # (T, T) cumulative weight of working there
    jump: Floats  # (T, T) of a first visit to a place
    trip: Floats  # (T, T) of a journey to another town; a row that ends in 0 has none
    beside: Ints  # (T, 3) places that overlap with this one, -1 for none


class Period(NamedTuple):
    """The days that are generated: how many, and the weekday of the first (0: Monday)."""

    days: int
    weekday: int


class CallHabits(NamedTuple):
    """How often and when people call.

    `rates` is (mu, sigma, least, most) of the log-normal number of samples of a user; `clock` (2, 24) the cumulative
    activity by hour on weekdays and weekends.
    """

    rates: Floats
    clock: Floats


@jit
def _key(seed: int, user: int, stream: np.uint64) -> np.uint64:
    """Return the start of a user's stream of random numbers."""
    return mix(mix(mix(np.uint64(seed) + GOLDEN) ^ np.uint64(user)) + stream * GOLDEN)


def shuffled_ids(seed: int, first: int, last: int) -> Ints:
    """Return, for each user number, a distinct identifier below 2**53 that looks random: a bijection, no collisions."""
    keep = np.uint64(2**53 - 1)
    ids = np.arange(first, last, dtype=np.uint64) ^ (_key(seed, 0, _IDS_STREAM) & keep)
    for stream in _ID_ROUND_STREAMS:
        ids = (ids ^ (ids >> np.uint64(27))) * (_key(seed, 0, stream) | np.uint64(1)) & keep
        ids ^= ids >> np.uint64(29)
    return np.asarray(ids, dtype=np.int64)


@jit
def _uniform(rng: Words) -> float:
    rng[0] += GOLDEN
    return float(mix(rng[0]) >> _S11) * (1.0 / 9007199254740992.0)


@jit
def _normal(rng: Words) -> float:
    radius = math.sqrt(-2.0 * math.log(1.0 - _uniform(rng)))
    return radius * math.cos(2.0 * math.pi * _uniform(rng))


@jit
def _unit(key: np.uint64) -> float:
    """Return the uniform number that belongs to a key, without a state."""
    return float(mix(key) >> _S11) * (1.0 / 9007199254740992.0)


@jit
def _pick(cumulative: Floats, u: float) -> int:
    """Return the first index whose cumulative weight exceeds the share u of the whole."""
    target = u * cumulative[-1]
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def _spot(land: Land, spots: np.uint64, place: int) -> tuple[float, float]:
    """Return the point, in metres, where this person is when at `place`: always the same one."""
    key = spots + np.uint64(2 * place) * GOLDEN
    radius = land.spread[place] * math.sqrt(-2.0 * math.log(1.0 - _unit(key)))
    angle = 2.0 * math.pi * _unit(key + GOLDEN)
    return land.x[place] + radius * math.cos(angle), land.y[place] + radius * math.sin(angle)


@jit
def _travel_s(distance_m: float) -> float:
    """Return door-to-door seconds: on foot, then by bus, then by road between towns."""
    if distance_m < 1_500.0:
        return 60.0 + distance_m / 1.3
    if distance_m < 20_000.0:
        return 1_214.0 + (distance_m - 1_500.0) / 8.0
    return 3_526.0 + (distance_m - 20_000.0) / 17.0


class _Person(NamedTuple):
    """A person's constants: places, hours of work in seconds, how often they go out and travel."""

    home: int
    work: int
    working: bool
    opens_s: float
    hours_s: float
    outgoing: float
    travels: float
    spots: np.uint64  # key of the points where this person is at a place


class _Diary(NamedTuple):
    """Scratch space for a life: stays (place, arrive, leave), known places and visits to them, how many of each."""

    stays: Floats
    known: Ints
    visits: Floats
    size: Ints  # of stays, of known places


@jit
def _blank_diary(days: int) -> _Diary:
    known = days * 4 + 8
    return _Diary(
        np.empty((days * _STAYS_PER_DAY + 2, 3)), np.empty(known, np.int64), np.empty(known), np.empty(2, np.int64)
    )


@jit
def _here(diary: _Diary) -> int:
    return int(diary.stays[diary.size[0] - 1, 0])


@jit
def _go(land: Land, who: _Person, diary: _Diary, place: int, depart: float) -> None:
    """Leave the last stay at `depart`, but after at least five minutes of it, and go to `place`."""
    n, here = diary.size[0], _here(diary)
    if here == place or n == len(diary.stays):
        return
    x0, y0 = _spot(land, who.spots, here)
    x1, y1 = _spot(land, who.spots, place)
    depart = max(depart, diary.stays[n - 1, 1] + 300.0)
    diary.stays[n - 1, 2] = depart
    diary.stays[n, 0] = place
    diary.stays[n, 1] = depart + _travel_s(math.hypot(x1 - x0, y1 - y0))
    diary.size[0] = n + 1


@jit
def _choose(land: Land, rng: Words, diary: _Diary, here: int) -> int:
    """Choose where to go out to: explore, or return in proportion to past visits. The visit is remembered."""
    known, visits, count = diary.known, diary.visits, diary.size[1]
    place = here
    if _uniform(rng) < RHO * count**-GAMMA or count < 2:
        place = _pick(land.jump[here], _uniform(rng))
    else:
        total = 0.0
        for i in range(count):
            total += visits[i] if known[i] != here else 0.0
        rest = _uniform(rng) * total
        for i in range(count):
            if known[i] != here:
                place = known[i]
                rest -= visits[i]
                if rest < 0.0:
                    break
    for i in range(count):
        if known[i] == place:
            visits[i] += 1.0
            return place
    if count < len(known):
        known[count], visits[count] = place, 1.0
        diary.size[1] = count + 1
    return place


# more than six arguments: as one tuple they made the generation of calls 3 to 8 % slower
@jit
def _out_and_back(
    land: Land, rng: Words, who: _Person, diary: _Diary, back: int, depart: float, hours: tuple[float, float]
) -> None:
    """Go out for (least, further) hours and then to `back`; away from home only nearby places are in reach."""
    here = _here(diary)
    travelling = here != who.home and here != who.work
    place = _pick(land.jump[here], _uniform(rng)) if travelling else _choose(land, rng, diary, here)
    _go(land, who, diary, place, depart)
    arrived = diary.stays[diary.size[0] - 1, 1]
    _go(land, who, diary, back, arrived + (hours[0] + hours[1] * _uniform(rng)) * HOUR)


@jit
def _new_person(land: Land, rng: Words, spots: np.uint64, diary: _Diary) -> _Person:
    """Draw a person, and begin the diary: at home, with a past in which some places are known."""
    home = _pick(land.home, _uniform(rng))
    working = _uniform(rng) < 0.72
    work = home
    if working and _uniform(rng) < 0.85:
        work = _pick(land.work[home], _uniform(rng))
    opens_s = (8.3 + 0.9 * _normal(rng)) * HOUR
    hours_s = (8.4 + 1.0 * _normal(rng)) * HOUR
    outgoing = min(math.exp(0.6 * _normal(rng) - 0.18), 2.5)
    if _uniform(rng) < 0.12:  # some hardly ever go out
        outgoing *= 0.1
    travels = 0.06 if _uniform(rng) < 0.26 else 0.005
    if land.trip[home, -1] <= 0.0:
        travels = 0.0

    diary.stays[0, 0], diary.stays[0, 1], diary.size[0] = home, 0.0, 1
    diary.known[0], diary.visits[0], diary.size[1] = home, 6.0, 1
    if work != home:
        diary.known[1], diary.visits[1], diary.size[1] = work, 4.0, 2
    for _ in range(1 + int(3.0 * _uniform(rng))):
        _choose(land, rng, diary, home)
    return _Person(home, work, working, opens_s, hours_s, outgoing, travels, spots)


@jit
def _work_day(land: Land, rng: Words, who: _Person, diary: _Diary, midnight: float, share: float) -> None:
    """Write a day of work, of this share of the usual hours."""
    begin = midnight + who.opens_s + 0.3 * HOUR * _normal(rng)
    end = begin + share * who.hours_s + 0.5 * HOUR * _normal(rng)
    _go(land, who, diary, who.work, begin)
    if _uniform(rng) < 0.16 * who.outgoing:
        _out_and_back(land, rng, who, diary, who.work, midnight + (12.2 + 1.2 * _uniform(rng)) * HOUR, (0.4, 0.8))
    if _uniform(rng) < 0.26 * who.outgoing:
        _out_and_back(land, rng, who, diary, who.home, end, (0.5, 2.0))
    else:
        _go(land, who, diary, who.home, end)


@jit
def _free_day(land: Land, rng: Words, who: _Person, diary: _Diary, midnight: float, base: int) -> None:
    """Write a day without work, from the place where the person stays and back to it."""
    if _uniform(rng) < 0.42 * who.outgoing:
        _out_and_back(land, rng, who, diary, base, midnight + (8.5 + 4.0 * _uniform(rng)) * HOUR, (0.5, 3.0))
    if _uniform(rng) < 0.45 * who.outgoing:
        _out_and_back(land, rng, who, diary, base, midnight + (13.5 + 5.0 * _uniform(rng)) * HOUR, (0.5, 3.0))


@jit
def _live(land: Land, rng: Words, who: _Person, diary: _Diary, period: Period) -> int:
    """Write the stays of the whole period into the diary; return how many there are."""
    days, base, away = period.days, who.home, 0
    for day in range(days):
        midnight, of_week = day * DAY, (period.weekday + day) % 7
        if away == 1:
            base, away = who.home, 0
            _go(land, who, diary, base, midnight + (8.0 + 9.0 * _uniform(rng)) * HOUR)
            continue
        if away == 0 and _uniform(rng) < who.travels * (1.6 if of_week >= 5 else 0.8):
            base = _pick(land.trip[who.home], _uniform(rng))
            away = 1 + int(-2.2 * math.log(1.0 - _uniform(rng)))
            _go(land, who, diary, base, midnight + (6.0 + 5.0 * _uniform(rng)) * HOUR)
            if away == 1:  # there and back in a day
                base, away = who.home, 0
                _go(land, who, diary, base, midnight + (16.0 + 3.0 * _uniform(rng)) * HOUR)
            else:
                away -= 1
            continue
        away = max(0, away - 1)
        at_work = 0.93 if of_week < 5 else 0.3 if of_week == 5 else 0.0
        if base == who.home and who.working and _uniform(rng) < at_work:
            _work_day(land, rng, who, diary, midnight, 1.0 if of_week < 5 else 0.5)
        else:
            _free_day(land, rng, who, diary, midnight, base)
        if _uniform(rng) < (0.2 if of_week >= 5 else 0.1) * who.outgoing:
            _out_and_back(land, rng, who, diary, base, midnight + (18.8 + 2.0 * _uniform(rng)) * HOUR, (0.5, 1.8))
    n = diary.size[0]
    while n > 1 and diary.stays[n - 1, 1] >= days * DAY:
        n -= 1
    diary.stays[n - 1, 2] = days * DAY
    return int(n)


@jit
def _life_of(land: Land, seed: int, user: int, period: Period, diary: _Diary, rng: Words) -> tuple[int, np.uint64]:
    """Write one user's life into the diary; return how many stays it has and the key of the user's spots."""
    spots = _key(seed, user, _SPOTS_STREAM)
    rng[0] = _key(seed, user, _LIFE_STREAM)
    who = _new_person(land, rng, spots, diary)
    return _live(land, rng, who, diary, period), spots


@jit
def _along(land: Land, spots: np.uint64, a: int, b: int, share: float) -> tuple[float, float]:
    """Return the point at `share` of the way from place a to place b: the same gentle bend every time."""
    x0, y0 = _spot(land, spots, a)
    x1, y1 = _spot(land, spots, b)
    bend = spots ^ (np.uint64(min(a, b)) * MIX_1 + np.uint64(max(a, b)) * MIX_2)
    sign = 1.0 if a < b else -1.0
    side = 0.20 * (_unit(bend) - 0.5) * math.sin(math.pi * share)
    side += sign * 0.08 * (_unit(bend + GOLDEN) - 0.5) * math.sin(2.0 * math.pi * share)
    return x0 + share * (x1 - x0) - sign * side * (y1 - y0), y0 + share * (y1 - y0) + sign * side * (x1 - x0)


@jit
def _nearest(land: Land, x: float, y: float) -> int:
    """Return the place nearest to a point."""
    best, place = np.inf, 0
    for i in range(len(land.x)):
        d = (land.x[i] - x) ** 2 + (land.y[i] - y) ** 2
        if d < best:
            best, place = d, i
    return place


@jit
def _call_times(rng: Words, period: Period, clock: Floats, order: Ints, load: Floats, second: Floats) -> None:
    """Fill distinct seconds in order: bursts that start by the clock, over days of uneven load."""
    days, weekday, n = period.days, period.weekday, len(second)
    total = 0.0
    for day in range(days):
        total += (-math.log(1.0 - _uniform(rng)) + 0.3) * (0.85 if (weekday + day) % 7 >= 5 else 1.0)
        load[day] = total
        order[day] = day
    for day in range(days - 1, 0, -1):
        other = int(_uniform(rng) * (day + 1))
        order[day], order[other] = order[other], order[day]
    shift = 0.8 * _normal(rng)
    end = days * DAY
    done, burst = 0, 0
    while done < n:
        # The first bursts go to different days: hardly anyone is silent for a whole day (the papers' screening).
        day = order[burst] if burst < days else _pick(load[:days], _uniform(rng))
        burst += 1
        hour_of = clock[1 if (weekday + day) % 7 >= 5 else 0]
        hour = _pick(hour_of, _uniform(rng)) + _uniform(rng) + shift
        t = (day + (hour / 24.0) % 1.0) * DAY
        more = 1.0
        while done < n and _uniform(rng) < more:
            second[done] = math.floor(t) if t < end else math.floor(2.0 * end - t) - 1.0
            done += 1
            more = 0.42 if more == 1.0 else 0.55
            t += min(math.exp(5.5 + 1.3 * _normal(rng)), 2.0 * HOUR)
    second.sort()
    for i in range(n - 2, -1, -1):
        second[i] = min(second[i], second[i + 1] - 1.0)


@jit
def _serve(land: Land, rng: Words, spots: np.uint64, stays: Floats, second: Floats, place: Ints32) -> None:
    """Fill the tower that serves each call: that of the stay, one that overlaps it, or the nearest to the road."""
    overlaps = max(0.0, 0.4 * _unit(spots + MIX_1) - 0.1)
    s = 0
    for j in range(len(second)):
        while s + 1 < len(stays) and stays[s + 1, 1] <= second[j]:
            s += 1
        at = int(stays[s, 0])
        if second[j] > stays[s, 2]:
            share = (second[j] - stays[s, 2]) / (stays[s + 1, 1] - stays[s, 2])
            x, y = _along(land, spots, at, int(stays[s + 1, 0]), share)
            at = _nearest(land, x, y)
        elif _uniform(rng) < overlaps:
            # For one person at one place it is always the same neighbour.
            beside = land.beside[at, int(3.0 * _unit(spots ^ np.uint64(at)))]
            at = beside if beside >= 0 else at
        place[j] = at


@jit
def calls_of(
    land: Land, seed: int, first: int, last: int, period: Period, habits: CallHabits
) -> tuple[Ints, Floats, Ints32]:
    """Generate the call records of users first…last-1: (count per user, second, place), user after user."""
    days, rates = period.days, habits.rates
    diary = _blank_diary(days)
    order, load = np.empty(days, np.int64), np.empty(days)
    counts = np.empty(last - first, np.int64)
    rng = np.empty(1, np.uint64)
    total = 0
    for i in range(last - first):
        rng[0] = _key(seed, first + i, _CALLS_STREAM)
        drawn = min(max(math.exp(rates[0] + rates[1] * _normal(rng)), rates[2]), rates[3])
        counts[i] = max(1, int(drawn + _uniform(rng)))
        total += counts[i]
    second, place = np.empty(total), np.empty(total, np.int32)
    start = 0
    for i in range(last - first):
        user = first + i
        n, spots = _life_of(land, seed, user, period, diary, rng)
        rng[0] = mix(_key(seed, user, _CALLS_STREAM))
        part = second[start : start + counts[i]]
        _call_times(rng, period, habits.clock, order, load, part)
        _serve(land, rng, spots, diary.stays[:n], part, place[start : start + counts[i]])
        start += counts[i]
    return counts, second, place


@jit
def _fixes(land: Land, rng: Words, spots: np.uint64, stays: Floats, interval: float, out: Floats) -> int:
    """Fill a person's fixes (second, x, y), times strictly increasing; return how many."""
    n = len(stays)
    m, latest = 0, -1.0
    for s in range(n):
        here = int(stays[s, 0])
        home_x, home_y = _spot(land, spots, here)
        t = stays[s, 1] + interval * _uniform(rng)
        while t < stays[s, 2]:
            if math.floor(t) > latest:
                latest = math.floor(t)
                out[m, 0], out[m, 1], out[m, 2] = latest, home_x + 7.0 * _normal(rng), home_y + 7.0 * _normal(rng)
                m += 1
            night = (t / HOUR) % 24.0 < 6.0
            t += interval * (30.0 if night else 10.0) * (0.5 + _uniform(rng))
        if s + 1 == n:
            break
        t = stays[s, 2]
        while t < stays[s + 1, 1]:
            if math.floor(t) > latest:
                latest = math.floor(t)
                share = (t - stays[s, 2]) / (stays[s + 1, 1] - stays[s, 2])
                # Slow at both ends, faster between.
                share -= 0.06 * math.sin(2.0 * math.pi * share)
                x, y = _along(land, spots, here, int(stays[s + 1, 0]), share)
                out[m, 0], out[m, 1], out[m, 2] = latest, x + 7.0 * _normal(rng), y + 7.0 * _normal(rng)
                m += 1
            t += interval
    return m


@jit
def fixes_of(land: Land, seed: int, first: int, last: int, period: Period, interval: float) -> tuple[Ints, Floats]:
    """Generate the fixes of users first…last-1: (count per user, rows of second, x, y), user after user."""
    days = period.days
    diary = _blank_diary(days)
    most = int(days * DAY / interval) + 2 * len(diary.stays)
    counts = np.empty(last - first, np.int64)
    rows = np.empty((2 * most, 3))
    rng = np.empty(1, np.uint64)
    start = 0
    for i in range(last - first):
        user = first + i
        n, spots = _life_of(land, seed, user, period, diary, rng)
        if start + most > len(rows):
            larger = np.empty((2 * len(rows), 3))
            for row in range(start):
                for column in range(3):
                    larger[row, column] = rows[row, column]
            rows = larger
        rng[0] = _key(seed, user, _FIXES_STREAM)
        counts[i] = _fixes(land, rng, spots, diary.stays[:n], interval, rows[start:])
        start += counts[i]
    return counts, rows[:start]
