"""Reading: files, folders and frames become people's trajectories; every dropped row is counted."""

from __future__ import annotations

from shoal.reading.frames import from_geopandas
from shoal.reading.options import ReadOptions
from shoal.reading.read import from_arrow, from_pandas, from_polars, read
from shoal.reading.traces import read_traces

__all__ = ["ReadOptions", "from_arrow", "from_geopandas", "from_pandas", "from_polars", "read", "read_traces"]
