"""Measure how precise a release is for the people in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import SettingsError
from shoal.kernels.held import held_samples
from shoal.kernels.samples import samples_of
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release import Members, Release

__all__ = ["Precision", "precision", "samples_in_boxes"]


@dataclass(frozen=True, kw_only=True)
class Precision:
    """The precision of people's samples: each sample is as precise as the box of the own record that holds it.

    `owner_cost` is the mean over people of k-scale, Eq. 4, in slots × cells. A span is (Δx+Δy)/2; means and medians are
    over samples. `suppressed` is the share of the samples that are in no box. NaN where nothing is published.
    """

    owner_cost: float
    span_km_mean: float
    span_km_median: float
    duration_min_mean: float
    duration_min_median: float
    suppressed: float


def precision(release: Release) -> Precision:
    """Measure a release that a method has just made (one read from a file knows nobody's samples).

    Where the owners are still to be drawn (k-concealment), a person counts with each of their k records alike, which
    is what the draw gives on average. People who are not published count as suppressed. Cost: linear in samples, and
    a sort of the boxes.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> of = precision(shoal.KScale(k=2).anonymize(people))
    >>> of.suppressed, of.span_km_mean >= 0.1
    (0.0, True)
    """
    held, costs = samples_in_boxes(release)
    published = costs[~np.isnan(costs)]
    side_m, duration_s = release.spans()
    return Precision(
        owner_cost=float(published.mean()) if len(published) else np.nan,
        span_km_mean=_mean(side_m, held) / 1000,
        span_km_median=_median(side_m, held) / 1000,
        duration_min_mean=_mean(duration_s, held) / 60,
        duration_min_median=_median(duration_s, held) / 60,
        suppressed=1 - int(held.sum()) / _samples_in_all(release),
    )


def samples_in_boxes(release: Release) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return how many of its owner's samples each box holds, and every owner's cost (k-scale, Eq. 4).

    If owners are still to be drawn: the samples of all who may own the record, and k costs per person. Linear.
    """
    members, people = _members(release)
    owners = members.owners[:, None] if members.matchings is None else members.matchings
    ends = np.arange(len(release) + 1) * owners.shape[1]
    own = np.ascontiguousarray(owners).ravel()
    return held_samples(samples_of(people), ends, own, release.offsets, release.boxes)


def _members(release: Release) -> tuple[Members, Trajectories]:
    """Return the members of the records, and their samples."""
    members = release.members
    if members is None or release.multiplicity is not None or not isinstance(members.people, Trajectories):
        raise SettingsError("only boxes as a method made them can be measured: who is in which record must be known")
    return members, members.people


def _samples_in_all(release: Release) -> int:
    members, people = _members(release)
    return people.samples * (1 if members.matchings is None else members.matchings.shape[1])


def _mean(values: NDArray[np.float64], weights: NDArray[np.int64]) -> float:
    total = int(weights.sum())
    return float(values @ weights) / total if total else np.nan


def _median(values: NDArray[np.float64], weights: NDArray[np.int64]) -> float:
    """Return the weighted median: each value is repeated as often as its weight says."""
    order = np.argsort(values, kind="stable")
    ends = np.cumsum(weights[order])
    total = int(ends[-1]) if len(ends) else 0
    if total == 0:
        return np.nan
    middle = np.searchsorted(ends, [(total - 1) // 2, total // 2], side="right")
    return float(values[order[middle]].mean())
