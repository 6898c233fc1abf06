"""A release in PostgreSQL: its form as a table, and how it is read back.

The table has the columns of a release file, and besides them `t_range` (boxes) and, where there is PostGIS, `geom`. The
comment of the table is the manifest. In it `files` holds `rows`: a hash of the rows in order, in place of a file's.

What is read back is a Parquet file of exactly the columns of a release, with the polygons as `geometry`, and a manifest
beside it. If the rows are those that the manifest describes, `t_range` and `geom` agree with them, and no time has
fractions of a millisecond, the manifest names the hash of that file. If not, it names none that the file could have.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from shoal.arrow import from_arrow_array
from shoal.stores.postgres import as_text, identifier, literal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from shoal.stores.postgres import Session

__all__ = ["GEO", "STORED", "RowHash", "bring_release", "comment_of", "row_hash", "to_comment"]

GEO = {
    "version": "1.1.0",
    "primary_column": "geometry",
    "columns": {"geometry": {"encoding": "WKB", "geometry_types": ["Polygon"]}},
}
STORED = ".stored.json"  # beside what was brought: the hashes as the manifest in the database states them
_INSTANT = pa.timestamp("ms", "UTC")
_SAME = {  # what the columns that are no columns of a release must equal
    "t_range": "t_range = tstzrange(t_start, t_end)",
    "points": "ST_SRID(geom) = 4326 AND ST_AsBinary(geom) = ST_AsBinary(ST_MakePoint(lng, lat))",
    "boxes": "ST_SRID(geom) = 4326",
}


class RowHash:
    """A hash of rows that come in batches; it depends on names, values and order, not on how rows are batched."""

    def __init__(self) -> None:
        self.rows = 0
        self._hashes: dict[str, Any] = {}

    def add(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add some rows."""
        for one in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            for number, name in enumerate(one.schema.names if len(one) else []):
                self._add(f"{number} {name}", one[name])
            self.rows += len(one)

    def _add(self, name: str, column: Any) -> None:
        empty = np.flatnonzero(from_arrow_array(pc.is_null(column).cast(pa.uint8())))
        self._update(f"{name}: empty", (empty + self.rows).astype("<i8"))
        kind = column.type
        if pa.types.is_timestamp(kind):
            column, kind = column.cast(pa.int64()), pa.int64()
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            wide = pa.int64() if pa.types.is_integer(kind) else pa.float64()
            self._update(name, from_arrow_array(pc.fill_null(column.cast(wide), 0)))
            return
        plain = pc.fill_null(column if pa.types.is_binary(kind) else column.cast(pa.string()).cast(pa.binary()), b"")
        if not len(plain):
            return
        _, offsets, data = plain.buffers()
        edges = np.frombuffer(offsets, "<i4", len(plain) + 1, plain.offset * 4)
        self._update(f"{name}: lengths", np.diff(edges).astype("<i8"))
        self._update(name, memoryview(data or b"")[int(edges[0]) : int(edges[-1])])

    def _update(self, name: str, values: Any) -> None:
        digest = self._hashes.setdefault(name, hashlib.sha256())
        if len(values):
            digest.update(np.ascontiguousarray(values).data)

    def hexdigest(self) -> str:
        """Return the hash of all rows so far."""
        parts = {name: digest.hexdigest() for name, digest in sorted(self._hashes.items())}
        return hashlib.sha256(json.dumps([self.rows, parts]).encode()).hexdigest()


def row_hash(batches: Iterable[pa.RecordBatch | pa.Table]) -> str:
    """Return the hash of rows.

    >>> one, two = pa.table({"a": [1, 2]}), pa.table({"a": [3]})
    >>> row_hash([one, two]) == row_hash([pa.concat_tables([one, two])])
    True
    """
    digest = RowHash()
    for batch in batches:
        digest.add(batch)
    return digest.hexdigest()


def to_comment(manifest: dict[str, Any], rows: str) -> str:
    """Return the comment of a table: the manifest of a release with the hash of its rows."""
    return json.dumps({**manifest, "files": {"rows": rows}}, ensure_ascii=False)


