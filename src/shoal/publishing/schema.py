"""The published table: the columns of the release format, record after record."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.lists import even_ranges, take_lists

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.release import Release

__all__ = ["FORMAT", "describe", "release_batches", "release_table"]

FORMAT = 1
_BATCH = 1 << 20


def describe(release: Release) -> dict[str, Any]:
    """Return the public description of a release: the `shoal` object of its metadata and manifest."""
    return {
        "format": FORMAT,
        "method": release.method,
        "parameters": release.parameters,
        "claim": release.claim.to_dict(),
        "cell_m": release.frame.cell_m,
        "slot_s": release.frame.slot_s,
        "crs": release.frame.crs,
    }


def release_table(release: Release, *, geo: bool = False) -> pa.Table:
    """Return the published table, one row per box, sorted by (uid, t_start); metadata key `shoal`.

    Edges are half-open metres and seconds; `datetime, lat, lng` are the middle of each box. Without a CRS there
    are no degrees. Points have `uid, datetime, lat, lng` only. `geo` adds the box as a WGS84 polygon, or the point
    (GeoParquet). Cost: linear.
    """
    return pa.concat_tables(release_batches(release, geo=geo))


def release_batches(
    release: Release, order: NDArray[np.int64] | None = None, *, geo: bool = False
) -> Iterator[pa.Table]:
    """Yield `release_table` in pieces of about a million rows, at least one piece; record `order[n]` gets number n."""
    order = np.arange(len(release)) if order is None else order
    metadata = {"shoal": json.dumps(describe(release)), **({"geo": json.dumps(_geo(release))} if geo else {})}
    for start, stop in even_ranges(np.diff(release.offsets)[order], _BATCH) or [(0, 0)]:
        offsets, rows = take_lists(release.offsets, order[start:stop])
        uid = np.repeat(np.arange(start, stop, dtype=np.int64), np.diff(offsets))
        columns = {"uid": to_arrow_array(uid), **release.layout.columns(release.frame, rows)}
        if release.multiplicity is not None:
            columns["count"] = to_arrow_array(release.multiplicity[order[uid]].astype(np.int32))
        if geo:
            columns["geometry"] = release.layout.geometry(release.frame, rows)
        yield pa.table(columns).replace_schema_metadata(metadata)


def _geo(release: Release) -> dict[str, Any]:
    """Return the metadata of GeoParquet."""
    column = {"encoding": "WKB", "geometry_types": [release.layout.shape]}
    return {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
