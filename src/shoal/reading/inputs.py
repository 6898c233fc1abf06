"""Inputs: take what people have in Python, and turn it into what the reader reads: files or an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from shoal.errors import InputError
from shoal.reading.columns import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.reading.stream import Input

__all__ = ["as_input", "converted", "is_panic", "table_of_frame"]

T = TypeVar("T")
_DIGITS = 38  # the most that a decimal of the engine has

_KINDS = "give a file, a folder, a glob or a list of them, or a data frame of pandas, Polars, GeoPandas or Arrow"


def as_input(source: Any) -> Input:
    """Return files as they are, and a data frame as an Arrow table.

    Raises InputError for what is neither, and for a frame that has no form in Arrow.

    >>> import pandas as pd
    >>> as_input(pd.DataFrame({"uid": [1]})).num_rows, as_input("events.csv")
    (1, 'events.csv')
    """
    if isinstance(source, str | os.PathLike):
        return source
    if isinstance(source, pa.Table):
        return converted(lambda: plain(source))
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
    _check_names(frame)
    if hasattr(frame, "to_crs") or hasattr(frame, "to_point_gdf"):
        from shoal.reading.frames import table_of_points

        return converted(lambda: table_of_points(frame))
    if hasattr(frame, "to_arrow"):  # Polars
        table = converted(frame.to_arrow)
    elif hasattr(frame, "iloc"):  # pandas
        table = converted(lambda: pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None))
    else:
        table = converted(lambda: pa.table(frame))
    if not isinstance(table, pa.Table):
        raise InputError(f"this is no data that can be read; {_KINDS}")
    return plain(table)


def plain(table: pa.Table) -> pa.Table:
    """Return a table in which columns of types that the engine does not know are written in others.

    >>> from decimal import Decimal
    >>> plain(pa.table({"lat": pa.array([Decimal("39.9")], pa.decimal256(76, 40))})).schema.field("lat").type
    DataType(string)
    """
    for i, column in enumerate(table.schema):
        kind = column.type
        if pa.types.is_float16(kind):
            table = table.set_column(i, column.name, table.column(i).cast(pa.float32()))
        elif pa.types.is_decimal(kind) and (kind.precision > _DIGITS or not 0 <= kind.scale <= kind.precision):
            table = table.set_column(i, column.name, table.column(i).cast(pa.string()))
    return table


def converted(convert: Callable[[], T]) -> T:
    """Return what a conversion of a frame makes; whatever the libraries raise becomes InputError, without its text."""
    try:
        return convert()
    except (InputError, MemoryError):
        raise
    except OverflowError:
        raise InputError(
            "the frame can't be used: whole numbers beyond 64 bits; make them text, e.g. "
            '`frame["uid"] = frame["uid"].astype(str)`'
        ) from None
    except BaseException as error:
        if not isinstance(error, Exception) and not is_panic(error):
            raise
        raise InputError(
            "the frame can't be used: a column mixes types, or has a type that Arrow does not know; give each column "
            "one type of numbers, text or times"
        ) from None


def is_panic(error: BaseException) -> bool:
    """Return whether an error is how libraries in Rust report what they did not expect."""
    return type(error).__module__ == "pyo3_runtime"


def _check_names(frame: Any) -> None:
    """Raise InputError for names of columns that no table can have, which some libraries do not survive."""
    names = [str(name) for name in getattr(frame, "columns", ())]
    if any("\0" in name or (not name.isascii() and _is_broken(name)) for name in names):
        raise InputError("the frame can't be used: the name of a column is no text; rename the column")
    if hasattr(frame, "iloc") and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the frame can't be used: several columns are called {printable(twice)}; rename them")


def _is_broken(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return True
    return False
