"""GLOVE: greedy groups by stretch effort, strict or loose, merged by k-merge or as in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from shoal.claim import Claim
from shoal.methods.protocol import CrowdMethod, Estimate
from shoal.methods.records import group_release, merge_all
from shoal.methods.registry import register
from shoal.run import LOCAL, Run
from shoal.search.glove_groups import glove_groups
from shoal.settings import setting
from shoal.units import Metres, Seconds  # noqa: TC001  pydantic needs them

if TYPE_CHECKING:
    from shoal.release import Release
    from shoal.trajectories import Trajectories

__all__ = ["Glove"]

# Measured on one core with generated call records, 2,000 to 40,000 people: what a search takes for each sample of the
# one searched for, and for each of these and of the others. Check-ins of 18 months in one city take longer.
_SAMPLE_NS, _OTHER_NS = 9400.0, 0.72
_SEARCHES_PAIRS, _SEARCHES_GROUPS = 1.25, 3.0  # of everybody, in all
# A sample with what floors need and its boxes, a sample that groups are compared with, a person, and the gaps in time.
_SAMPLE_BYTES, _BOX_BYTES, _PERSON_BYTES, _GAP_BYTES = 60, 60, 1500, 500_000_000


@register
class Glove(CrowdMethod):
    """Hide everyone in a group of at least k by repeatedly merging the two groups with the least stretch effort.

    Parameters
    ----------
    k
        The least number of people in a group.
    variant
        `strict` (as in the paper): groups of k or more take in nobody, and fewer than k people may be left out at the
        end. `loose`: such groups may take in others, and nobody is left out.
    merge
        `k-merge`: every box holds a sample of every member; usually finer. `two-stage` (as in the paper): every box
        holds a sample of some member, but not of each.
    max_span, max_duration
        Leave out boxes that are wider, higher or longer than this, for the whole group; by default nothing is left out.
        A number is metres or seconds; text has a unit: `"15km"`, `"6h"`.

    Guarantee: `k-anonymity(k)`. The groups are exactly those of GLOVE, Alg. 1, with ties broken by canonical order.
    They do not depend on threads, labels or the order of the input.

    Cost: see docs/benchmarks.md. Memory is linear in the number of samples.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> Glove(k=2).anonymize(people)
    Release(50 records, ... boxes, glove, claim k-anonymity(2))
    """

    name: ClassVar[str] = "glove"
    about: ClassVar[str] = (
        "Merge the two groups that are cheapest to merge, and repeat this until every group has at least k people."
    )
    citation: ClassVar[str] = "GLOVE, Sec. 6 and Alg. 1 (docs/papers/glove.md)"
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        **{word: {"merge": word} for word in ("k-merge", "two-stage")},
        "loose": {"variant": "loose"},
    }
    less_loss: ClassVar[str] = (
        'give `variant="loose"`, which leaves nobody out; or raise `max_span` and `max_duration`, or leave them out'
    )

    variant: Literal["strict", "loose"] = setting(
        "strict",
        help="strict: complete groups take in nobody, and a few people may be left out. loose: nobody is left out.",
        public="variant",
    )
    merge: Literal["k-merge", "two-stage"] = setting(
        "k-merge", help="How groups become records: k-merge, or two-stage as in the paper.", public="merge"
    )
    max_span: Metres | None = setting(
        None, unit="m", help="Leave out boxes that are wider or higher than this, e.g. 15km.", public="max_span_m", gt=0
    )
    max_duration: Seconds | None = setting(
        None, unit="s", help="Leave out boxes that last longer than this, e.g. 6h.", public="max_duration_s", gt=0
    )

    @property
    def truth(self) -> Literal["member", "group"]:
        """Whether boxes are true of each member or, with `two-stage`, only of the group as a whole."""
        return "group" if self.merge == "two-stage" else "member"

    def make(self, people: Trajectories, *, run: Run) -> Release:
        """Return one record per user, identical within each group; see the class for what it guarantees."""
        plan, offsets, boxes, _ = glove_groups(
            people, self.k, loose=self.variant == "loose", two_stage=self.merge == "two-stage", run=run
        )
        if offsets is None or boxes is None:
            offsets, boxes = merge_all(people, plan.offsets, plan.members, "members", run=run)
        return group_release(self, people, plan, offsets, boxes)

    @property
    def claim(self) -> Claim:
        """What its releases promise."""
        return Claim("k-anonymity", k=self.k)

    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:
        """Return the estimated time and memory of `anonymize`: each person and each new group is compared with all."""
        alone = self.k == 2 and self.variant == "strict"  # nothing is ever compared with a group
        searches = _SEARCHES_PAIRS if alone else _SEARCHES_GROUPS
        nanoseconds = searches * people.samples * (_SAMPLE_NS + _OTHER_NS * len(people))
        memory = _SAMPLE_BYTES * people.samples + _PERSON_BYTES * len(people)
        memory += min(_GAP_BYTES, len(people) * (int(np.ptp(people.t)) // 4 + 1))
        if not alone:
            memory += _BOX_BYTES * people.samples
        return Estimate(int(memory), nanoseconds / 1e9 / run.workers)
