"""Numbering: the random order in which the records of a release are published, unrelated to the input's."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.claim import Claim
from shoal.lists import even_ranges, offsets_of, take_lists
from shoal.publishing.owners import with_random_owners
from shoal.release import Members, Release

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.layouts import Layout

__all__ = ["Numbered", "numbered", "taken"]

_COPIED = 1 << 20


@dataclass(frozen=True, eq=False)
class Numbered:
    """A release as it was made, with the claim it is published under and the order of its records.

    Record `order[n]` of `release` is published as number n.
    """

    release: Release
    order: NDArray[np.int64]

    def members(self) -> Members | None:
        """Return who is in which published record."""
        members: Members | None = self.release.members
        if members is None:
            return None
        offsets, kept = take_lists(members.offsets, self.order)
        spans = None if members.spans is None else members.spans[kept]
        return Members(members.owners[self.order], offsets, members.indices[kept], members.people, spans=spans)

    def renumbered(self) -> Release:
        """Return the release with its records in the order in which they are published, a copy."""
        release, order = self.release, self.order
        multiplicity = None if release.multiplicity is None else release.multiplicity[order]
        offsets, layout = taken(release.offsets, release.layout, order)
        return replace(release, offsets=offsets, layout=layout, members=self.members(), multiplicity=multiplicity)


def numbered(release: Release, seed: int | None) -> Numbered:
    """Draw the order of the records, from the operating system or a seed; draw owners too if the method asks for it.

    A seeded release claims nothing unless its records are identical in groups: seeds can be guessed.
    """
    n = len(release)
    chance = None if seed is None else np.random.default_rng(seed)
    if chance is None:
        order = np.argsort(np.frombuffer(os.urandom(8 * n), np.uint64), kind="stable")
    else:
        order = chance.permutation(n)
    changed: dict[str, Any] = {}
    if release.members is not None:
        changed["members"] = with_random_owners(release.members, chance)
    if seed is not None and release.claim.name != "k-anonymity":
        changed["claim"] = Claim("none", why="research")
    return Numbered(replace(release, **changed), order)


def taken(offsets: NDArray[np.int64], layout: Layout, records: NDArray[np.int64]) -> tuple[NDArray[np.int64], Layout]:
    """Return the offsets and rows of some records, copied a few at a time."""
    chosen = offsets_of(np.diff(offsets)[records])
    copy = layout.empty(int(chosen[-1]))
    for start, stop in even_ranges(np.diff(chosen), _COPIED):
        _, rows = take_lists(offsets, records[start:stop])
        copy.put(int(chosen[start]), int(chosen[stop]), layout, rows)
    return chosen, copy
