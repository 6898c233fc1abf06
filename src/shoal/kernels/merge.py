"""k-merge: the cheapest way to merge trajectories into common boxes; the recursion is that of kernels/recursion.py.

The weight of a box is `constant + Σ of its samples' weights`: (1; 0) is the plain sum of k^(τ,ε)-anonymity, Eq. 3,
(0; 1 for the owner's samples) is k-scale, Eq. 4 times N_owner, (0; 1/N_i) is the sum of everybody's Eq. 4. What a box
costs besides its weight is its price (kernels/price.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import inlined, jit
from shoal.kernels.price import price_of
from shoal.kernels.recursion import (
    EMPTY,
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.price import Price
    from shoal.kernels.samples import Samples

__all__ = [
    "MEMBERS",
    "OWNER",
    "SUM",
    "MemberLists",
    "MergedRecords",
    "PairScratch",
    "merge_records",
    "owner_cost_pairs",
    "pair_owner_costs",
    "pair_scratch",
]

SUM = 0
OWNER = 1
MEMBERS = 2

_CHECK_EVERY = np.uint64(16)  # slots between two checks of the abandon bound
_ONE, _NONE = np.uint64(1), np.uint64(0)


class PairScratch(NamedTuple):
    """The price of a box, and scratch arrays for the merge of two people.

    Slots are as in `Slots`; there are weights and costs with each of the two as the owner.
    """

    price: Price
    time: Ints
    west: Ints
    east: Ints
    south: Ints
    north: Ints
    latest: NDArray[np.uint64]
    weight_a: Floats
    cost_a: Floats
    weight_b: Floats
    cost_b: Floats


@jit
def pair_scratch(n_samples: int, price: Price) -> PairScratch:
    """Return scratch arrays for any two people with this many samples together."""
    ints = np.empty((5, n_samples + 1), np.int64)
    latest = np.empty(n_samples + 1, np.uint64)
    floats = np.empty((4, n_samples + 1), np.float64)
    latest[0] = 0
    floats[:, 0] = 0.0
    time, west, east, south, north = ints[0], ints[1], ints[2], ints[3], ints[4]
    weight_a, cost_a, weight_b, cost_b = floats[0], floats[1], floats[2], floats[3]
    return PairScratch(price, time, west, east, south, north, latest, weight_a, cost_a, weight_b, cost_b)


@inlined
def _least(cost: Floats, start: np.uint64, last: np.uint64) -> float:
    """Return the least cost up to any of the slots start…last."""
    least = cost[last]
    while start < last:
        least = min(least, cost[start])
        start += _ONE
    return float(least)


# more than 60 lines: this is the recursion of kernels/recursion.py by hand, for two people and both as owners at once.
# With the shared steps, which look for the cheapest start once for each owner, a pair takes half as long again (+49 and
# +62 % of CPU time in two runs over 20,000 pairs of generated people); with shared steps that look for both, +25 %.
@jit
def pair_owner_costs(
    samples: Samples, a: int, b: int, bound_a: float, bound_b: float, scratch: PairScratch
) -> tuple[float, float]:
    """Return the owner cost (k-scale, Eq. 4, by the price at hand) of merging persons a and b, to each of them.

    One pass over the samples serves two recursions: a's weights and b's. The result is (inf, inf) as soon as the first
    cost is sure to exceed `bound_a` and the second `bound_b`.
    """
    t, x, y, offsets = samples
    price, time, west, east, south, north, latest, weight_a, cost_a, weight_b, cost_b = scratch
    row_a, stop_a = np.uint64(offsets[a]), np.uint64(offsets[a + 1])
    row_b, stop_b = np.uint64(offsets[b]), np.uint64(offsets[b + 1])
    n_a, n_b = np.float64(stop_a - row_a), np.float64(stop_b - row_b)
    limit_a, limit_b = bound_a * n_a, bound_b * n_b
    upto_a = upto_b = 0.0
    last_a = last_b = g = _NONE
    rx0 = rx1 = ry0 = ry1 = np.int64(0)  # bounds of the slots after M(g): a single run of one of the two
    while row_a < stop_a or row_b < stop_b:
        g += _ONE
        before = min(last_a, last_b)
        if row_b >= stop_b or (row_a < stop_a and t[row_a] <= t[row_b]):
            now = np.int64(t[row_a])
            gx0 = gx1 = np.int64(x[row_a])
            gy0 = gy1 = np.int64(y[row_a])
        else:
            now = np.int64(t[row_b])
            gx0 = gx1 = np.int64(x[row_b])
            gy0 = gy1 = np.int64(y[row_b])
        while row_a < stop_a and t[row_a] == now:
            gx0 = min(gx0, np.int64(x[row_a]))
            gx1 = max(gx1, np.int64(x[row_a]))
            gy0 = min(gy0, np.int64(y[row_a]))
            gy1 = max(gy1, np.int64(y[row_a]))
            upto_a += 1.0
            last_a = g
            row_a += _ONE
        while row_b < stop_b and t[row_b] == now:
            gx0 = min(gx0, np.int64(x[row_b]))
            gx1 = max(gx1, np.int64(x[row_b]))
            gy0 = min(gy0, np.int64(y[row_b]))
            gy1 = max(gy1, np.int64(y[row_b]))
            upto_b += 1.0
            last_b = g
            row_b += _ONE
        time[g] = now
        west[g] = gx0
        east[g] = gx1
        south[g] = gy0
        north[g] = gy1
        weight_a[g] = upto_a
        weight_b[g] = upto_b
        m = min(last_a, last_b)
        latest[g] = m
        if m == _NONE:
            cost_a[g] = cost_b[g] = np.inf
            continue
        if m == before:
            rx0 = min(rx0, gx0)
            rx1 = max(rx1, gx1)
            ry0 = min(ry0, gy0)
            ry1 = max(ry1, gy1)
        else:  # the run is slot g alone, or empty with M(g) = g, which then adds itself
            rx0, rx1, ry0, ry1 = gx0, gx1, gy0, gy1
        if (row_a == stop_a) != (row_b == stop_b):  # no complete box can follow, so no cut after g is ever taken
            cost_a[g] = cost_b[g] = np.inf
            continue
        x0, x1, y0, y1 = rx0, rx1, ry0, ry1
        best_a = best_b = np.inf
        low = latest[m - _ONE]
        s = m
        while s > low:
            x0 = min(x0, west[s])
            x1 = max(x1, east[s])
            y0 = min(y0, south[s])
            y1 = max(y1, north[s])
            c = price_of(price, np.float64(now - time[s] + 1), np.float64((x1 - x0) + (y1 - y0) + 2))
            s -= _ONE
            c_a = c * (upto_a - weight_a[s])
            c_b = c * (upto_b - weight_b[s])
            if c_a >= best_a and c_b >= best_b:
                break
            c_a += cost_a[s]
            if c_a < best_a:
                best_a = c_a
            c_b += cost_b[s]
            if c_b < best_b:
                best_b = c_b
        cost_a[g] = best_a
        cost_b[g] = best_b
        # Whatever comes, the box that holds slot g starts after some p in [low, g], and costs only add up.
        if g % _CHECK_EVERY == _NONE and _least(cost_a, low, g) > limit_a and _least(cost_b, low, g) > limit_b:
            return np.inf, np.inf
    return cost_a[g] / n_a, cost_b[g] / n_b


@jit
def owner_cost_pairs(
    samples: Samples, first: Ints, second: Ints, price: Price, cost_first: Floats, cost_second: Floats
) -> None:
    """Fill the owner costs of many pairs of people, to each of them, into the two output arrays."""
    offsets = samples.offsets
    longest = 0
    for p in range(len(first)):
        i = first[p]
        j = second[p]
        longest = max(longest, offsets[i + 1] - offsets[i] + offsets[j + 1] - offsets[j])
    scratch = pair_scratch(longest, price)
    for p in range(len(first)):
        cost_first[p], cost_second[p] = pair_owner_costs(samples, first[p], second[p], np.inf, np.inf, scratch)


class MemberLists(NamedTuple):
    """Lists of people to merge: record r merges members[offsets[r]:offsets[r + 1]], the owner first."""

    offsets: Ints
    members: Ints


class MergedRecords(NamedTuple):
    """The result of merging: counts[r] boxes from row starts[r] of `boxes` on, and the least cost of each record."""

    boxes: Ints32
    starts: Ints
    counts: Ints
    costs: Floats


class _Rows(NamedTuple):
    """Rows of samples in the order of time, and the place of each row's user among the members."""

    row: Ints
    owner: Ints


