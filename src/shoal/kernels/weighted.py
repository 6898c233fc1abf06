"""The cost of a k-merge without its boxes, for any members and weights, abandoned early. See kernels/recursion.py.

A search needs this cost a million times, and only whether it is below a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import inlined, jit
from shoal.kernels.price import least_more, price_of
from shoal.kernels.recursion import (
    EMPTY,
    LAST,
    NO_CONSTANT,
    START,
    Bounds,
    Ledger,
    Slot,
    Slots,
    bounds_between,
    cheapest_start,
    least_cost,
    ledger_for,
    slots_for,
    wider,
    write_slot,
)
from shoal.kernels.samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.price import Price

__all__ = ["Samples", "Scratch", "grown_costs", "merged_cost", "scratch_of"]

_FEW = 3  # members; their boxes have so few starts that choosing among these does not pay
_ONE, _NONE = np.uint64(1), np.uint64(0)


class Heads(NamedTuple):
    """How far each member has been read: the next row and the time of it, the row to stop at, the last slot read."""

    row: NDArray[np.uint64]
    stop: NDArray[np.uint64]
    last: NDArray[np.uint64]
    coming: Ints32


class Scratch(NamedTuple):
    """Scratch arrays for one group's slots and members; made once, used for every cost.

    `starts` are slots where a box may start, latest first: what is subtracted from a time to get a duration, the
    bounds (west, east, south, north) of the slots from there to the latest, weight and cost of all before. `who` and
    `share` are for callers: the members, and what a sample of each weighs.
    """

    slots: Slots
    ledger: Ledger
    heads: Heads
    who: Ints
    share: Floats
    starts: Floats


@jit
def scratch_of(n_samples: int, n_members: int, price: Price) -> Scratch:
    """Return scratch arrays for merges of up to this many samples of this many members, and the price of a box."""
    heads = Heads(
        np.empty(n_members, np.uint64),
        np.empty(n_members, np.uint64),
        np.empty(n_members, np.uint64),
        np.empty(n_members, np.int32),
    )
    starts = np.empty((n_samples + 1, 7), np.float64)
    who, share = np.empty(n_members, np.int64), np.empty(n_members, np.float64)
    return Scratch(slots_for(n_samples), ledger_for(n_samples, price), heads, who, share, starts)


@inlined
def _list_starts(slots: Slots, ledger: Ledger, slot: Slot, after: Bounds, starts: Floats) -> np.uint64:
    """List the slots where a box that ends at this slot or later may start, while M is the same; return how many.

    An earlier start makes the box dearer, at any end from now on by at least what its longer time and greater weight
    cost (`least_more`) at the bounds that the box of the later start has now (`after`: those of the slots after M). If
    what is before it does not cost so much less, it is left out.
    """
    x0, x1, y0, y1 = EMPTY
    n = _NONE
    wide = long = heavy = enough = 0.0
    s = slot.latest
    low = slots.latest[s - _ONE]
    while s > low:
        x0 = min(x0, slots.west[s])
        x1 = max(x1, slots.east[s])
        y0 = min(y0, slots.south[s])
        y1 = max(y1, slots.north[s])
        before = s - _ONE
        slots_here, weight = np.float64(slot.time - slots.time[s] + 1), slot.weight - ledger.weight[before]
        more = least_more(ledger.price, wide, slots_here, weight, long, heavy)
        if n == 0 or ledger.cost[before] + (1.0 - 1e-12) * more < enough:
            starts[n, 0] = slots.time[s] - 1
            starts[n, 1] = x0
            starts[n, 2] = x1
            starts[n, 3] = y0
            starts[n, 4] = y1
            starts[n, 5] = ledger.weight[before]
            starts[n, 6] = ledger.cost[before]
            n += _ONE
            across, along = max(x1, after.east) - min(x0, after.west), max(y1, after.north) - min(y0, after.south)
            wide = np.float64(across + along + 2)
            long, heavy = slots_here, weight
            enough = ledger.cost[before]
        s = before
    return n


@inlined
def _cheapest_listed(
    price: Price, starts: Floats, n_starts: np.uint64, slot: Slot, after: Bounds, least: float
) -> float:
    """Return the least cost up to a slot, over the starts listed."""
    best = np.inf
    cheap = True
    n = _NONE
    while cheap and n < n_starts:
        across = max(starts[n, 2], float(after.east)) - min(starts[n, 1], float(after.west))
        along = max(starts[n, 4], float(after.north)) - min(starts[n, 3], float(after.south))
        c = price_of(price, slot.time - starts[n, 0], across + along + 2.0) * (slot.weight - starts[n, 5])
        cheap = c + least < best
        best = min(best, c + starts[n, 6])
        n += _ONE
    return best


@inlined
def _begin(samples: Samples, members: Ints, n_members: int, heads: Heads) -> None:
    """Move every member's head to their first sample."""
    for m in range(n_members):
        begin = samples.offsets[members[m]]
        heads.row[m] = np.uint64(begin)
        heads.stop[m] = np.uint64(samples.offsets[members[m] + 1])
        heads.last[m] = _NONE
        heads.coming[m] = samples.t[begin]


