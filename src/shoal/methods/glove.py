"""GLOVE (paper 000): greedy groups by stretch effort, strict or loose, merged by k-merge or as the paper does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from shoal.methods.protocol import CrowdMethod, Estimate
from shoal.methods.records import group_release, merge_all
from shoal.release import Claim, Release
from shoal.run import LOCAL, Run
from shoal.search.glove_groups import glove_groups
from shoal.units import Metres, Seconds  # noqa: TC001  pydantic needs them

if TYPE_CHECKING:
    from shoal.trajectories import Trajectories

__all__ = ["Glove"]

# Measured on one core with generated call records, 2,000 to 40,000 people: what a search takes for each sample of the
# one searched for, and for each of these and of the others. Check-ins of 18 months in one city take longer.
_SAMPLE_NS, _OTHER_NS = 9400.0, 0.72
_SEARCHES_PAIRS, _SEARCHES_GROUPS = 1.25, 3.0  # of everybody, in all
# A sample with what floors need and its boxes, a sample that groups are compared with, a person, and the gaps in time.
_SAMPLE_BYTES, _BOX_BYTES, _PERSON_BYTES, _GAP_BYTES = 60, 60, 1500, 500_000_000


class Glove(CrowdMethod):
    """Hide everyone in a group of at least k, made by always merging the two groups at least stretch effort.

    Parameters
    ----------
    k
        The least number of people in a group.
    variant
        `strict` (the paper's): a group of k or more is left alone, and fewer than k people who remain are left out.
        `loose`: such a group may still take others in, and nobody is left out.
    merge
        How two groups become one: `k-merge` (finer as a rule, and true of every member), or `two-stage`, the paper's
        own, whose boxes are true of the group but not of each of its members.
    max_span_m, max_duration_s
        Leave out boxes that are wider, higher or longer than this, for the whole group; nothing is left out by
        default. Text with a unit is taken too: `"15km"`, `"6h"`.

    Guarantee: `k-anonymity(k)`; the very groups of the paper's Alg. 1, ties in canonical order, whatever threads,
    labels or the order of the input. Cost: docs/benchmarks.md; memory is linear in the samples.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> Glove(k=2).anonymize(people)
    Release(50 records, ... boxes, glove, claim k-anonymity(2))
    """

    name: ClassVar[str] = "glove"
    less_loss: ClassVar[str] = (
        "give --variant loose, which leaves nobody out; or raise --max-span and --max-duration, or leave them out"
    )
    variant: Literal["strict", "loose"] = "strict"
    merge: Literal["k-merge", "two-stage"] = "k-merge"
    max_span_m: Annotated[Metres, Field(gt=0)] | None = None
    max_duration_s: Annotated[Seconds, Field(gt=0)] | None = None

    def anonymize(self, people: Trajectories, *, run: Run = LOCAL) -> Release:
        """Return one record per user, identical within each group; see the class for what it guarantees."""
        self.require_enough(people)
        plan, offsets, boxes, _ = glove_groups(
            people, self.k, loose=self.variant == "loose", two_stage=self.merge == "two-stage", run=run
        )
        if offsets is None or boxes is None:
            offsets, boxes = merge_all(people, plan.offsets, plan.members, "members", run=run)
        return group_release(
            people,
            plan,
            offsets,
            boxes,
            method=self.name,
            parameters={"k": self.k, "variant": self.variant, "merge": self.merge},
            max_span_m=self.max_span_m,
            max_duration_s=self.max_duration_s,
        )

    @property
    def claim(self) -> Claim:
        """What its releases promise."""
        return Claim("k-anonymity", k=self.k)

    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:
        """Return what `anonymize` would take: everybody is searched for among all, and so is every group made."""
        alone = self.k == 2 and self.variant == "strict"  # nothing is ever compared with a group
        searches = _SEARCHES_PAIRS if alone else _SEARCHES_GROUPS
        nanoseconds = searches * people.samples * (_SAMPLE_NS + _OTHER_NS * len(people))
        memory = _SAMPLE_BYTES * people.samples + _PERSON_BYTES * len(people)
        memory += min(_GAP_BYTES, len(people) * (int(np.ptp(people.t)) // 4 + 1))
        if not alone:
            memory += _BOX_BYTES * people.samples
        return Estimate(int(memory), nanoseconds / 1e9 / run.workers)
