"""Common parts of attacks that single people out: victims, known points, the promise, and the printed results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.attacks.matching import KnownPoints
from shoal.attacks.outcome import crowd, rate
from shoal.errors import CannotCheck
from shoal.lists import offsets_of
from shoal.seen.arrays import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.attacks.target import Target
    from shoal.claim import Claim
    from shoal.seen.original import Original

__all__ = ["anyone", "failures", "first_known", "percent", "promised", "row_of", "shuffled", "too_few"]


def anyone(target: Target) -> NDArray[np.int64]:
    """Return the users who can be attacked: those with published samples and, if there is an audit, a record.

    An adversary may look for somebody who was left out, but can't find them.
    """
    some = target.published.counts > 0
    if target.own is not None:
        some &= target.own >= 0
    if not some.any():
        raise CannotCheck("nobody of the original is in the release; are they of the same people?")
    return np.flatnonzero(some)


def shuffled(people: Original, users: NDArray[np.int64], chance: np.random.Generator) -> KnownPoints:
    """Return the samples of these users, each user's in random order."""
    counts = people.counts[users]
    offsets, which = offsets_of(counts), spread(counts)
    rows = np.arange(len(which)) + (people.offsets[users] - offsets[:-1])[which]
    rows = rows[np.lexsort((chance.random(len(rows)), which))]
    return KnownPoints(offsets, people.t[rows], people.x[rows], people.y[rows])


def first_known(known: KnownPoints, most: int) -> KnownPoints:
    """Return the first `most` points of each victim, or all points if there are no more.

    >>> two = first_known(KnownPoints(np.array([0, 3, 4]), *[np.array([7, 8, 9, 1])] * 3), 2)
    >>> two.offsets.tolist(), two.t.tolist()
    ([0, 2, 3], [7, 8, 1])
    """
    place = np.arange(len(known.t)) - known.offsets[:-1][spread(np.diff(known.offsets))]
    kept = place < most
    counts = np.minimum(np.diff(known.offsets), most)
    return KnownPoints(offsets_of(counts), known.t[kept], known.x[kept], known.y[kept])


def row_of(target: Target, people: NDArray[np.int64], control: NDArray[np.int64]) -> dict[str, Any]:
    """Return the columns that every table has: victims singled out in the release and in raw data, and the candidates.

    `people` and `control` count each victim's candidates. A victim without candidates was not found (`not_found`); the
    numbers of candidates are those of the other victims. `below_k` is the share of victims with fewer
    candidates than promised.
    """
    found, n = people[people > 0], len(people)
    row: dict[str, Any] = {"victims": n, **rate("success", int((people == 1).sum()), n)}
    row |= {"not_found": (n - len(found)) / n if n else None, **crowd(found)}
    if target.k is not None:
        row["below_k"] = float((found < target.k).sum() / n) if n else None
    return row | rate("control", int((control == 1).sum()), n) | crowd(control, "control_candidates")


def promised(target: Target) -> dict[str, Any]:
    """Return the figures of the promise: the claim, k, 1/k and the number of users."""
    return {"claim": str(target.claim), "k": target.k, "promise": target.promise, "users": len(target.people)}


def too_few(target: Target, people: NDArray[np.int64], needed: Claim | None) -> int:
    """Count victims with fewer than k candidates, if the release's claim implies the claim that is `needed`.

    A seeded release, and one for which the caller gave a k, should hold it too. A victim who is not found at all
    counts, unless samples were suppressed and it is not known which: the victim's samples may be among them.
    """
    if target.k is None or needed is None:
        return 0
    if target.claim.name != "none" and (
        target.claim.k is None or not replace(target.claim, k=target.k).implies(needed)
    ):
        return 0
    may_miss = target.suppressed and target.own is None
    return int(((people < target.k) & ((people > 0) | (not may_miss))).sum())


def failures(target: Target, broken: int, victims: int) -> tuple[str, ...]:
    """Return a sentence that victims have too few candidates; nothing if none have."""
    if not broken:
        return ()
    said = (
        f"{broken:,} of {victims:,} victims have fewer than {target.k} candidates: the release does not hold what it "
    )
    return (said + "was made for; check it with shoal verify.",)


def percent(share: float | None) -> str:
    """Write a share as a percentage, with the digits that matter.

    >>> percent(0.9312), percent(1.0), percent(0.0), percent(0.0004), percent(None)
    ('93.1 %', '100 %', '0 %', '0.04 %', '-')
    """
    if share is None:
        return "-"
    text = f"{share * 100:.1f}" if share >= 0.001 else f"{share * 100:.2g}"
    return text.removesuffix(".0") + " %"