def comment_of(session: Session, table: tuple[str, ...]) -> str | None:
    """Return the comment of a table, if it is the manifest of a release, or looks like one."""
    name = literal(identifier(*table))
    text = session.value(f"SELECT obj_description(CAST({name} AS regclass), 'pg_class')")
    return text if text and '"shoal"' in text else None


def bring_release(session: Session, table: tuple[str, ...], target: Path) -> None:
    """Write a table of a release into a Parquet file, and its manifest beside it, as files of a release are.

    Rows are in the order of `uid` and time, and then in that of the table. All columns are brought, also those that a
    release does not have. A table without a manifest becomes a file without one.
    """
    source = identifier(*table)
    session.execute("SET LOCAL TIME ZONE 'UTC'")
    comment = comment_of(session, table)
    manifest = _canonical(comment)
    kinds = {
        name: kind.rpartition(".")[2].strip('"')
        for name, kind in session.types(f"SELECT * FROM {source}")  # noqa: S608
    }
    drawn = kinds.get("geom") == "geometry"
    ranged = kinds.get("t_range") == "tstzrange" and {"t_start", "t_end"} <= set(kinds)
    boxes = "x_min" in kinds
    wanted = [as_text(name, kind) for name, kind in kinds.items() if name not in _extra(drawn=drawn, ranged=ranged)]
    if drawn and boxes:
        wanted.append("ST_AsBinary(q.geom, 'NDR') AS geometry")
    agree: list[str] = [_SAME["t_range"]] * ranged + [_SAME["boxes" if boxes else "points"]] * drawn
    agree += [
        f"{identifier(name)} = date_trunc('milliseconds', {identifier(name)})"
        for name, kind in kinds.items()
        if kind == "timestamp with time zone"
    ]
    true = not agree or not session.value(
        f"SELECT count(*) FROM {source} WHERE NOT coalesce({' AND '.join(agree)}, false)"  # noqa: S608
    )
    order = ", ".join([*(identifier(name) for name in ("uid", "t_start", "datetime") if name in kinds), "ctid"])
    query = f"SELECT {', '.join(wanted)} FROM {source} AS q ORDER BY {order}"  # noqa: S608
    stated = {} if manifest is None else {"shoal": json.dumps(manifest["shoal"])}
    rows = _write(session, query, target, {**stated, **({"geo": json.dumps(GEO)} if drawn and boxes else {})})
    beside = target.with_name(f"{target.name}.manifest.json")
    if manifest is not None:
        target.with_name(f"{target.name}{STORED}").write_text(json.dumps(manifest["files"]))
        right = true and manifest["files"] == {"rows": rows}
        named = _sha256(target) if right else "the rows are others"
        beside.write_text(json.dumps({**manifest, "files": {target.name: named}}))
    elif comment is not None:
        beside.write_text(comment)


def _extra(*, drawn: bool, ranged: bool) -> set[str]:
    """Return the columns that only a table has."""
    return {name for name, there in (("geom", drawn), ("t_range", ranged)) if there}


def _canonical(comment: str | None) -> dict[str, Any] | None:
    """Return a manifest that is written as we write it, so that nothing is lost when it is written anew."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        manifest: dict[str, Any] = json.loads(comment or "")
        if to_comment(manifest, manifest["files"]["rows"]) == comment and isinstance(manifest["shoal"], dict):
            return manifest
    return None


def _write(session: Session, query: str, target: Path, metadata: dict[str, str]) -> str:
    """Write rows into a Parquet file, with the types of a release where the values allow it; return their hash."""
    digest, writer, first = RowHash(), None, None
    try:
        for batch in session.batches(query):
            typed = _typed(batch).replace_schema_metadata(metadata)
            digest.add(typed)
            first = typed if first is None else first
            writer = writer or pq.ParquetWriter(target, first.schema, compression="lz4")
            if len(typed):
                writer.write_batch(typed)
        if writer is not None and not digest.rows:
            writer.write_batch(first)
    finally:
        if writer is not None:
            writer.close()
    return digest.hexdigest()


def _typed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows with times in milliseconds."""
    columns = {}
    for name in batch.schema.names:
        column = batch[name]
        if pa.types.is_timestamp(column.type) and column.type.tz:
            column = column.cast(_INSTANT, safe=False)
        columns[name] = column
    return pa.RecordBatch.from_pydict(columns)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
