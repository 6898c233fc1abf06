"""PostgreSQL as a target: the table is made, filled, read back and verified inside one transaction, then committed.

1. `receive` makes a table with a name of its own, appends the rows of the written file, puts the manifest into the
   table's comment, reads everything back over the same connection, and returns what the database holds as a file.
2. The caller verifies that file. Until now only this transaction sees the table.
3. `commit` gives the table its name, in place of the release that it may replace, and commits. The private files
   (audit, run record) are in place before that; see `shoal.switch` for what happens if a run is killed between the two.

If the run fails or is killed at any moment before the commit, the server drops the transaction, and nothing was ever
visible. With `overwrite`, other sessions see the old release until the commit, and the new one after it. What is
replaced must be a release, so that no other table is ever lost.
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import AlreadyExists, OutputError, SettingsError, ShoalError
from shoal.stores.postgres import Session, connected, identifier, literal, require_table
from shoal.stores.released import bring_release, comment_of, row_hash, to_comment
from shoal.switch import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shoal.publishing.stage import Outputs

__all__ = ["opened", "refuse"]

_BATCH = 1 << 17
_TYPES = {
    **dict.fromkeys(("t_start", "t_end", "datetime"), "timestamptz"),
    **dict.fromkeys(("x_min", "y_min", "x_max", "y_max", "count"), "integer"),
    **dict.fromkeys(("lat", "lng"), "double precision"),
    "uid": "bigint",
}
_LOCK_WAIT = "60s"
_POINT = "ST_SetSRID(ST_MakePoint(lng, lat), 4326)"
# A transaction waits while the release is verified, which may take hours.
_PATIENT = (
    "SELECT set_config(name, '0', true) FROM pg_settings "
    "WHERE name IN ('idle_in_transaction_session_timeout', 'statement_timeout', 'transaction_timeout')"
)


def refuse(address: str, outputs: Outputs) -> None:
    """Check that the table can be made: the schema is there, and the name is free or that of a release to replace."""
    with connected(address, failed=OutputError) as session:
        _name_of(session, address, overwrite=outputs.overwrite)
        _draws(session, outputs)


@contextmanager
def opened(address: str, outputs: Outputs) -> Iterator[_Table]:
    """Open a transaction for a new table; it is dropped unless it was committed."""
    with connected(address, failed=OutputError) as session:
        table = _name_of(session, address, overwrite=outputs.overwrite)
        session.table(_PATIENT)
        session.execute(f"SET LOCAL lock_timeout = {literal(_LOCK_WAIT)}")
        yield _Table(session, address, table, overwrite=outputs.overwrite, draws=_draws(session, outputs))


def _name_of(session: Session, address: str, *, overwrite: bool) -> tuple[str, str]:
    """Return the schema and the name of the table; raises OutputError if it can't be made, AlreadyExists."""
    *schema, name = require_table(address, SettingsError)
    home = schema[0] if schema else session.value("SELECT current_schema()")
    there = None if home is None else f"(SELECT oid FROM pg_namespace WHERE nspname = {literal(home)})"  # noqa: S608
    if there is None or session.value(f"SELECT {there}::bigint") is None:
        raise OutputError(f"{session.name}: there is no such schema; make it first")
    if not session.value(f"SELECT has_schema_privilege({there}, 'CREATE')"):
        raise OutputError(f"{session.name}: this user may not create tables in the schema")
    kind = session.value(
        f"SELECT CAST(relkind AS text) FROM pg_class WHERE relname = {literal(name)} AND relnamespace = {there}"  # noqa: S608
    )
    if kind is not None and not overwrite:
        raise AlreadyExists(f"{session.name} is there already; choose another name or give `overwrite`")
    if kind is not None and (kind != "r" or comment_of(session, (home, name)) is None):
        raise OutputError(f"{session.name} is there and no release of shoal; `overwrite` replaces releases only")
    return home, name


