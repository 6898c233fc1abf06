"""Fixes: what a satellite receiver records of people, dense on the way and sparse at stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.frame import transformer
from shoal.kernels.synth import fixes_of
from shoal.synth.places import CRS

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.synth.calls import Rows
    from shoal.synth.places import Places

__all__ = ["fixes_block"]


def fixes_block(places: Places, *, seed: int, days: int, weekday: int, interval_s: int) -> Callable[[int, int], Rows]:
    """Return the function that makes the fixes of users first…last-1: (count per user, second, lat, lng)."""

    def block(first: int, last: int) -> Rows:
        counts, rows = fixes_of(places.land, seed, first, last, days, weekday, float(interval_s))
        lng, lat = transformer(CRS).transform(rows[:, 1].copy(), rows[:, 2].copy(), direction="INVERSE")
        return counts, rows[:, 0].astype(np.int64), lat, lng

    return block
