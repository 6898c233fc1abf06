"""Points: what point methods publish, traces of places and times instead of boxes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.release import Tabular

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.release import Claim, Members
    from shoal.traces import Traces

__all__ = ["DECIMALS", "PointRelease"]

DECIMALS = 7  # of published degrees: a centimetre; what lies beyond could only carry something that nobody looks for


@dataclass(frozen=True, eq=False, repr=False)
class PointRelease(Tabular):
    """A set of records, each a time-ordered sequence of points.

    Record r is `ms` (UTC milliseconds), `lng`, `lat` (WGS84 degrees, at most seven decimals) from `offsets[r]` to
    `offsets[r+1]`. `frame` is the grid that the data were read with: the points are not on it, but can be compared on
    it with boxes. `parameters` are the public ones. `suppressed` counts the original fixes of traces that are not
    published, `created` the points that are no fix of anybody; `discarded` the traces that are not published.
    `seeded` says that noise came from a seed. `members` is there only between a method and the writer.
    """

    offsets: NDArray[np.int64]
    ms: NDArray[np.int64]
    lng: NDArray[np.float64]
    lat: NDArray[np.float64]
    frame: Frame
    method: str
    parameters: dict[str, Any]
    claim: Claim
    suppressed: int = 0
    created: int = 0
    discarded: int = 0
    seeded: bool = False
    members: Members[Traces] | None = field(default=None)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"PointRelease({len(self):,} records, {self.samples:,} points, {self.method}, claim {self.claim})"

    @property
    def samples(self) -> int:
        """How many points there are in all."""
        return len(self.ms)

    @property
    def period_s(self) -> tuple[int, int]:
        """The first and the last second of UTC that a record speaks of."""
        return int(self.ms.min()) // 1000, int(self.ms.max()) // 1000

    @property
    def nbytes(self) -> int:
        """How much memory the records take."""
        return self.ms.nbytes + self.lng.nbytes + self.lat.nbytes

    def to_points(self) -> pd.DataFrame:
        """Return `uid, datetime, lat, lng`, the shape scikit-mobility expects."""
        return self.to_pandas()
