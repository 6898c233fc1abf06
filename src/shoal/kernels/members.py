"""A partition of users into groups, with the cost of each group, without a member or with another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.groups import group_cost

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.groups import Scratch
    from shoal.kernels.samples import Samples

__all__ = [
    "NOBODY",
    "Partition",
    "add",
    "changed",
    "cost_replaced",
    "cost_with",
    "cost_without",
    "empty_partition",
    "least_size",
    "load_groups",
    "remove",
]

NOBODY = -1


class Partition(NamedTuple):
    """Users in groups of k to 2k-1: members[g, :size[g]] are those of group g; a group of size 0 is a free place.

    User u stands at members[of[u], place[u]]. cost[g] is the group's cost, without[g, i] the cost if its i-th member
    left (-1: not known), version[g] counts its changes.
    """

    members: Ints
    size: Ints
    cost: Floats
    without: Floats
    version: Ints
    of: Ints
    place: Ints


def empty_partition(n_users: int, k: int) -> Partition:
    """Return an empty partition."""
    n_groups = n_users // k
    return Partition(
        np.full((n_groups, 2 * k - 1), NOBODY, np.int64),
        np.zeros(n_groups, np.int64),
        np.zeros(n_groups, np.float64),
        np.full((n_groups, 2 * k - 1), -1.0),
        np.zeros(n_groups, np.int64),
        np.full(n_users, NOBODY, np.int64),
        np.zeros(n_users, np.int64),
    )


@jit
def least_size(groups: Partition) -> int:
    """Return k, the least size of a group (a group has room for 2k-1)."""
    return int(groups.members.shape[1] + 1) // 2


@jit
def changed(samples: Samples, groups: Partition, g: int, scratch: Scratch) -> None:
    """Update a group's costs after its members changed."""
    groups.version[g] += 1
    for i in range(groups.without.shape[1]):
        groups.without[g, i] = -1.0
    groups.cost[g] = 0.0
    for i in range(groups.size[g]):
        groups.of[groups.members[g, i]] = g
        groups.place[groups.members[g, i]] = i
    if groups.size[g] > 0:
        groups.cost[g] = group_cost(samples, groups.members[g], groups.size[g], np.inf, scratch)


@jit
def add(groups: Partition, g: int, user: int) -> None:
    """Add a user at the end of a group; call `changed` afterwards."""
    groups.members[g, groups.size[g]] = user
    groups.size[g] += 1
    groups.of[user] = g


@jit
def remove(groups: Partition, user: int) -> None:
    """Take a user out of their group; its last member moves to their place."""
    g = groups.of[user]
    groups.size[g] -= 1
    moved = groups.members[g, groups.size[g]]
    groups.members[g, groups.place[user]] = moved
    groups.place[moved] = groups.place[user]


@jit
def cost_with(samples: Samples, groups: Partition, g: int, user: int, bound: float, scratch: Scratch) -> float:
    """Return the cost of a group with one more user."""
    size = groups.size[g]
    for i in range(size):
        scratch.who[i] = groups.members[g, i]
    scratch.who[size] = user
    return group_cost(samples, scratch.who, size + 1, bound, scratch)


@jit
def cost_replaced(samples: Samples, groups: Partition, old: int, new: int, bound: float, scratch: Scratch) -> float:
    """Return the cost of a member's group with another user in the member's place."""
    g = groups.of[old]
    size = groups.size[g]
    for i in range(size):
        scratch.who[i] = groups.members[g, i]
    scratch.who[groups.place[old]] = new
    return group_cost(samples, scratch.who, size, bound, scratch)


@jit
def cost_without(samples: Samples, groups: Partition, user: int, scratch: Scratch) -> float:
    """Return the cost of a user's group without them; it is cached until the group changes."""
    g, place = groups.of[user], groups.place[user]
    if groups.without[g, place] < 0.0:
        size = groups.size[g]
        for i in range(size):
            scratch.who[i] = groups.members[g, i]
        scratch.who[place] = scratch.who[size - 1]
        groups.without[g, place] = group_cost(samples, scratch.who, size - 1, np.inf, scratch)
    return float(groups.without[g, place])


@jit
def load_groups(samples: Samples, sizes: Ints, groups: Partition, scratch: Scratch) -> None:
    """Load a partition: the first sizes[0] users are a group, the next sizes[1] another, and so on."""
    user = 0
    for g in range(len(sizes)):
        for _ in range(sizes[g]):
            add(groups, g, user)
            user += 1
        changed(samples, groups, g, scratch)
