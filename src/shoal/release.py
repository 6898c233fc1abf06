"""Release: the published records, what they claim, and (privately) who is in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.errors import SettingsError
from shoal.layouts import Boxes, Points
from shoal.notebook import Displayed

if TYPE_CHECKING:
    from pathlib import Path

    import geopandas as gpd
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.claim import Claim
    from shoal.frame import Frame
    from shoal.layouts import Layout
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories

__all__ = ["Members", "Release"]


@dataclass(frozen=True, eq=False)
class Members:
    """Who is in a record: private, never part of the published file.

    `owners[r]` is the user published as record r, `indices[offsets[r]:offsets[r+1]]` are the users merged into
    it, the owner first. All are indices of the labels of `people`, the original. Where the owners are left to chance,
    the columns of `matchings` (records, k) are k disjoint ways to give everyone one of their records; the writer
    draws one that mixes them. Where users were merged for some time only, `spans` says from which slot of the frame
    up to which (not included), for each of `indices`; the owner's span is not used: the owner is always in the record.
    """

    owners: NDArray[np.int64]
    offsets: NDArray[np.int64]
    indices: NDArray[np.int64]
    people: Trajectories | Traces
    matchings: NDArray[np.int64] | None = None
    spans: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Release(Displayed):
    """A set of records, each a sequence of boxes or points in order of time.

    The rows of record r are those of `layout` (`Boxes` or `Points`) from `offsets[r]` to `offsets[r+1]`. `frame` is the
    grid that the data was read with; points are not on it. `method`, `parameters` and `claim` are written into the
    file.

    `samples` is the number of original samples inside the records (for points: the number of points). `suppressed` is
    the number of samples that were left out, `created` the number of points that are nobody's fix, and `discarded` the
    number of traces that are not published. A release that was read from a file knows these counts to two digits only.
    `seeded` says that noise came from a seed.

    `members` says who is in which record. It exists only between a method and the writer; a release that was read from
    a file has none. `multiplicity`, in compact releases, is the number of users published as each record.
    """

    offsets: NDArray[np.int64]
    layout: Layout
    frame: Frame
    method: str
    parameters: dict[str, Any]
    claim: Claim
    samples: int = 0
    suppressed: int = 0
    created: int = 0
    discarded: int = 0
    seeded: bool = False
    members: Members | None = field(default=None)
    multiplicity: NDArray[np.int32] | None = field(default=None)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        size = f"{len(self):,} records, {len(self.layout):,} {self.layout.name}"
        return f"Release({size}, {self.method}, claim {self.claim})"

    def summary(self) -> list[tuple[str, Any]]:
        """Return the method, the claim and how large the release is."""
        size = [("records", len(self)), (self.layout.name, len(self.layout)), ("samples left out", self.suppressed)]
        return [("method", self.method), ("claim", str(self.claim)), ("promise", self.claim.promise), *size]

    @property
    def boxes(self) -> NDArray[np.int32]:
        """The boxes, (m, 6) granules `t0, t1, x0, x1, y0, y1`, ends included; raises SettingsError for points."""
        if not isinstance(self.layout, Boxes):
            raise SettingsError(f"this release holds {self.layout.name}, not boxes")
        return self.layout.edges

    @property
    def points(self) -> Points:
        """The points, with `ms`, `lng` and `lat`; raises SettingsError for boxes (see `to_points`)."""
        if not isinstance(self.layout, Points):
            raise SettingsError(
                f"this release holds {self.layout.name}, not points; to_points() makes a table of middles"
            )
        return self.layout

    def record(self, index: int) -> NDArray[np.int32]:
        """Return the boxes of one record as an (m, 6) array."""
        return self.boxes[self.offsets[index] : self.offsets[index + 1]]

    def spans(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each box's mean side (Δx+Δy)/2 in metres and its duration in seconds."""
        return Boxes(self.boxes).spans(self.frame)

    @property
    def period_s(self) -> tuple[int, int]:
        """The first and the last UTC second that any record covers."""
        return self.layout.period_s(self.frame)

    @property
    def people_left_out(self) -> int | None:
        """The number of people of the original who are in no record; None if it is not known who is in which."""
        import numpy as np

        if self.members is None:
            return None
        published = self.members.owners if self.multiplicity is None else self.members.indices
        return len(self.members.people.labels) - len(np.unique(published))

    @property
    def nbytes(self) -> int:
        """How much memory the records take."""
        return self.layout.nbytes

    def to_arrow(self) -> pa.Table:
        """Return the published table, with records numbered as they are here (the writer renumbers them)."""
        from shoal.publishing.schema import release_table

        return release_table(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return the published table as a pandas frame (needs the extra `pandas`)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the published table as a Polars frame (needs the extra `polars`)."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        if not isinstance(frame, pl.DataFrame):
            raise TypeError("Polars gave no frame")
        return frame

    def to_geopandas(self) -> gpd.GeoDataFrame:
        """Return the boxes as WGS84 polygons, or the points (needs the extra `geo`)."""
        import geopandas as gpd

        from shoal.publishing.schema import release_table

        table = release_table(self, geo=True)
        geometry = gpd.GeoSeries.from_wkb(table["geometry"].to_pandas(), crs="OGC:CRS84")
        return gpd.GeoDataFrame(table.drop_columns("geometry").to_pandas(), geometry=geometry)

    def to_points(self) -> pd.DataFrame:
        """Return `uid, datetime, lat, lng`, the columns that scikit-mobility expects; a box becomes its middle."""
        if self.frame.crs is None:
            raise SettingsError("points need geography: this data came as grid cells without a CRS")
        return self.to_arrow().select(["uid", "datetime", "lat", "lng"]).to_pandas()

    def write(self, path: str | Path, **options: Any) -> Release:
        """Verify and publish to a file; return what was published.

        `options` are those of `shoal.publish`: audit, run_record, overwrite, geo, compact, sign, seed and
        run.
        """
        from shoal.pipeline import publish_release

        return publish_release(self, path, **options)
