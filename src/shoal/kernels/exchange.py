"""Exchange users between groups until no exchange lowers the cost.

An *arc* (u → w) says what it costs w's group to take u in w's place: F(H - w + u) - F(H); an arc (u → H) what it
costs H to take u besides. A closed chain of arcs, over groups that are all different, is a cyclic exchange, and its
arcs add up to exactly what it changes; a chain that starts in a group with more than k users may leave its first
place empty and end with an arc to a group that has room. Arcs are computed once for each user and near group, and
again only where a group has changed.

Everything is exact and in a fixed order: the result depends on nothing but the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.groups import group_cost
from shoal.kernels.members import NOBODY, add, changed, cost_replaced, cost_with, cost_without, least_size, remove
from shoal.kernels.pick import holds

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.groups import Scratch
    from shoal.kernels.members import Partition
    from shoal.kernels.samples import Samples

__all__ = ["Arcs", "Chains", "arcs_for", "chains_for", "exchange", "refresh", "regroup"]

_LEAVERS = 3  # members of a group whose places are offered


class Arcs(NamedTuple):
    """Every user's cheapest arcs, ascending: to[u] is the user replaced, or -2 - group if nobody is replaced.

    near[u] are u's neighbours, cheapest first, -1 where there are no more. group[u] and version[u] are their groups
    that were looked at, and when; `around` is room for such groups.
    """

    near: Ints
    to: Ints
    change: Floats
    group: Ints
    version: Ints
    around: Ints


class Chains(NamedTuple):
    """Scratch arrays for the search for an exchange, and how many ways of filling the first place it may price.

    `users` is the chain at hand, `arc` the next arc of each of its users, `cost` that of the chain up to each; `best`
    is the best exchange found.
    """

    users: Ints
    arc: Ints
    cost: Floats
    best: Ints
    closings: int


def chains_for(depth: int, closings: int) -> Chains:
    """Return scratch arrays for chains over this many groups."""
    return Chains(
        np.empty(depth, np.int64),
        np.empty(depth, np.int64),
        np.empty(depth, np.float64),
        np.empty(depth, np.int64),
        closings,
    )


def arcs_for(near: Ints, n_arcs: int, n_near: int) -> Arcs:
    """Return arrays for this many arcs of each user to this many groups of their neighbours."""
    n_users = len(near)
    return Arcs(
        near,
        np.full((n_users, n_arcs), NOBODY, np.int64),
        np.full((n_users, n_arcs), np.inf),
        np.full((n_users, n_near), NOBODY, np.int64),
        np.full((n_users, n_near), -1, np.int64),
        np.empty(n_near, np.int64),
    )


@jit
def _keep_arc(arcs: Arcs, user: int, to: int, change: float) -> None:
    """Insert an arc in the order of costs, if it is among the cheapest."""
    p = arcs.change.shape[1] - 1
    if change >= arcs.change[user, p]:
        return
    while p > 0 and change < arcs.change[user, p - 1]:
        arcs.change[user, p] = arcs.change[user, p - 1]
        arcs.to[user, p] = arcs.to[user, p - 1]
        p -= 1
    arcs.change[user, p] = change
    arcs.to[user, p] = to


@jit
def _is_known(arcs: Arcs, user: int, g: int, version: int) -> bool:
    for s in range(arcs.group.shape[1]):
        if arcs.group[user, s] == g and arcs.version[user, s] == version:
            return True
    return False


@jit
def _arc_to(arcs: Arcs, user: int, to: int) -> float:
    """Return the change in cost of an arc; inf if the arc is not kept."""
    for a in range(arcs.to.shape[1]):
        if arcs.to[user, a] == to:
            return float(arcs.change[user, a])
    return np.inf


@jit
def _drop_stale(arcs: Arcs, groups: Partition, user: int) -> None:
    """Keep only arcs to groups that have not changed since and are not the user's own."""
    kept = 0
    for a in range(arcs.to.shape[1]):
        to = arcs.to[user, a]
        if to == NOBODY:
            break
        g = groups.of[to] if to >= 0 else -2 - to
        if g != groups.of[user] and _is_known(arcs, user, g, groups.version[g]):
            arcs.to[user, kept] = to
            arcs.change[user, kept] = arcs.change[user, a]
            kept += 1
    for a in range(kept, arcs.to.shape[1]):
        arcs.to[user, a] = NOBODY
        arcs.change[user, a] = np.inf