@jit
def _time_order(samples: Samples, members: Ints, rows: _Rows, spare: _Rows) -> tuple[int, _Rows]:
    """Merge the members' rows by time, pairs of runs at a time; equal times keep the members' order."""
    t, offsets = samples.t, samples.offsets
    n_runs = len(members)
    ends = np.empty(n_runs + 1, np.int64)
    ends[0] = 0
    n = 0
    for m in range(n_runs):
        for r in range(offsets[members[m]], offsets[members[m] + 1]):
            rows.row[n] = r
            rows.owner[n] = m
            n += 1
        ends[m + 1] = n
    while n_runs > 1:
        merged = 0
        for run in range(0, n_runs, 2):
            i = ends[run]
            i_end = ends[run + 1]
            j = i_end
            j_end = ends[min(run + 2, n_runs)]
            for p in range(i, j_end):
                if i < i_end and (j >= j_end or t[rows.row[i]] <= t[rows.row[j]]):
                    spare.row[p] = rows.row[i]
                    spare.owner[p] = rows.owner[i]
                    i += 1
                else:
                    spare.row[p] = rows.row[j]
                    spare.owner[p] = rows.owner[j]
                    j += 1
            merged += 1
            ends[merged] = j_end
        rows, spare = spare, rows
        n_runs = merged
    return n, rows


