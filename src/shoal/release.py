"""Release: the published records, what they claim, and (privately) who is in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    import geopandas as gpd
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.trajectories import Trajectories

__all__ = ["CLAIMS", "Claim", "Members", "Release"]

CLAIMS = ("k-anonymity", "k-concealment", "cover", "none")


@dataclass(frozen=True)
class Claim:
    """What a release promises, in one typed word.

    `k-anonymity`: records are identical in groups of at least k. `cover`: every user's samples lie inside at
    least k records, each box of which holds one of them. `k-concealment`: the same by exactly k records of
    exactly k users each, whose owners were drawn by chance. `none`: nothing is promised (`why` says the reason).

    >>> str(Claim("cover", k=3)), str(Claim("none", why="research"))
    ('cover(3)', 'none (research)')
    """

    name: str
    k: int | None = None
    why: str | None = None

    def __str__(self) -> str:
        if self.k is not None:
            return f"{self.name}({self.k})"
        return f"{self.name} ({self.why})" if self.why else self.name

    def to_dict(self) -> dict[str, Any]:
        """Give the form that is written into the file."""
        return {key: value for key, value in vars(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Claim:
        """Read the form that is written into the file; unknown keys are ignored."""
        return cls(str(values.get("name", "none")), values.get("k"), values.get("why"))


@dataclass(frozen=True, eq=False)
class Members:
    """Who is in a record: private, never part of the published file.

    `owners[r]` is the user published as record r, `indices[offsets[r]:offsets[r+1]]` are the users merged into
    it, the owner first. All are canonical indices of `people`, the original. Where the owners are left to chance,
    the columns of `matchings` (records, k) are k disjoint ways to give everyone one of her records; the writer
    draws one that mixes them.
    """

    owners: NDArray[np.int64]
    offsets: NDArray[np.int64]
    indices: NDArray[np.int64]
    people: Trajectories
    matchings: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A set of records, each a time-ordered sequence of boxes.

    `boxes` is an (m, 6) int32 array `t0, t1, x0, x1, y0, y1` of inclusive granules of `frame`; record r is
    `boxes[offsets[r]:offsets[r+1]]`. `parameters` are the public ones. `samples` and `suppressed` count the
    original samples that are inside the records and those left out. `members` is there only between a method
    and the writer; a release that was read from a file has none, and knows its counts to two digits only.
    `multiplicity`, where given, is the number of users published as each record (compact releases).
    """

    offsets: NDArray[np.int64]
    boxes: NDArray[np.int32]
    frame: Frame
    method: str
    parameters: dict[str, Any]
    claim: Claim
    samples: int = 0
    suppressed: int = 0
    members: Members | None = field(default=None)
    multiplicity: NDArray[np.int32] | None = field(default=None)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Release({len(self):,} records, {len(self.boxes):,} boxes, {self.method}, claim {self.claim})"

    def record(self, index: int) -> NDArray[np.int32]:
        """Give the boxes of one record as an (m, 6) array."""
        return self.boxes[self.offsets[index] : self.offsets[index + 1]]

    def spans(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give each box's mean side (Δx+Δy)/2 in metres and its duration in seconds."""
        t0, t1, x0, x1, y0, y1 = self.boxes.T.astype(np.float64)
        side = ((x1 - x0 + 1) + (y1 - y0 + 1)) / 2 * self.frame.cell_m
        return side, (t1 - t0 + 1) * self.frame.slot_s

    def to_arrow(self, *, geo: bool = False) -> pa.Table:
        """Give the table that is published, records numbered as they are here (the writer renumbers them)."""
        from shoal.io.table import release_table

        return release_table(self, geo=geo)

    def to_pandas(self) -> pd.DataFrame:
        """Give the published table as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Give the published table as a Polars frame (needs the extra `polars`)."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        if not isinstance(frame, pl.DataFrame):
            raise TypeError("Polars gave no frame")
        return frame

    def to_geopandas(self) -> gpd.GeoDataFrame:
        """Give the boxes as WGS84 polygons (needs the extra `geo`)."""
        import geopandas as gpd

        table = self.to_arrow(geo=True)
        geometry = gpd.GeoSeries.from_wkb(table["geometry"].to_pandas(), crs="OGC:CRS84")
        return gpd.GeoDataFrame(table.drop_columns("geometry").to_pandas(), geometry=geometry)

    def to_points(self) -> pd.DataFrame:
        """Give `uid, datetime, lat, lng`: the middle of every box, the shape scikit-mobility expects."""
        if self.frame.crs is None:
            raise SettingsError("points need geography: this data came as grid cells without a CRS")
        return self.to_arrow().select(["uid", "datetime", "lat", "lng"]).to_pandas()

    def write(self, path: str | Path, **options: Any) -> Release:
        """Publish to a file: see `shoal.io.write.write_release` for the options; gives what was published.

        Unless another `check` is given, the written file is verified against the people it was made of before
        anything is published; raises NotVerified. A release that was read from a file is written as it is.
        """
        from shoal.io.write import write_release
        from shoal.verifier import verify

        def check(written: Path, audit: pa.Table | None) -> None:
            if self.members is not None:
                k = self.claim.k or self.parameters.get("k")
                verify(self.members.people, written, k=k, audit=audit).raise_if_broken()

        return write_release(self, path, **{"check": check, **options})