@jit
def _near_groups(arcs: Arcs, groups: Partition, user: int) -> int:
    """List the groups of the user's nearest neighbours in arcs.around, except their own; return how many."""
    near, out = arcs.near, arcs.around
    n = 0
    for r in range(near.shape[1]):
        v = near[user, r]
        if v < 0 or n == len(out):
            break
        g = groups.of[v]
        if g != groups.of[user] and not holds(out, n, g):
            out[n] = g
            n += 1
    return n


@jit
def _leavers(samples: Samples, groups: Partition, g: int, scratch: Scratch) -> float:
    """Return the cost of the group without one member, the last of the few whose leaving saves most."""
    least = np.full(_LEAVERS, np.inf)
    for i in range(groups.size[g]):
        c = cost_without(samples, groups, groups.members[g, i], scratch)
        for q in range(_LEAVERS):
            if c < least[q]:
                least[q], c = c, least[q]
    return float(least[_LEAVERS - 1])


@jit
def _refresh_arcs(samples: Samples, groups: Partition, arcs: Arcs, user: int, scratch: Scratch) -> None:
    """Update a user's arcs.

    Kept are arcs that cost less than the user's leaving can save their own group: chains with dearer arcs hardly
    ever lower the cost. The cost of a group without a member is a lower bound of its cost with another in their place.
    """
    around = arcs.around
    own = groups.of[user]
    saved = groups.cost[own] - cost_without(samples, groups, user, scratch)
    _drop_stale(arcs, groups, user)
    n_around = _near_groups(arcs, groups, user)
    last = arcs.change.shape[1] - 1
    for n in range(n_around):
        g = around[n]
        if _is_known(arcs, user, g, groups.version[g]):
            continue
        now = groups.cost[g]
        least = _leavers(samples, groups, g, scratch)
        for i in range(groups.size[g]):
            most = min(saved, arcs.change[user, last])
            if groups.without[g, i] <= least and groups.without[g, i] - now < most:
                member = groups.members[g, i]
                c = cost_replaced(samples, groups, member, user, now + most, scratch) - now
                if c < most:
                    _keep_arc(arcs, user, member, c)
        if groups.size[g] < groups.members.shape[1]:
            most = min(saved, arcs.change[user, last])
            c = cost_with(samples, groups, g, user, now + most, scratch) - now
            if c < most:
                _keep_arc(arcs, user, -2 - g, c)
    for n in range(arcs.group.shape[1]):
        arcs.group[user, n] = around[n] if n < n_around else NOBODY
        arcs.version[user, n] = groups.version[around[n]] if n < n_around else -1


@jit
def _best_chain(samples: Samples, groups: Partition, arcs: Arcs, start: int, chains: Chains, scratch: Scratch) -> int:
    """Find the exchange that starts with a user and saves most; write it into chains.best, return its length (0: none).

    Its last entry is below -1 if it ends in a group that has room. The search is depth first along ascending arcs. It
    prices at most chains.closings ways of filling the first place for which there is no arc.
    """
    chain, next_arc, sums, best, closings = chains
    own = groups.of[start]
    saved = groups.cost[own] - groups.without[own, groups.place[start]]
    may_leave = groups.size[own] > least_size(groups)
    found = -1e-9 * groups.cost[own]
    length = 0
    depth = 0
    chain[0] = start
    next_arc[0] = 0
    sums[0] = 0.0
    while depth >= 0:
        user = chain[depth]
        a = next_arc[depth]
        next_arc[depth] += 1
        if a == arcs.to.shape[1] or sums[depth] + arcs.change[user, a] - saved >= found:
            depth -= 1
            continue
        total = sums[depth] + arcs.change[user, a]
        to = arcs.to[user, a]
        g = groups.of[to] if to >= 0 else -2 - to
        visited = g == own or not _is_known(arcs, user, g, groups.version[g])
        for d in range(1, depth + 1):
            visited = visited or groups.of[chain[d]] == g
        if visited or (to < 0 and not may_leave):
            continue
        gain = total
        if to < 0:
            gain -= saved
        elif _is_known(arcs, to, own, groups.version[own]):
            gain += _arc_to(arcs, to, start)
        elif closings > 0:
            closings -= 1
            most = found - total + groups.cost[own]
            gain += cost_replaced(samples, groups, start, to, most, scratch)
            gain -= groups.cost[own]
        else:
            gain = np.inf
        if gain < found:
            found = gain
            length = depth + 2
            for d in range(depth + 1):
                best[d] = chain[d]
            best[depth + 1] = to
        if to >= 0 and depth + 2 < len(chain):
            depth += 1
            chain[depth] = to
            sums[depth] = total
            next_arc[depth] = 0
    return length