@jit
def _fill_slots(samples: Samples, rows: _Rows, n_rows: int, weight_of: Floats, slots: Slots, ledger: Ledger) -> int:
    """Collapse rows in time order into slots, and write the slots; return their number.

    The members are kept in a list ordered by their last slot, so M(g) is the head's (O(1) per sample).
    """
    t, x, y, _ = samples
    n_members = len(weight_of)
    last = np.zeros(n_members, np.int64)
    after = np.empty(n_members + 1, np.int64)
    before = np.empty(n_members + 1, np.int64)
    for m in range(n_members + 1):  # node n_members is the sentinel of a circular list
        after[m] = (m + 1) % (n_members + 1)
        before[m] = (m - 1) % (n_members + 1)
    upto = 0.0
    g = 0
    p = 0
    while p < n_rows:
        g += 1
        now = t[rows.row[p]]
        x0, x1, y0, y1 = EMPTY
        w = 0.0
        while p < n_rows and t[rows.row[p]] == now:
            r = rows.row[p]
            m = rows.owner[p]
            x0 = min(x0, x[r])
            x1 = max(x1, x[r])
            y0 = min(y0, y[r])
            y1 = max(y1, y[r])
            w += weight_of[m]
            if last[m] != g:
                last[m] = g
                after[before[m]] = after[m]
                before[after[m]] = before[m]
                tail = before[n_members]
                after[tail] = m
                before[m] = tail
                after[m] = n_members
                before[n_members] = m
            p += 1
        upto += w
        latest = np.uint64(last[after[n_members]])
        write_slot(slots, ledger, np.uint64(g), Slot(now, Bounds(x0, x1, y0, y1), latest, upto))
    return g


