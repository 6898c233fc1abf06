"""Place users into records by marginal cost: how much a record's cost grows if it takes one more.

The cost of a record is the owner cost (k-scale, Eq. 4) of its owner merged with its members. A record without members
counts as merged with its owner's cheapest neighbour, which is how it is published, so that costs always add up
to the true total. Adding a member never lowers a cost, hence the growth is at least pair cost - present cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.pick import holds
from shoal.kernels.price import PAPERS
from shoal.kernels.weighted import Scratch, merged_cost, scratch_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Floats, Ints
    from shoal.kernels.samples import Samples

__all__ = ["Placed", "Tried", "choose_rows", "move_columns", "place_leftovers", "refresh_costs"]

_LEAST_GAIN = 1e-9  # a move must gain more than this share of a cost; otherwise rounding could move users forever


class Placed(NamedTuple):
    """Who is in which record: record i's members are member[i, :size[i]], column j's records picks[j] (-1: none yet).

    `cost` is each record's cost, `empty` its cost without members; `version` counts the changes of a record.
    """

    member: Ints
    size: Ints
    picks: Ints
    cost: Floats
    empty: Floats
    version: Ints


class Tried(NamedTuple):
    """The known costs of each column's cheapest rows, so that unchanged records are not merged again.

    `row[j]` and `pair[j]` are the rows and their pair costs, cheapest first. `full[j, q]` is the cost of row[j, q]
    with j, or a lower bound unless `exact`, as of version `seen`; `rest[j, q]` is the cost of picks[j, q] without j
    as of version `left`.
    """

    row: Ints
    pair: Floats
    full: Floats
    exact: NDArray[np.bool_]
    seen: Ints
    rest: Floats
    left: Ints


@jit
def _owner_scratch(samples: Samples, n_members: int) -> Scratch:
    """Return scratch arrays for merges of an owner with members, in which only the owner's samples have weight."""
    offsets = samples.offsets
    scratch = scratch_of((offsets[1:] - offsets[:-1]).max() * n_members, n_members, PAPERS)
    scratch.share[:] = 0.0
    scratch.share[0] = 1.0
    return scratch


@jit
def _cost_without(samples: Samples, placed: Placed, i: int, j: int, scratch: Scratch) -> float:
    """Return the cost of record i without column j."""
    who = scratch.who
    who[0] = i
    n = 1
    for s in range(placed.size[i]):
        if placed.member[i, s] != j:
            who[n] = placed.member[i, s]
            n += 1
    if n == 1:
        return float(placed.empty[i])
    merged = merged_cost(samples, who, n, scratch.share, np.inf, scratch)
    return float(merged / (samples.offsets[i + 1] - samples.offsets[i]))


@jit
def _cost_with(samples: Samples, placed: Placed, i: int, j: int, bound: float, scratch: Scratch) -> float:
    """Return the cost of record i with column j, or inf if it is sure to exceed `bound`."""
    who, size = scratch.who, placed.size[i]
    who[0] = i
    for m in range(size):
        who[1 + m] = placed.member[i, m]
    who[1 + size] = j
    weight = samples.offsets[i + 1] - samples.offsets[i]
    return float(merged_cost(samples, who, size + 2, scratch.share, bound * weight, scratch) / weight)


@jit
def choose_rows(samples: Samples, placed: Placed, tried: Tried, columns: Ints, rows: Ints, costs: Floats) -> None:
    """Find, for each column, the records whose costs grow least by taking it: its present ones or better.

    Growth is counted as if the column were in no record yet. Fills `rows` (as picks) and `costs`, the cost of each of
    these records with the column in it. Only the entries of these columns in `tried` are changed, so that disjoint
    columns can be done at the same time.
    """
    member, size, picks, cost, _, version = placed
    n_picks = picks.shape[1]
    scratch = _owner_scratch(samples, member.shape[1] + 2)
    growth = np.empty(n_picks, np.float64)
    for c in range(len(columns)):
        j = columns[c]
        rows[c] = -1
        growth[:] = np.inf
        for q in range(n_picks):
            i = picks[j, q]
            if i < 0:
                continue
            if tried.left[j, q] != version[i]:
                tried.rest[j, q] = _cost_without(samples, placed, i, j, scratch)
                tried.left[j, q] = version[i]
            _insert(growth, rows[c], costs[c], cost[i] - tried.rest[j, q], i, cost[i])
        for q in range(tried.row.shape[1]):
            i = tried.row[j, q]
            if i < 0:
                break
            if size[i] >= member.shape[1] or holds(picks[j], n_picks, i):
                continue
            most = growth[n_picks - 1] * (1.0 - _LEAST_GAIN)
            if tried.pair[j, q] - cost[i] >= most:
                continue
            if size[i] == 0:
                _insert(growth, rows[c], costs[c], tried.pair[j, q] - cost[i], i, tried.pair[j, q])
                continue
            if tried.seen[j, q] != version[i]:
                tried.full[j, q] = cost[i]
                tried.exact[j, q] = False
            if not tried.exact[j, q] and tried.full[j, q] < cost[i] + most:
                full = _cost_with(samples, placed, i, j, cost[i] + most, scratch)
                tried.exact[j, q] = full < np.inf
                tried.full[j, q] = full if full < np.inf else cost[i] + most
            tried.seen[j, q] = version[i]
            if tried.exact[j, q] and tried.full[j, q] < cost[i] + most:
                _insert(growth, rows[c], costs[c], tried.full[j, q] - cost[i], i, tried.full[j, q])


