"""Find the groups with the least stretch effort to a group, exactly, while computing few efforts.

People and groups alike are known by a canonical index, a group by that of its first member. The bounds are those of
`kernels.kgap`, which hold for boxes and for any weights too: for ranges that do not meet, Eq. 4 and 7 give at least the
gap between them. A box that spans several bins of time may be at no distance in time.

One more bound costs nothing: if a group has been searched for, all groups that its list does not name are beyond the
end of the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.kgap import MOST_PLACES, Floors, effort_from, rough_floor, space_floor, time_floor
from shoal.kernels.sort import fill_order
from shoal.kernels.stretch import TIE, RowRange, Weights, box_effort, first_is_longer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.stretch import Scale, StretchedBoxes

__all__ = ["FINEST", "Field", "Found", "Sought", "Standing", "TimeBins", "fill_box_gaps", "search"]

FINEST = 1e12  # efforts are compared as whole multiples of this part of 1
_BESIDE = 24  # to either side, in the order by space, among whom the first guesses are
_GUESSES = 8  # of these are looked at, besides as many as are listed


class Field(NamedTuple):
    """All people and all groups.

    What stands at an index is `there` (or has been merged), has `size` people and `length` boxes: the rows start…stop-1
    of `boxes`, each with its `bin` of time (-1: several), or the samples of `floors` if it is one person. It was `born`
    and last `searched` for at those ticks of a clock. The search listed as many as `listed`: those `near`, at the
    efforts `effort` in multiples of 1/FINEST; all there were, or as many as the list holds.
    """

    floors: Floors
    boxes: StretchedBoxes
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
    """The results of searches, to be entered into the field, and how many efforts were begun for them."""

    near: Ints32
    effort: Ints
    listed: Ints
    begun: Ints


class Sought(NamedTuple):
    """Groups to search for: each group, its rank in the order by space, and the size that the others must be below."""

    group: Ints
    rank: Ints
    below: Ints


class Standing(NamedTuple):
    """The present groups, and perhaps some that were merged, in two orders: by space, and canonical.

    Neighbours in the order by space are likely to be alike.
    """

    by_space: Ints
    canonical: Ints


class TimeBins(NamedTuple):
    """Bins of time, `width` slots wide from slot `begin` on; gaps in time are in steps of `step`."""

    begin: int
    width: int
    step: int


class _Listing(NamedTuple):
    """The nearest groups so far and their efforts; `counts` are the number of these and of efforts begun."""

    near: Ints32
    effort: Ints
    counts: Ints


class _Room(NamedTuple):
    """Scratch arrays for one search: who was tried in which turn; who is left, with which floor, in which order."""

    seen: Ints
    turn: Ints
    left: Ints
    floor: Floats
    order: Ints
    away: Ints


@jit
def fill_box_gaps(edges: Ints32, scale: Scale, bins: TimeBins, gaps: NDArray[np.uint8]) -> None:
    """Fill the least distance in time from boxes, sorted and disjoint in time, to any instant of each bin."""
    s = 0
    for b in range(len(gaps)):
        first = bins.begin + b * bins.width
        last = first + bins.width - 1
        while s < len(edges) and edges[s, 1] < first:
            s += 1
        away = np.int64(scale.time_cap)
        if s < len(edges):
            away = min(away, scale.time * max(np.int64(0), np.int64(edges[s, 0]) - last))
        if s > 0:
            away = min(away, scale.time * (first - np.int64(edges[s - 1, 1])))
        gaps[b] = away // bins.step


@jit
def _rows(field: Field, u: int) -> RowRange:
    """Return the rows of a group's boxes."""
    return RowRange(field.start[u], field.stop[u])


@jit
def _longer(field: Field, u: int, v: int) -> tuple[int, int]:
    """Return two groups; the effort is averaged over the boxes of the first."""
    if field.length[u] != field.length[v]:
        return (u, v) if field.length[u] > field.length[v] else (v, u)
    if field.size[u] == 1 and field.size[v] == 1:  # of people with as many samples, the order is that of their lists
        return (u, v) if u < v else (v, u)
    return (u, v) if first_is_longer(field.boxes.edges, _rows(field, u), _rows(field, v)) else (v, u)


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
def _floor(field: Field, a: int, b: int, most: float, away: Ints) -> int:
    """Return a floor of the sum of efforts by space and time; by space only if that is already above `most`."""
    total = space_floor(field.floors, a, b, most, away)
    return total if total > most else total + _time_floor(field, a, b)


@jit
def _effort(field: Field, a: int, b: int, most: int, away: Ints) -> int:
    """Return the effort of two groups, the longer first, in multiples of 1/FINEST, or some number above `most`."""
    scale = field.floors.scale
    limit = (np.float64(most) + 1.0) / FINEST
    if field.size[a] > 1 or field.size[b] > 1:
        weights = Weights(field.size[a], field.size[b])
        found = box_effort(field.boxes, _rows(field, a), _rows(field, b), weights, scale, limit)
        return most + 1 if found == np.inf else int(np.rint(found * FINEST))
    whole = np.float64(scale.space_cap + scale.time_cap) * field.length[a]
    floor = _floor(field, a, b, np.inf, away)
    total = effort_from(field.floors, a, b, floor, limit * whole, away)
    return most + 1 if total > limit * whole else int(np.rint(total / whole * FINEST))


