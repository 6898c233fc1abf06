"""Paths: users that are told by the name of a file or of its folder, as in GeoLife or Cabspotting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.errors import ColumnsNotFound

if TYPE_CHECKING:
    from shoal.reading.sources import Source

__all__ = ["path_sql", "with_path"]

_COLUMN = "shoal_path"
_ENDINGS = (
    r"([.](sheet\d+|csv|tsv|txt|plt|dat|parquet|pq|arrow|feather|ipc|jsonl|ndjson|json|xlsx|gz|zst|bz2|xz|zip))+$"
)


def with_path(table: str, source: Source) -> str:
    """Return the table expression with a column for the path of the file of each row."""
    if source.path is None:
        raise ColumnsNotFound(f'{source.name}: a table has no file; name the column of the user: `columns="user=…"`')
    return f"{table.removesuffix(')')}, filename = '{_COLUMN}')"


def path_sql(role: str) -> str:
    """Return SQL for the name of the file without its ending (`@file`), or of its folder (`@folder`).

    A folder called Trajectory is passed over: GeoLife has one in the folder of each user.
    """
    if role == "@file":
        return f"regexp_replace(regexp_extract({_COLUMN}, '[^/]+$'), '{_ENDINGS}', '', 'i')"
    return f"regexp_extract({_COLUMN}, '([^/]+)/(?:Trajectory/)?[^/]+$', 1)"
