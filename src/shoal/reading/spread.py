"""Spread: over which degrees and days the rows are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.reading.times import LAST_MS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.reading.events import Events
    from shoal.reading.rules import Rows

__all__ = ["Spread", "spread_of"]

_DAY_MS = 86_400_000
_DAYS = LAST_MS // _DAY_MS


class Spread:
    """How many rows there are on each day since 1970, and at each whole degree.

    `places` is (181, 361), by rounded latitude from -90 and longitude from -180; None if places are not in degrees.
    """

    def __init__(self, *, degrees: bool = True) -> None:
        self.first_ms, self.last_ms = 2**63 - 1, -(2**63)
        self.days = np.zeros(_DAYS, np.int64)
        self.places: NDArray[np.int64] | None = np.zeros((181, 361), np.int64) if degrees else None

    def add(self, rows: Rows) -> None:
        """Add the times and places of some rows. The verifier uses this too, so it needs no kernel."""
        if len(rows.ms) == 0:
            return
        self.first_ms = min(self.first_ms, int(rows.ms.min()))
        self.last_ms = max(self.last_ms, int(rows.ms.max()))
        days = np.bincount(rows.ms // _DAY_MS)
        self.days[: len(days)] += days
        if self.places is not None:
            places = (np.rint(rows.b).astype(np.int64) + 90) * 361 + np.rint(rows.a).astype(np.int64) + 180
            self.places += np.bincount(places, minlength=self.places.size).reshape(self.places.shape)


def spread_of(events: Events) -> Spread:
    """Return the spread of events in memory; linear, 4 ns each."""
    from shoal.kernels.grid import day_counts, place_counts

    spread = Spread(degrees=False)
    spread.first_ms, spread.last_ms = int(events.epoch_ms.min()), int(events.epoch_ms.max())
    spread.days = day_counts(events.epoch_ms, _DAYS)
    if events.lng is not None and events.lat is not None:
        spread.places = place_counts(events.lng, events.lat)
    return spread