@jit
def _known_beyond(field: Field, u: int, v: int) -> int:
    """Return a lower bound of the effort that v's own search has shown; -1 if it shows none."""
    n = field.listed[v]
    if n < field.near.shape[1] or field.born[u] > field.searched[v]:
        return -1
    for p in range(n):
        if field.near[v, p] == u:
            return int(field.effort[v, p])
    return int(field.effort[v, n - 1])


@jit
def _before(effort: int, v: int, than: int, than_v: int) -> bool:
    """Return whether a group comes before another: by effort, then in canonical order."""
    return bool(effort < than or (effort == than and v < than_v))


@jit
def _enter(listing: _Listing, v: int, found: int) -> None:
    """Enter a group into the list of the nearest, if it is one of them."""
    near, effort, n = listing.near, listing.effort, listing.counts[0]
    if n == len(near):
        if not _before(found, v, effort[n - 1], near[n - 1]):
            return
        n -= 1
    at = n
    while at > 0 and _before(found, v, effort[at - 1], near[at - 1]):
        near[at] = near[at - 1]
        effort[at] = effort[at - 1]
        at -= 1
    near[at] = v
    effort[at] = found
    listing.counts[0] = n + 1


@jit
def _look(field: Field, u: int, v: int, floor: float, listing: _Listing, away: Ints) -> None:
    """Enter a group into the list unless a bound keeps it out."""
    n = listing.counts[0]
    most = int(2 * FINEST)
    if n == len(listing.near):
        most = int(listing.effort[n - 1])
        least = max(int(floor * (1.0 - 1e-12) * FINEST), _known_beyond(field, u, v))
        if not _before(least, v, most, listing.near[n - 1]):
            return
    a, b = _longer(field, u, v)
    found = _effort(field, a, b, most, away)
    listing.counts[1] += 1
    if found <= most:
        _enter(listing, v, found)


@jit
def _guess(field: Field, sought: Sought, g: int, by_space: Ints, listing: _Listing, room: _Room) -> None:
    """Try the most likely groups beside the g-th group, so that the search starts with a good bound."""
    u, below = sought.group[g], sought.below[g]
    first = max(0, min(sought.rank[g] - _BESIDE, len(by_space) - 2 * _BESIDE - 1))
    n_likely = 0
    for p in range(first, min(len(by_space), first + 2 * _BESIDE + 1)):
        v = by_space[p]
        if v != u and field.there[v] and field.size[v] < below:
            a, b = _longer(field, u, v)
            room.left[n_likely] = v
            room.floor[n_likely] = _floor(field, a, b, np.inf, room.away) / field.length[a]
            n_likely += 1
    fill_order(room.floor, room.order, n_likely)
    for rank in range(min(n_likely, len(listing.near) + _GUESSES)):
        v = room.left[room.order[rank]]
        room.seen[v] = room.turn[0]
        _look(field, u, v, 0.0, listing, room.away)


@jit
def _search(field: Field, sought: Sought, g: int, standing: Standing, listing: _Listing, room: _Room) -> None:
    """Fill the list of the groups nearest to the g-th group."""
    u, below = sought.group[g], sought.below[g]
    near, effort, scale = listing.near, listing.effort, field.floors.scale
    room.turn[0] += 1
    room.seen[u] = room.turn[0]
    _guess(field, sought, g, standing.by_space, listing, room)
    n = listing.counts[0]
    whole = np.float64(scale.space_cap + scale.time_cap)
    limit = effort[n - 1] / FINEST + 2.0 * TIE if n == len(near) else np.inf
    n_left = 0
    for v in standing.canonical:
        if room.seen[v] == room.turn[0] or not field.there[v] or field.size[v] >= below:
            continue
        a, b = _longer(field, u, v)
        most = limit * whole * field.length[a]
        if rough_floor(field.floors, a, b) > most:
            continue
        if n == len(near) and not _before(max(0, _known_beyond(field, u, v)), v, effort[n - 1], near[n - 1]):
            continue
        total = _floor(field, a, b, most, room.away)
        if total <= most:
            room.left[n_left] = v
            room.floor[n_left] = total / (whole * field.length[a])
            n_left += 1
    fill_order(room.floor, room.order, n_left)
    for rank in range(n_left):
        n = listing.counts[0]
        floor = room.floor[room.order[rank]]
        if n == len(near) and floor > effort[n - 1] / FINEST + 2.0 * TIE:
            break
        _look(field, u, room.left[room.order[rank]], floor, listing, room.away)


@jit
def search(field: Field, sought: Sought, standing: Standing, found: Found) -> None:
    """Find, for each of some groups, the nearest groups with fewer than `below` people, as many as the lists hold.

    Exact: the lists are what comparing with every group would give, ties in canonical order.
    """
    n_all = len(field.there)
    room = _Room(
        np.zeros(n_all, np.int64),
        np.zeros(1, np.int64),
        np.empty(n_all, np.int64),
        np.empty(n_all, np.float64),
        np.empty(n_all, np.int64),
        np.empty(MOST_PLACES, np.int64),
    )
    counts = np.empty(2, np.int64)
    for g in range(len(sought.group)):
        counts[:] = 0
        _search(field, sought, g, standing, _Listing(found.near[g], found.effort[g], counts), room)
        found.listed[g] = counts[0]
        found.begun[g] = counts[1]