@jit
def _cheapest_cuts(slots: Slots, ledger: Ledger, n_slots: int, constant: float, cut: NDArray[np.uint64]) -> None:
    """Run the recursion: fill the costs and the start cut[g] of the last box, for every prefix of slots."""
    end = np.uint64(n_slots)
    g = before = _NONE
    after = EMPTY
    least = np.inf
    while g < end:
        g += _ONE
        bounds = Bounds(slots.west[g], slots.east[g], slots.south[g], slots.north[g])
        slot = Slot(slots.time[g], bounds, slots.latest[g], ledger.weight[g])
        m = slot.latest
        cut[g] = _NONE
        if m == _NONE:
            continue
        if m == before:
            after = wider(after, bounds)
        else:
            before = m
            after = bounds_between(slots, m, g, bounds)
            least = least_cost(ledger, slots.latest[m - _ONE], m)
        if slots.latest[end] <= g < end:  # no complete box can follow, so no cut after g is ever taken
            continue
        ledger.cost[g], cut[g] = cheapest_start(slots, ledger, slot, after, least, constant)


@jit
def _write_boxes(slots: Slots, n_slots: int, cut: NDArray[np.uint64], out: Ints32) -> int:
    """Follow the cuts back from the end; write the boxes to `out` in the order of time and return their number."""
    n = 0
    g = n_slots
    while g > 0:
        n += 1
        g = int(cut[g]) - 1
    g = n_slots
    for b in range(n - 1, -1, -1):
        s = int(cut[g])
        out[b, 0] = slots.time[s]
        out[b, 1] = slots.time[g]
        out[b, 2] = slots.west[s : g + 1].min()
        out[b, 3] = slots.east[s : g + 1].max()
        out[b, 4] = slots.south[s : g + 1].min()
        out[b, 5] = slots.north[s : g + 1].max()
        g = s - 1
    return n


@jit
def merge_records(samples: Samples, lists: MemberLists, objective: int, price: Price, merged: MergedRecords) -> None:
    """Merge many records by k-merge, each the people of one list; fill `merged`. For SUM, the price must be PRODUCT.

    A record needs room for as many boxes as its least member has samples, since every box holds one of them. With
    `boxes` of no rows only costs are filled.
    """
    offsets = samples.offsets
    largest = 0
    for r in range(len(lists.offsets) - 1):
        n = 0
        for q in range(lists.offsets[r], lists.offsets[r + 1]):
            n += offsets[lists.members[q] + 1] - offsets[lists.members[q]]
        largest = max(largest, n)
    rows = _Rows(np.empty(largest, np.int64), np.empty(largest, np.int64))
    spare = _Rows(np.empty(largest, np.int64), np.empty(largest, np.int64))
    slots, ledger = slots_for(largest), ledger_for(largest, price)
    cut = np.empty(largest + 1, np.uint64)
    for r in range(len(lists.offsets) - 1):
        members = lists.members[lists.offsets[r] : lists.offsets[r + 1]]
        weight_of = np.zeros(len(members), np.float64)
        for m in range(len(members)):
            if objective == MEMBERS:
                weight_of[m] = 1.0 / (offsets[members[m] + 1] - offsets[members[m]])
        scale = 1.0
        if objective == OWNER:
            weight_of[0] = 1.0
            scale = 1.0 * (offsets[members[0] + 1] - offsets[members[0]])
        n, in_order = _time_order(samples, members, rows, spare)
        n_slots = _fill_slots(samples, in_order, n, weight_of, slots, ledger)
        _cheapest_cuts(slots, ledger, n_slots, 1.0 if objective == SUM else 0.0, cut)
        merged.costs[r] = ledger.cost[n_slots] / scale
        if len(merged.boxes) > 0:
            merged.counts[r] = _write_boxes(slots, n_slots, cut, merged.boxes[merged.starts[r] :])
