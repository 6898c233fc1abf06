"""Overlap: the people who are in several releases, and among how many they are hidden in all."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.publishing.ledger.file import Entry
    from shoal.publishing.ledger.fingerprints import People

__all__ = ["Hidden", "Overlap", "Shared", "find", "overlap_of"]


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """The number of people, themselves included, among whom some people are hidden: least, mean, share below k."""

    least: int
    mean: float
    below_k: float


@dataclass(frozen=True, kw_only=True)
class Shared:
    """The people whom a release shares with an earlier one, and among how many they are hidden in both.

    `known` says whether both releases have identical groups; otherwise the worst case is given, which is 1.
    """

    release: str
    when: str
    confirmed: bool
    claim: dict[str, Any]
    people: int
    known: bool
    hidden: Hidden


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """What the ledger says of a release of `people` users: those in earlier ones, with each and with all together."""

    people: int
    k: int | None
    releases: int
    shared: int = 0
    together: Hidden | None = None
    each: tuple[Shared, ...] = ()

    def messages(self) -> tuple[str, ...]:
        """Return the overlap as sentences."""
        if not self.each:
            others = "no earlier one" if self.releases == 0 else f"none of the {self.releases} before it"
            return (f"Ledger: this release is written down; it shares people with {others}.",)
        lines = [
            f"Ledger: {self.shared:,} of {self.people:,} people are in earlier releases too; who has both finds one"
        ]
        for one in self.each:
            state = "" if one.confirmed else ", begun and never confirmed"
            lines.append(
                f"  with {one.release} ({one.when[:10]}{state}), {one.people:,} people in both: "
                f"{_words(one.hidden, self.k)}"
            )
            if not one.known:
                lines.append("    (the worst case: not both releases have identical groups)")
        if len(self.each) > 1 and self.together is not None:
            lines.append(f"  with all of them: {_words(self.together, self.k)}")
        return tuple(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary that `--json` prints."""
        return asdict(self)


def _words(hidden: Hidden, k: int | None) -> str:
    below = "" if k is None else f"; {hidden.below_k:.0%} of them among fewer than k = {k}"
    return f"among at least {hidden.least}, {hidden.mean:.1f} on average{below}."


def find(mine: NDArray[np.uint64], theirs: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the position of each of my fingerprints among their sorted ones, and whether it is there."""
    at = np.minimum(np.searchsorted(theirs, mine), max(0, len(theirs) - 1))
    return at, theirs[at] == mine if len(theirs) else np.zeros(len(mine), np.bool_)


def overlap_of(new: People, k: int | None, earlier: Sequence[tuple[Entry, People]]) -> Overlap:
    """Compare a release with all earlier ones.

    A person in several releases is hidden among those who share their group in all of them: an adversary who knows
    the person's group in each release looks for people who are in all these groups. Where a release has no
    identical groups, nothing better than 1 is known. People who are in no earlier release are left out.
    Cost: a sort of the people for each release.
    """
    alone = np.arange(len(new.fingerprints), dtype=np.int64)
    own = alone if new.groups is None else new.groups.astype(np.int64)
    classes, anywhere = own, np.zeros(len(own), np.bool_)
    each = []
    for entry, theirs in earlier:
        at, both = find(new.fingerprints, theirs.fingerprints)
        if not both.any():
            continue
        their_group = alone if theirs.groups is None else theirs.groups[at].astype(np.int64)
        mark = np.where(both, their_group + 1, 0)
        each.append(
            Shared(
                release=entry.release,
                when=entry.begun,
                confirmed=entry.published is not None,
                claim=entry.claim,
                people=int(both.sum()),
                known=new.groups is not None and theirs.groups is not None,
                hidden=_hidden(_refined(own, mark)[both], k),
            )
        )
        classes, anywhere = _refined(classes, mark), anywhere | both
    return Overlap(
        people=len(own),
        k=k,
        releases=len(earlier),
        shared=int(anywhere.sum()),
        together=_hidden(classes[anywhere], k) if each else None,
        each=tuple(each),
    )


def _refined(classes: NDArray[np.int64], mark: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the classes of people who agree in both numbers."""
    refined: NDArray[np.int64] = np.unique(classes * (int(mark.max()) + 1) + mark, return_inverse=True)[1]
    return refined


def _hidden(classes: NDArray[np.int64], k: int | None) -> Hidden:
    _, number, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    among = sizes[number]
    below = 0.0 if k is None else float((among < k).mean())
    return Hidden(least=int(among.min()), mean=float(among.mean()), below_k=below)
