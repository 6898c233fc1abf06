"""Hiding sets (kte-hide, Sec. III-E to G): in a round, every record takes in one user, and each user is taken in once.

A *piece* is what a user did in one epoch: rows offsets[p]:offsets[p+1] of the samples. A subset is given by the pieces
of its users in the epochs of a window, piece[a, s] (-1: none; the same for all a), and what their records hold there
already. One round gives every user a of the subset who has none yet a target: the user whose samples a's record takes
in. The cheapest arcs are taken first, then whoever is left, by augmenting paths if need be. That is improved by an
auction among the candidates, and by exchanges of the targets of two users as long as they lower the total cost. Arcs
that were used before are left out throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.kte_marks import Turn, may_take
from shoal.kernels.price import PAPERS
from shoal.kernels.weighted import Scratch, merged_cost, scratch_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints, Ints32
    from shoal.kernels.kte_marks import Subset
    from shoal.kernels.samples import Samples

__all__ = [
    "EpochRecords",
    "Neighbours",
    "PieceTable",
    "Present",
    "RecentTargets",
    "Task",
    "arc_costs",
    "held_pieces",
    "hide_round",
    "piece_bounds",
    "task_of",
]

_SWEEPS = 8
_BIDS = 200  # in an auction, for each user: after that nothing is changed
_PRECISION = 1e-3  # of the mean cost of an arc: how far from the least an auction may end
_MARGIN = 10  # cells around what a user does in an epoch that their record may well reach there
_RISK = 1.0  # the penalty of a leak, in costs of the arc


class PieceTable(NamedTuple):
    """All pieces: their samples, t0, t1, x0, x1, y0, y1 of each, and how many samples each has."""

    samples: Samples
    bounds: Ints
    sizes: Ints


class Present(NamedTuple):
    """The users active in a window: its number, their pieces piece[place, s], and each user's place."""

    window: int
    piece: Ints
    place: Ints32


class RecentTargets(NamedTuple):
    """Targets in the last windows: target[w, u] are those of user u in windows[w], -1 for none."""

    target: Ints32
    windows: Ints


class Neighbours(NamedTuple):
    """The pieces outside the window: those of the subset's users just before and after it (-1: none).

    Besides, the epochs of all pieces, where those of each user begin, and which are published.
    """

    before: Ints
    after: Ints
    epoch: Ints
    starts: Ints
    alive: NDArray[np.bool_]


class EpochRecords(NamedTuple):
    """What records hold in the epochs of a window: entry a·epochs + s is the list pieces[offsets[…]:…], the own first.

    `box` are the bounds of all of it, `least` is the size of the smallest piece.
    """

    offsets: Ints
    pieces: Ints
    box: Ints
    least: Ints


@jit
def piece_bounds(samples: Samples, bounds: Ints) -> None:
    """Fill t0, t1, x0, x1, y0, y1 of every piece."""
    t, x, y, offsets = samples
    for p in range(len(offsets) - 1):
        for side, values in enumerate((t, x, y)):
            own = values[offsets[p] : offsets[p + 1]]
            bounds[p, 2 * side], bounds[p, 2 * side + 1] = own.min(), own.max()


@jit
def held_pieces(subset: Subset, turn: int, present: Present, recent: RecentTargets, table: PieceTable) -> EpochRecords:
    """Return the pieces that the records of a subset hold in each epoch of a window before this round (`turn`).

    A target of an earlier window holds in the epochs that it has in common with this one.
    """
    windows, window = recent.windows, present.window
    n, span = subset.piece.shape
    rounds = subset.target.shape[1]
    offsets = np.zeros(n * span + 1, np.int64)
    pieces = np.empty(n * span * (1 + rounds * (1 + len(windows))), np.int64)
    box = np.zeros((n * span, 6), np.int64)
    least = np.zeros(n * span, np.int64)
    end = 0
    for a in range(n):
        u = subset.user[a]
        for s in range(span):
            begin = end
            if subset.piece[a, s] >= 0:
                pieces[end] = subset.piece[a, s]
                end += 1
                for w in range(len(windows)):
                    if windows[w] >= window or windows[w] + span - 1 < window + s:
                        continue
                    for q in range(rounds):
                        v = recent.target[w, u, q]
                        if v >= 0:
                            end = _append(pieces, begin, end, present.piece[present.place[v], s])
                for q in range(rounds):
                    if q != turn and subset.target[a, q] >= 0:
                        end = _append(pieces, begin, end, subset.piece[subset.target[a, q], s])
                least[a * span + s] = _surround(table, pieces, begin, end, box[a * span + s])
            offsets[a * span + s + 1] = end
    return EpochRecords(offsets, pieces[:end].copy(), box, least)


