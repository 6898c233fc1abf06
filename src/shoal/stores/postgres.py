"""PostgreSQL over ADBC: sessions whose work can be interrupted, and whose errors say nothing that the server said.

What a server or libpq says can hold the host, the user, the SQL or a value of a row. Errors are told apart by their
codes (SQLSTATE), and said in our words.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pyarrow as pa

from shoal.errors import AlreadyExists, OutputError, ShoalError, UnreadableFile
from shoal.stores.addresses import database_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Session", "as_text", "connected", "identifier", "literal", "require_table"]

T = TypeVar("T")
_LOOK_S = 0.1  # how often a waiting session looks for Ctrl-C
_PATIENCE_S = 10
_DEFAULTS = {"connect_timeout": "30", "fallback_application_name": "shoal"}
_MISSING = 'addresses of PostgreSQL need its driver: pip install "shoal-privacy[postgres]"'
_STOPPED = "the database stopped: an error in the query, a time limit, or a lost connection"
# The beginning of an SQLSTATE, the longest first, and what it means here.
_STATES = {
    "42P01": "there is no such table; name its schema too: ?table=schema.table",
    "42P07": "a table of that name is there already",
    "42501": "this user may not do that; ask for the right to read the table, or to create one in the schema",
    "42601": "the SQL has a mistake in its form; try it in psql",
    "42703": "the query names a column that is not there",
    "42702": "two columns have the same name; name them with AS",
    "42883": "the query uses a function or operator that is not there for these types",
    "3F000": "there is no such schema; make it first",
    "2BP01": "other objects, such as views, depend on the table that would be replaced; drop them first",
    "57014": "the server stopped the query, for example because of its statement_timeout",
    "55P03": "another session uses the table; try again when it has finished",
    "25006": "the server takes no writing (a standby?), or the query would write",
    "53100": "the disk of the server is full",
    "22": "the query computes with a value that it can't use, for example a text that is no number",
    "28": "the server refused the user or the password (PGPASSWORD, ~/.pgpass)",
    "3D": "there is no such database",
    "42": "the query can't be carried out; try it in psql",
    "53": "the server has no resources left (memory, connections, disk)",
    "57P": "the server is shutting down",
}
# What libpq says when a connection can't be made has no code; it is looked at, never shown.
_WHY_NOT = {
    "does not exist": "there is no such database, or no such user",
    "password": "the server refused the user or the password (PGPASSWORD, ~/.pgpass)",
    "authentication": "the server refused the user or the password (PGPASSWORD, ~/.pgpass)",
    "pg_hba": "the server does not let this user in from here (pg_hba.conf)",
    "URI query parameter": "libpq does not know one of the options after the question mark",
    "SSL": "no encrypted connection could be made; check sslmode and the certificates",
    "certificate": "no encrypted connection could be made; check sslmode and the certificates",
}


class Session:
    """A connection, in one transaction until `commit`. All waiting can be interrupted, which cancels the statement."""

    def __init__(self, connection: Any, name: str, failed: type[ShoalError]) -> None:
        self._connection, self.name, self._failed = connection, name, failed

    def execute(self, sql: str) -> None:
        """Carry out a statement."""
        with self._cursor() as cursor:
            self._wait(lambda: cursor.execute(sql), cursor)

    def table(self, sql: str) -> pa.Table:
        """Return the result of a small query."""
        with self._cursor() as cursor:
            self._wait(lambda: cursor.execute(sql), cursor)
            found: pa.Table = self._wait(cursor.fetch_arrow_table, cursor)
            return found

    def value(self, sql: str) -> Any:
        """Return the only value of a query; None if there is no row."""
        found = self.table(sql)
        return found.column(0)[0].as_py() if found.num_rows else None

    def types(self, query: str) -> list[tuple[str, str]]:
        """Return names and types of the columns of a query, without carrying it out."""
        names = self.table(f"SELECT * FROM ({query}\n) AS q LIMIT 0").column_names  # noqa: S608  the caller's own SQL
        if len(set(names)) < len(names):
            raise self._failed(f"{self.name}: {_STATES['42702']}")
        if not names:
            raise self._failed(f"{self.name}: the query has no columns")
        kinds = ", ".join(f"CAST(pg_typeof(q.{identifier(name)}) AS text)" for name in names)
        row = f"SELECT ARRAY[{kinds}] FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM ({query}\n) AS r LIMIT 0) AS q ON true"  # noqa: S608, E501
        return list(zip(names, self.value(row), strict=True))

    def batches(self, query: str) -> Iterator[pa.RecordBatch]:
        """Yield the result of a query, some megabytes at a time; it is one snapshot."""
        with self._cursor() as cursor:
            self._wait(lambda: cursor.execute(query), cursor)
            reader = self._wait(cursor.fetch_record_batch, cursor)
            yield pa.RecordBatch.from_pylist([], schema=reader.schema)
            while (batch := self._wait(lambda: next(reader, None), cursor)) is not None:
                yield batch

    def append(self, table: tuple[str, ...], rows: pa.RecordBatchReader) -> None:
        """Append rows to a table that is there; only the columns of `rows` are written."""
        *schema, name = table
        where = {"db_schema_name": schema[0]} if schema else {}
        with self._cursor() as cursor:
            self._wait(lambda: cursor.adbc_ingest(name, rows, mode="append", **where), cursor)

    def commit(self) -> None:
        """Make everything visible."""
        with self._in_our_words():
            self._connection.commit()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with self._in_our_words():
            cursor = self._connection.cursor()
            try:
                yield cursor
            finally:
                with suppress(Exception):
                    cursor.close()

    def _wait(self, work: Callable[[], T], cursor: Any) -> T:
        return waited(work, cursor.adbc_cancel)

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        import adbc_driver_manager

        try:
            yield
        except adbc_driver_manager.Error as error:
            self._fail(error.sqlstate or "")
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno:
                raise  # of a file of ours
            self._fail("")  # Arrow loses the code

    def _fail(self, state: str) -> NoReturn:
        why = next((_STATES[one] for one in _STATES if state and state.startswith(one)), None)
        kind = AlreadyExists if state == "42P07" and self._failed is OutputError else self._failed
        code = f"SQLSTATE {state}; " if state and state.isalnum() else ""
        raise kind(f"{self.name}: {why or f'{_STOPPED} ({code}psql says more)'}") from None


@contextmanager
def connected(address: str, *, failed: type[ShoalError] = UnreadableFile) -> Iterator[Session]:
    """Open a session; what was not committed when the block ends never was. Raises `failed` for all that goes wrong."""
    name, database = shown(address), database_of(address)
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise failed(f"{name}: {_MISSING}") from None
    given = database.connection.partition("?")[2]
    own = [f"{key}={value}" for key, value in _DEFAULTS.items() if f"{key}=" not in given]
    target = database.connection + ("&" if given else "?") + "&".join(own)
    try:
        connection = waited(lambda: dbapi.connect(target), lambda: None)
    except dbapi.Error as error:
        said = str(error)
        why = next((_WHY_NOT[part] for part in _WHY_NOT if part in said), None)
        raise failed(f"{name}: {why or 'no server answers there; check host and port'} (psql may say more)") from None
    try:
        yield Session(connection, name, failed)
    finally:
        with suppress(Exception):  # what was not committed is dropped by the server in any case
            connection.close()


def waited(work: Callable[[], T], cancel: Callable[[], object]) -> T:
    """Return the result of work in a thread; while waiting, a signal can raise, and the work is cancelled then.

    >>> waited(lambda: 1 + 1, lambda: None)
    2
    """
    done, results, errors = Event(), [], []

    def carried_out() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    thread = Thread(target=carried_out, daemon=True)
    thread.start()
    try:
        while not done.wait(_LOOK_S):
            pass
    except BaseException:
        with suppress(Exception):
            cancel()
        done.wait(_PATIENCE_S)
        raise
    if errors:
        raise errors[0]
    return results[0]


def identifier(*names: str) -> str:
    """Quote the name of a column, or of a table with its schema, for SQL.

    >>> identifier("releases", "March 2026")
    '"releases"."March 2026"'
    """
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)


def literal(text: str) -> str:
    """Quote a text for SQL.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def as_text(column: str, kind: str) -> str:
    """Return SQL for a column so that it arrives as it is: as numbers, texts and times, everything else as text.

    >>> as_text("age", "integer"), as_text("who", "uuid")
    ('q."age"', 'CAST(q."who" AS text) AS "who"')
    """
    name = identifier(column)
    if kind in _TIMES:  # infinity is no time
        return f"CASE WHEN isfinite(q.{name}) THEN q.{name} END AS {name}"
    return f"q.{name}" if kind in _KEPT else f"CAST(q.{name} AS text) AS {name}"


_TIMES = ("timestamp with time zone", "timestamp without time zone", "date")
_KEPT = ("boolean", "smallint", "integer", "bigint", "real", "double precision", "text", "character varying")


def require_table(address: str, failed: type[ShoalError]) -> tuple[str, ...]:
    """Return the table that an address names; raises `failed` if it has a query instead."""
    table = database_of(address).table
    if table is None:
        raise failed(f"{shown(address)}: a release is a table, not a query; name it with ?table=schema.table")
    return table
