"""Events in PostgreSQL: a table or the result of a query, brought as Parquet.

The query is carried out once, in a transaction that can only read, so that what comes is one snapshot. Types that have
no equal in Parquet come as text. A column of PostGIS points becomes `lng` and `lat` in degrees (WGS84).
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from shoal.errors import OutputError, UnreadableFile
from shoal.reading.engine import DISK_FULL
from shoal.reading.forms import Brought
from shoal.stores.addresses import database_of, file_name
from shoal.stores.postgres import as_text, connected, identifier

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    from shoal.stores.postgres import Session

__all__ = ["bring_table"]

_PLACES = ("geometry", "geography")
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_ODD = "shoal: odd geometry"
_UTC = "SET LOCAL TIME ZONE 'UTC'"


def bring_table(source: str, folder: Path, advance: Callable[[float], None]) -> list[Brought]:
    """Write the rows of a table or a query into a Parquet file, and return its path.

    Memory: some batches of 16 MB. `advance` is told of rows as they come. Ctrl-C cancels the query on the server.
    """
    database, target = database_of(source), folder / file_name(source)
    query = database.query or f"SELECT * FROM {identifier(*(database.table or ()))}"  # noqa: S608  quoted
    writer = None
    with connected(source) as session:
        session.execute(_SNAPSHOT)
        session.execute(_UTC)
        try:
            for odd_or_not in session.batches(_typed(session, query)):
                batch = _checked(odd_or_not, session.name)
                if writer is None:
                    writer = pq.ParquetWriter(target, batch.schema.remove_metadata(), compression="lz4")
                writer.write_batch(batch.replace_schema_metadata(None).cast(writer.schema))
                advance(batch.num_rows)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise OutputError(DISK_FULL) from None
            raise
        finally:
            if writer is not None:
                writer.close()
    return [Brought(target)]


def _typed(session: Session, query: str) -> str:
    """Return the query with its columns cast to types that Parquet has."""
    kind_of = {name: kind.rpartition(".")[2].strip('"') for name, kind in session.types(query)}
    places = [name for name in kind_of if kind_of[name] in _PLACES]
    wanted = [as_text(name, kind) for name, kind in kind_of.items() if name not in places]
    if places and not {"lng", "lat", _ODD} & set(kind_of):
        wanted += _degrees(session, places)
    if not wanted:
        raise UnreadableFile(f"{session.name}: there are only geometries; select the user and the time too")
    return f"SELECT {', '.join(wanted)} FROM ({query}\n) AS q"  # noqa: S608  the caller's own SQL


def _degrees(session: Session, places: list[str]) -> list[str]:
    """Return SQL for the longitude and latitude of the points in the only column of geometries, and for what is odd."""
    if len(places) > 1:
        raise UnreadableFile(
            f"{session.name}: there are {len(places)} columns of geometries; select the one with the places in a query"
        )
    point = f"CAST(q.{identifier(places[0])} AS geometry)"
    odd = f"CASE WHEN {point} IS NULL THEN 0 WHEN GeometryType({point}) NOT LIKE 'POINT%' THEN 1 WHEN ST_SRID({point}) = 0 THEN 2 ELSE 0 END"  # noqa: E501
    fits = f"CASE WHEN {odd} = 0 AND NOT ST_IsEmpty({point}) THEN"
    degrees = f"ST_Transform({point}, 4326)"
    return [
        f'{fits} ST_X({degrees}) END AS "lng"',
        f'{fits} ST_Y({degrees}) END AS "lat"',
        f"{odd} AS {identifier(_ODD)}",
    ]


def _checked(batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """Return the rows without the column that says what is odd; raises UnreadableFile if something is."""
    if _ODD not in batch.schema.names:
        return batch
    odd = set(batch[_ODD].unique().to_pylist())
    if 1 in odd:
        raise UnreadableFile(
            f"{name}: a geometry is not a point; select points in a query, e.g. ST_Centroid(geom) AS geom"
        )
    if 2 in odd:
        raise UnreadableFile(
            f"{name}: the points have no SRID, so their coordinates may be anything; say what they are in a query, "
            "e.g. ST_SetSRID(geom, 4326) AS geom"
        )
    return batch.drop_columns([_ODD])
