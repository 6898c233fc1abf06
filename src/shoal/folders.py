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
from typing import IO, TYPE_CHECKING

from shoal.errors import AlreadyExists, OutputError
from shoal.interrupt import undisturbed
from shoal.switch import LOCK, PREFIX, is_needed, mend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["drop_kept", "kept_folder", "private_folder", "refuse_existing"]

_NEW, _KEPT = ".new-shoal-", ".kept-shoal-"
_ABANDONED_S = 3600


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Open a private folder in `parent`; it is removed on exit or, after SIGKILL, by the next run.

    It gets its final name only when its lock is held, so that another run's sweep does not remove it. A folder with
    files of a switch that is neither finished nor taken back stays until it is (`shoal.switch.mend`).
    """
    try:
        _sweep(parent)
        new = Path(tempfile.mkdtemp(prefix=_NEW, dir=parent))
    except OSError as error:
        raise OutputError(
            f"can't make a private folder ({error.strerror}); choose another output folder or `work_dir`"
        ) from None
    folder = new
    try:
        with (new / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = new.rename(parent / new.name.replace(_NEW, PREFIX, 1))
            yield folder
    finally:
        with undisturbed():
            _drop(folder)


@contextmanager
def kept_folder(parent: Path, name: str, key: str) -> Iterator[Path]:
    """Open the private folder for a run's finished parts; it is removed only after success.

    `name` is the run's output: each output has one folder. The parts of an earlier run are kept if its `key` was the
    same, and removed if not. Raises OutputError if another run is using the folder.
    """
    folder = _kept(parent, name)
    with _kept_lock(folder):
        inside = folder / key
        try:
            for other in folder.iterdir():
                if other.name not in (key, LOCK):
                    shutil.rmtree(other, ignore_errors=True)
            inside.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise _not_kept(error) from None
        yield inside
        shutil.rmtree(folder, ignore_errors=True)


def _kept_lock(folder: Path) -> IO[str]:
    """Make and lock the folder of finished parts; the lock is held until the file that is returned is closed."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise OutputError("the folder of finished parts is not private; remove it or choose another `work_dir`")
        lock = os.fdopen(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600), "r+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException:
            lock.close()
            raise
    except BlockingIOError:
        raise OutputError("another run is making this output now; wait for it, or choose another output") from None
    except OSError as error:
        raise _not_kept(error) from None
    return lock


def _not_kept(error: OSError) -> OutputError:
    return OutputError(f"can't keep finished parts ({error.strerror}); choose another `work_dir`")


def drop_kept(parent: Path, name: str) -> None:
    """Remove the finished parts of an interrupted run for this output, unless that run is still alive."""
    folder = _kept(parent, name)
    with suppress(OSError), (folder / LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _kept(parent: Path, name: str) -> Path:
    return parent / f"{_KEPT}{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _sweep(parent: Path) -> None:
    """Remove the folders of killed runs, which hold their lock no more; mend the publications they had decided."""
    mend(parent)
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            with (folder / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _drop(folder)
        except FileNotFoundError:  # killed while it was being removed
            _drop(folder)
        except OSError:
            continue  # another run's, alive
    for folder in parent.glob(f"{_NEW}*"):  # killed before it was locked, or about to be
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)


def _drop(folder: Path) -> None:
    if not is_needed(folder):
        shutil.rmtree(folder, ignore_errors=True)


def refuse_existing(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Check that every path can be written: its folder exists, and it is free or may be replaced. Raises otherwise.

    A publication into these folders that a killed run had decided is mended first.
    """
    wanted = list(paths)
    for parent in dict.fromkeys(path.parent for path in wanted):
        mend(parent)
    for path in wanted:
        if not path.parent.is_dir():
            raise OutputError(f"the folder of {path.name} does not exist; make it first")
        if not os.access(path.parent, os.W_OK):
            raise OutputError(f"the folder of {path.name} can't be written to; choose another")
        if path.is_dir():
            raise OutputError(f"{path.name} is a folder; name a file, e.g. release.parquet")
        if path.exists() and not overwrite:
            raise AlreadyExists(f"{path.name} is there already; choose another name or give `overwrite`")