@inlined
def _read_slot(
    samples: Samples, n_members: int, weight_of: Floats, g: np.uint64, before: Slot, heads: Heads
) -> tuple[Slot, int]:
    """Read slot g, the next of all members; return it and how many members end with it."""
    now = heads.coming[0]
    who = 0
    several = False
    for m in range(1, n_members):
        if heads.coming[m] < now:
            now = heads.coming[m]
            who = m
            several = False
        elif heads.coming[m] == now:
            several = True
    x0, x1, y0, y1 = EMPTY
    latest = before.latest
    upto = before.weight
    moved = False
    ended = 0
    for m in range(who, n_members if several else who + 1):
        if heads.coming[m] != now:
            continue
        moved = moved or heads.last[m] == latest
        row = heads.row[m]
        stop = heads.stop[m]
        following = now
        while following == now:
            x0 = min(x0, samples.x[row])
            x1 = max(x1, samples.x[row])
            y0 = min(y0, samples.y[row])
            y1 = max(y1, samples.y[row])
            upto += weight_of[m]
            row += _ONE
            if row < stop:
                following = samples.t[row]
            else:
                following = LAST
                ended += 1
        heads.coming[m] = following
        heads.row[m] = row
        heads.last[m] = g
    if moved:  # only they can have been the least
        latest = g
        for m in range(n_members):
            latest = min(latest, heads.last[m])
    return Slot(now, Bounds(x0, x1, y0, y1), latest, upto), ended


@jit
def merged_cost(
    samples: Samples, members: Ints, n_members: int, weight_of: Floats, bound: float, scratch: Scratch
) -> float:
    """Return the least Σ price(box) · Σ weight_of[m] of its samples over the merges of members[:n_members].

    The result is inf as soon as it is sure to exceed `bound`. Adding a member never lowers it. One pass over the
    samples: O(slots · (members + slots in a box)).
    """
    slots, ledger, heads, _, _, starts = scratch
    _begin(samples, members, n_members, heads)
    g = n_starts = before = _NONE
    slot = START
    after = EMPTY
    least = np.inf  # of the costs before the boxes that can end at g
    ended = 0
    listed = False
    while ended < n_members:
        g += _ONE
        slot, n = _read_slot(samples, n_members, weight_of, g, slot, heads)
        ended += n
        write_slot(slots, ledger, g, slot)
        m = slot.latest
        if m == _NONE:
            continue
        if m == before:
            after = wider(after, slot.bounds)
        else:
            before = m
            listed = False
            after = bounds_between(slots, m, g, slot.bounds)
            least = least_cost(ledger, slots.latest[m - _ONE], m)
            # The box that holds slot g starts after some p before it, from M(M(g) - 1) on, and costs only add up.
            if least > bound and least_cost(ledger, m, g) > bound:
                ended = n_members  # a second `return` would count references to every array
                continue
        if 0 < ended < n_members:  # no complete box can follow, so no cut after g is ever taken
            continue
        if n_members <= _FEW:
            ledger.cost[g], _ = cheapest_start(slots, ledger, slot, after, least, NO_CONSTANT)
            continue
        if not listed:
            listed = True
            n_starts = _list_starts(slots, ledger, slot, after, starts)
        ledger.cost[g] = _cheapest_listed(ledger.price, starts, n_starts, slot, after, least)
    return float(ledger.cost[g])


@jit
def grown_costs(samples: Samples, lists: Ints, rows: Ints, users: Ints, price: Price, costs: Floats) -> None:
    """Fill the `members` cost of each record lists[rows[p]] if it also takes users[p]; all lists have one length."""
    n = lists.shape[1] + 1
    offsets = samples.offsets
    scratch = scratch_of((offsets[1:] - offsets[:-1]).max() * n, n, price)
    who, share = scratch.who, scratch.share
    for p in range(len(rows)):
        for m in range(n - 1):
            who[m] = lists[rows[p], m]
        who[n - 1] = users[p]
        for m in range(n):
            share[m] = 1.0 / (offsets[who[m] + 1] - offsets[who[m]])
        costs[p] = merged_cost(samples, who, n, share, np.inf, scratch)
