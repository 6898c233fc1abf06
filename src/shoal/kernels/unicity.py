"""Kernels of unicity: draw points known of a few people, and count who else has them.

A point is a sample seen at a coarser resolution: `Coarse` says how a granule becomes one. Nothing is sorted and no
index of everybody is built: the few known points go into a small hash table, in which every sample is looked up once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.mix import GOLDEN, mix

if TYPE_CHECKING:
    from shoal.jit import Ints
    from shoal.kernels.samples import Samples

__all__ = ["Coarse", "PointTable", "draw_points", "fill_slots", "held_prefixes"]

_ONE = np.uint64(1)


class Coarse(NamedTuple):
    """How granules become points: t → (t + origin_slot)·slot_s // time_s, x → x·cell_m // space_m, y alike."""

    origin_slot: int
    slot_s: int
    time_s: int
    cell_m: int
    space_m: int


class PointTable(NamedTuple):
    """Distinct points, a hash table of them, and the people of whom each is known.

    Point p is (t, x, y)[p]; it is number bit[i] of the points known of person[i], for i in ends[p]…ends[p+1]-1.
    `slots` (a power of two, at most half full) holds numbers of points, -1 where free.
    """

    t: Ints
    x: Ints
    y: Ints
    ends: Ints
    person: Ints
    bit: Ints
    slots: Ints


@jit
def _hash(key: np.uint64, t: int, x: int, y: int) -> np.uint64:
    return mix(mix(mix(key ^ np.uint64(t)) ^ np.uint64(x)) ^ np.uint64(y))


@jit
def _point(coarse: Coarse, samples: Samples, i: int) -> tuple[int, int, int]:
    """Return the point that a sample is seen as."""
    return (
        (int(samples.t[i]) + coarse.origin_slot) * coarse.slot_s // coarse.time_s,
        int(samples.x[i]) * coarse.cell_m // coarse.space_m,
        int(samples.y[i]) * coarse.cell_m // coarse.space_m,
    )


@jit
def draw_points(samples: Samples, coarse: Coarse, drawn: Ints, most: int, seed: int) -> tuple[Ints, Ints]:
    """Draw up to `most` distinct points of each of the `drawn` users: (how many, points (users, most, 3)).

    The order is that of a random number which belongs to (seed, user, point): each set of points is as likely as
    any other, and the first p points stay the same however many are drawn.
    """
    counts = np.zeros(len(drawn), np.int64)
    points = np.zeros((len(drawn), most, 3), np.int64)
    rank = np.empty(most, np.uint64)
    for d in range(len(drawn)):
        user, n = drawn[d], 0
        key = mix(mix(np.uint64(seed) + GOLDEN) ^ np.uint64(user))
        for i in range(samples.offsets[user], samples.offsets[user + 1]):
            pt, px, py = _point(coarse, samples, i)
            order = _hash(key, pt, px, py)
            at = n
            while at > 0 and rank[at - 1] > order:
                at -= 1
            if at == most or (at > 0 and rank[at - 1] == order):
                continue  # later than all that are kept, or there already
            n = min(n + 1, most)
            for j in range(n - 1, at, -1):
                rank[j] = rank[j - 1]
                points[d, j] = points[d, j - 1]
            rank[at] = order
            points[d, at, 0], points[d, at, 1], points[d, at, 2] = pt, px, py
        counts[d] = n
    return counts, points


@jit
def fill_slots(t: Ints, x: Ints, y: Ints, slots: Ints) -> None:
    """Write the numbers of distinct points into an empty hash table."""
    last = np.uint64(len(slots) - 1)
    for p in range(len(t)):
        slot = _hash(GOLDEN, t[p], x[p], y[p]) & last
        while slots[slot] >= 0:
            slot = (slot + _ONE) & last
        slots[slot] = p


@jit
def _find(known: PointTable, t: int, x: int, y: int) -> int:
    """Return the number of a point, -1 if it is not known."""
    last = np.uint64(len(known.slots) - 1)
    slot = _hash(GOLDEN, t, x, y) & last
    while known.slots[slot] >= 0:
        p = known.slots[slot]
        if known.t[p] == t and known.x[p] == x and known.y[p] == y:
            return int(p)
        slot = (slot + _ONE) & last
    return -1


@jit
def held_prefixes(
    samples: Samples, coarse: Coarse, known: PointTable, people: int, most: int, users: tuple[int, int]
) -> Ints:
    """Count, for each of the `people` with known points, the users by how many of the first points they hold.

    Return (people, most+1): at [v, p] the users among users[0]…users[1]-1 who hold exactly the first p points of v
    and not the next (for p = 0 it stays empty: most hold none).
    """
    counts = np.zeros((people, most + 1), np.int64)
    held = np.zeros(people, np.uint64)
    touched = np.empty(people, np.int64)
    for user in range(users[0], users[1]):
        n = 0
        for i in range(samples.offsets[user], samples.offsets[user + 1]):
            pt, px, py = _point(coarse, samples, i)
            p = _find(known, pt, px, py)
            if p < 0:
                continue
            for j in range(known.ends[p], known.ends[p + 1]):
                person = known.person[j]
                if held[person] == 0:
                    touched[n] = person
                    n += 1
                held[person] |= _ONE << np.uint64(known.bit[j])
        for j in range(n):
            person, first = touched[j], 0
            while first < most and (held[person] >> np.uint64(first)) & _ONE:
                first += 1
            counts[person, first] += first > 0
            held[person] = 0
    return counts