@jit
def _apply_chain(samples: Samples, groups: Partition, best: Ints, length: int, scratch: Scratch) -> None:
    """Carry out an exchange."""
    touched = np.empty(length, np.int64)
    places = np.empty(length, np.int64)
    last = best[length - 1]
    for n in range(length):
        touched[n] = groups.of[best[n]] if best[n] >= 0 else -2 - best[n]
        places[n] = groups.place[best[n]] if best[n] >= 0 else 0
    if last < 0:
        remove(groups, best[0])
        for n in range(length - 2):
            groups.members[touched[n + 1], places[n + 1]] = best[n]
        add(groups, touched[length - 1], best[length - 2])
    else:
        for n in range(length):
            groups.members[touched[(n + 1) % length], places[(n + 1) % length]] = best[n]
    for n in range(length):
        changed(samples, groups, touched[n], scratch)


@jit
def _dissolve(samples: Samples, groups: Partition, arcs: Arcs, g: int, scratch: Scratch) -> bool:
    """Move all members of a group to other groups that have room, if that lowers the cost."""
    size = groups.size[g]
    homes = np.empty(size, np.int64)
    total = 0.0
    for i in range(size):
        user = groups.members[g, i]
        homes[i] = NOBODY
        for a in range(arcs.to.shape[1]):
            to = arcs.to[user, a]
            fresh = to < -1 and _is_known(arcs, user, -2 - to, groups.version[-2 - to])
            if fresh and not holds(homes, i, -2 - to):
                homes[i] = -2 - to
                total += arcs.change[user, a]
                break
        if homes[i] == NOBODY or total >= groups.cost[g]:
            return False
    groups.size[g] = 0
    for i in range(size):
        add(groups, homes[i], groups.members[g, i])
        changed(samples, groups, homes[i], scratch)
    changed(samples, groups, g, scratch)
    return True


@jit
def _found(samples: Samples, near: Ints, groups: Partition, user: int, scratch: Scratch) -> bool:
    """Make a new group of a user and k-1 near users from groups that can spare them, if that lowers the cost."""
    k = least_size(groups)
    place = 0
    while place < len(groups.size) and groups.size[place] > 0:
        place += 1
    if place == len(groups.size):
        return False
    origins = np.empty(k, np.int64)
    leavers = np.empty(k, np.int64)
    n = 0
    saved = 0.0
    for r in range(-1, near.shape[1]):
        v = user if r < 0 else near[user, r]
        if v < 0 or n == k:
            break
        g = groups.of[v]
        if groups.size[g] > k and not holds(origins, n, g):
            origins[n] = g
            leavers[n] = v
            saved += groups.cost[g] - cost_without(samples, groups, v, scratch)
            n += 1
    if n < k or not group_cost(samples, leavers, k, saved, scratch) < saved * (1.0 - 1e-9):
        return False
    for i in range(k):
        remove(groups, leavers[i])
        changed(samples, groups, origins[i], scratch)
    for i in range(k):
        add(groups, place, leavers[i])
    changed(samples, groups, place, scratch)
    return True


@jit
def refresh(samples: Samples, groups: Partition, arcs: Arcs, start: int, promise: Floats, scratch: Scratch) -> None:
    """Update the arcs of users from `start` on, as many as `promise` has entries.

    The promise of a user is the least that their best arc and their departure may cost.
    """
    for n in range(len(promise)):
        user = start + n
        _refresh_arcs(samples, groups, arcs, user, scratch)
        g = groups.of[user]
        promise[n] = arcs.change[user, 0] - groups.cost[g] + groups.without[g, groups.place[user]]


@jit
def exchange(samples: Samples, users: Ints, groups: Partition, arcs: Arcs, chains: Chains, scratch: Scratch) -> None:
    """Carry out the best exchange of each of some users, in this order.

    Arcs of others that a change has made stale wait for their user's turn.
    """
    for user in users:
        _refresh_arcs(samples, groups, arcs, user, scratch)
        length = _best_chain(samples, groups, arcs, user, chains, scratch)
        if length > 0:
            _apply_chain(samples, groups, chains.best, length, scratch)


@jit
def regroup(samples: Samples, groups: Partition, arcs: Arcs, scratch: Scratch) -> None:
    """Dissolve groups whose members cost less elsewhere, and make new groups of users whom others can spare."""
    for g in range(len(groups.size)):
        if groups.size[g] > 0:
            _dissolve(samples, groups, arcs, g, scratch)
    for user in range(len(groups.of)):
        if groups.size[groups.of[user]] > least_size(groups):
            _found(samples, arcs.near, groups, user, scratch)
