"""What a k-merge costs, without its boxes: any members, any weights, abandoned early. See kernels/merge.py.

A search asks a million times what some users would cost together, and only whether it is less than a bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32

__all__ = ["Samples", "Scratch", "grown_costs", "merged_cost", "scratch_of"]

_LAST = np.int32(2**31 - 1)
_FIRST = np.int32(-(2**31))
_FEW = 3  # members; their boxes have so few starts that choosing among these does not pay


class Samples(NamedTuple):
    """Everybody's samples, as in Trajectories."""

    t: Ints32
    x: Ints32
    y: Ints32
    offsets: Ints


class Scratch(NamedTuple):
    """Room for one group's slots and members; made once, used for every cost.

    `starts` are slots where a box may start, latest first: what is subtracted from a time to get a duration, the
    bounds (west, east, south, north) of the slots from there to the latest, weight and cost of all before.
    """

    boxes: Ints32
    weight: Floats
    cost: Floats
    latest: NDArray[np.uint64]
    head: NDArray[np.uint64]
    stop: NDArray[np.uint64]
    last: NDArray[np.uint64]
    coming: Ints32
    share: Floats
    starts: Floats


@jit
def scratch_of(n_samples: int, n_members: int) -> Scratch:
    """Return room for merges of up to so many samples of so many members."""
    n = n_samples + 1
    return Scratch(
        np.empty((5, n), np.int32),
        np.empty(n, np.float64),
        np.empty(n, np.float64),
        np.empty(n, np.uint64),
        np.empty(n_members, np.uint64),
        np.empty(n_members, np.uint64),
        np.empty(n_members, np.uint64),
        np.empty(n_members, np.int32),
        np.empty(n_members, np.float64),
        np.empty((n, 7), np.float64),
    )


@jit
def _list_starts(
    boxes: Ints32,
    weight: Floats,
    cost: Floats,
    starts: Floats,
    low: np.uint64,
    m_g: np.uint64,
    now: np.int32,
    west: np.int32,
    east: np.int32,
    south: np.int32,
    north: np.int32,
    upto: float,
) -> np.uint64:
    """List the slots low+1…m_g where the box may start that ends now or later; give how many.

    An earlier start makes the box dearer, at any end from now on by at least what its longer time and greater weight
    cost at the bounds that the box of the later start has now (west … north: those of the slots after m_g). If what
    is before it does not cost so much less, it is left out.
    """
    one = np.uint64(1)
    x0 = y0 = _LAST
    x1 = y1 = _FIRST
    n = np.uint64(0)
    wide = long = enough = 0.0
    s = m_g
    while s > low:
        x0 = min(x0, boxes[1, s])
        x1 = max(x1, boxes[2, s])
        y0 = min(y0, boxes[3, s])
        y1 = max(y1, boxes[4, s])
        before = s - one
        here = np.float64(now - boxes[0, s] + 1) * (upto - weight[before])
        if n == 0 or cost[before] + (1.0 - 1e-12) * wide * (here - long) < enough:
            starts[n, 0] = boxes[0, s] - 1
            starts[n, 1] = x0
            starts[n, 2] = x1
            starts[n, 3] = y0
            starts[n, 4] = y1
            starts[n, 5] = weight[before]
            starts[n, 6] = cost[before]
            n += one
            wide = np.float64((max(x1, east) - min(x0, west)) + (max(y1, north) - min(y0, south)) + 2)
            long = here
            enough = cost[before]
        s = before
    return n


