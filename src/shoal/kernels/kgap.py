"""Find the k-1 users with the least stretch effort, exactly, while computing few efforts (GLOVE, Eq. 10-11).

An effort is the mean, over the samples of the longer user a, of the least (space + time) to the samples of b. Space
and time each have a lower bound that is cheap to compute, called a *floor*:

- space: a user's positions are a few *places*, boxes that hold them all. No sample is nearer to b than its place is
  to the nearest place of b.
- time: the duration is cut into equal bins; for every user and bin, the *gap* says how far b's nearest sample is from
  any instant in it, at least. One byte each, rounded down.

The sum of both floors over a's samples is a lower bound of the effort. It grows as sample after sample is replaced by
its true cost. As soon as it is above the effort of the (k-1)-th nearest user so far, the user is skipped. Users are
tried in the order of their floors, so that few efforts are begun. No user is skipped for any other reason: the result
is that of comparing with everybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.sort import fill_order
from shoal.kernels.stretch import TIE, RowRange, any_sample, near_sample, nearest_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.samples import Samples
    from shoal.kernels.stretch import Scale

__all__ = [
    "MOST_PLACES",
    "Floors",
    "SpaceOrder",
    "effort_from",
    "fill_gaps",
    "fill_places",
    "longer",
    "mean_parts",
    "nearest_users",
    "rough_floor",
    "rows_of",
    "space_floor",
    "time_floor",
]

MOST_PLACES = 32
_MORE_GUESSES = 8
_GUESSED = 32  # users to either side, in the order by space, among whom the first guesses are


class Floors(NamedTuple):
    """Everybody's samples, the cost of a stretch, and the data from which floors are computed.

    User u has n_places[u] places from row places[u] on, the one with the most samples first: `box` (x0, x1, y0, y1) and
    `weight`, the number of samples in it. `place` is the place that a sample is in, counted from the user's first, and
    `bin` its part of time. gaps[u, bin] is in steps of `step`. `hull` is the box around all places of a user.
    """

    samples: Samples
    scale: Scale
    place: NDArray[np.uint8]
    bin: NDArray[np.uint16]
    places: Ints
    n_places: Ints32
    box: Ints32
    weight: Ints32
    hull: Ints32
    gaps: NDArray[np.uint8]
    step: int


class SpaceOrder(NamedTuple):
    """All users in an order in which neighbours are likely to be alike, and each user's rank in it."""

    users: Ints
    rank: Ints


class _Room(NamedTuple):
    """Scratch arrays to search for the nearest users of one user after the other.

    `away` is what `space_floor` fills; tried[v] is the last user with whom v was compared as a first guess; `left` are
    the users who remain, `floor` their floors and `order` the order of these.
    """

    away: Ints
    tried: Ints32
    left: Ints
    floor: Floats
    order: Ints


@jit
def fill_gaps(floors: Floors, begin: int, width: int, start: int, stop: int) -> None:
    """Fill `bin` and `gaps` of users start…stop-1, for bins `width` slots wide from slot `begin` on."""
    t, offsets, scale = floors.samples.t, floors.samples.offsets, floors.scale
    for u in range(start, stop):
        s = offsets[u]
        end = offsets[u + 1]
        for p in range(s, end):
            floors.bin[p] = (int(t[p]) - begin) // width
        for b in range(floors.gaps.shape[1]):
            first = begin + b * width
            last = first + width - 1
            while s < end and t[s] < first:
                s += 1
            away = scale.time_cap
            if s < end:
                away = min(away, scale.time * max(0, int(t[s]) - last))
            if s > offsets[u]:
                away = min(away, scale.time * (first - int(t[s - 1])))
            floors.gaps[u, b] = away // floors.step


