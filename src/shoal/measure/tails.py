"""Analyse why people are hard to hide: space or time, all samples or a few (k-gap, Sec. 4.3; GLOVE, Sec. 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InputError, SettingsError
from shoal.kernels.samples import samples_of
from shoal.kernels.tails import Unevenness, gini_of_sorted, uneven_parts
from shoal.lists import even_ranges
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.measure.kgap import Gaps

__all__ = ["EXPONENTIAL", "KINDS", "Tails", "gini", "tails"]

KINDS = ("effort", "space", "time")
EXPONENTIAL = 1.6364  # the tail weight of an exponential distribution: heavier tails are called heavy
_SAMPLES_PER_RANGE = 200_000


@dataclass(frozen=True, eq=False, kw_only=True)
class Tails:
    """For each of `users`, how the efforts of single samples towards the k-1 nearest are spread; see KINDS for columns.

    `gini`: from 0 (all samples are equally hard to hide) to 1 (a single one is). `tail`: the tail weight index, 1 for a
    normal distribution, 1.64 for an exponential; NaN where a quarter of the values equals the median. `ratio`: the
    efforts in time over those in space; inf where space costs nothing, NaN where neither does.
    """

    k: int
    users: NDArray[np.int64]
    gini: NDArray[np.float64]
    tail: NDArray[np.float64]
    ratio: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Return figures about all users: medians, and shares of those who have the figure."""
        known = ~np.isnan(self.tail)
        compared = self.ratio[~np.isnan(self.ratio)]
        return {
            "k": self.k,
            "people": len(self.users),
            "gini_median": dict(zip(KINDS, np.median(self.gini, axis=0).tolist(), strict=True)),
            "tail_median": {kind: _median(self.tail[known[:, n], n]) for n, kind in enumerate(KINDS)},
            "tail_heavy": {kind: _share(self.tail[known[:, n], n] > EXPONENTIAL) for n, kind in enumerate(KINDS)},
            "tail_unknown": dict(zip(KINDS, (~known).sum(axis=0).tolist(), strict=True)),
            "time_dominates": _share(compared > 1),
            "time_four_fifths": _share(compared >= 4),
            "time_alone": _share(np.isinf(compared)),
        }


def gini(values: Any) -> float:
    """Return the Gini coefficient of values, none negative (k-gap, Eq. 6, corrected); 0 if all are 0.

    >>> gini([1, 1, 1]), gini([0, 0, 0]), round(gini([0, 0, 3]), 3)
    (0.0, 0.0, 0.667)
    """
    return float(gini_of_sorted(_ascending(values)))


def tails(gaps: Gaps, *, k: int | None = None, run: Run = LOCAL) -> Tails:
    """Measure the efforts of single samples behind k-gaps: their spread, their tails, and the ratio of time to space.

    Input: what `shoal.k_gap` gives; k, one of those it was measured for (the least, unless given). Output: `Tails`.
    Cost: the efforts between everybody and their k-1 nearest once more, and sorting them.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=60, days=7, seed=1))
    >>> found = tails(shoal.k_gap(people, 2))
    >>> found.gini.shape, 0 < found.to_dict()["gini_median"]["time"] < 1
    ((60, 3), True)
    """
    k = min(gaps.k) if k is None else k
    if k not in gaps.k:
        raise SettingsError("k must be one of those that were measured")
    people, users, near = gaps.people, gaps.users, np.ascontiguousarray(gaps.near[:, : k - 1])
    spread, tail, sums = (np.empty((len(users), 3)) for _ in range(3))
    samples, scale = samples_of(people), gaps.stretch.scale(people.frame)

    def fill(start: int, stop: int) -> None:
        part = slice(start, stop)
        uneven_parts(samples, scale, users[part], near[part], Unevenness(spread[part], tail[part], sums[part]))

    with run.stage("tails", len(users)) as advance:
        together = people.counts[users] + people.counts[near].sum(axis=1)
        run.ranges(fill, even_ranges(together, _SAMPLES_PER_RANGE), advance=advance)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = sums[:, 2] / sums[:, 1]
    return Tails(k=k, users=users, gini=spread, tail=tail, ratio=ratio)


def _ascending(values: Any) -> NDArray[np.float64]:
    array = np.sort(np.asarray(values, np.float64).ravel())
    if len(array) == 0 or not np.isfinite(array).all() or array[0] < 0:
        raise InputError("values must be finite, not negative, and at least one")
    return array


def _median(values: NDArray[np.float64]) -> float | None:
    return float(np.median(values)) if len(values) else None


def _share(values: NDArray[np.bool_]) -> float | None:
    return float(values.mean()) if len(values) else None
