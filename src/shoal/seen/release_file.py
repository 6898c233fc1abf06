"""Read a release back from its files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.errors import UnreadableFile
from shoal.publishing.schema import release_from_table
from shoal.publishing.write import manifest_path

if TYPE_CHECKING:
    from shoal.points import PointRelease
    from shoal.release import Release

__all__ = ["read_release"]


def read_release(path: str | Path) -> Release | PointRelease:
    """Return the release, of boxes or points, of a published file; its manifest must be there and fit.

    Raises UnreadableFile if the file or manifest is missing, broken, or the hash differs. Cost: linear.

    >>> read_release("nowhere.parquet")
    Traceback (most recent call last):
    shoal.errors.UnreadableFile: nowhere.parquet or its manifest is missing: not a release
    """
    path = Path(path)
    try:
        manifest = json.loads(manifest_path(path).read_text())
        with path.open("rb") as file:
            fits = manifest["files"][path.name] == hashlib.file_digest(file, "sha256").hexdigest()
        shoal, counts, seeded = manifest["shoal"], manifest["counts"], bool(manifest["seeded"])
    except OSError:
        raise UnreadableFile(f"{path.name} or its manifest is missing: not a release") from None
    except (ValueError, KeyError, TypeError):
        raise UnreadableFile(f"the manifest of {path.name} is not one of a shoal release") from None
    if not fits:
        raise UnreadableFile(f"{path.name} is not the file its manifest speaks of: it was changed after publishing")
    return release_from_table(_table(path), shoal, counts, seeded=seeded)


def _table(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".parquet":
            return pq.read_table(path)
        times = {name: pa.timestamp("ms", tz="UTC") for name in ("t_start", "t_end", "datetime")}
        return pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types=times))
    except pa.ArrowException:
        raise UnreadableFile(f"{path.name} can't be read as a release") from None
