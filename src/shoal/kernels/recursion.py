"""The recursion of k-merge (k^(τ,ε)-anonymity, Sec. III-C/D, Alg. 1): its steps, shared by kernels.

Samples that share a slot are never separated, so the recursion runs over slots, numbered from 1 in time order.
With last_l(g) the last slot at or before g that holds trajectory l and M(g) = min_l last_l(g), the box [s..g] is
complete iff s <= M(g), and elementary iff also s > M(M(g) - 1). Hence

    cost(g) = min over s in (M(M(g) - 1), M(g)] of cost(s - 1) + c(s..g) * weight(s..g).

M = 0 means "not complete yet" and cost(0) = 0. Ties take the later s. Splitting a box never costs more, which is why
elementary boxes suffice (kernels/price.py says for which prices c).

A kernel writes slot g (time, bounds, M and the weight up to it), then asks for the bounds of the slots after M(g) and
for the cheapest start of a box that ends at g. `merge_records` and `merged_cost` do so; `pair_owner_costs` does the
same by hand and says why. Positions are unsigned, which spares the compiled code a check for negative indices. A step
has one way out: with a `break` or a second `return` the compiled code counts references to every array at each call,
which makes a merge three times as slow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import inlined, jit
from shoal.kernels.price import price_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints32
    from shoal.kernels.price import Price

__all__ = [
    "EMPTY",
    "FIRST",
    "LAST",
    "NO_CONSTANT",
    "START",
    "Bounds",
    "Ledger",
    "Slot",
    "Slots",
    "bounds_between",
    "cheapest_start",
    "least_cost",
    "ledger_for",
    "slots_for",
    "wider",
    "write_slot",
]

FIRST, LAST = np.int32(-(2**31)), np.int32(2**31 - 1)
NO_CONSTANT = -0.0  # adding it is nothing to the compiler, which is not so for 0.0

_ONE = np.uint64(1)


class Bounds(NamedTuple):
    """Bounds of some slots in space, inclusive."""

    west: np.int32
    east: np.int32
    south: np.int32
    north: np.int32


EMPTY = Bounds(LAST, FIRST, LAST, FIRST)


class Slots(NamedTuple):
    """The slots of a merge: time and bounds of each, and the latest start M(g) of a complete box that ends there."""

    time: Ints32
    west: Ints32
    east: Ints32
    south: Ints32
    north: Ints32
    latest: NDArray[np.uint64]


class Slot(NamedTuple):
    """One slot, as a kernel has just read it: its time and bounds, M, and the weight of all samples up to it."""

    time: np.int32
    bounds: Bounds
    latest: np.uint64
    weight: float


START = Slot(np.int32(0), EMPTY, np.uint64(0), 0.0)


class Ledger(NamedTuple):
    """The price of a box, the weight of all samples up to each slot, and the least cost of merging them."""

    price: Price
    weight: Floats
    cost: Floats


@jit
def slots_for(n_samples: int) -> Slots:
    """Return arrays for the slots of this many samples."""
    sides = np.empty((5, n_samples + 1), np.int32)
    latest = np.empty(n_samples + 1, np.uint64)
    latest[0] = 0
    return Slots(sides[0], sides[1], sides[2], sides[3], sides[4], latest)


@jit
def ledger_for(n_samples: int, price: Price) -> Ledger:
    """Return arrays for the weights and costs of this many samples."""
    weight, cost = np.empty(n_samples + 1, np.float64), np.empty(n_samples + 1, np.float64)
    weight[0] = cost[0] = 0.0
    return Ledger(price, weight, cost)


@inlined
def write_slot(slots: Slots, ledger: Ledger, g: np.uint64, slot: Slot) -> None:
    """Write slot g; its cost is not known yet."""
    slots.time[g] = slot.time
    slots.west[g] = slot.bounds.west
    slots.east[g] = slot.bounds.east
    slots.south[g] = slot.bounds.south
    slots.north[g] = slot.bounds.north
    slots.latest[g] = slot.latest
    ledger.weight[g] = slot.weight
    ledger.cost[g] = np.inf


@inlined
def wider(one: Bounds, other: Bounds) -> Bounds:
    """Return the bounds around both."""
    return Bounds(
        min(one.west, other.west), max(one.east, other.east), min(one.south, other.south), max(one.north, other.north)
    )


@inlined
def bounds_between(slots: Slots, m: np.uint64, g: np.uint64, bounds: Bounds) -> Bounds:
    """Return the bounds of the slots after m and before g, and of others."""
    x0, x1, y0, y1 = bounds
    s = m + _ONE
    while s < g:
        x0 = min(x0, slots.west[s])
        x1 = max(x1, slots.east[s])
        y0 = min(y0, slots.south[s])
        y1 = max(y1, slots.north[s])
        s += _ONE
    return Bounds(x0, x1, y0, y1)


@inlined
def least_cost(ledger: Ledger, start: np.uint64, stop: np.uint64) -> float:
    """Return the least cost up to any of the slots start…stop-1."""
    least = np.inf
    while start < stop:
        least = min(least, ledger.cost[start])
        start += _ONE
    return least


@inlined
def cheapest_start(
    slots: Slots, ledger: Ledger, slot: Slot, after: Bounds, least: float, constant: float
) -> tuple[float, np.uint64]:
    """Return the least cost up to a slot, and the start of its last box.

    `after` are the bounds of the slots after M and up to this one, `least` a floor of the costs before the box. A box
    weighs `constant` (or NO_CONSTANT) and what its samples weigh.
    """
    x0, x1, y0, y1 = after
    best, start = np.inf, np.uint64(0)
    s = slot.latest
    low = slots.latest[s - _ONE]
    cheap = True
    while cheap and s > low:
        x0 = min(x0, slots.west[s])
        x1 = max(x1, slots.east[s])
        y0 = min(y0, slots.south[s])
        y1 = max(y1, slots.north[s])
        long, wide = np.float64(slot.time - slots.time[s] + 1), np.float64((x1 - x0) + (y1 - y0) + 2)
        c = price_of(ledger.price, long, wide)
        before = s - _ONE
        c *= constant + (slot.weight - ledger.weight[before])
        cheap = c + least < best
        total = ledger.cost[before] + c
        if total < best:
            best = total
            start = s
        s = before
    return best, start
