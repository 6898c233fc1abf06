"""Files in object stores: an object, all below a prefix, or those that fit a pattern, brought one after the other."""

from __future__ import annotations

import errno
import re
import shutil
from typing import TYPE_CHECKING

from shoal.errors import OutputError, TooLarge, UnreadableFile
from shoal.memory import human_bytes
from shoal.reading.engine import DISK_FULL
from shoal.reading.forms import Brought, inner_path
from shoal.reading.paths import ending_of
from shoal.reading.sources import is_data
from shoal.stores.addresses import shown
from shoal.stores.objects import Bucket, Stored, copied_from, opened_bucket

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["bring_objects", "pattern"]

_MAGIC = re.compile(r"[*\[]")


def bring_objects(source: str, folder: Path, advance: Callable[[float], None]) -> list[Brought]:
    """Copy the objects that an address names into a folder, unpack what must be, and return the files' paths.

    Of a prefix the objects with a known ending are taken, but nothing with a dot or an underscore at the beginning of
    a part of its key. Raises UnreadableFile where there is nothing, TooLarge if the disk is too small.
    """
    name = shown(source)
    with opened_bucket(source) as bucket:
        found = _found(bucket, name)
        size, free = sum(one.size for one in found), shutil.disk_usage(folder).free
        if size > free:
            raise TooLarge(
                f"{name}: the objects take {human_bytes(size)}, more than the {human_bytes(free)} that are free on "
                "disk; make room, or choose another `work_dir`"
            )
        files: list[Brought] = []
        for number, one in enumerate(found):
            inner = inner_path(one.path)
            target = folder / f"{number}{ending_of(inner.name)}"
            try:
                copied_from(bucket, one.path, target, advance)
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    raise OutputError(DISK_FULL) from None
                raise
            files.append(Brought(target, inner))
    return files


def _found(bucket: Bucket, name: str) -> list[Stored]:
    """Return the objects that an address names."""
    path = bucket.path
    if magic := _MAGIC.search(path):
        base = path[: magic.start()].rpartition("/")[0]
        if not base:
            raise UnreadableFile(f"{name}: the name of the bucket can't be a pattern")
        fits = pattern(path)
        found = [one for one in bucket.objects(f"{base}/") if fits.fullmatch(one.path)]
        if not found:
            raise UnreadableFile(f"{name}: no object matches; check the pattern and its quotes")
        return found
    found = bucket.objects()
    if not found:
        raise UnreadableFile(f"{name}: there is no such object, and none below that name")
    if [one.path for one in found] == [path]:
        return found
    below = [one for one in found if is_data(one.path) and not _hidden(one.path[len(path.rstrip("/")) :])]
    if not below:
        raise UnreadableFile(f"{name}: no object below that name has an ending of events (.csv, .parquet …)")
    return below


def _hidden(key: str) -> bool:
    return any(part.startswith((".", "_")) for part in key.strip("/").split("/"))


def pattern(path: str) -> re.Pattern[str]:
    """Return the pattern of paths that a glob means: `*` stays within a part of the key, `**` does not.

    >>> bool(pattern("b/2026-*/x.csv").fullmatch("b/2026-03/x.csv")), bool(pattern("b/*.csv").fullmatch("b/a/x.csv"))
    (True, False)
    """
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    split = re.split(r"(\*\*/|\*\*|\*|\[[^\]/]+\])", path)
    return re.compile("".join(parts.get(one) or (one if n % 2 else re.escape(one)) for n, one in enumerate(split)))