def _draws(session: Session, outputs: Outputs) -> bool:
    """Return whether there is PostGIS; raises SettingsError if polygons are asked for and there is not."""
    there = session.value("SELECT to_regtype('geometry') IS NOT NULL")
    if outputs.geo and not there:
        raise SettingsError(f"{session.name}: `geo` needs PostGIS in the database: CREATE EXTENSION postgis")
    return bool(there)


class _Table:
    """A table of a release inside a transaction."""

    local = False
    files: dict[str, str] | None = None

    def __init__(self, session: Session, address: str, table: tuple[str, str], *, overwrite: bool, draws: bool) -> None:
        self.draws, self.shapes = draws, ("Polygon",) if draws else ()  # the database makes points itself
        self._session, self._address, self._overwrite = session, address, overwrite
        self._table, self._new = table, (table[0], f"shoal_{secrets.token_hex(8)}")
        self._oid: int | None = None

    def receive(self, data: Path) -> Path:
        """Fill the table, and return what it holds as a file of the same name, in a folder beside `data`."""
        session, new = self._session, identifier(*self._new)
        with pq.ParquetFile(data) as file:
            names = file.schema_arrow.names
            session.execute(f"CREATE TABLE {new} ({', '.join(self._columns(names))})")
            session.append(self._new, self._rows(file))
            rows = row_hash(file.iter_batches(_BATCH))
        self.files = {"rows": rows}
        manifest = json.loads(data.with_name(f"{data.name}.manifest.json").read_bytes())
        session.execute(f"COMMENT ON TABLE {new} IS {literal(to_comment(manifest, rows))}")
        self._oid = session.value(f"SELECT CAST(CAST({literal(new)} AS regclass) AS oid)::bigint")
        held = data.parent / "held"
        held.mkdir(mode=0o700)
        bring_release(session, self._new, held / data.name)
        return held / data.name

    def _columns(self, names: list[str]) -> list[str]:
        """Return SQL for the columns: those of the release, and those that the database computes or draws."""
        columns = [f"{identifier(name)} {_TYPES[name]} NOT NULL" for name in names if name != "geometry"]
        if "t_start" in names:
            columns.append("t_range tstzrange GENERATED ALWAYS AS (tstzrange(t_start, t_end)) STORED")
        if "geometry" in names:
            columns.append("geom geometry(Polygon, 4326) NOT NULL")
        elif self.draws and "t_start" not in names:
            columns.append(f"geom geometry(Point, 4326) GENERATED ALWAYS AS ({_POINT}) STORED")
        return columns

    def _rows(self, file: pq.ParquetFile) -> pa.RecordBatchReader:
        """Return the rows of the written file, with polygons as PostGIS takes them."""
        names = ["geom" if name == "geometry" else name for name in file.schema_arrow.names]
        fields = [pa.field(name, field.type) for name, field in zip(names, file.schema_arrow, strict=True)]
        schema = pa.schema(fields)
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in file.iter_batches(_BATCH))
        return pa.RecordBatchReader.from_batches(schema, batches)

    def send(self) -> None:
        """Nothing is left to do before the commit."""

    def commit(self) -> None:
        """Give the table its name and commit. Other sessions wait for at most a moment."""
        session, place = self._session, identifier(*self._table)
        if self._overwrite:
            _name_of(session, self._address, overwrite=True)  # it may have changed meanwhile
            session.execute(f"DROP TABLE IF EXISTS {place}")
        session.execute(f"ALTER TABLE {identifier(*self._new)} RENAME TO {identifier(self._table[1])}")
        try:
            session.commit()
        except ShoalError:
            self._look()

    def _look(self) -> None:
        """Look whether a commit that failed happened all the same: the answer may have been lost."""
        where = f"oid = {self._oid} AND relname = {literal(self._table[1])}"
        try:
            with connected(self._address, failed=OutputError) as session:
                there = session.value(f"SELECT count(*) FROM pg_class WHERE {where}")  # noqa: S608
        except ShoalError:
            raise Undecided(
                f"{self._session.name}: the connection was lost during the commit; the release may be published or "
                "not: look with shoal verify"
            ) from None
        if not there:
            raise OutputError(f"{self._session.name}: the database refused the commit; nothing was published")
