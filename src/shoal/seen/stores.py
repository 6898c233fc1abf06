"""Releases in databases and object stores, brought as an outsider would: into a private folder, as files."""

from __future__ import annotations

import json
import tempfile
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import CannotCheck
from shoal.folders import private_folder
from shoal.release import Release
from shoal.stores.addresses import DATABASES, OBJECTS, address_of, file_name, scheme_of, shown
from shoal.stores.released import STORED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.run import Run

__all__ = ["brought", "stored_hashes"]

_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


@contextmanager
def brought(release: str | Path | Release, run: Run) -> Iterator[Path | Release]:
    """Yield a release that can be opened: what an address names is fetched with its manifest, for as long as needed.

    Raises CannotCheck if it is not there or can't be read. A file or a release in memory is yielded as it is.
    """
    if not isinstance(release, str | PathLike | Release):
        raise CannotCheck("the release is neither a file nor a Release; the original comes first, then the release")
    address = address_of(release)
    if address is None:
        yield release if isinstance(release, Release) else Path(release)
        return
    with private_folder(run.work_dir or Path(tempfile.gettempdir())) as folder:
        with run.stage("fetching the release"):
            target = folder / file_name(address)
            _bring(address, target)
        yield target


def stored_hashes(release: Path) -> dict[str, str] | None:
    """Return the hashes of a release that was brought from a database, as its manifest there states them."""
    try:
        hashes: dict[str, str] = json.loads(release.with_name(f"{release.name}{STORED}").read_bytes())
    except FileNotFoundError:
        return None
    return hashes


def _bring(address: str, target: Path) -> None:
    """Write what an address names into a file, and its manifest beside it."""
    scheme = scheme_of(address)
    if scheme in DATABASES:
        from shoal.stores.postgres import connected, require_table
        from shoal.stores.released import bring_release

        with connected(address, failed=CannotCheck) as session:
            session.execute(_SNAPSHOT)
            bring_release(session, require_table(address, CannotCheck), target)
        return
    if scheme not in OBJECTS:
        raise CannotCheck(f"{scheme}:// addresses can't be read; name a file")
    from shoal.stores.objects import copied_from, opened_bucket

    with opened_bucket(address, failed=CannotCheck) as bucket:
        found = {one.path for path in (bucket.path, f"{bucket.path}.manifest.json") for one in bucket.objects(path)}
        if bucket.path not in found:
            raise CannotCheck(f"{shown(address)}: there is no such object; name the data object of a release")
        copied_from(bucket, bucket.path, target)
        if f"{bucket.path}.manifest.json" in found:
            copied_from(bucket, f"{bucket.path}.manifest.json", target.with_name(f"{target.name}.manifest.json"))
