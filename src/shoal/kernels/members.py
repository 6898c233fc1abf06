"""A partition of users into groups, with what each group costs, would cost without a member or with another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.groups import Samples, Scratch, group_cost

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints

__all__ = [
    "NOBODY",
    "Groups",
    "add",
    "changed",
    "cost_replaced",
    "cost_with",
    "cost_without",
    "groups_for",
    "load_groups",
    "remove",
]

NOBODY = -1


class Groups(NamedTuple):
    """A partition: members[g, :size[g]] are the users of group g; a group of size 0 is a free place.

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


def groups_for(n_users: int, k: int) -> Groups:
    """Return an empty partition."""
    n_groups = n_users // k
    return Groups(
        np.full((n_groups, 2 * k - 1), NOBODY, np.int64),
        np.zeros(n_groups, np.int64),
        np.zeros(n_groups, np.float64),
        np.full((n_groups, 2 * k - 1), -1.0),
        np.zeros(n_groups, np.int64),
        np.full(n_users, NOBODY, np.int64),
        np.zeros(n_users, np.int64),
    )


@jit
def changed(samples: Samples, groups: Groups, g: int, scratch: Scratch) -> None:
    """Bring a group's figures up to date after its members changed."""
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
def add(groups: Groups, g: int, user: int) -> None:
    """Put a user at the end of a group; `changed` is for afterwards."""
    groups.members[g, groups.size[g]] = user
    groups.size[g] += 1
    groups.of[user] = g


@jit
def remove(groups: Groups, user: int) -> None:
    """Take a user out of her group; its last member moves to her place."""
    g = groups.of[user]
    groups.size[g] -= 1
    moved = groups.members[g, groups.size[g]]
    groups.members[g, groups.place[user]] = moved
    groups.place[moved] = groups.place[user]


@jit
def cost_with(samples: Samples, groups: Groups, g: int, user: int, bound: float, room: Ints, scratch: Scratch) -> float:
    """Return what a group would cost with one more user."""
    size = groups.size[g]
    for i in range(size):
        room[i] = groups.members[g, i]
    room[size] = user
    return group_cost(samples, room, size + 1, bound, scratch)


@jit
def cost_replaced(
    samples: Samples, groups: Groups, g: int, place: int, user: int, bound: float, room: Ints, scratch: Scratch
) -> float:
    """Return what a group would cost with another user at a place."""
    size = groups.size[g]
    for i in range(size):
        room[i] = groups.members[g, i]
    room[place] = user
    return group_cost(samples, room, size, bound, scratch)


@jit
def cost_without(samples: Samples, groups: Groups, g: int, place: int, room: Ints, scratch: Scratch) -> float:
    """Return what a group would cost without the user at a place; remembered until the group changes."""
    if groups.without[g, place] < 0.0:
        size = groups.size[g]
        for i in range(size):
            room[i] = groups.members[g, i]
        room[place] = room[size - 1]
        groups.without[g, place] = group_cost(samples, room, size - 1, np.inf, scratch)
    return float(groups.without[g, place])


@jit
def load_groups(samples: Samples, sizes: Ints, groups: Groups, scratch: Scratch) -> None:
    """Take over a partition: the first sizes[0] users are a group, the next sizes[1] another, and so on."""
    user = 0
    for g in range(len(sizes)):
        for _ in range(sizes[g]):
            add(groups, g, user)
            user += 1
        changed(samples, groups, g, scratch)
