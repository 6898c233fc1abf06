"""The groups at least stretch effort from a group, exactly, with few efforts computed.

People and groups alike are known by a canonical index, a group by that of its first member. The bounds are those of
`kernels.kgap`, which hold for boxes and for any weights too: for ranges that do not meet, Eq. 4 and 7 give at least the
gap between them. A box that spans several bins of time may be at no distance in time.

One more bound costs nothing: whoever has been searched for knows that all whom the list does not name are beyond its
end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.kgap import MOST_PLACES, Floors, effort_from, rough_floor, space_floor, time_floor
from shoal.kernels.sort import fill_order
from shoal.kernels.stretch import TIE, Scale, box_effort, first_is_longer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32

__all__ = ["FINEST", "Field", "Found", "fill_box_gaps", "search"]

FINEST = 1e12  # efforts are compared as whole multiples of this part of 1
_BESIDE = 24  # to either side, in the order by space, among whom the first guesses are
_GUESSES = 8  # of these are looked at, besides as many as are listed


class Field(NamedTuple):
    """Everybody and every group.

    What stands at an index is `there` (or has been merged), has `size` people and `length` boxes: boxes[start:stop],
    with their `reach` and `bin` of time (-1: several), or the samples of `floors` if it is one person. It was `born`
    and last `searched` for at those ticks of a clock. The search listed as many as `listed`: those `near`, at the
    efforts `effort` in multiples of 1/FINEST; all there were, or as many as the list holds.
    """

    floors: Floors
    boxes: Ints32
    reach: Ints32
    bin: Ints32
    start: Ints
    stop: Ints
    length: Ints
    size: Ints
    there: NDArray[np.bool_]
    born: Ints
    searched: Ints
    near: Ints32
    effort: Ints
    listed: Ints


class Found(NamedTuple):
    """What searches have found, to be entered into the field; and how many efforts were begun for it."""

    near: Ints32
    effort: Ints
    listed: Ints
    begun: Ints


class Scratch(NamedTuple):
    """Room for one search: who was looked at in which turn; who is left, from which floor on, in which order."""

    seen: Ints
    turn: Ints
    left: Ints
    floor: Floats
    order: Ints
    away: Ints


@jit
def fill_box_gaps(boxes: Ints32, scale: Scale, begin: int, width: int, step: int, gaps: NDArray[np.uint8]) -> None:
    """Fill how far boxes, sorted and disjoint in time, are from any instant of each bin, at least."""
    s = 0
    for b in range(len(gaps)):
        first = begin + b * width
        last = first + width - 1
        while s < len(boxes) and boxes[s, 1] < first:
            s += 1
        away = np.int64(scale.time_cap)
        if s < len(boxes):
            away = min(away, scale.time * max(np.int64(0), np.int64(boxes[s, 0]) - last))
        if s > 0:
            away = min(away, scale.time * (first - np.int64(boxes[s - 1, 1])))
        gaps[b] = away // step


@jit
def _longer(field: Field, u: int, v: int) -> tuple[int, int]:
    """Return two groups, first the one whose boxes the effort is averaged over."""
    if field.length[u] != field.length[v]:
        return (u, v) if field.length[u] > field.length[v] else (v, u)
    if field.size[u] == 1 and field.size[v] == 1:  # of people with as many samples, the order is that of their lists
        return (u, v) if u < v else (v, u)
    is_first = first_is_longer(field.boxes, field.start[u], field.stop[u], field.start[v], field.stop[v])
    return (u, v) if is_first else (v, u)


@jit
def _time_floor(field: Field, a: int, b: int) -> int:
    """Return a floor of the sum of efforts by time alone."""
    floors = field.floors
    if field.size[a] == 1:
        return time_floor(floors, a, b)
    gaps = floors.gaps[b]
    total = np.int64(0)
    for p in range(field.start[a], field.stop[a]):
        if field.bin[p] >= 0:
            total += gaps[field.bin[p]]
    return int(total * floors.step)


@jit
def _floor(field: Field, a: int, b: int, scale: Scale, most: float, away: Ints) -> int:
    """Return a floor of the sum of efforts, by space and time; by space only, if that is above `most`."""
    total = space_floor(field.floors, a, b, scale, most, away)
    return total if total > most else total + _time_floor(field, a, b)


@jit
def _effort(field: Field, a: int, b: int, scale: Scale, most: int, away: Ints) -> int:
    """Return the effort of two groups, the longer first, in multiples of 1/FINEST, or some number above `most`."""
    limit = (np.float64(most) + 1.0) / FINEST
    if field.size[a] > 1 or field.size[b] > 1:
        found = box_effort(
            field.boxes,
            field.reach,
            field.start[a],
            field.stop[a],
            field.start[b],
            field.stop[b],
            field.size[a],
            field.size[b],
            scale,
            limit,
        )
        return most + 1 if found == np.inf else int(np.rint(found * FINEST))
    whole = np.float64(scale.space_cap + scale.time_cap) * field.length[a]
    floor = _floor(field, a, b, scale, np.inf, away)
    total = effort_from(field.floors, a, b, scale, floor, limit * whole, away)
    return most + 1 if total > limit * whole else int(np.rint(total / whole * FINEST))


@jit
def _known_beyond(field: Field, u: int, v: int) -> int:
    """Return what the effort is not less than, as v's own search has shown; -1 if that tells nothing."""
    n = field.listed[v]
    if n < field.near.shape[1] or field.born[u] > field.searched[v]:
        return -1
    for p in range(n):
        if field.near[v, p] == u:
            return int(field.effort[v, p])
    return int(field.effort[v, n - 1])


