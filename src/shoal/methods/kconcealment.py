"""k-concealment: everyone is in exactly k records of exactly k people, and the owners are drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.claim import Claim
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import samples_of
from shoal.kernels.weighted import grown_costs
from shoal.layouts import Boxes
from shoal.lists import even_ranges
from shoal.methods.protocol import CrowdMethod, Estimate
from shoal.methods.records import merge_all
from shoal.methods.registry import register
from shoal.release import Members, Release
from shoal.run import LOCAL, Run
from shoal.search import pair_costs, proxy_candidates, signatures
from shoal.search.constraints import regular_lists
from shoal.settings import setting

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["KConcealment"]

# Measured on one core: a proxy distance, a sample in a pair cost, all rounds for a sample and k²; bytes at the peak.
_PROXY_NS, _MERGE_NS, _ROUNDS_NS = 3.0, 30.0, 1500.0
_PAIR_BYTES, _SAMPLE_BYTES = 110, 60
_SAMPLES_PER_RANGE = 300_000


@register
class KConcealment(CrowdMethod):
    """Put everyone into exactly k records of exactly k people each, and draw the owners at random.

    Parameters
    ----------
    k
        How many people are in every record, and how many records everyone is in.
    candidates
        The number of nearest people, by k-scale's proxy, whose exact cost is computed; by default 100·k.

    The k-1 others of everyone are found by k-1 rounds of minimum-cost assignment. The first round uses the cost of the
    pair for both people. The later rounds use the cost of the whole record. Boxes treat all members alike (`members`
    objective), so they reveal nothing about the owner. The writer draws the owners at random (see
    `shoal.publishing.owners`).

    Guarantee: `k-concealment(k)`. Each of a person's k records is their own with probability exactly 1/k. Records do
    not depend on threads, labels, the order of the input or a seed.

    Not guaranteed: somebody who intersects a person's k records learns more about their movements than from one record.

    Cost: O(users²) proxy distances, about users·candidates k-merges of pairs and 40·k·users merges of up to k people.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> KConcealment(k=3).anonymize(people)
    Release(50 records, ... boxes, k-concealment, claim k-concealment(3))
    """

    name: ClassVar[str] = "k-concealment"
    about: ClassVar[str] = (
        "Put everyone into exactly k records of k people each, and draw the owners of the records at random."
    )
    citation: ClassVar[str] = "this project (docs/methods/k-concealment.md)"
    less_memory: ClassVar[str] = "use fewer `candidates`, a shorter `period` or a smaller `bbox`"

    candidates: int | None = setting(
        None, help="How many nearest people are considered as partners; by default 100·k.", public="candidates", ge=1
    )

    def make(self, people: Trajectories, *, run: Run) -> Release:
        """Return one record per user, the owners still to be drawn; see the class for what it guarantees."""
        matchings = self._matchings(people, run)
        members = np.sort(matchings, axis=1).ravel()  # a record depends on who is in it, not on who comes first
        offsets = np.arange(0, len(members) + 1, self.k)
        box_offsets, boxes = merge_all(people, offsets, members, "members", run=run)
        return Release(
            offsets=box_offsets,
            layout=Boxes(boxes),
            frame=people.frame,
            method=self.name,
            parameters=self.parameters,
            claim=self.claim,
            samples=people.samples,
            members=Members(np.arange(len(people)), offsets, matchings.ravel(), people, matchings),
        )

    @property
    def claim(self) -> Claim:
        """What its releases promise."""
        return Claim("k-concealment", k=self.k)

    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:
        """Return the estimated time and memory of `anonymize`: the proxy is quadratic, the rest linear in users."""
        pairs = len(people) * min(self._candidates(), len(people) - 1)
        nanoseconds = _PROXY_NS * len(people) ** 2 + _MERGE_NS * 2 * pairs * people.counts.mean()
        nanoseconds += _ROUNDS_NS * self.k**2 * people.samples
        memory = _PAIR_BYTES * pairs + _SAMPLE_BYTES * people.samples * self.k
        return Estimate(int(memory), nanoseconds / 1e9 / run.workers)

    def effective(self, name: str) -> Any:
        """Return the value of a setting in effect, such as the default number of candidates."""
        return self._candidates() if name == "candidates" else super().effective(name)

    def _candidates(self) -> int:
        return max(self.k - 1, self.candidates if self.candidates is not None else 100 * self.k)

    def _matchings(self, people: Trajectories, run: Run) -> NDArray[np.int64]:
        """Return k disjoint perfect matchings of records and users; the candidates are widened until they exist."""
        squares = signatures(people)
        wanted, costs = self._candidates(), None

        def price(lists: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
            return _grown(people, lists, rows, columns, run)

        while True:
            first, second = proxy_candidates(squares, wanted, run=run)
            costs = pair_costs(people, first, second, known=costs, run=run)
            both = costs.own + costs.others
            matchings = regular_lists(costs, self.k, both, both, price)
            if matchings is not None:
                return matchings
            wanted *= 2


def _grown(
    people: Trajectories, lists: NDArray[np.int64], rows: NDArray[np.int64], columns: NDArray[np.int64], run: Run
) -> NDArray[np.float64]:
    """Return what each record rows[p] would cost all its members if it also took columns[p]."""
    costs = np.empty(len(rows))

    def fill(start: int, stop: int) -> None:
        part = slice(start, stop)
        grown_costs(samples_of(people), lists, rows[part], columns[part], PAPERS, costs[part])

    weights = people.counts[lists].sum(axis=1)[rows] + people.counts[columns]
    with run.stage("records", len(rows)) as advance:
        run.ranges(fill, even_ranges(weights, _SAMPLES_PER_RANGE), advance=advance)
    return costs
