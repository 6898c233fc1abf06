"""Folders: where outputs may go, and private folders for work in progress (mode 0700, swept when their run is gone)."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import AlreadyExists, OutputError
from shoal.interrupt import undisturbed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["drop_kept", "kept_folder", "private_folder", "refuse_existing", "sync_folder"]

_PREFIX, _NEW, _KEPT = ".shoal-", ".new-shoal-", ".kept-shoal-"
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
        with undisturbed():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def kept_folder(parent: Path, name: str, key: str) -> Iterator[Path]:
    """Open the private folder in which a run keeps what it has finished; it is gone only after success.

    `name` is the run's output: one folder for each. What an earlier run kept is there if its `key` was the same,
    and thrown away if not. Raises OutputError if another run is at it.
    """
    folder = _kept(parent, name)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise OutputError("the folder of finished parts is not private; remove it or choose another --work-dir")
        with os.fdopen(os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for other in folder.iterdir():
                if other.name not in (key, _LOCK):
                    shutil.rmtree(other, ignore_errors=True)
            inside = folder / key
            inside.mkdir(mode=0o700, exist_ok=True)
            yield inside
            shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        raise OutputError("another run is making this output now; wait for it, or choose another output") from None
    except OSError as error:
        raise OutputError(f"can't keep finished parts ({error.strerror}); choose another --work-dir") from None


def drop_kept(parent: Path, name: str) -> None:
    """Throw away what an interrupted run for this output has kept, unless that run is still alive."""
    folder = _kept(parent, name)
    with suppress(OSError), (folder / _LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _kept(parent: Path, name: str) -> Path:
    return parent / f"{_KEPT}{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _sweep(parent: Path) -> None:
    """Remove folders whose run no longer holds its lock: it was killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:  # killed while it was being removed
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another run's, alive
    for folder in parent.glob(f"{_NEW}*"):  # killed before it was locked, or about to be
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)


def refuse_existing(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Raise unless every path can be written: its folder is there, and it is free or may be replaced."""
    for path in paths:
        if not path.parent.is_dir():
            raise OutputError(f"the folder of {path.name} does not exist; make it first")
        if not os.access(path.parent, os.W_OK):
            raise OutputError(f"the folder of {path.name} can't be written to; choose another")
        if path.is_dir():
            raise OutputError(f"{path.name} is a folder; name a file, e.g. release.parquet")
        if path.exists() and not overwrite:
            raise AlreadyExists(f"{path.name} is there already; choose another name or give --overwrite")


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
