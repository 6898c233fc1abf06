"""Inputs: take what people have in Python, and turn it into what the reader reads: files or an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import InputError

if TYPE_CHECKING:
    from shoal.reading.stream import Input

__all__ = ["as_input", "table_of_frame"]

_KINDS = "give a file, a folder, a glob or a list of them, or a data frame of pandas, Polars, GeoPandas or Arrow"


def as_input(source: Any) -> Input:
    """Return files as they are, and a data frame as an Arrow table.

    Raises InputError for what is neither, and for a frame that has no form in Arrow.

    >>> import pandas as pd
    >>> as_input(pd.DataFrame({"uid": [1]})).num_rows, as_input("events.csv")
    (1, 'events.csv')
    """
    if isinstance(source, str | os.PathLike | pa.Table):
        return source
    if _is_frame(source):
        return table_of_frame(source)
    if isinstance(source, Iterable) and not hasattr(source, "keys"):
        several = list(source)
        if all(isinstance(one, str | os.PathLike) for one in several):
            return several
        if any(_is_frame(one) for one in several):
            raise InputError("several data frames can't be read at once; join them first, e.g. with pandas.concat")
    raise InputError(f"this is no data that can be read; {_KINDS}")


def _is_frame(source: Any) -> bool:
    return hasattr(source, "columns") or hasattr(source, "__arrow_c_stream__") or hasattr(source, "to_point_gdf")


def table_of_frame(frame: Any) -> pa.Table:
    """Return a data frame as an Arrow table; the points of a GeoDataFrame become longitudes and latitudes."""
    if hasattr(frame, "to_crs") or hasattr(frame, "to_point_gdf"):
        from shoal.reading.frames import table_of_points

        return table_of_points(frame)
    try:
        if hasattr(frame, "to_arrow"):  # Polars
            table = frame.to_arrow()
        elif hasattr(frame, "iloc"):  # pandas
            table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        else:
            table = pa.table(frame)
    except (pa.ArrowException, TypeError, AttributeError, ValueError):
        raise InputError("the frame can't be used: a column mixes types; give each column one type") from None
    if not isinstance(table, pa.Table):
        raise InputError(f"this is no data that can be read; {_KINDS}")
    return table
