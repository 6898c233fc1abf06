"""Forms: kinds of input that the engine can't open itself, each with the function that turns it into one it can.

A *bringer* is a function `bring(path, folder, name)`. It reads a file and writes one or several files, text in UTF-8 or
Parquet, into a private folder. A *fetcher* `fetch(source, folder, advance)` does so with what an address such as
`s3://…` names. Nothing of the input is written anywhere else. Both return what they wrote, each with the path that may
tell the user, if that is not the path of the input. A new kind is one module here and one line in a table below.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from shoal.stores.addresses import DATABASES, OBJECTS, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ENDINGS",
    "SCHEMES",
    "Bringer",
    "Brought",
    "Fetcher",
    "bringer_of_ending",
    "bringer_of_scheme",
    "inner_path",
]

# Modules are named, not imported: some need libraries that are heavy or optional.
ENDINGS = {
    ".bz2": "packed:bring_unpacked",
    ".xz": "packed:bring_unpacked",
    ".zip": "packed:bring_members",
    ".xlsx": "sheets:bring_sheets",
    ".xlsm": "sheets:bring_sheets",
    ".ods": "sheets:bring_sheets",
    ".arrow": "columnar:bring_columnar",
    ".feather": "columnar:bring_columnar",
    ".ipc": "columnar:bring_columnar",
    ".jsonl": "records:bring_records",
    ".ndjson": "records:bring_records",
    ".json": "records:bring_records",
    **dict.fromkeys((".geojson", ".geojsonl", ".geojsons", ".ndgeojson", ".mfjson"), "geojson:bring_geojson"),
    ".gpx": "gpx:bring_gpx",
}
SCHEMES = {
    **dict.fromkeys(DATABASES, "postgres:bring_table"),
    **dict.fromkeys(OBJECTS, "objects:bring_objects"),
}


class Brought(NamedTuple):
    """A file that was written, and the path inside the input that may tell the user; None where there is none."""

    path: Path
    told: PurePath | None = None


class Bringer(Protocol):
    """Brings a file into a folder; returns the files that were written, in the order of the input."""

    def __call__(self, path: Path, folder: Path, name: str) -> list[Brought]:
        """Read the file at `path`, called `name` in messages, and write it into `folder` as text or Parquet."""
        ...


class Fetcher(Protocol):
    """Brings what an address names, as a `Bringer` does; `advance` is told of rows or bytes as they come."""

    def __call__(self, source: str, folder: Path, advance: Callable[[float], None]) -> list[Brought]:
        """Fetch what the address `source` names, and write it into `folder` as text or Parquet."""
        ...


def bringer_of_ending(name: str) -> Bringer | None:
    """Return the bringer for a file's name, or None if the engine opens such files itself or nobody can.

    >>> bringer_of_ending("events.csv") is None
    True
    """
    found = _load(next((ENDINGS[ending] for ending in ENDINGS if name.lower().endswith(ending)), None))
    return cast("Bringer | None", found)


def bringer_of_scheme(source: str) -> Fetcher | None:
    """Return the bringer for an address such as `s3://…`, or None if `source` is no address that is known."""
    return cast("Fetcher | None", _load(SCHEMES.get(scheme_of(source) or "")))


def inner_path(name: str) -> PurePosixPath:
    """Return the path of a file inside an archive or a store, without parts that lead elsewhere.

    >>> inner_path("../../a/./b.csv"), inner_path("/etc/c.csv")
    (PurePosixPath('a/b.csv'), PurePosixPath('etc/c.csv'))
    """
    return PurePosixPath(*(part for part in name.split("/") if part.strip("./")))


def _load(name: str | None) -> object:
    if name is None:
        return None
    module, _, function = name.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), function)
