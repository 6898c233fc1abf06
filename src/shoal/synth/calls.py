"""Calls: what a mobile network records of people, one row per call or message, at the position of a tower."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from shoal.kernels.synth import CallHabits, Period, calls_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.synth.places import TowerMap

    Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]

__all__ = ["calls_block"]

RATE_SIGMA = 0.7  # of the log-normal number of samples per user

# Relative activity by hour of the day: quiet nights, peaks before noon and in the early evening.
_WEEKDAY = (12, 7, 4, 3, 3, 6, 17, 37, 62, 82, 95, 100, 92, 80, 76, 78, 84, 92, 102, 112, 106, 84, 52, 26)
_WEEKEND = (17, 10, 6, 4, 3, 5, 11, 24, 45, 68, 86, 95, 92, 84, 80, 80, 84, 91, 100, 108, 102, 84, 56, 31)


def calls_block(towers: TowerMap, *, seed: int, days: int, weekday: int, samples: float) -> Callable[[int, int], Rows]:
    """Return the function that makes the calls of users first…last-1: (count per user, second, lat, lng)."""
    least, most = max(1.0, min(float(days), samples / 2.0)), min(12.0 * samples, days * 8_640.0)
    rates = np.array([_log_mean(samples, least, most), RATE_SIGMA, least, most])
    clock = np.cumsum(np.array([_WEEKDAY, _WEEKEND], dtype=np.float64), axis=1)
    period, habits = Period(days, weekday), CallHabits(rates, clock)

    def block(first: int, last: int) -> Rows:
        counts, second, place = calls_of(towers.land, seed, first, last, period, habits)
        return counts, second.astype(np.int64), towers.lat[place], towers.lng[place]

    return block


def _log_mean(mean: float, least: float, most: float) -> float:
    """Find mu such that a log-normal number held within [least, most] has this mean, by bisection."""
    low, high = math.log(least) - 3.0, math.log(most) + 3.0
    for _ in range(60):
        mu = (low + high) / 2.0
        a, b = (math.log(least) - mu) / RATE_SIGMA, (math.log(most) - mu) / RATE_SIGMA
        inside = math.exp(mu + RATE_SIGMA**2 / 2.0) * (ndtr(b - RATE_SIGMA) - ndtr(a - RATE_SIGMA))
        if least * ndtr(a) + inside + most * ndtr(-b) < mean:
            low = mu
        else:
            high = mu
    return (low + high) / 2.0
