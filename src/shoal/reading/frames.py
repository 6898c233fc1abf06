"""Frames of other libraries: GeoPandas, MovingPandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.errors import InputError
from shoal.reading.columns import means
from shoal.reading.geometry import is_wgs84
from shoal.reading.inputs import table_of_frame

if TYPE_CHECKING:
    import geopandas as gpd

    from shoal.trajectories import Trajectories

__all__ = ["from_geopandas", "table_of_points"]


def from_geopandas(frame: gpd.GeoDataFrame, **options: Any) -> Trajectories:
    """Make Trajectories from a GeoDataFrame of points, as `read` does from a file with the same content.

    Places are the points of its active geometry, in any CRS; columns of longitudes and latitudes are not used. An index
    of times is used as the column `time`; any other index is ignored. A MovingPandas Trajectory or TrajectoryCollection
    is taken as the frame of its points. `options` are the fields of `ReadOptions` as keywords.

    Raises InputError for a frame without CRS, and for lines and areas; all else as `read` does.
    """
    from shoal.reading.read import from_arrow

    if not (hasattr(frame, "to_crs") or hasattr(frame, "to_point_gdf")):
        raise InputError("from_geopandas takes a geopandas.GeoDataFrame")
    return from_arrow(table_of_frame(frame), **options)


def table_of_points(frame: Any) -> pa.Table:
    """Return a GeoDataFrame of points (or trajectories of MovingPandas) as an Arrow table, with WGS84 lng and lat."""
    if hasattr(frame, "to_point_gdf"):
        frame = frame.to_point_gdf()
    if not (hasattr(frame, "geometry") and hasattr(frame, "to_crs")):
        raise InputError("from_geopandas takes a geopandas.GeoDataFrame")
    points = frame.geometry
    if points.crs is None:
        raise InputError(
            "the GeoDataFrame has no CRS; say which its coordinates are in, for degrees: "
            '`frame = frame.set_crs("EPSG:4326")`'
        )
    if not points.geom_type.dropna().eq("Point").all():
        raise InputError(
            "the geometry holds lines or areas, not points; give one row, with a point, for each time and place of a "
            "person"
        )
    if not is_wgs84(points.crs):
        points = points.to_crs("OGC:CRS84")
    others = frame.drop(columns=[name for name, kind in frame.dtypes.items() if str(kind) == "geometry"])
    others = others.drop(columns=[name for name in others.columns if means(str(name), "lat", "lng")])
    if str(others.index.dtype).startswith("datetime64"):
        others = others.reset_index(names="time") if "time" not in others.columns else others
    table = pa.Table.from_pandas(others, preserve_index=False).replace_schema_metadata(None)
    for name, values in (("lng", points.x), ("lat", points.y)):
        table = table.append_column(name, to_arrow_array(values.to_numpy(dtype=float, na_value=float("nan"))))
    return table
