"""The partition of `shoal`: everybody into one group of k to 2k-1, at little total cost.

Rounds of parts: each round cuts space in another way, and every part is searched on its own, so that what one
round's borders kept apart can meet in the next. Groups are never cut: in later rounds whole groups stand together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.interrupt import raise_if_asked
from shoal.kernels.exchange import arcs_for, chains_for, exchange, refresh, regroup
from shoal.kernels.groups import scratch_for
from shoal.kernels.members import empty_partition, load_groups
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import Samples
from shoal.kernels.start import start_groups
from shoal.lists import offsets_of, take_lists
from shoal.parts import even_parts, space_order
from shoal.run import LOCAL, Run
from shoal.search import cheapest, homes
from shoal.search.constraints import Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.kernels.exchange import Arcs, Chains
    from shoal.kernels.groups import Scratch
    from shoal.kernels.members import Partition
    from shoal.kernels.price import Price
    from shoal.search import Homes, Partners
    from shoal.store import Arrays
    from shoal.trajectories import Trajectories

__all__ = ["EFFORTS", "Effort", "Part", "groups_in", "partition"]

_PART = 8192  # users searched together
_STEP = 256  # users between two checks for Ctrl-C
_MANY, _MORE_SWEEPS = 100_000, 5  # up to this many people there are more sweeps, so many at most
_FEW, _STARTS = 64, 16  # a part of few users is searched from so many starts
# How space is turned before it is cut, round by round: (x, y) becomes (a·x + b·y, a·y - b·x).
_TURNS = ((1, 0), (1, 1), (2, 1), (1, 2), (3, 1), (1, 3))


@dataclass(frozen=True)
class Effort:
    """How thoroughly groups are searched for.

    `partners` of a user are kept (some more for a larger k) out of twice as many candidates; every one of `rounds`
    does so many `sweeps`, more where people are few, fewer if one saves less than `enough` of the cost. In an
    exchange a user looks at the groups of about `around` users, keeps so many `arcs`, follows chains over `depth`
    groups, and prices so many `closings` of a chain.
    """

    partners: int
    rounds: int
    sweeps: int
    around: int
    arcs: int
    depth: int
    closings: int
    enough: float = 0.002

    def kept(self, k: int) -> int:
        """Return how many partners of a user are kept."""
        return self.partners + 2 * k

    def more(self, people: int) -> Effort:
        """Return the same effort with more sweeps if people are few, since these are fast anyway."""
        return replace(self, sweeps=self.sweeps + min(_MORE_SWEEPS, _MANY // people))

    def groups(self, k: int) -> int:
        """Return how many groups near a user are looked at."""
        return max(3, self.around // k)


EFFORTS = {
    "quick": Effort(12, rounds=2, sweeps=1, around=12, arcs=8, depth=3, closings=5),
    "normal": Effort(16, rounds=2, sweeps=1, around=16, arcs=12, depth=4, closings=20),
    "thorough": Effort(40, rounds=4, sweeps=4, around=40, arcs=16, depth=5, closings=40),
}


def partition(people: Trajectories, k: int, effort: Effort, *, price: Price = PAPERS, run: Run = LOCAL) -> Plan:
    """Put everybody into exactly one group of k to 2k-1 users, minimising the sum of their owner costs by a price.

    Guarantee: a partition, the same whatever the threads; costs are exact, the search is not. Cost: linear in the
    number of users: for each about effort.kept(k) merges of two and effort.rounds · effort.around merges of k.
    """
    effort = effort.more(len(people))
    where = homes(people, run=run)
    kept = effort.kept(k)
    near = cheapest(people, where, candidates=2 * kept, kept=kept, price=price, run=run)
    sizes, members = np.ones(len(people), np.int64), where.order
    for number in range(effort.rounds):
        parts = _parts(where, sizes, members, number)
        search = partial(groups_in, k=k, effort=effort, price=price)
        with_samples = (_part(people, near, k, part, fresh=number == 0) for part in parts)
        name, counts = f"groups {number + 1} of {effort.rounds}", [len(part["members"]) for part in parts]
        results = run.map(name, search, with_samples, sizes=counts)
        sizes = np.concatenate([part["sizes"] for part in results])
        members = np.concatenate([part["members"] for part in results])
        if len(parts) == 1:
            break
    return _plan(sizes, members)


def _parts(where: Homes, sizes: NDArray[np.int64], members: NDArray[np.int64], number: int) -> list[Arrays]:
    """Cut the groups (at first everybody alone) into parts; each round turns space another way before cutting."""
    offsets = offsets_of(sizes)
    a, b = _TURNS[number % len(_TURNS)]
    x, y = (np.add.reduceat(side[members], offsets[:-1]) // sizes for side in (where.x, where.y))
    order = space_order(a * x + b * y, a * y - b * x)
    ranges = even_parts(len(sizes), max(1, _PART * len(sizes) // len(members)))
    parts = []
    for start, stop in ranges:
        chosen = order[start:stop]
        _, rows = take_lists(offsets, chosen)
        parts.append({"sizes": sizes[chosen], "members": members[rows]})
    return parts


class Part(NamedTuple):
    """Users who are searched together, with all that the search needs; `sizes` are those of their groups, if any.

    `near` are everybody's partners as places in `users`, `reach` what it costs to be merged with the k-1-th.
    """

    users: NDArray[np.int64]
    sizes: NDArray[np.int64] | None
    samples: Samples
    near: NDArray[np.int64]
    reach: NDArray[np.float64]


def _part(people: Trajectories, near: Partners, k: int, groups: Arrays, *, fresh: bool) -> Part:
    """Return the users of some groups with their samples; `fresh`: the groups are forgotten."""
    users = groups["members"]
    offsets, rows = take_lists(people.offsets, users)
    samples = Samples(people.t[rows], people.x[rows], people.y[rows], offsets)
    reach = near.cost[users, min(k - 2, near.cost.shape[1] - 1)]
    return Part(users, None if fresh else groups["sizes"], samples, _within(near.other[users], users), reach)


def _within(other: NDArray[np.int32], users: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return partners as places in `users`; those who are not there are left out, the rest moves up."""
    order = np.argsort(users)
    at = np.searchsorted(users, other, sorter=order).clip(max=len(users) - 1)
    place = order[at]
    place[users[place] != other] = -1
    return np.take_along_axis(place, np.argsort(place < 0, axis=1, kind="stable"), axis=1)


