"""Reading (columns, times, cleaning) and the one door out."""

from __future__ import annotations

from shoal.io.read import from_arrow, from_pandas, from_polars, read
from shoal.io.release_file import read_release
from shoal.io.traces import read_traces

__all__ = ["from_arrow", "from_pandas", "from_polars", "read", "read_release", "read_traces"]