@jit
def _enclose(x: Ints32, y: Ints32, rows: Ints, start: int, stop: int, box: Ints32) -> None:
    """Fill the box around some samples."""
    box[0] = box[1] = x[rows[start]]
    box[2] = box[3] = y[rows[start]]
    for r in range(start + 1, stop):
        px = x[rows[r]]
        py = y[rows[r]]
        box[0] = min(box[0], px)
        box[1] = max(box[1], px)
        box[2] = min(box[2], py)
        box[3] = max(box[3], py)


@jit
def _split(values: Ints32, rows: Ints, start: int, stop: int, at: int) -> int:
    """Move the rows with values up to `at` to the front; return where the others begin."""
    front = start
    for r in range(start, stop):
        if values[rows[r]] <= at:
            rows[front], rows[r] = rows[r], rows[front]
            front += 1
    return front


@jit
def fill_places(floors: Floors, start: int, stop: int) -> None:
    """Fill the places of users start…stop-1: halve the box with the most samples × extent until there is no room."""
    samples = floors.samples
    starts = np.empty(MOST_PLACES + 1, np.int64)
    boxes = np.empty((MOST_PLACES, 4), np.int32)
    fewest = np.empty(MOST_PLACES)
    order = np.empty(MOST_PLACES, np.int64)
    for u in range(start, stop):
        rows = np.arange(samples.offsets[u], samples.offsets[u + 1])
        room = floors.places[u + 1] - floors.places[u]
        starts[0] = 0
        starts[1] = len(rows)
        _enclose(samples.x, samples.y, rows, 0, len(rows), boxes[0])
        floors.hull[u] = boxes[0]
        n = 1
        while n < room:
            widest = 0
            most = 0
            for g in range(n):
                extent = int(boxes[g, 1]) - boxes[g, 0] + boxes[g, 3] - boxes[g, 2]
                if extent * (starts[g + 1] - starts[g]) > most:
                    most = extent * (starts[g + 1] - starts[g])
                    widest = g
            if most == 0:
                break
            low, high = starts[widest], starts[widest + 1]
            west, east, south, north = boxes[widest]
            if int(east) - west >= int(north) - south:
                cut = _split(samples.x, rows, low, high, (int(west) + east) // 2)
            else:
                cut = _split(samples.y, rows, low, high, (int(south) + north) // 2)
            for g in range(n, widest, -1):
                starts[g + 1] = starts[g]
                if g < n:
                    boxes[g + 1] = boxes[g]
            starts[widest + 1] = cut
            _enclose(samples.x, samples.y, rows, low, cut, boxes[widest])
            _enclose(samples.x, samples.y, rows, cut, high, boxes[widest + 1])
            n += 1
        for g in range(n):
            fewest[g] = starts[g] - starts[g + 1]
        fill_order(fewest, order, n)
        floors.n_places[u] = n
        for rank in range(n):
            g = order[rank]
            floors.box[floors.places[u] + rank] = boxes[g]
            floors.weight[floors.places[u] + rank] = starts[g + 1] - starts[g]
            for r in range(starts[g], starts[g + 1]):
                floors.place[rows[r]] = rank


@jit
def _apart(low: int, high: int, other_low: int, other_high: int) -> int:
    """Return how far apart two ranges are, 0 if they touch or overlap."""
    return max(0, int(other_low) - high, int(low) - other_high)


@jit
def rough_floor(floors: Floors, a: int, b: int) -> int:
    """Return a floor of the sum of efforts from a's first place alone to the hull of b."""
    scale = floors.scale
    g = floors.places[a]
    box = floors.box
    hull = floors.hull
    apart = _apart(box[g, 0], box[g, 1], hull[b, 0], hull[b, 1]) + _apart(box[g, 2], box[g, 3], hull[b, 2], hull[b, 3])
    return int(floors.weight[g]) * min(scale.space * apart, scale.space_cap)


@jit
def space_floor(floors: Floors, a: int, b: int, most: float, away: Ints) -> int:
    """Return a floor of the sum of efforts by space alone, and fill that of a sample in each place of a.

    Stop as soon as it is above `most`; `away` is complete only if it is not.
    """
    box, scale = floors.box, floors.scale
    begin = floors.places[b]
    end = begin + floors.n_places[b]
    total = 0
    for n in range(floors.n_places[a]):
        g = floors.places[a] + n
        west, east, south, north = int(box[g, 0]), int(box[g, 1]), int(box[g, 2]), int(box[g, 3])
        least = int(scale.space_cap)
        for h in range(begin, end):
            apart = max(0, box[h, 0] - east, west - box[h, 1]) + max(0, box[h, 2] - north, south - box[h, 3])
            least = min(least, apart)
        away[n] = min(scale.space * least, scale.space_cap)
        total += int(floors.weight[g]) * away[n]
        if total > most:
            break
    return total


@jit
def time_floor(floors: Floors, a: int, b: int) -> int:
    """Return a floor of the sum of efforts by time alone."""
    gaps = floors.gaps[b]
    total = 0
    for p in range(floors.samples.offsets[a], floors.samples.offsets[a + 1]):
        total += int(gaps[floors.bin[p]])
    return total * floors.step


@jit
def effort_from(floors: Floors, a: int, b: int, floor: int, most: float, away: Ints) -> int:
    """Return the sum of efforts from a's samples to b's; if it is above `most`, some floor of it above `most`.

    `floor` is the floor of it by space and time, and `away` what `space_floor` filled.
    """
    samples, scale = floors.samples, floors.scale
    t = samples.t
    gaps = floors.gaps[b]
    others = rows_of(samples, b)
    j = others.start
    total = floor
    for i in range(samples.offsets[a], samples.offsets[a + 1]):
        while j < others.stop and t[j] < t[i]:
            j += 1
        by_space = away[floors.place[i]]
        best, _ = near_sample(samples, i, others, j, scale, by_space)
        if best > scale.time_cap + by_space:
            best, _ = any_sample(samples, i, others, scale)
        total += best - by_space - int(gaps[floors.bin[i]]) * floors.step
        if total > most:
            break
    return total


@jit
def rows_of(samples: Samples, u: int) -> RowRange:
    """Return the rows of a user's samples."""
    return RowRange(samples.offsets[u], samples.offsets[u + 1])


@jit
def longer(offsets: Ints, u: int, v: int) -> tuple[int, int]:
    """Return the two users, first the one whose samples are averaged over: the longer, else the canonical first."""
    of_u = offsets[u + 1] - offsets[u]
    of_v = offsets[v + 1] - offsets[v]
    if of_u > of_v or (of_u == of_v and u < v):
        return u, v
    return v, u


@jit
def _key(effort: float) -> float:
    """Return the key by which efforts are compared: the effort in whole multiples of TIE."""
    return float(np.rint(effort / TIE))


@jit
def _insert(near: Ints, efforts: Floats, user: int, effort: float) -> None:
    """Insert a user in the order of efforts; efforts that are equal to TIE keep canonical order."""
    p = len(near) - 1
    key = _key(effort)
    last = _key(efforts[p])
    if key > last or (key == last and user > near[p]):
        return
    while p > 0:
        before = _key(efforts[p - 1])
        if key > before or (key == before and user > near[p - 1]):
            break
        near[p] = near[p - 1]
        efforts[p] = efforts[p - 1]
        p -= 1
    near[p] = user
    efforts[p] = effort


@jit
def _try(floors: Floors, u: int, v: int, near: Ints, efforts: Floats, away: Ints) -> None:
    """Compute the effort of two users and insert it; stop early if v can't be among the nearest of u."""
    offsets, scale = floors.samples.offsets, floors.scale
    a, b = longer(offsets, u, v)
    whole = float(scale.space_cap + scale.time_cap) * (offsets[a + 1] - offsets[a])
    most = (efforts[-1] + TIE) * whole
    floor = space_floor(floors, a, b, np.inf, away) + time_floor(floors, a, b)
    total = effort_from(floors, a, b, floor, most, away)
    if total <= most:
        _insert(near, efforts, v, total / whole)


@jit
def _first_guesses(floors: Floors, u: int, some: Ints, near: Ints, efforts: Floats, room: _Room) -> int:
    """Try the most likely users first, so that the search starts with a good bound; return how many were tried."""
    offsets = floors.samples.offsets
    guesses = np.full(len(some), np.inf)
    for n in range(len(some)):
        if some[n] != u:
            a, b = longer(offsets, u, some[n])
            total = space_floor(floors, a, b, np.inf, room.away) + time_floor(floors, a, b)
            guesses[n] = total / (offsets[a + 1] - offsets[a])
    fill_order(guesses, room.order, len(some))
    likely = min(len(some) - 1, len(near) + _MORE_GUESSES)
    for rank in range(likely):
        v = some[room.order[rank]]
        room.tried[v] = u
        _try(floors, u, v, near, efforts, room.away)
    return likely


@jit
def nearest_users(floors: Floors, users: Ints, order: SpaceOrder, near: Ints, efforts: Floats, counts: Ints) -> None:
    """Fill the nearest others of some users by stretch effort, nearest first, ties in canonical order.

    The result does not depend on `order`. counts[0] is raised by the efforts begun, counts[1] by the floors of space,
    counts[2] by those of time.
    """
    offsets, scale = floors.samples.offsets, floors.scale
    n_users = len(offsets) - 1
    kept = near.shape[1]
    room = _Room(
        np.empty(MOST_PLACES, np.int64),
        np.full(n_users, -1, np.int32),
        np.empty(n_users, np.int64),
        np.empty(n_users),
        np.empty(n_users, np.int64),
    )
    whole = float(scale.space_cap + scale.time_cap)
    reach = max(_GUESSED, kept)
    for q in range(len(users)):
        u = users[q]
        near[q] = -1
        efforts[q] = np.inf
        low = max(0, min(order.rank[u] - reach, n_users - 2 * reach - 1))
        some = order.users[low : low + 2 * reach + 1]
        counts[0] += _first_guesses(floors, u, some, near[q], efforts[q], room)
        n = 0
        for v in range(n_users):
            if v == u or room.tried[v] == u:
                continue
            a, b = longer(offsets, u, v)
            length = offsets[a + 1] - offsets[a]
            most = (efforts[q, kept - 1] + TIE) * whole * length
            if rough_floor(floors, a, b) > most:
                continue
            counts[1] += 1
            total = space_floor(floors, a, b, most, room.away)
            if total > most:
                continue
            counts[2] += 1
            total += time_floor(floors, a, b)
            if total <= most:
                room.left[n] = v
                room.floor[n] = total / (whole * length)
                n += 1
        fill_order(room.floor, room.order, n)
        for rank in range(n):
            v = room.left[room.order[rank]]
            least = _key(room.floor[room.order[rank]])
            last = _key(efforts[q, kept - 1])
            if least > last:
                break
            if least < last or v < near[q, kept - 1]:
                counts[0] += 1
                _try(floors, u, v, near[q], efforts[q], room.away)


@jit
def mean_parts(samples: Samples, scale: Scale, users: Ints, near: Ints, space: Floats, time: Floats) -> None:
    """Fill the parts of space and of time in the effort between some users and each of their nearest."""
    offsets = samples.offsets
    longest = 1
    for u in range(len(offsets) - 1):
        longest = max(longest, offsets[u + 1] - offsets[u])
    spaces = np.empty(longest, np.int64)
    times = np.empty(longest, np.int64)
    whole = float(scale.space_cap + scale.time_cap)
    for q in range(len(users)):
        for n in range(near.shape[1]):
            a, b = longer(offsets, users[q], near[q, n])
            size = offsets[a + 1] - offsets[a]
            nearest_parts(samples, rows_of(samples, a), rows_of(samples, b), scale, spaces, times)
            space[q, n] = spaces[:size].sum() / (whole * size)
            time[q, n] = times[:size].sum() / (whole * size)
