"""Summarize the data in rough figures that single out nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, to_arrow_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["summary"]


def _local_days(seconds: NDArray[np.int64], tz: str) -> tuple[int, int]:
    """Return the local days, since 1970, of the first and the last second."""
    instants: Any = to_arrow_array(seconds * 1000).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("ms", tz))
    first, last = (from_arrow_array(pc.local_timestamp(instants).cast(pa.int64())) // 86_400_000).tolist()
    return first, last


def summary(people: Trajectories) -> dict[str, Any]:
    """Return users, samples, sampling, period (whole local days) and area (whole kilometres, tenths of a degree).

    >>> import shoal
    >>> figures = summary(shoal.from_arrow(shoal.synthesize(users=20, days=2, seed=1)))
    >>> figures["users"], figures["days"]
    (20, 2)
    """
    frame = people.frame
    seconds = frame.epoch_s(np.array([people.t.min(), people.t.max()]))
    first_day, last_day = _local_days(seconds, frame.tz)
    half = frame.cell_m / 2
    west, east = people.x.min() * frame.cell_m + half, people.x.max() * frame.cell_m + half
    south, north = people.y.min() * frame.cell_m + half, people.y.max() * frame.cell_m + half
    days = last_day - first_day + 1
    figures: dict[str, Any] = {
        "users": len(people),
        "samples": people.samples,
        "samples per user, median": int(np.median(people.counts)),
        "samples per user and day, mean": round(people.samples / len(people) / days, 1),
        "users with one sample": int((people.counts == 1).sum()),
        "first day": str(np.datetime64(first_day, "D")),
        "days": days,
        "width": f"{(east - west) / 1000:.0f} km",
        "height": f"{(north - south) / 1000:.0f} km",
        "grid": f"{frame.cell_m} m, {frame.slot_s} s",
    }
    if frame.crs is not None:
        lng, lat = frame.degrees(np.array([west, east]), np.array([south, north]))
        figures["around"] = f"{lat.mean():.1f}°, {lng.mean():.1f}°"
        figures["crs"] = frame.crs
    return figures
