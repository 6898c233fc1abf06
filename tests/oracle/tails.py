"""Spread and tails by their definitions (k-gap, Eq. 6 corrected, and Eq. 7)."""

import math
from fractions import Fraction
from statistics import NormalDist


def gini(values):
    """Half the mean difference of any two values, over the mean: what the standard formula computes."""
    if sum(values) == 0:
        return 0.0
    n = len(values)
    difference = sum(abs(a - b) for a in values for b in values) / n**2
    return difference / (2 * sum(values) / n)


def quantile(values, percent):
    """The least value x with F(x) ≥ percent / 100."""
    return min(x for x in values if Fraction(sum(v <= x for v in values), len(values)) >= Fraction(percent, 100))


def tail_weight(values):
    upper = quantile(values, 75) - quantile(values, 50)
    if upper == 0:
        return math.nan
    phi = NormalDist().inv_cdf
    normal = (phi(0.99) - phi(0.5)) / (phi(0.75) - phi(0.5))
    return (quantile(values, 99) - quantile(values, 50)) / upper / normal