@jit
def _append(pieces: Ints, begin: int, end: int, p: int) -> int:
    """Add a piece to the list begin…end-1 unless it is in it; return the new end."""
    for e in range(begin, end):
        if pieces[e] == p:
            return end
    pieces[end] = p
    return end + 1


@jit
def _surround(table: PieceTable, pieces: Ints, begin: int, end: int, box: Ints) -> int:
    """Fill in the bounds of the pieces begin…end-1; return the size of the smallest."""
    bounds, sizes = table.bounds, table.sizes
    least = sizes[pieces[begin]]
    for side in range(6):
        box[side] = bounds[pieces[begin], side]
    for e in range(begin + 1, end):
        least = min(least, sizes[pieces[e]])
        for side in range(0, 6, 2):
            box[side] = min(box[side], bounds[pieces[e], side])
            box[side + 1] = max(box[side + 1], bounds[pieces[e], side + 1])
    return int(least)


class Task(NamedTuple):
    """The input of a round: all pieces, those around the window, the round, what records hold, and scratch arrays."""

    table: PieceTable
    around: Neighbours
    turn: Turn
    held: EpochRecords
    who: Ints
    weight: Floats
    scratch: Scratch


def task_of(table: PieceTable, around: Neighbours, turn: Turn, held: EpochRecords) -> Task:
    """Return the input of a round, with its scratch arrays."""
    most = int(np.diff(held.offsets).max(initial=0)) + 1
    longest = int(table.sizes[held.pieces].max(initial=1))
    scratch: Scratch = scratch_of(longest * most if longest > 1 else 1, most, PAPERS)
    who, weight = np.empty(most, np.int64), np.zeros(most, np.float64)
    return Task(table, around, turn, held, who, weight, scratch)


@jit
def arc_costs(task: Task, near: Ints, cost: Floats) -> None:
    """Fill in the costs of arcs to candidates: near[a] are places (-1: no candidate, infinite). Cost: see `_cost`."""
    for a in range(len(near)):
        for e in range(near.shape[1]):
            cost[a, e] = _cost(task, a, near[a, e]) if near[a, e] >= 0 else np.inf


@jit
def _cost(task: Task, a: int, b: int) -> float:
    """Return the mean loss of a's samples (k-scale, Eq. 4), summed over epochs, if a's record also takes in b.

    It counts more where a's record is likely to hold what b does next, or did last, outside the window: whoever finds
    b's candidates would learn it from all of them.
    """
    held, table, around, subset = task.held, task.table, task.around, task.turn.subset
    span = subset.piece.shape[1]
    total = 0.0
    for s in range(span):
        p = subset.piece[b, s]
        if p < 0:
            continue
        row = a * span + s
        box, new = held.box[row], table.bounds[p]
        if min(held.least[row], table.sizes[p]) > 1:
            n = _list_with(task, row, p)
            total += merged_cost(table.samples, task.who, n, task.weight, np.inf, task.scratch)
            continue
        # Every box of a merge holds a sample of everyone: with a piece of one sample there is one box.
        long = max(box[1], new[1]) - min(box[0], new[0]) + 1
        wide = max(box[3], new[3]) - min(box[2], new[2]) + max(box[5], new[5]) - min(box[4], new[4]) + 2
        total += float(long) * float(wide)
    leaks = 0
    if around.after[b] >= 0:
        leaks += _meets(task, a, around.after[b], table.samples.offsets[around.after[b]])
    if around.before[b] >= 0:
        leaks += _meets(task, a, around.before[b], table.samples.offsets[around.before[b] + 1] - 1)
    return total * (1.0 + _RISK * leaks)


