"""k-merge (paper 002, Sec. III-C/D, Alg. 1): the cheapest way to merge trajectories into common boxes.

Samples that share a slot are never separated, so the recursion runs over *groups*: all samples of one slot.
With last_l(g) the last group at or before g that holds trajectory l and M(g) = min_l last_l(g), the box
[s..g] is complete iff s <= M(g), and elementary iff also s > M(M(g) - 1). Hence

    cost(g) = min over s in (M(M(g) - 1), M(g)] of cost(s - 1) + c(s..g) * weight(s..g).

Groups are numbered from 1; M = 0 means "not complete yet" and cost(0) = 0. Ties take the later s.
The weight of a box is `constant + Σ of its samples' weights`: (1; 0) is the plain sum of 002 Eq. 3, (0; 1 for
the owner's samples) is 003 Eq. 4 times N_owner, (0; 1/N_i) is the sum of everybody's Eq. 4. Splitting a box
never costs more under any of them, which is why elementary boxes suffice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32

__all__ = ["MEMBERS", "OWNER", "SUM", "merge_records", "owner_cost_pairs", "pair_owner_costs"]

SUM = 0
OWNER = 1
MEMBERS = 2

_CHECK_EVERY = np.uint64(16)  # groups between two looks at the abandon bound


@jit
def pair_owner_costs(
    t: Ints32,
    x: Ints32,
    y: Ints32,
    a_from: int,
    a_to: int,
    b_from: int,
    b_to: int,
    bound_a: float,
    bound_b: float,
    ints: Ints,
    latest: NDArray[np.uint64],
    floats: Floats,
) -> tuple[float, float]:
    """Return the owner cost (003 Eq. 4) of merging two users, in both roles.

    One sort-merge serves two recursions: a's weights and b's. Rows [a_from, a_to) and [b_from, b_to) of t, x, y are
    the users' samples. `ints` (5, n), `latest` (n,) and `floats` (4, n) are scratch, n more than both users' samples
    together. Gives (inf, inf) as soon as the first cost is sure to exceed `bound_a` and the second `bound_b`.
    """
    time, west, east, south, north = ints[0], ints[1], ints[2], ints[3], ints[4]
    cost_a, cost_b, count_a, count_b = floats[0], floats[1], floats[2], floats[3]
    # Positions are unsigned, which spares the compiled code a check for negative indices.
    one, none = np.uint64(1), np.uint64(0)
    a, a_end = np.uint64(a_from), np.uint64(a_to)
    b, b_end = np.uint64(b_from), np.uint64(b_to)
    n_a = np.float64(a_end - a)
    n_b = np.float64(b_end - b)
    limit_a = bound_a * n_a
    limit_b = bound_b * n_b
    count_a[none] = count_b[none] = 0.0
    latest[none] = none
    cost_a[none] = cost_b[none] = 0.0
    upto_a = upto_b = 0.0
    last_a = last_b = g = none
    # Bounds of the groups after M(g): a single run of one of the two users.
    rx0 = rx1 = ry0 = ry1 = np.int64(0)
    while a < a_end or b < b_end:
        g += one
        before = min(last_a, last_b)
        if b >= b_end or (a < a_end and t[a] <= t[b]):
            now = np.int64(t[a])
            gx0 = gx1 = np.int64(x[a])
            gy0 = gy1 = np.int64(y[a])
        else:
            now = np.int64(t[b])
            gx0 = gx1 = np.int64(x[b])
            gy0 = gy1 = np.int64(y[b])
        while a < a_end and t[a] == now:
            gx0 = min(gx0, np.int64(x[a]))
            gx1 = max(gx1, np.int64(x[a]))
            gy0 = min(gy0, np.int64(y[a]))
            gy1 = max(gy1, np.int64(y[a]))
            upto_a += 1.0
            last_a = g
            a += one
        while b < b_end and t[b] == now:
            gx0 = min(gx0, np.int64(x[b]))
            gx1 = max(gx1, np.int64(x[b]))
            gy0 = min(gy0, np.int64(y[b]))
            gy1 = max(gy1, np.int64(y[b]))
            upto_b += 1.0
            last_b = g
            b += one
        time[g] = now
        west[g] = gx0
        east[g] = gx1
        south[g] = gy0
        north[g] = gy1
        count_a[g] = upto_a
        count_b[g] = upto_b
        m = min(last_a, last_b)
        latest[g] = m
        if m == none:
            cost_a[g] = cost_b[g] = np.inf
            continue
        if m == before:
            rx0 = min(rx0, gx0)
            rx1 = max(rx1, gx1)
            ry0 = min(ry0, gy0)
            ry1 = max(ry1, gy1)
        else:  # the run is group g alone, or empty with M(g) = g, which then adds itself
            rx0, rx1, ry0, ry1 = gx0, gx1, gy0, gy1
        if (a == a_end) != (b == b_end):  # no complete box can follow, so no cut after g is ever taken
            cost_a[g] = cost_b[g] = np.inf
            continue
        x0, x1, y0, y1 = rx0, rx1, ry0, ry1
        best_a = best_b = np.inf
        low = latest[m - one]
        s = m
        while s > low:
            x0 = min(x0, west[s])
            x1 = max(x1, east[s])
            y0 = min(y0, south[s])
            y1 = max(y1, north[s])
            c = np.float64(now - time[s] + 1) * np.float64((x1 - x0) + (y1 - y0) + 2)
            s -= one
            c_a = c * (upto_a - count_a[s])
            c_b = c * (upto_b - count_b[s])
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
        if g % _CHECK_EVERY == none:
            # Whatever comes, the box that holds group g starts after some p in [low, g], and costs only add up.
            least_a = best_a
            least_b = best_b
            p = low
            while p < g:
                if cost_a[p] < least_a:
                    least_a = cost_a[p]
                if cost_b[p] < least_b:
                    least_b = cost_b[p]
                p += one
            if least_a > limit_a and least_b > limit_b:
                return np.inf, np.inf
    return cost_a[g] / n_a, cost_b[g] / n_b


@jit
def owner_cost_pairs(
    t: Ints32, x: Ints32, y: Ints32, offsets: Ints, first: Ints, second: Ints, cost_first: Floats, cost_second: Floats
) -> None:
    """Fill the owner costs of many pairs of users, in both roles, into the two output arrays."""
    longest = 0
    for p in range(len(first)):
        i = first[p]
        j = second[p]
        longest = max(longest, offsets[i + 1] - offsets[i] + offsets[j + 1] - offsets[j])
    ints = np.empty((5, longest + 1), np.int64)
    latest = np.empty(longest + 1, np.uint64)
    floats = np.empty((4, longest + 1), np.float64)
    for p in range(len(first)):
        i = first[p]
        j = second[p]
        cost_first[p], cost_second[p] = pair_owner_costs(
            t, x, y, offsets[i], offsets[i + 1], offsets[j], offsets[j + 1], np.inf, np.inf, ints, latest, floats
        )


@jit
def _time_order(
    t: Ints32, offsets: Ints, members: Ints, rows: Ints, owner_of: Ints, rows_out: Ints, owner_out: Ints
) -> tuple[int, Ints, Ints]:
    """Merge the members' rows by time, pairs of runs at a time; equal times keep the members' order."""
    n_runs = len(members)
    ends = np.empty(n_runs + 1, np.int64)
    ends[0] = 0
    n = 0
    for m in range(n_runs):
        for r in range(offsets[members[m]], offsets[members[m] + 1]):
            rows[n] = r
            owner_of[n] = m
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
                if i < i_end and (j >= j_end or t[rows[i]] <= t[rows[j]]):
                    rows_out[p] = rows[i]
                    owner_out[p] = owner_of[i]
                    i += 1
                else:
                    rows_out[p] = rows[j]
                    owner_out[p] = owner_of[j]
                    j += 1
            merged += 1
            ends[merged] = j_end
        rows, rows_out = rows_out, rows
        owner_of, owner_out = owner_out, owner_of
        n_runs = merged
    return n, rows, owner_of


@jit
def _groups(
    t: Ints32,
    x: Ints32,
    y: Ints32,
    n: int,
    rows: Ints,
    owner_of: Ints,
    weight_of: Floats,
    n_members: int,
    box: Ints,
    weight: Floats,
    latest: Ints,
) -> int:
    """Collapse time-ordered rows into groups; fill their boxes, cumulative weights and M(g); give their number.

    The members are kept in a list ordered by their last group, so M(g) is the head's (O(1) per sample).
    """
    last = np.zeros(n_members, np.int64)
    after = np.empty(n_members + 1, np.int64)
    before = np.empty(n_members + 1, np.int64)
    for m in range(n_members + 1):  # node n_members is the sentinel of a circular list
        after[m] = (m + 1) % (n_members + 1)
        before[m] = (m - 1) % (n_members + 1)
    weight[0] = 0.0
    latest[0] = 0
    g = 0
    p = 0
    while p < n:
        g += 1
        now = t[rows[p]]
        x0 = y0 = np.int64(2**62)
        x1 = y1 = np.int64(-(2**62))
        w = 0.0
        while p < n and t[rows[p]] == now:
            r = rows[p]
            m = owner_of[p]
            x0 = min(x0, np.int64(x[r]))
            x1 = max(x1, np.int64(x[r]))
            y0 = min(y0, np.int64(y[r]))
            y1 = max(y1, np.int64(y[r]))
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
        box[g, 0] = now
        box[g, 1] = x0
        box[g, 2] = x1
        box[g, 3] = y0
        box[g, 4] = y1
        weight[g] = weight[g - 1] + w
        latest[g] = last[after[n_members]]
    return g


@jit
def _cheapest_cuts(
    n_groups: int, box: Ints, weight: Floats, latest: Ints, constant: float, cost: Floats, cut: Ints
) -> None:
    """Run the recursion: cost[g] and the start cut[g] of the last box, for every prefix of groups."""
    cost[0] = 0.0
    before = 0
    # Bounds of the groups after M(g) and the least cost before a box that ends at g, kept while M(g) stays the same.
    rx0 = rx1 = ry0 = ry1 = np.int64(0)
    least = np.inf
    for g in range(1, n_groups + 1):
        m = latest[g]
        cut[g] = 0
        cost[g] = np.inf
        if m == 0:
            continue
        if m != before:
            before = m
            rx0, rx1, ry0, ry1 = box[g, 1], box[g, 2], box[g, 3], box[g, 4]
            for s in range(m + 1, g):
                rx0 = min(rx0, box[s, 1])
                rx1 = max(rx1, box[s, 2])
                ry0 = min(ry0, box[s, 3])
                ry1 = max(ry1, box[s, 4])
            least = np.inf
            for p in range(latest[m - 1], m):
                least = min(least, cost[p])
        else:
            rx0 = min(rx0, box[g, 1])
            rx1 = max(rx1, box[g, 2])
            ry0 = min(ry0, box[g, 3])
            ry1 = max(ry1, box[g, 4])
        if latest[n_groups] <= g < n_groups:  # no complete box can follow, so no cut after g is ever taken
            continue
        x0, x1, y0, y1 = rx0, rx1, ry0, ry1
        best = np.inf
        for s in range(m, latest[m - 1], -1):
            x0 = min(x0, box[s, 1])
            x1 = max(x1, box[s, 2])
            y0 = min(y0, box[s, 3])
            y1 = max(y1, box[s, 4])
            c = np.float64(box[g, 0] - box[s, 0] + 1) * np.float64((x1 - x0) + (y1 - y0) + 2)
            c *= constant + (weight[g] - weight[s - 1])
            if c + least >= best:
                break
            if cost[s - 1] + c < best:
                best = cost[s - 1] + c
                cut[g] = s
        cost[g] = best


@jit
def _write_boxes(n_groups: int, box: Ints, cut: Ints, out: Ints32) -> int:
    """Follow the cuts back from the end; give the number of boxes written to `out` in time order."""
    n = 0
    g = n_groups
    while g > 0:
        n += 1
        g = cut[g] - 1
    g = n_groups
    for b in range(n - 1, -1, -1):
        s = cut[g]
        out[b, 0] = box[s, 0]
        out[b, 1] = box[g, 0]
        out[b, 2] = box[s : g + 1, 1].min()
        out[b, 3] = box[s : g + 1, 2].max()
        out[b, 4] = box[s : g + 1, 3].min()
        out[b, 5] = box[s : g + 1, 4].max()
        g = s - 1
    return n


@jit
def merge_records(
    t: Ints32,
    x: Ints32,
    y: Ints32,
    offsets: Ints,
    member_offsets: Ints,
    members: Ints,
    objective: int,
    boxes: Ints32,
    starts: Ints,
    counts: Ints,
    costs: Floats,
) -> None:
    """k-merge many records: record r merges users members[member_offsets[r]:member_offsets[r + 1]], owner first.

    Writes counts[r] boxes from row starts[r] of `boxes` on (room for the least member's samples is enough, since
    every box holds one of them) and the minimal cost into costs[r]. With `boxes` of no rows only costs are filled.
    """
    largest = 0
    for r in range(len(member_offsets) - 1):
        n = 0
        for q in range(member_offsets[r], member_offsets[r + 1]):
            n += offsets[members[q] + 1] - offsets[members[q]]
        largest = max(largest, n)
    rows = np.empty((2, largest), np.int64)
    owner_of = np.empty((2, largest), np.int64)
    box = np.empty((largest + 1, 5), np.int64)
    weight = np.empty(largest + 1, np.float64)
    latest = np.empty(largest + 1, np.int64)
    cost = np.empty(largest + 1, np.float64)
    cut = np.empty(largest + 1, np.int64)
    for r in range(len(member_offsets) - 1):
        merged = members[member_offsets[r] : member_offsets[r + 1]]
        n_members = len(merged)
        weight_of = np.zeros(n_members, np.float64)
        for m in range(n_members):
            if objective == MEMBERS:
                weight_of[m] = 1.0 / (offsets[merged[m] + 1] - offsets[merged[m]])
        scale = 1.0
        if objective == OWNER:
            weight_of[0] = 1.0
            scale = 1.0 * (offsets[merged[0] + 1] - offsets[merged[0]])
        n, in_order, whose = _time_order(t, offsets, merged, rows[0], owner_of[0], rows[1], owner_of[1])
        n_groups = _groups(t, x, y, n, in_order, whose, weight_of, n_members, box, weight, latest)
        constant = 1.0 if objective == SUM else 0.0
        _cheapest_cuts(n_groups, box, weight, latest, constant, cost, cut)
        costs[r] = cost[n_groups] / scale
        if len(boxes) > 0:
            counts[r] = _write_boxes(n_groups, box, cut, boxes[starts[r] :])
