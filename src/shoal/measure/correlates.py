"""Correlate properties of people's movements with any figure about the people (GLOVE, Sec. 8.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.errors import InputError
from shoal.kernels.movement import count_overlaps, movements
from shoal.kernels.samples import samples_of
from shoal.lists import even_ranges
from shoal.parts import even_parts
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["Properties", "correlations", "properties"]

_SAMPLES_PER_RANGE = 1_000_000
_PAIRS_PER_RANGE = 20_000_000


class Properties(NamedTuple):
    """Properties of each person: radius of gyration, people around, distance travelled, irregularity, samples an hour.

    The radius is the root mean square distance from the mean position. People around are those whose circle of that
    radius meets theirs. Irregularity is the standard deviation of the time from one sample to the next. Samples an hour
    are over the duration of the whole data.
    """

    gyration_km: NDArray[np.float64]
    neighbours: NDArray[np.int64]
    travelled_km: NDArray[np.float64]
    irregularity_min: NDArray[np.float64]
    samples_per_hour: NDArray[np.float64]


def properties(people: Trajectories, users: NDArray[np.int64] | None = None, *, run: Run = LOCAL) -> Properties:
    """Return the properties of people's movements that GLOVE's paper looks at (Sec. 8.2); of some users, or of all.

    Cost: linear in samples, and a nanosecond for each of the users asked for and each person.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=60, days=7, seed=1))
    >>> bool((properties(people).gyration_km >= 0).all())
    True
    """
    users = np.arange(len(people)) if users is None else users
    moved, around = np.empty((len(people), 5)), np.empty(len(users), np.int64)
    samples = samples_of(people)
    run.ranges(
        lambda start, stop: movements(samples, start, stop, moved), even_ranges(people.counts, _SAMPLES_PER_RANGE)
    )
    run.ranges(
        lambda start, stop: count_overlaps(moved, users[start:stop], around[start:stop]),
        even_parts(len(users), max(1, _PAIRS_PER_RANGE // len(people))),
    )
    cell_km, slot_min = people.frame.cell_m / 1000, people.frame.slot_s / 60
    hours = (int(people.t.max()) - int(people.t.min()) + 1) * slot_min / 60
    return Properties(
        gyration_km=moved[users, 2] * cell_km,
        neighbours=around,
        travelled_km=moved[users, 3] * cell_km,
        irregularity_min=moved[users, 4] * slot_min,
        samples_per_hour=people.counts[users] / hours,
    )


def correlations(of: Properties, figures: Any) -> dict[str, dict[str, float | None]]:
    """Correlate each property with a figure about the same people, such as their k-gap or the effort in a group.

    Output: for each property Pearson's coefficient, as in the paper, and Spearman's, which is robust to a few
    people who travel very far. None where one of the two does not vary.

    >>> import numpy as np
    >>> one = np.array([1.0, 2.0, 3.0, 10.0])
    >>> found = correlations(Properties(one, one, one**2, -one, 0 * one), one)
    >>> found["gyration_km"]["pearson"], found["travelled_km"]["spearman"], found["samples_per_hour"]["pearson"]
    (1.0, 1.0, None)
    """
    values = np.asarray(figures, np.float64)
    if values.shape != of.neighbours.shape or len(values) < 2 or not np.isfinite(values).all():
        raise InputError("give one finite figure for each of the people, and at least two people")
    return {
        name: {"pearson": _pearson(column, values), "spearman": _pearson(_ranks(column), _ranks(values))}
        for name, column in of._asdict().items()
    }


def _pearson(a: NDArray[Any], b: NDArray[np.float64]) -> float | None:
    first, second = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return round(float(first @ second) / spread, 12) if spread > 0 else None


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return ranks; equal values share the mean of their ranks."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[which]
    return ranks