@jit
def _insert(growth: Floats, rows: Ints, costs: Floats, new: float, row: int, cost: float) -> None:
    """Insert a row into the sorted list of the best, after equal ones; the worst is dropped."""
    at = len(growth) - 1
    if not new < growth[at]:
        return
    while at > 0 and new < growth[at - 1]:
        growth[at] = growth[at - 1]
        rows[at] = rows[at - 1]
        costs[at] = costs[at - 1]
        at -= 1
    growth[at] = new
    rows[at] = row
    costs[at] = cost


@jit
def move_columns(placed: Placed, tried: Tried, columns: Ints, rows: Ints, costs: Floats, late: Ints) -> int:
    """Move columns to their chosen rows, in turn; return the number of columns that must choose again.

    These are the columns whose rows, old or new, were changed by a column before them, or are full; they are put
    into `late`.
    """
    member, size, picks, cost, _, version = placed
    n_late = 0
    n_picks = picks.shape[1]
    changed = np.zeros(len(size), np.bool_)
    for c in range(len(columns)):
        j = columns[c]
        clash = False
        same = True
        for q in range(n_picks):
            old = picks[j, q]
            new = rows[c, q]
            if old >= 0 and not holds(rows[c], n_picks, old):
                same = False
                clash |= changed[old]
            if new >= 0 and not holds(picks[j], n_picks, new):
                same = False
                clash |= changed[new]
        if same:
            continue
        if clash:
            late[n_late] = j
            n_late += 1
            continue
        for q in range(n_picks):
            old = picks[j, q]
            if old >= 0 and not holds(rows[c], n_picks, old):
                _take_out(member, size, old, j)
                cost[old] = tried.rest[j, q]
                version[old] += 1
                changed[old] = True
        for q in range(n_picks):
            new = rows[c, q]
            if new >= 0 and not holds(picks[j], n_picks, new):
                member[new, size[new]] = j
                size[new] += 1
                cost[new] = costs[c, q]
                version[new] += 1
                changed[new] = True
        picks[j] = rows[c]
        tried.left[j] = -1  # the order of the picks has changed
    return n_late


@jit
def _take_out(member: Ints, size: Ints, row: int, column: int) -> None:
    at = 0
    while member[row, at] != column:
        at += 1
    size[row] -= 1
    member[row, at] = member[row, size[row]]


@jit
def place_leftovers(placed: Placed, offsets: Ints, other: Ints, cost: Floats) -> NDArray[np.bool_]:
    """Place every column that lacks records into records with room; return the records that were changed.

    `other` and `cost` are each column's candidate rows and their pair costs. The cheapest of them with room is
    taken; if none has, a chain of others makes room: j enters a full record, one of its members enters another,
    and so on (an augmenting path, the shortest). There always is one if every record may have as many members as
    everyone has picks, and there are more users than that.
    """
    member, size, picks, _, _, version = placed
    n_users = len(size)
    changed = np.zeros(n_users, np.bool_)
    queue = np.empty(n_users, np.int64)
    enters = np.empty(n_users, np.int64)
    leaves = np.empty(n_users, np.int64)
    for j in range(n_users):
        for q in range(picks.shape[1]):
            if picks[j, q] >= 0:
                continue
            end = -1
            least = np.inf
            for p in range(offsets[j], offsets[j + 1]):
                if cost[p] < least and size[other[p]] < member.shape[1] and not holds(picks[j], q, other[p]):
                    end = other[p]
                    least = cost[p]
            enters[:] = -1
            if end >= 0:
                enters[end] = j
                leaves[end] = -1
            else:
                end = _chain(placed, j, queue, enters, leaves)
            while end >= 0:  # from the record with room back to j
                user = enters[end]
                member[end, size[end]] = user
                size[end] += 1
                version[end] += 1
                changed[end] = True
                old = leaves[end]
                if old >= 0:
                    _take_out(member, size, old, user)
                at = 0
                while picks[user, at] != old:
                    at += 1
                picks[user, at] = end
                end = old
    return changed


@jit
def _chain(placed: Placed, column: int, queue: Ints, enters: Ints, leaves: Ints) -> int:
    """Find, breadth first, a record with room that `column` reaches by moving others; return it, or -1.

    enters[r] is who would enter record r, leaves[r] the record they would leave (-1 for the column itself).
    """
    member, size, picks, _, _, _ = placed
    n_users = len(size)
    head = tail = 0
    user = column
    left = -1
    at = 0  # the place of `user` among the members of `left`
    while True:
        for r in range(n_users):
            if enters[r] >= 0 or r == user or holds(picks[user], picks.shape[1], r):
                continue
            enters[r] = user
            leaves[r] = left
            if size[r] < member.shape[1]:
                return r
            queue[tail] = r
            tail += 1
        at += 1
        if left < 0 or at >= size[left]:
            if head == tail:
                return -1
            left = queue[head]
            head += 1
            at = 0
        user = member[left, at]


@jit
def refresh_costs(samples: Samples, placed: Placed, rows: Ints) -> None:
    """Compute the costs of some records anew."""
    scratch = _owner_scratch(samples, placed.member.shape[1] + 1)
    for i in rows:
        placed.cost[i] = _cost_without(samples, placed, i, -1, scratch)
