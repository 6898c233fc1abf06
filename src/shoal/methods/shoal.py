"""`shoal`, our own method: identical records in disjoint groups of at least k, precise and for data of any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import model_validator

from shoal.claim import Claim
from shoal.kernels.price import PriceName  # noqa: TC001  pydantic needs it
from shoal.methods.protocol import CrowdMethod, Estimate
from shoal.methods.records import group_release, merge_all
from shoal.methods.registry import register
from shoal.run import LOCAL, Run
from shoal.search.partition import EFFORTS, partition
from shoal.search.prices import price_for
from shoal.settings import setting
from shoal.units import Metres, Seconds, Worth  # noqa: TC001  pydantic needs them

if TYPE_CHECKING:
    from shoal.release import Release
    from shoal.trajectories import Trajectories

__all__ = ["Shoal"]

# Measured on one core: a sketch distance, a sample of a candidate pair, a sample of a user looked at for exchanges
# (which grows with k). In memory: a sample with the boxes it ends up in, a partner, a part under way.
_SKETCH_NS, _PAIR_NS, _GROUP_NS = 10.0, 70.0, 90.0
_SAMPLE_BYTES, _PARTNER_BYTES, _PART_BYTES = 48, 12, 200_000_000


@register
class Shoal(CrowdMethod):
    """Hide everyone in a group of k to 2k-1 people who are all published as the same record.

    Parameters
    ----------
    k
        The least number of people in a group.
    effort
        How long to search for better groups: `quick`, `normal` or `thorough`.
    price, worth
        What the search and the merges save: `product`, duration × side as in the papers; `sum`, Δs/s₀ + Δt/t₀; `roots`,
        √(Δs/s₀) + √(Δt/t₀), where Δs is the mean side of a box and Δt its duration. `worth="1km=30min"` sets s₀ and t₀;
        by default they are the usual side and duration of boxes of k people in this data.
    max_span, max_duration
        Leave out boxes that are wider, higher or longer than this, for the whole group; by default nothing is left out.
        A number is metres or seconds; text has a unit: `"15km"`, `"6h"`.

    Guarantee: `k-anonymity(k)`. Whatever is known about a person, at least k people's records are the same as theirs.
    Groups do not depend on threads, memory, labels or the order of the input.

    Not guaranteed: that no better groups exist.

    Cost: time is linear in the number of people. A million people with 144 samples each take minutes on two cores
    (docs/benchmarks.md). Memory: the samples, about 500 bytes a person, and the boxes.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> Shoal(k=3).anonymize(people)
    Release(50 records, ... boxes, shoal, claim k-anonymity(3))
    """

    name: ClassVar[str] = "shoal"
    about: ClassVar[str] = "Publish each group of k to 2k-1 people who move alike as identical records."
    citation: ClassVar[str] = "this project (docs/methods/shoal.md)"
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        **{word: {"effort": word} for word in ("quick", "normal", "thorough")},
        **{word: {"price": word} for word in ("sum", "roots")},
    }
    resumable: ClassVar[bool] = True

    effort: Literal["quick", "normal", "thorough"] = setting(
        "normal", help="How long to search for better groups: quick, normal or thorough."
    )
    price: PriceName = setting(
        "product", help="What a box costs: product as in the papers, or sum or roots of its side and its duration."
    )
    worth: Worth | None = setting(
        None, help="With the price sum or roots: what a side is worth in time, e.g. 1km=30min."
    )
    max_span: Metres | None = setting(
        None, unit="m", help="Leave out boxes that are wider or higher than this, e.g. 15km.", public="max_span_m", gt=0
    )
    max_duration: Seconds | None = setting(
        None, unit="s", help="Leave out boxes that last longer than this, e.g. 6h.", public="max_duration_s", gt=0
    )

    @model_validator(mode="after")
    def _go_together(self) -> Shoal:
        if self.worth is not None and self.price == "product":
            raise ValueError("worth goes with the price sum or roots: the product weighs nothing against time")
        return self

    def make(self, people: Trajectories, *, run: Run) -> Release:
        """Return one record per user, identical within each group; see the class for what it guarantees."""
        price = price_for(people, self.price, self.worth, self.k, run=run)
        plan = partition(people, self.k, EFFORTS[self.effort], price=price, run=run)
        offsets, boxes = merge_all(people, plan.offsets, plan.members, "members", price=price, run=run)
        return group_release(self, people, plan, offsets, boxes)

    @property
    def claim(self) -> Claim:
        """What its releases promise."""
        return Claim("k-anonymity", k=self.k)

    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:
        """Return the estimated time and memory of `anonymize`: linear in the number of people."""
        effort = EFFORTS[self.effort].more(len(people))
        kept = effort.kept(self.k)
        sketch = _SKETCH_NS * len(people) * min(len(people), 16_384)
        pairs = _PAIR_NS * 2 * kept * people.samples
        groups = _GROUP_NS * self.k**1.5 * effort.rounds * (effort.sweeps + 1) / 2 * effort.around * people.samples
        memory = _SAMPLE_BYTES * people.samples + _PARTNER_BYTES * kept * len(people)
        memory += _PART_BYTES * run.workers
        return Estimate(int(memory), (sketch + pairs + groups) / 1e9 / run.workers)
