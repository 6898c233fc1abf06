"""Intervals: the confidence interval of a share that was counted on a sample."""

from __future__ import annotations

import math

from shoal.errors import SettingsError

__all__ = ["Z95", "wilson"]

Z95 = 1.959963984540054  # the normal quantile of 97.5 %


def wilson(successes: float, trials: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of a share (Wilson 1927); (0, 1) where nothing was tried.

    Unlike the textbook interval it is sound for few trials and for shares near 0 and 1, and lies within [0, 1].
    Successes may be parts of one, such as 1/3 for a guess among three.

    >>> low, high = wilson(1000, 1000)
    >>> round(low, 3), high
    (0.996, 1.0)
    """
    if not 0 <= successes <= trials:
        raise SettingsError("successes must lie between 0 and the number of trials")
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, Z95**2
    middle = share + z2 / (2 * trials)
    half = Z95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    low, high = (middle - half) / (1 + z2 / trials), (middle + half) / (1 + z2 / trials)
    # At the ends the exact bounds are 0 and 1; rounding must not move them.
    return (0.0 if successes == 0 else low), (1.0 if successes == trials else high)