@jit
def _before(effort: int, v: int, than: int, than_v: int) -> bool:
    """Order by effort, then by the canonical order of groups."""
    return bool(effort < than or (effort == than and v < than_v))


@jit
def _enter(near: Ints32, effort: Ints, n: int, v: int, found: int) -> int:
    """Enter a group into the list of the nearest, if it is one of them; give how many these are."""
    if n == len(near):
        if not _before(found, v, effort[n - 1], near[n - 1]):
            return n
        n -= 1
    at = n
    while at > 0 and _before(found, v, effort[at - 1], near[at - 1]):
        near[at] = near[at - 1]
        effort[at] = effort[at - 1]
        at -= 1
    near[at] = v
    effort[at] = found
    return n + 1


@jit
def _look(
    field: Field, u: int, v: int, floor: float, scale: Scale, near: Ints32, effort: Ints, n: int, away: Ints
) -> tuple[int, int]:
    """Enter a group into the list unless a bound keeps it out; give the list's length and how many efforts it took."""
    most = int(2 * FINEST)
    if n == len(near):
        most = int(effort[n - 1])
        least = max(int(floor * (1.0 - 1e-12) * FINEST), _known_beyond(field, u, v))
        if not _before(least, v, most, near[n - 1]):
            return n, 0
    a, b = _longer(field, u, v)
    found = _effort(field, a, b, scale, most, away)
    if found <= most:
        n = _enter(near, effort, n, v, found)
    return n, 1


@jit
def _guess(
    field: Field, u: int, at: int, below: int, scale: Scale, by_space: Ints, near: Ints32, effort: Ints, room: Scratch
) -> tuple[int, int]:
    """Look at the most likely of those beside, so that there is something to beat."""
    first = max(0, min(at - _BESIDE, len(by_space) - 2 * _BESIDE - 1))
    n_likely = n = begun = 0
    for p in range(first, min(len(by_space), first + 2 * _BESIDE + 1)):
        v = by_space[p]
        if v != u and field.there[v] and field.size[v] < below:
            a, b = _longer(field, u, v)
            room.left[n_likely] = v
            room.floor[n_likely] = _floor(field, a, b, scale, np.inf, room.away) / field.length[a]
            n_likely += 1
    fill_order(room.floor, room.order, n_likely)
    for rank in range(min(n_likely, len(near) + _GUESSES)):
        v = room.left[room.order[rank]]
        room.seen[v] = room.turn[0]
        n, one = _look(field, u, v, 0.0, scale, near, effort, n, room.away)
        begun += one
    return n, begun


@jit
def _search(
    field: Field,
    u: int,
    at: int,
    below: int,
    scale: Scale,
    by_space: Ints,
    everybody: Ints,
    near: Ints32,
    effort: Ints,
    room: Scratch,
) -> tuple[int, int]:
    """Fill the list of the groups nearest to u; give its length and how many efforts were begun."""
    room.turn[0] += 1
    room.seen[u] = room.turn[0]
    n, begun = _guess(field, u, at, below, scale, by_space, near, effort, room)
    whole = np.float64(scale.space_cap + scale.time_cap)
    limit = effort[n - 1] / FINEST + 2.0 * TIE if n == len(near) else np.inf
    n_left = 0
    for v in everybody:
        if room.seen[v] == room.turn[0] or not field.there[v] or field.size[v] >= below:
            continue
        a, b = _longer(field, u, v)
        most = limit * whole * field.length[a]
        if rough_floor(field.floors, a, b, scale) > most:
            continue
        if n == len(near) and not _before(max(0, _known_beyond(field, u, v)), v, effort[n - 1], near[n - 1]):
            continue
        total = _floor(field, a, b, scale, most, room.away)
        if total <= most:
            room.left[n_left] = v
            room.floor[n_left] = total / (whole * field.length[a])
            n_left += 1
    fill_order(room.floor, room.order, n_left)
    for rank in range(n_left):
        floor = room.floor[room.order[rank]]
        if n == len(near) and floor > effort[n - 1] / FINEST + 2.0 * TIE:
            break
        n, one = _look(field, u, room.left[room.order[rank]], floor, scale, near, effort, n, room.away)
        begun += one
    return n, begun


@jit
def search(
    field: Field, scale: Scale, groups: Ints, at: Ints, below: Ints, by_space: Ints, everybody: Ints, found: Found
) -> None:
    """Find, for each of some groups, the nearest that have fewer than `below` people, as many as the lists hold.

    `by_space` are at least those that are there, in an order in which neighbours are likely to be alike; at[g] is where
    the g-th of `groups` is in it; `everybody` are the same in canonical order. Exact: the lists are what comparing with
    every group would give, ties in canonical order.
    """
    n_all = len(field.there)
    room = Scratch(
        np.zeros(n_all, np.int64),
        np.zeros(1, np.int64),
        np.empty(n_all, np.int64),
        np.empty(n_all, np.float64),
        np.empty(n_all, np.int64),
        np.empty(MOST_PLACES, np.int64),
    )
    for g in range(len(groups)):
        near, effort = found.near[g], found.effort[g]
        n, begun = _search(field, groups[g], at[g], below[g], scale, by_space, everybody, near, effort, room)
        found.listed[g] = n
        found.begun[g] = begun
