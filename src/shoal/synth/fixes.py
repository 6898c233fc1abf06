"""Fixes: what a satellite receiver records of people, dense on the way and sparse at stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.frame import transformer
from shoal.kernels.synth import Period, fixes_of
from shoal.synth.places import CRS

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.synth.calls import Rows
    from shoal.synth.places import TowerMap

__all__ = ["fixes_block"]


def fixes_block(towers: TowerMap, *, seed: int, days: int, weekday: int, interval_s: int) -> Callable[[int, int], Rows]:
    """Return the function that makes the fixes of users first…last-1: (count per user, second, lat, lng)."""
    period = Period(days, weekday)

    def block(first: int, last: int) -> Rows:
        counts, rows = fixes_of(towers.land, seed, first, last, period, float(interval_s))
        lng, lat = transformer(CRS).transform(rows[:, 1].copy(), rows[:, 2].copy(), direction="INVERSE")
        return counts, rows[:, 0].astype(np.int64), lat, lng

    return block
