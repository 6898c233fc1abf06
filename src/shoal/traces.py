"""Traces: everybody's fixes as columns, with the real places and times that point methods need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrow import to_arrow_array
from shoal.memory import held_bytes
from shoal.notebook import Displayed

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.reading.account import Account

__all__ = ["Traces"]


@dataclass(frozen=True, eq=False, repr=False)
class Traces(Displayed):
    """The fixes of all people, trace after trace, with exact places and times.

    Make one with `shoal.read_traces`.

    `offsets` (int64, T+1) says where each trace starts in `ms` (UTC milliseconds), `lng`, `lat` (WGS84 degrees). The
    fixes of a trace are distinct and sorted by (ms, lng, lat). A person has one trace, or several if long gaps split
    it. `users[t]` is the index of trace t's person in `labels`, the original identifiers, which are private. Traces are
    sorted by person, then by time. `frame` is a grid on which points can be compared with boxes; the fixes are not on
    it.
    """

    offsets: NDArray[np.int64]
    ms: NDArray[np.int64]
    lng: NDArray[np.float64]
    lat: NDArray[np.float64]
    users: NDArray[np.int64]
    labels: pa.Array
    frame: Frame
    account: Account | None = field(default=None)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Traces({len(self.labels):,} users, {len(self):,} traces, {self.fixes:,} fixes)"

    def summary(self) -> list[tuple[str, Any]]:
        """Return how many people, traces and fixes there are."""
        return [("users", len(self.labels)), ("traces", len(self)), ("fixes", self.fixes)]

    @property
    def fixes(self) -> int:
        """How many fixes there are in all."""
        return len(self.ms)

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the fixes and labels take; fixes in mapped files take none."""
        return held_bytes(*self.arrays) + int(self.labels.nbytes)

    @property
    def seconds(self) -> tuple[int, int]:
        """The first and the last second."""
        return (int(self.ms.min()) // 1000, int(self.ms.max()) // 1000) if len(self.ms) else (0, 0)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many fixes each trace has."""
        return np.diff(self.offsets)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Everything that is known of people besides their labels."""
        return self.offsets, self.ms, self.lng, self.lat, self.users

    def first(self, n: int) -> Traces:
        """Return the first n traces, or all if there are fewer."""
        offsets = self.offsets[: n + 1]
        end, users = int(offsets[-1]), self.users[:n]
        columns = (self.ms[:end], self.lng[:end], self.lat[:end])
        return Traces(offsets, *columns, users, self.labels[: int(users[-1]) + 1], self.frame)

    def to_pandas(self) -> pd.DataFrame:
        """Return a frame `uid, datetime, lat, lng, trace`; the labels are the original ones, so it is private."""
        import pandas as pd

        trace = np.repeat(np.arange(len(self)), self.counts)
        return pd.DataFrame(
            {
                "uid": self.labels.take(to_arrow_array(self.users[trace])).to_pandas(),
                "datetime": pd.to_datetime(self.ms, unit="ms", utc=True),
                "lat": self.lat,
                "lng": self.lng,
                "trace": trace,
            }
        )