@jit
def merged_cost(
    samples: Samples, members: Ints, n_members: int, weight_of: Floats, bound: float, scratch: Scratch
) -> float:
    """Return the least Σ c(box) · Σ weight_of[m] of its samples over the merges of members[:n_members].

    Gives inf as soon as it is sure to exceed `bound`. Adding a member never lowers it. The recursion is that of
    kernels/merge.py, in one pass over the samples: O(slots · (members + slots in a box)).
    """
    t, x, y, offsets = samples
    boxes, weight, cost, latest, head, stop, last, coming, _, starts = scratch
    time, west, east, south, north = boxes[0], boxes[1], boxes[2], boxes[3], boxes[4]
    one, none = np.uint64(1), np.uint64(0)  # unsigned positions spare the compiled code a check for negative ones
    for m in range(n_members):
        begin = offsets[members[m]]
        end = offsets[members[m] + 1]
        head[m] = np.uint64(begin)
        stop[m] = np.uint64(end)
        last[m] = none
        coming[m] = t[begin]
    weight[none] = cost[none] = 0.0
    latest[none] = none
    g = m_g = before = none
    upto = 0.0
    least = np.inf  # of the costs before the boxes that can end at g
    rx0 = rx1 = ry0 = ry1 = np.int32(0)
    ended = 0
    n_starts = none
    listed = False
    while ended < n_members:
        now = coming[0]
        who = 0
        several = False
        for m in range(1, n_members):
            if coming[m] < now:
                now = coming[m]
                who = m
                several = False
            elif coming[m] == now:
                several = True
        g += one
        x0 = y0 = _LAST
        x1 = y1 = _FIRST
        moved = False
        for m in range(who, n_members if several else who + 1):
            if coming[m] != now:
                continue
            moved = moved or last[m] == m_g
            h = head[m]
            end = stop[m]
            following = now
            while following == now:
                x0 = min(x0, x[h])
                x1 = max(x1, x[h])
                y0 = min(y0, y[h])
                y1 = max(y1, y[h])
                upto += weight_of[m]
                h += one
                if h < end:
                    following = t[h]
                else:
                    following = _LAST
                    ended += 1
            coming[m] = following
            head[m] = h
            last[m] = g
        if moved:  # only they can have been the least
            m_g = g
            for m in range(n_members):
                m_g = min(m_g, last[m])
        time[g] = now
        west[g] = x0
        east[g] = x1
        south[g] = y0
        north[g] = y1
        weight[g] = upto
        latest[g] = m_g
        cost[g] = np.inf
        if m_g == none:
            continue
        low = latest[m_g - one]
        if m_g != before:  # bounds of the slots after M(g), and the abandon test, once for each M
            before = m_g
            listed = False
            rx0, rx1, ry0, ry1 = x0, x1, y0, y1
            s = m_g + one
            while s < g:
                rx0 = min(rx0, west[s])
                rx1 = max(rx1, east[s])
                ry0 = min(ry0, south[s])
                ry1 = max(ry1, north[s])
                s += one
            least = np.inf
            p = low
            while p < m_g:
                least = min(least, cost[p])
                p += one
            if least > bound:  # the box that holds slot g starts after some p in [low, g), and costs only add up
                later = np.inf
                while p < g:
                    later = min(later, cost[p])
                    p += one
                if later > bound:
                    return np.inf
        else:
            rx0 = min(rx0, x0)
            rx1 = max(rx1, x1)
            ry0 = min(ry0, y0)
            ry1 = max(ry1, y1)
        if 0 < ended < n_members:  # no complete box can follow, so no cut after g is ever taken
            continue
        best = np.inf
        if n_members <= _FEW:
            x0, x1, y0, y1 = rx0, rx1, ry0, ry1
            s = m_g
            while s > low:
                x0 = min(x0, west[s])
                x1 = max(x1, east[s])
                y0 = min(y0, south[s])
                y1 = max(y1, north[s])
                c = np.float64(now - time[s] + 1) * np.float64((x1 - x0) + (y1 - y0) + 2)
                s -= one
                c *= upto - weight[s]
                if c + least >= best:
                    break
                best = min(best, c + cost[s])
            cost[g] = best
            continue
        if not listed:
            listed = True
            n_starts = _list_starts(boxes, weight, cost, starts, low, m_g, now, rx0, rx1, ry0, ry1, upto)
        n = none
        while n < n_starts:
            across = max(starts[n, 2], float(rx1)) - min(starts[n, 1], float(rx0))
            along = max(starts[n, 4], float(ry1)) - min(starts[n, 3], float(ry0))
            c = (now - starts[n, 0]) * (across + along + 2.0) * (upto - starts[n, 5])
            if c + least >= best:
                break
            best = min(best, c + starts[n, 6])
            n += one
        cost[g] = best
    return float(cost[g])


@jit
def grown_costs(
    t: Ints32, x: Ints32, y: Ints32, offsets: Ints, lists: Ints, rows: Ints, users: Ints, costs: Floats
) -> None:
    """Fill the `members` cost of each record lists[rows[p]] if it also takes users[p]; all lists have one length."""
    n = lists.shape[1] + 1
    samples = Samples(t, x, y, offsets)
    room = scratch_of((offsets[1:] - offsets[:-1]).max() * n, n)
    who = np.empty(n, np.int64)
    weight_of = np.empty(n, np.float64)
    for p in range(len(rows)):
        who[: n - 1] = lists[rows[p]]
        who[n - 1] = users[p]
        for m in range(n):
            weight_of[m] = 1.0 / (offsets[who[m] + 1] - offsets[who[m]])
        costs[p] = merged_cost(samples, who, n, weight_of, np.inf, room)