@jit
def _meets(task: Task, a: int, p: int, row: int) -> int:
    """Return whether a is near the sample in this row, of piece p, in the epoch of that piece."""
    epoch, starts, user = task.around.epoch, task.around.starts, task.turn.subset.user[a]
    low, high = starts[user], starts[user + 1]
    while low < high:
        middle = (low + high) // 2
        if epoch[middle] < epoch[p]:
            low = middle + 1
        else:
            high = middle
    if low == starts[user + 1] or epoch[low] != epoch[p] or not task.around.alive[low]:
        return 0
    box, x, y = task.table.bounds[low], task.table.samples.x[row], task.table.samples.y[row]
    inside = box[2] - _MARGIN <= x <= box[3] + _MARGIN and box[4] - _MARGIN <= y <= box[5] + _MARGIN
    return 1 if inside else 0


@jit
def _list_with(task: Task, row: int, p: int) -> int:
    """List the pieces of a record in an epoch, the owner's first, and piece p; return their number."""
    n = 0
    known = False
    for e in range(task.held.offsets[row], task.held.offsets[row + 1]):
        task.who[n] = task.held.pieces[e]
        known = known or task.who[n] == p
        n += 1
    if not known:
        task.who[n] = p
        n += 1
    task.weight[0] = 1.0 / task.table.sizes[task.who[0]]
    return n


@jit
def _targets(task: Task) -> Ints:
    """Return the targets of this round."""
    return task.turn.subset.target[:, task.turn.number]


@jit
def _without(target: Ints) -> int:
    """Return the number of users without a target."""
    n = 0
    for b in target:
        n += b < 0
    return n


@jit
def _cheapest_first(task: Task, near: Ints, cost: Floats, order: Ints, source: Ints, now: Floats) -> None:
    """Take the arcs to candidates in the order of cost, each if both its users are free."""
    m = near.shape[1]
    target = _targets(task)
    for e in order:
        a, b = e // m, near[e // m, e % m]
        if cost[a, e % m] == np.inf:
            break
        if target[a] < 0 and source[b] < 0:
            target[a], source[b], now[a] = b, a, cost[a, e % m]


@jit
def _take_left(task: Task, source: Ints, now: Floats) -> None:
    """Assign the cheapest remaining target to everyone without one."""
    target = _targets(task)
    for a in range(len(target)):
        if target[a] >= 0:
            continue
        best, least = -1, np.inf
        for b in range(len(source)):
            if source[b] < 0 and may_take(task.turn, a, b):
                c = _cost(task, a, b)
                if c < least:
                    best, least = b, c
        if best >= 0:
            target[a], source[best], now[a] = best, a, least


@jit
def _augment(task: Task, fixed: NDArray[np.bool_], source: Ints, now: Floats) -> None:
    """Find targets for users without one along augmenting paths, breadth first, so that as many as possible have one.

    What they cost is not asked: `now` is -1 for whoever got a new one.
    """
    target = _targets(task)
    n = len(target)
    queue, parent = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(n):
        if target[start] >= 0:
            continue
        for b in range(n):
            parent[b] = -1  # of a target: the one who reached it
        queue[0] = start
        head, tail, end = 0, 1, -1
        while head < tail and end < 0:
            a = queue[head]
            head += 1
            for b in range(n):
                if parent[b] >= 0 or (source[b] >= 0 and fixed[source[b]]) or not may_take(task.turn, a, b):
                    continue
                parent[b] = a
                if source[b] < 0:
                    end = b
                    break
                queue[tail] = source[b]
                tail += 1
        while end >= 0:
            a = parent[end]
            before = target[a]
            target[a], source[end], now[a] = end, a, -1.0
            end = before


