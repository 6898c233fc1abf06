"""Private folders for work in progress: beside the output, mode 0700, swept when their run is gone."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["private_folder"]

_PREFIX, _NEW = ".shoal-", ".new-shoal-"
_LOCK = "lock"
_ABANDONED_S = 3600


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Open a private folder in `parent`; it is gone after any exit but SIGKILL, and the next run sweeps then.

    It gets its final name only when its lock is held, so that nobody else's sweep can take it for a dead one.
    """
    try:
        _sweep(parent)
        new = Path(tempfile.mkdtemp(prefix=_NEW, dir=parent))
    except OSError as error:
        raise OutputError(
            f"can't make a private folder ({error.strerror}); choose another output folder or --work-dir"
        ) from None
    folder = new
    try:
        with (new / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = new.rename(parent / new.name.replace(_NEW, _PREFIX, 1))
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove folders whose run no longer holds its lock: it was killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another run's, alive
    for folder in parent.glob(f"{_NEW}*"):  # killed before it was locked, or about to be
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)
