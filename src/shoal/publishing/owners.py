"""Random owners: chance decides which of a user's k records is their own (k-concealment)."""

from __future__ import annotations

import os
from dataclasses import replace
from secrets import SystemRandom
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release import Members

__all__ = ["draw_owners", "with_random_owners"]

_ROUNDS = 4  # for each matching


def with_random_owners(members: Members, chance: np.random.Generator | None = None) -> Members:
    """Return the members with owners drawn at random from `members.matchings`; the result has no matchings.

    Without matchings nothing changes. Random numbers come from the operating system unless `chance` is given.
    """
    if members.matchings is None:
        return members
    owners = draw_owners(members.matchings, chance)
    lists = np.sort(np.where(members.matchings == owners[:, None], -1, members.matchings), axis=1)
    lists[:, 0] = owners
    return replace(members, owners=owners, indices=lists.ravel(), matchings=None)


def draw_owners(matchings: NDArray[np.int64], chance: np.random.Generator | None = None) -> NDArray[np.int64]:
    """Draw an owner for every record: a perfect matching, in which each of a user's k records is equally likely.

    Input: k edge-disjoint perfect matchings of records and users, as the columns of a (records, k) array. In every
    round two of them, a and b, are drawn, all pairs equally likely. Together they are disjoint cycles, on which
    their edges alternate; a fair coin for each cycle says whether a and b exchange their edges on it, which leaves
    both perfect matchings. After the last round, a says who owns what.

    Guarantee: record r belongs to each of its k users with probability exactly 1/k, and likewise each of a user's k
    records is their own. Proof: after all rounds but the last, the edge (r, u) lies in exactly one matching c.
    It is in a at the end iff a = c and its cycle is not exchanged, or b = c and it is. The draw gives a = c and
    b = c with probability 1/k each, and the coin is fair and independent of it: 1/k · 1/2 + 1/k · 1/2 = 1/k.
    The rounds before the last change nothing in this; they make the owners of different records depend less on each
    other, so that knowing some owners tells little about the rest. For k = 2 there is one pair, and one coin a cycle.
    Cost: 4·k rounds, each linear in the number of records.

    >>> groups = np.array([[0, 1], [1, 0], [2, 3], [3, 2]])  # two groups of two
    >>> sorted(draw_owners(groups).tolist())
    [0, 1, 2, 3]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    drawn = matchings.copy()
    n_records, k = drawn.shape
    record_of = np.empty(n_records, np.int64)
    a = 0
    for _ in range(_ROUNDS * k):
        a, b = _two_of(k, chance)
        record_of[drawn[:, b]] = np.arange(n_records)
        following = record_of[drawn[:, a]]  # over a to a user, over b to their other record
        steps = csr_array((np.ones(n_records, np.int8), following, np.arange(n_records + 1)), shape=(n_records,) * 2)
        n_cycles, cycle = connected_components(steps, directed=False)
        exchanged = _coins(n_cycles, chance)[cycle]
        drawn[exchanged, a], drawn[exchanged, b] = drawn[exchanged, b], drawn[exchanged, a]
    return drawn[:, a].copy()


def _two_of(k: int, chance: np.random.Generator | None) -> tuple[int, int]:
    a, b = SystemRandom().sample(range(k), 2) if chance is None else chance.permutation(k)[:2].tolist()
    return a, b


def _coins(n: int, chance: np.random.Generator | None) -> NDArray[np.bool_]:
    n_bytes = -(-n // 8)
    raw = os.urandom(n_bytes) if chance is None else chance.bytes(n_bytes)
    return np.unpackbits(np.frombuffer(raw, np.uint8), count=n).astype(np.bool_)
