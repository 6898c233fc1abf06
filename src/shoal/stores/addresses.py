"""Addresses: `postgresql://…?table=…`, `s3://…`. How they are told from files, taken apart, and shown without secrets.

An address can hold a password, a user and a host. Only `shown` may put it into a message, a file or a title.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from shoal.errors import SettingsError

if TYPE_CHECKING:
    import os

__all__ = [
    "DATABASES",
    "OBJECTS",
    "Database",
    "Place",
    "address_of",
    "database_of",
    "file_name",
    "hide_addresses",
    "is_address",
    "object_parts",
    "place",
    "same_place",
    "scheme_of",
    "shown",
]

Place = Path | str  # a file, or an address as text
DATABASES = ("postgresql", "postgres")
OBJECTS = ("s3", "gs", "az")
_NAME = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([A-Za-z_][A-Za-z0-9_$]*))\s*')
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+]*://[^\s\"'`<>]+")
_PLAIN = re.compile(r"[^\w.=*-]", re.ASCII)
_HOW = (
    "end the address with ?table=TABLE, or with ?query=SELECT …; the query comes last and is taken as it is typed, "
    "e.g. 'postgresql://host/db?query=SELECT uid, datetime, lat, lng FROM events'"
)


@dataclass(frozen=True, repr=False)
class Database:
    """An address of a database: what libpq connects to, and a table (its schema, if given, and its name) or a query.

    It has no representation as text, because it can hold a password.
    """

    connection: str
    table: tuple[str, ...] | None = None
    query: str | None = None

    @property
    def same(self) -> tuple[str, tuple[str, ...] | None]:
        """What is equal for two addresses of one table, as far as the addresses tell: not the user, nor options."""
        return re.sub(r"//[^/@]*@", "//", self.connection.partition("?")[0]), self.table


def scheme_of(text: str) -> str | None:
    """Return the scheme of an address, or None for the name of a file.

    >>> scheme_of("s3://bucket/events.parquet"), scheme_of("events.parquet")
    ('s3', None)
    """
    scheme, mark, _ = text.partition("://")
    return scheme.lower() if mark and scheme.replace("+", "").isalnum() else None


def is_address(place: object) -> bool:
    """Return whether something names a database or an object store, and not a file.

    >>> is_address("postgresql://db/town?table=events"), is_address("events.parquet")
    (True, False)
    """
    return isinstance(place, str) and scheme_of(place) is not None


def place(text: str | os.PathLike[str]) -> Place:
    """Return what was typed as a path, or as text if it is an address (a path would lose one of its slashes).

    >>> place("s3://bucket/events.parquet"), place("events.parquet").name
    ('s3://bucket/events.parquet', 'events.parquet')
    """
    return text if isinstance(text, str) and is_address(text) else Path(text)


def address_of(place: object) -> str | None:
    """Return an address as text; None for a file or anything else."""
    return place if isinstance(place, str) and is_address(place) else None


def shown(place: object) -> str:
    """Return the name to print: of a file its name, of an address what holds no host, user, password, bucket or SQL.

    >>> shown("postgresql://ann:secret@db.example/town?table=releases.march")
    'postgresql://…?table=releases.march'
    >>> shown("postgresql://db/town?query=SELECT * FROM events"), shown("s3://bucket/private/events.parquet")
    ('postgresql://…?query=…', 's3://…/events.parquet')
    """
    scheme = scheme_of(place) if isinstance(place, str) else None
    if not isinstance(place, str) or scheme is None:
        return Path(str(place)).name
    rest = place.partition("://")[2]
    if scheme not in DATABASES:
        path = re.split(r"[?#]", rest, maxsplit=1)[0].rstrip("/")
        folder, slash, name = path.rpartition("/")
        return f"{scheme}://…/{_PLAIN.sub('_', name)}" if slash and folder else f"{scheme}://…"
    for option in rest.partition("?")[2].split("&"):
        name, _, value = option.partition("=")
        if name.lower() == "query":
            return f"{scheme}://…?query=…"
        if name.lower() == "table":
            return f"{scheme}://…?table={_PLAIN.sub('_', unquote(value))}"
    return f"{scheme}://…"


def hide_addresses(message: str) -> str:
    """Return a message with any address in it as `shown`: for messages of other libraries, which quote what was typed.

    >>> hide_addresses("Unused Tokens: ['postgresql://ann:secret@db/town?table=t']")
    "Unused Tokens: ['postgresql://…?table=t']"
    """
    return _ADDRESS.sub(lambda found: shown(found[0]), message)


def database_of(address: str) -> Database:
    """Take the address of a database apart; raises SettingsError.

    `table` and `query` are ours. All else goes to libpq as it is: user, password, host, port, `sslmode`, `service` and
    what else libpq knows. `query` comes last; all that follows it is SQL, as it is typed.

    >>> database_of("postgresql://db/town?sslmode=require&table=Releases.march").table
    ('releases', 'march')
    >>> database_of("postgresql:///town?query=SELECT * FROM events WHERE a = '1&2'").query
    "SELECT * FROM events WHERE a = '1&2'"
    """
    base, _, options = address.partition("?")
    kept, table, query = [], None, None
    while options:
        option, _, others = options.partition("&")
        name, _, value = option.partition("=")
        if name.lower() == "query":
            query = options.partition("=")[2].strip().rstrip(";").strip()
            break
        if name.lower() == "table":
            if table is not None:
                raise SettingsError(f"an address has one table; {_HOW}")
            table = _table(unquote(value))
        else:
            kept.append(option)
        options = others
    if (table is None) == (not query):
        raise SettingsError(f"the address of a database names a table or a query: {_HOW}")
    connection = "postgresql" + base[base.index("://") :]
    return Database(f"{connection}?{'&'.join(kept)}" if kept else connection, table, query or None)


def _table(text: str) -> tuple[str, ...]:
    """Read the name of a table as SQL does: parts with dots between; lower case unless it is in double quotes."""
    parts: list[str] = []
    at = 0
    while found := _NAME.match(text, at):
        parts.append(found[1].replace('""', '"') if found[1] else found[2].lower())
        at = found.end() + 1
        if text[found.end() : at] != ".":
            break
    if not parts or len(parts) > 2 or at <= len(text) or any("\0" in part or len(part.encode()) > 63 for part in parts):
        raise SettingsError('?table= takes a table or schema.table; other names in double quotes: ?table="My table"')
    return tuple(parts)


def object_parts(address: str) -> tuple[str, str, str]:
    """Take the address of objects apart: the scheme, bucket/key, and the options after `?`; raises SettingsError.

    >>> object_parts("s3://bucket/a/b.parquet?region=eu-west-1")
    ('s3', 'bucket/a/b.parquet', 'region=eu-west-1')
    """
    scheme, _, rest = address.partition("://")
    path, mark, options = rest.rpartition("?")
    if not mark or "=" not in options:  # a question mark of a pattern, or none
        path, options = rest, ""
    path = path.strip("/") + ("/" if path.endswith("/") else "")
    if not path.strip("/"):
        raise SettingsError(f"the address of an object names its bucket and its key: {scheme.lower()}://bucket/key")
    return scheme.lower(), path, options


def same_place(output: str, source: str) -> bool:
    """Return whether an output is what an input names, or lies inside of it, as far as the addresses tell.

    >>> same_place("postgresql://ann@db/town?table=t", "postgresql://db/town?sslmode=require&table=t")
    True
    >>> same_place("s3://bucket/a/out.parquet", "s3://bucket/a"), same_place("s3://b/out.csv", "s3://b/out-1.csv")
    (True, False)
    """
    kinds = ["postgresql" if scheme_of(one) in DATABASES else scheme_of(one) for one in (output, source)]
    if kinds[0] != kinds[1]:
        return False
    if kinds[0] == "postgresql":
        return database_of(output).table is not None and database_of(output).same == database_of(source).same
    ours, theirs = (object_parts(one)[1].rstrip("/") for one in (output, source))
    return ours == theirs or ours.startswith(f"{theirs}/")


def file_name(address: str) -> str:
    """Return the name of the local file that stands for what an address names.

    >>> file_name("postgresql:///town?table=releases.march"), file_name("s3://bucket/2026/march.csv")
    ('march.parquet', 'march.csv')
    """
    if scheme_of(address) in DATABASES:
        table = database_of(address).table or ("query",)
        return f"{_PLAIN.sub('_', table[-1])}.parquet"
    return object_parts(address)[1].rstrip("/").rpartition("/")[2]
