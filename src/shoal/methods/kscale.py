"""k-scale: sparse pair costs from a proxy, then one of three anonymity constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import model_validator

from shoal.claim import Claim
from shoal.layouts import Boxes
from shoal.lists import take_lists
from shoal.methods.protocol import CrowdMethod, Estimate
from shoal.methods.records import merge_all
from shoal.methods.registry import register
from shoal.release import Members, Release
from shoal.run import LOCAL, Run
from shoal.search import pair_costs, proxy_candidates, signatures
from shoal.search.constraints import clusters, k_pick, nu_k_pick
from shoal.search.marginal import marginal_pick
from shoal.settings import setting

if TYPE_CHECKING:
    from shoal.merge import Objective
    from shoal.search import PairCosts
    from shoal.search.constraints import Plan
    from shoal.trajectories import Trajectories

__all__ = ["KScale"]

# Measured on one core: a proxy distance, a sample in a pair cost; and what a pair and a sample occupy at the peak.
_PROXY_NS, _MERGE_NS = 3.0, 30.0
_PAIR_BYTES, _SAMPLE_BYTES = 110, 60
_MARGINAL_NS = 1000.0  # all sweeps, for each user, sample and k²

Constraint = Literal["nu-k-pick", "k-pick", "full"]
Picking = Literal["cost", "marginal"]


@register
class KScale(CrowdMethod):
    """Merge each person into the records of k-1 others, as k-scale does.

    The steps are: a signature of each person, a proxy distance (Dice), the 100·k nearest people as candidates, exact
    costs, and a constraint that decides who is merged with whom.

    Parameters
    ----------
    k
        The number of records that everyone's samples must lie in.
    constraint
        `nu-k-pick` (k-scale, Alg. 1) and `k-pick` (kte-hide) claim `cover(k)`. `full` makes separate groups with
        identical records and claims `k-anonymity(k)`.
    candidates
        The number of nearest people, by the proxy, whose exact cost is computed; by default 100·k.
    picking
        With nu-k-pick: people choose records by `cost` (as in the paper: the cost of a merge with that person alone),
        or `marginal` (how much the record gets worse with one more person; usually less than half the total cost).
    max_members
        With nu-k-pick: the most other people that a record may hold, at least k-1. By default there is no limit for
        `cost`, and 2(k-1) for `marginal`.

    Guarantee: as claimed. Records do not depend on threads, labels or the order of the input. `cover(k)` is weaker than
    it sounds: an adversary who knows a whole trajectory can often tell which of the k records is the person's own.

    Cost: O(users²) proxy distances and about users·candidates k-merges. Memory: about 110 bytes for each of these
    merges.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> KScale(k=3).anonymize(people)
    Release(50 records, ... boxes, k-scale, claim cover(3))
    """

    name: ClassVar[str] = "k-scale"
    about: ClassVar[str] = (
        "Merge each person into the records of k-1 others, as k-scale does, so that each is inside k records."
    )
    citation: ClassVar[str] = "k-scale, Sec. III and Alg. 1 (docs/papers/k-scale.md)"
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        **{word: {"constraint": word} for word in ("nu-k-pick", "k-pick", "full")},
        "marginal": {"picking": "marginal"},
    }
    less_memory: ClassVar[str] = "use fewer `candidates`, a shorter `period` or a smaller `bbox`"

    constraint: Constraint = setting(
        "nu-k-pick", help="Who may be merged with whom: nu-k-pick, k-pick or full.", public="constraint"
    )
    candidates: int | None = setting(
        None, help="How many nearest people are considered as partners; by default 100·k.", public="candidates", ge=1
    )
    picking: Picking = setting(
        "cost",
        help="How people choose records: cost as in the paper, or marginal for less loss.",
        public="picking",
        quiet=True,
    )
    max_members: int | None = setting(
        None, help="The most people that a record may hold besides its owner.", public="max_members", ge=1
    )

    @model_validator(mode="after")
    def _go_together(self) -> KScale:
        refined = self.picking != "cost" or self.max_members is not None
        if refined and self.constraint != "nu-k-pick":
            raise ValueError("picking and max_members go with the constraint nu-k-pick only")
        if self.max_members is not None and self.max_members < self.k - 1:
            raise ValueError("max_members must be k-1 or more: everyone is put into k-1 records")
        return self

    def make(self, people: Trajectories, *, run: Run) -> Release:
        """Return one record per user; see the class for what it guarantees."""
        plan = self._plan(people, run)
        objective: Objective = "members" if self.constraint == "full" else "owner"
        merged, boxes = merge_all(people, plan.offsets, plan.members, objective, run=run)
        box_offsets, rows = take_lists(merged, plan.record_of)
        member_offsets, members = take_lists(plan.offsets, plan.record_of)
        return Release(
            offsets=box_offsets,
            layout=Boxes(boxes[rows]),
            frame=people.frame,
            method=self.name,
            parameters=self.parameters,
            claim=self.claim,
            samples=people.samples,
            members=Members(np.arange(len(people)), member_offsets, plan.members[members], people),
        )

    @property
    def claim(self) -> Claim:
        """What its releases promise."""
        return Claim("k-anonymity" if self.constraint == "full" else "cover", k=self.k)

    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:
        """Return the estimated time and memory: the proxy is quadratic, the pair costs linear in users·K·samples."""
        pairs = len(people) * min(self._candidates(), len(people) - 1)
        nanoseconds = _PROXY_NS * len(people) ** 2 + _MERGE_NS * 2 * pairs * people.counts.mean()
        if self.picking == "marginal":
            nanoseconds += _MARGINAL_NS * self.k**2 * people.samples
        memory = _PAIR_BYTES * pairs + _SAMPLE_BYTES * people.samples * self.k
        return Estimate(int(memory), nanoseconds / 1e9 / run.workers)

    def _candidates(self) -> int:
        return max(self.k - 1, self.candidates if self.candidates is not None else 100 * self.k)

    def _most_members(self) -> int | None:
        if self.max_members is None and self.picking == "marginal":
            return 2 * (self.k - 1)
        return self.max_members

    def effective(self, name: str) -> Any:
        """Return the value of a setting in effect, such as the default number of candidates and members."""
        derived = {"candidates": self._candidates, "max_members": self._most_members}
        return derived[name]() if name in derived else super().effective(name)

    def _plan(self, people: Trajectories, run: Run) -> Plan:
        """Choose who is merged with whom; k-pick widens the candidates until an assignment exists."""
        squares = signatures(people)
        wanted, costs = self._candidates(), None
        while True:
            first, second = proxy_candidates(squares, wanted, run=run)
            costs = pair_costs(people, first, second, known=costs, run=run)
            plan = self._constrained(people, costs, run)
            if plan is not None:
                return plan
            wanted *= 2

    def _constrained(self, people: Trajectories, costs: PairCosts, run: Run) -> Plan | None:
        if self.constraint == "full":
            return clusters(costs, self.k)
        if self.constraint == "k-pick":
            return k_pick(costs, self.k)
        most = self._most_members()
        if self.picking == "cost" or most is None:
            return nu_k_pick(costs, self.k, most)
        return marginal_pick(people, costs, self.k, most, run=run)