def groups_in(part: Part, *, k: int, effort: Effort, price: Price = PAPERS) -> Arrays:
    """Search one part: return the groups' sizes, members and costs.

    A part of few users is fast, so it is searched thoroughly and from several starts.
    """
    users = part.users
    hardest_first = np.argsort(-part.reach, kind="stable")
    if part.sizes is not None or len(users) > _FEW:
        found = _improved(part, hardest_first, k, effort, price)
    else:
        starts = [np.roll(hardest_first, -turn * len(users) // _STARTS) for turn in range(_STARTS)]
        tries = [_improved(part, start, k, EFFORTS["thorough"], price) for start in starts]
        found = min(tries, key=lambda groups: float(groups.cost.sum()))
    used = found.size > 0
    inside = np.arange(found.members.shape[1]) < found.size[:, None]
    return {"sizes": found.size[used], "members": users[found.members[inside]], "cost": found.cost[used]}


def _improved(part: Part, order: NDArray[np.int64], k: int, effort: Effort, price: Price) -> Partition:
    """Start from the present groups, or let users make groups in this order; then sweep."""
    samples, near = part.samples, part.near
    scratch = scratch_for(samples, 2 * k, price)
    groups = empty_partition(len(order), k)
    if part.sizes is None:
        start_groups(samples, near, order, effort.arcs, groups, scratch)
    else:
        load_groups(samples, part.sizes, groups, scratch)
    arcs = arcs_for(near, effort.arcs, effort.groups(k))
    chains = chains_for(effort.depth, effort.closings)
    for _ in range(effort.sweeps):
        before = groups.cost.sum()
        _sweep(samples, groups, arcs, chains, scratch)
        if before - groups.cost.sum() < effort.enough * before:
            break
    return groups


def _sweep(samples: Samples, groups: Partition, arcs: Arcs, chains: Chains, scratch: Scratch) -> None:
    """Carry out everybody's best exchange, most promising departure first; checks for Ctrl-C in between."""
    promise = np.empty(len(arcs.near))
    steps = even_parts(len(promise), _STEP)
    for start, stop in steps:
        raise_if_asked()
        refresh(samples, groups, arcs, start, promise[start:stop], scratch)
    order = np.argsort(promise, kind="stable")
    for start, stop in steps:
        raise_if_asked()
        exchange(samples, order[start:stop], groups, arcs, chains, scratch)
    regroup(samples, groups, arcs, scratch)


def _plan(sizes: NDArray[np.int64], members: NDArray[np.int64]) -> Plan:
    """Bring groups into canonical order: members ascending, groups by their first."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    members = members[np.lexsort((members, group))]
    offsets = offsets_of(sizes)
    order = np.argsort(members[offsets[:-1]])
    new_offsets, rows = take_lists(offsets, order)
    record_of = np.empty(len(members), np.int64)
    record_of[members[rows]] = np.repeat(np.arange(len(sizes)), sizes[order])
    return Plan(new_offsets, members[rows], record_of)
