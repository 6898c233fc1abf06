"""Owners: where no column tells whose rows they are, the name of the file or the folder does, if one is told so."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import ColumnsNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.reading.sources import Source

__all__ = ["FROM_PATH", "folder_of", "load_owners", "stem"]

FROM_PATH = ("@file", "@folder")  # what can be given as the column of the user
_ENDINGS = re.compile(
    r"\.(csv|tsv|txt|plt|parquet|pq|gpx|geojson|geojsonl|geojsons|ndgeojson|json|xlsx|zip|gz|zst|bz2)$", re.IGNORECASE
)


def stem(name: str) -> str:
    """Return the name of a file without the endings that say of which kind it is.

    >>> stem("007.csv.gz"), stem("ann.b.gpx")
    ('007', 'ann.b')
    """
    while (shorter := _ENDINGS.sub("", name)) not in {name, ""}:
        name = shorter
    return name


def folder_of(path: Path, asked: str | Path) -> str:
    """Return the folder that tells whose file this is: the first one below the folder or pattern that was asked for.

    For a file that was itself asked for, it is the folder that holds it.

    >>> folder_of(Path("/data/000/Trajectory/1.plt"), "/data"), folder_of(Path("/data/000/1.plt"), "/data/000/1.plt")
    ('000', '000')
    >>> folder_of(Path("/data/000/Trajectory/1.plt"), "/data/*/Trajectory/*.plt")
    '000'
    """
    root = Path(asked).absolute()
    if not root.exists() and glob.has_magic(str(root)):
        parts = root.parts
        root = Path(*parts[: next(n for n, part in enumerate(parts) if glob.has_magic(part))])
    below = path.relative_to(root).parts[:-1] if path.is_relative_to(root) else ()
    return below[0] if below else path.parent.name


def load_owners(engine: Any, name: str, sources: Sequence[Source], kind: str) -> None:
    """Load whose file each source is into a temporary table with this name: shoal_path, shoal_owner."""
    if kind == "@folder" and not all(one.folder for one in sources):
        raise ColumnsNotFound(f'{sources[0].name}: has no folder that could be the user; give `columns="user=…"`')
    engine.execute(f"CREATE TEMP TABLE {name} (shoal_path VARCHAR, shoal_owner VARCHAR)")
    rows = [(str(one.path), one.folder if kind == "@folder" else one.file or stem(one.name)) for one in sources]
    engine.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows)  # noqa: S608  our own name