@jit
def _auction(fixed: NDArray[np.bool_], near: Ints, cost: Floats, target: Ints, source: Ints, now: Floats) -> None:
    """Assign targets anew among candidates and present ones, at nearly the least total cost (Bertsekas's auction).

    Everyone in turn bids for the target that is worth most to them, by as much as it is worth more than the second;
    whoever loses theirs bids again. Bids are coarse at first and get finer.
    """
    n, m = near.shape
    top = total = 0.0
    queue, waiting = np.empty(n, np.int64), 0
    for a in range(n):
        if fixed[a]:
            continue
        waiting += 1
        top = max(top, now[a])
        total += now[a]
        for e in range(m):
            if near[a, e] >= 0:
                top = max(top, cost[a, e])
    most = _BIDS * waiting
    last = max(_PRECISION * total / max(1, waiting), 1e-9)
    step = max(last, top / 8)
    price, owner = np.zeros(n, np.float64), np.empty(n, np.int64)
    chosen, paid = np.empty(n, np.int64), np.zeros(n, np.float64)
    bids = 0
    while True:
        head = waiting = 0
        for a in range(n):
            owner[a] = -1
            if not fixed[a]:
                queue[waiting] = a
                waiting += 1
        while waiting > 0:
            a = queue[head]
            head = (head + 1) % n
            waiting -= 1
            best, second, b, c = -now[a] - price[target[a]], -np.inf, target[a], now[a]
            for e in range(m):
                other = near[a, e]
                if other < 0 or other == target[a] or (source[other] >= 0 and fixed[source[other]]):
                    continue
                worth = -cost[a, e] - price[other]
                if worth > best:
                    best, second, b, c = worth, best, other, cost[a, e]
                elif worth > second:
                    second = worth
            price[b] += step + (best - second if second > -np.inf else top)
            if owner[b] >= 0:
                queue[(head + waiting) % n] = owner[b]
                waiting += 1
            owner[b], chosen[a], paid[a] = a, b, c
            bids += 1
            if bids > most:
                return
        if step <= last:
            break
        step = max(last, step / 5)
    if paid.sum() < total:
        for a in range(n):
            if not fixed[a]:
                target[a], source[chosen[a]], now[a] = chosen[a], a, paid[a]


@jit
def _exchange(task: Task, fixed: NDArray[np.bool_], near: Ints, cost: Floats, source: Ints, now: Floats) -> None:
    """Exchange the targets of two users as long as that lowers the total cost; each user tries their candidates."""
    target = _targets(task)
    for _ in range(_SWEEPS):
        changed = 0
        for a in range(len(target)):
            if fixed[a]:
                continue
            for e in range(near.shape[1]):
                b = near[a, e]
                if b < 0 or cost[a, e] >= now[a] + now[source[b]] or target[a] == b or fixed[source[b]]:
                    continue
                c, d = source[b], target[a]
                if c == d:
                    continue
                other = _cost(task, c, d)
                if cost[a, e] + other < (now[a] + now[c]) * (1.0 - 1e-12) and may_take(task.turn, c, d):
                    target[a], source[b], now[a] = b, a, cost[a, e]
                    target[c], source[d], now[c] = d, c, other
                    changed += 1
        if changed * 200 < len(target):
            break


@jit
def hide_round(task: Task, near: Ints, cost: Floats, order: Ints) -> int:
    """Fill in the targets of a round for all users without one; return how many found none.

    `near[a]` are places whom a may and nobody does take in, at little cost (-1: no more), of those without a target;
    `cost` is what these arcs cost and `order` their order by cost. Those with a target keep it, if all find one all the
    same. Guarantee: as many find a target as possible; the same for the same input. Cost: for each candidate a
    bounding box or, where all have several samples, a k-merge, for each sweep of exchanges.
    """
    n, target = len(near), _targets(task)
    source, now, fixed = np.full(n, -1, np.int64), np.zeros(n, np.float64), np.zeros(n, np.bool_)
    for a in range(n):
        if target[a] >= 0:
            source[target[a]], fixed[a] = a, True
    _cheapest_first(task, near, cost, order, source, now)
    if _without(target):
        _take_left(task, source, now)
    if _without(target):
        _augment(task, fixed, source, now)
    if _without(target):  # users who had a target may get a new one, so that others find one
        for a in range(n):
            if fixed[a]:
                fixed[a], now[a] = False, -1.0
        _augment(task, fixed, source, now)
    left = _without(target)
    if left == 0:
        for a in range(n):
            if now[a] < 0:
                now[a] = _cost(task, a, target[a])
        _auction(fixed, near, cost, target, source, now)
        _exchange(task, fixed, near, cost, source, now)
    return left
