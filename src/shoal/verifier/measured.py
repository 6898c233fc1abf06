"""Measure what a release may claim about windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shoal.run import LOCAL, Run
from shoal.verifier.check import verify

if TYPE_CHECKING:
    from shoal.release import Release

__all__ = ["with_measured_claim"]


def with_measured_claim(release: Release, *, run: Run = LOCAL) -> Release:
    """Return a release that a method has just made, with the strongest claim about windows that it keeps.

    A release that claims `kte-cover(k, τ)` without a measured leakage is checked in memory, against the people it was
    made of: if no window leaks beyond its ε, it claims `kte-anonymity(k, τ, ε)`, else `kte-cover(k, τ)` with the share
    of windows that do. Any other release is returned unchanged. Raises NotVerified if not even cover holds. The claim
    is still to be checked on the written file. Cost: that of `verify`.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=60, scene="town", days=1, seed=1))
    >>> str(with_measured_claim(shoal.KteHide(k=2, tau="1d", epsilon="1d").anonymize(people)).claim)
    'kte-anonymity(2, 1440min, 1440min)'
    """
    if release.members is None or release.claim.name != "kte-cover" or release.claim.leakage_share is not None:
        return release
    verdict = verify(release.members.people, release, max_suppressed=1.0, run=run)
    verdict.raise_if_broken()
    return release if verdict.shown is None else replace(release, claim=verdict.shown)
