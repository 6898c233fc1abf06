"""What a record costs and how much it grows, by k-merge alone; and all ways to own regular records."""

from itertools import pairwise, product

import shoal


def record_cost(people, owner, members):
    """k-scale Eq. 4 for the owner merged with her members; without any, with her cheapest neighbour of all."""
    if not members:
        return min(record_cost(people, owner, [other]) for other in range(len(people)) if other != owner)
    return shoal.k_merge([people.user(u) for u in [owner, *members]], "owner")[1]


def members_of(plan):
    """The members of every record, the owner left out."""
    lists = [plan.members[a:b].tolist() for a, b in pairwise(plan.offsets.tolist())]
    for owner, members in enumerate(lists):
        assert members[0] == owner
    return [members[1:] for members in lists]


def total_cost(people, members):
    """k-scale Eq. 3."""
    return sum(record_cost(people, owner, chosen) for owner, chosen in enumerate(members))


def owner_probabilities(matchings, rounds):
    """P(owner of r = u) after so many rounds of `draw_owners`, by following every draw and every coin."""
    n, k = len(matchings), len(matchings[0])
    state = {(tuple(map(tuple, matchings)), 0): 1.0}
    for _ in range(rounds):
        following = {}
        for (lists, _), chance in state.items():
            for a, b in [(a, b) for a in range(k) for b in range(k) if a != b]:
                cycles = _cycles(lists, a, b)
                for coins in product([False, True], repeat=len(cycles)):
                    new = [list(row) for row in lists]
                    for cycle, coin in zip(cycles, coins, strict=True):
                        for r in cycle if coin else ():
                            new[r][a], new[r][b] = new[r][b], new[r][a]
                    key = (tuple(map(tuple, new)), a)
                    following[key] = following.get(key, 0.0) + chance / (k * (k - 1)) / 2 ** len(cycles)
        state = following
    owned = {}
    for (lists, a), chance in state.items():
        for r in range(n):
            owned[r, lists[r][a]] = owned.get((r, lists[r][a]), 0.0) + chance
    return owned


def _cycles(lists, a, b):
    left = set(range(len(lists)))
    cycles = []
    while left:
        cycle = [min(left)]
        while True:
            user = lists[cycle[-1]][a]
            (following,) = [r for r in range(len(lists)) if lists[r][b] == user]
            if following == cycle[0]:
                break
            cycle.append(following)
        cycles.append(cycle)
        left -= set(cycle)
    return cycles
