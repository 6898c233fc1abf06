"""A first partition: hardest users first, each with the free neighbours that make the cheapest group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.jit import jit
from shoal.kernels.groups import group_cost
from shoal.kernels.members import NOBODY, add, changed, cost_with, least_size
from shoal.kernels.pick import holds

if TYPE_CHECKING:
    from shoal.jit import Ints
    from shoal.kernels.groups import Scratch
    from shoal.kernels.members import Partition
    from shoal.kernels.samples import Samples

__all__ = ["start_groups"]


@jit
def _grow(samples: Samples, near: Ints, tried: int, groups: Partition, user: int, scratch: Scratch) -> int:
    """Grow a group around a user by the cheapest free neighbour of its members, one at a time; return its size.

    The group stands in scratch.who.
    """
    k, room = least_size(groups), scratch.who
    room[0] = user
    size = 1
    while size < k:
        best = np.inf
        chosen = NOBODY
        looked = 0
        for r in range(near.shape[1]):
            for m in range(size):
                v = near[room[m], r]
                if v < 0 or groups.of[v] >= 0 or holds(room, size, v):
                    continue
                room[size] = v
                c = group_cost(samples, room, size + 1, best, scratch)
                looked += 1
                if c < best:
                    best = c
                    chosen = v
            if looked >= tried:
                break
        if chosen == NOBODY:
            break
        room[size] = chosen
        size += 1
    return size


@jit
def _insert(samples: Samples, near: Ints, tried: int, groups: Partition, user: int, scratch: Scratch) -> bool:
    """Put a user into the near group with room that takes them at the least cost; return False if there is none."""
    capacity = groups.members.shape[1]
    best = np.inf
    chosen = NOBODY
    looked = 0
    for r in range(near.shape[1]):
        v = near[user, r]
        if v < 0 or looked >= tried:
            break
        g = groups.of[v]
        if g < 0 or groups.size[g] >= capacity:
            continue
        c = cost_with(samples, groups, g, user, best + groups.cost[g], scratch) - groups.cost[g]
        looked += 1
        if c < best:
            best = c
            chosen = g
    if chosen == NOBODY:
        return False
    add(groups, chosen, user)
    changed(samples, groups, chosen, scratch)
    return True


@jit
def _place_rest(samples: Samples, n_groups: int, groups: Partition, scratch: Scratch) -> None:
    """Place users who have no near group with room: first with each other, in the given order, then anywhere."""
    k = least_size(groups)
    rest = np.empty(len(groups.of), np.int64)
    n_rest = 0
    for user in range(len(groups.of)):
        if groups.of[user] < 0:
            rest[n_rest] = user
            n_rest += 1
    n = 0
    while n_rest - n >= k:
        for _ in range(k):
            add(groups, n_groups, rest[n])
            n += 1
        changed(samples, groups, n_groups, scratch)
        n_groups += 1
    while n < n_rest:
        g = 0
        while g < n_groups - 1 and groups.size[g] == groups.members.shape[1]:
            g += 1
        if groups.size[g] == groups.members.shape[1]:  # all are full: k of the 2k users make a new one
            for _ in range(k - 1):
                mover = groups.members[g, groups.size[g] - 1]
                groups.size[g] -= 1
                add(groups, n_groups, mover)
            changed(samples, groups, g, scratch)
            g = n_groups
            n_groups += 1
        add(groups, g, rest[n])
        changed(samples, groups, g, scratch)
        n += 1


@jit
def start_groups(samples: Samples, near: Ints, order: Ints, tried: int, groups: Partition, scratch: Scratch) -> None:
    """Make a first partition; users choose in this order, which should be hardest first.

    near[u] are u's neighbours, cheapest first, -1 where there are no more. Each user still free takes the free
    neighbours that make the cheapest group of k; a user who can't joins the group that takes them at the least cost.
    """
    k = least_size(groups)
    n_groups = 0
    for user in order:
        if groups.of[user] >= 0 or n_groups == len(groups.size):
            continue
        if _grow(samples, near, tried, groups, user, scratch) == k:
            for m in range(k):
                add(groups, n_groups, scratch.who[m])
            changed(samples, groups, n_groups, scratch)
            n_groups += 1
    for user in order:
        if groups.of[user] < 0:
            _insert(samples, near, tried, groups, user, scratch)
    _place_rest(samples, n_groups, groups, scratch)
