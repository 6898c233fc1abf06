"""How uneven a person's sample efforts are: Gini coefficient and tail weight (the k-gap paper, Eq. 6-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.kernels.kgap import longer, rows_of
from shoal.kernels.stretch import nearest_parts

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints
    from shoal.kernels.samples import Samples
    from shoal.kernels.stretch import Scale

__all__ = ["NORMAL_TAIL", "Unevenness", "gini_of_sorted", "tail_of_sorted", "uneven_parts"]

NORMAL_TAIL = 2.3263478740408408 / 0.6744897501960817  # (Φ⁻¹(.99)-Φ⁻¹(.5)) / (Φ⁻¹(.75)-Φ⁻¹(.5))


class Unevenness(NamedTuple):
    """How sample efforts are spread, a row for each user: columns are the whole effort, its space and its time."""

    gini: Floats
    tail: Floats
    sums: Floats


@jit
def gini_of_sorted(values: Floats) -> float:
    """Return the Gini coefficient of ascending values, none negative; 0 if all are 0.

    G = 2·Σ i·s_(i) / (N·Σ s) - (N+1)/N. Eq. 6 of the k-gap paper is misprinted.
    """
    n = len(values)
    total = 0.0
    weighted = 0.0
    for i in range(n):
        total += values[i]
        weighted += (i + 1) * values[i]
    if total == 0.0:
        return 0.0
    return 2.0 * weighted / (n * total) - (n + 1) / n


@jit
def _quantile(values: Floats, percent: int) -> float:
    """Return a percentile: the least value that at least this share of values do not exceed (inverse empirical CDF)."""
    at = (percent * len(values) + 99) // 100 - 1
    return float(values[at])


@jit
def tail_of_sorted(values: Floats) -> float:
    """Return the tail weight index of ascending values (k-gap, Eq. 7); NaN if a quarter of them equals the median."""
    middle = _quantile(values, 50)
    upper = _quantile(values, 75) - middle
    if upper == 0.0:
        return np.nan
    return (_quantile(values, 99) - middle) / upper / NORMAL_TAIL


@jit
def uneven_parts(samples: Samples, scale: Scale, users: Ints, near: Ints, spread: Unevenness) -> None:
    """Fill the Gini coefficient, the tail weight and the sum of users' sample efforts, of their space and their time.

    The efforts are those between a user and each of those near them, sample by sample of the longer.
    """
    offsets = samples.offsets
    parts = np.empty((3, 0), np.int64)
    whole = float(scale.space_cap + scale.time_cap)
    for q in range(len(users)):
        n = 0
        for v in near[q]:
            a, _ = longer(offsets, users[q], v)
            n += offsets[a + 1] - offsets[a]
        if n > parts.shape[1]:
            parts = np.empty((3, 2 * n), np.int64)
        n = 0
        for v in near[q]:
            a, b = longer(offsets, users[q], v)
            nearest_parts(samples, rows_of(samples, a), rows_of(samples, b), scale, parts[1, n:], parts[2, n:])
            n += offsets[a + 1] - offsets[a]
        for p in range(n):
            parts[0, p] = parts[1, p] + parts[2, p]
        for kind in range(3):
            values = np.sort(parts[kind, :n]) / whole
            spread.gini[q, kind] = gini_of_sorted(values)
            spread.tail[q, kind] = tail_of_sorted(values)
            spread.sums[q, kind] = values.sum()
