"""Folders: where outputs may go, and private folders for work in progress (mode 0700, swept when their run is gone)."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
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

__all__ = ["drop_kept", "kept_folder", "mend", "private_folder", "refuse_existing", "switch", "sync_folder"]

_PREFIX, _NEW, _KEPT = ".shoal-", ".new-shoal-", ".kept-shoal-"
_LOCK, _JOURNAL, _OLD = "lock", "switch.json", "old-"
_LOG = logging.getLogger("shoal")
_ABANDONED_S = 3600


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Open a private folder in `parent`; it is removed on exit or, after SIGKILL, by the next run.

    It gets its final name only when its lock is held, so that another run's sweep does not remove it.
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
    """Open the private folder for a run's finished parts; it is removed only after success.

    `name` is the run's output: each output has one folder. The parts of an earlier run are kept if its `key` was the
    same, and removed if not. Raises OutputError if another run is using the folder.
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
    """Remove the finished parts of an interrupted run for this output, unless that run is still alive."""
    folder = _kept(parent, name)
    with suppress(OSError), (folder / _LOCK).open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _kept(parent: Path, name: str) -> Path:
    return parent / f"{_KEPT}{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def mend(parent: Path) -> None:
    """Finish and log the publication into this folder that a killed run had started. Never raises OSError."""
    for journal in parent.glob(f"{_PREFIX}*/{_JOURNAL}"):
        with suppress(OSError, ValueError), (journal.parent / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_private(journal.parent):
                _finish(journal.parent)


def _sweep(parent: Path) -> None:
    """Remove the folders of killed runs, which hold their lock no more; finish a publication that they had started."""
    mend(parent)
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            with (folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not (folder / _JOURNAL).exists():
                    shutil.rmtree(folder, ignore_errors=True)
        except FileNotFoundError:  # killed while it was being removed
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # another run's, alive
    for folder in parent.glob(f"{_NEW}*"):  # killed before it was locked, or about to be
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(folder, ignore_errors=True)


def switch(files: list[tuple[Path, Path]], *, overwrite: bool = False) -> None:
    """Move files out of their private folders into place, all or none, as one step that no signal can split.

    Input: pairs of the new file, in a `private_folder` of the same disk, and its target. The last one, the manifest,
    makes the release valid. Guarantee: if it returns, all new files are in place; if it raises AlreadyExists or
    OutputError, everything is as it was before. From the journal on, which is written first, a run that is killed is
    finished by the next command (`mend`), so that nothing is lost in between.
    """
    folders = list(dict.fromkeys(new.parent for new, _ in files))
    with undisturbed(too_late=True):
        try:
            for folder in folders:
                _write_journal(folder, files)
        except OSError as error:
            _forget(folders)
            raise OutputError(f"writing failed ({error.strerror or 'I/O error'}); nothing was published") from None
        moved: list[tuple[Path, Path | None]] = []
        try:
            for number, (new, target) in enumerate(files):
                if overwrite:
                    moved.append((target, _set_aside(target, new.parent / f"{_OLD}{number}")))
                    new.replace(target)
                else:
                    _move_new(new, target)
                    moved.append((target, None))
            for folder in dict.fromkeys(target.parent for _, target in files):
                sync_folder(folder)
        except OSError as error:
            _take_back(moved)
            _forget(folders)
            if isinstance(error, FileExistsError):
                raise AlreadyExists("a file of that name has appeared meanwhile; nothing was published") from None
            before = "; the release that was there is as it was" if any(old for _, old in moved) else ""
            raise OutputError(f"moving into place failed ({error.strerror}); nothing was published{before}") from None
        _forget(folders)


def _write_journal(folder: Path, files: list[tuple[Path, Path]]) -> None:
    """Write the journal: which files move where, and which are there now. After that, the switch will be finished."""
    moves = [
        [str(new.resolve()), str(target.parent.resolve() / target.name), _identity(target)] for new, target in files
    ]
    draft = folder / f"{_JOURNAL}.new"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(moves, file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / _JOURNAL)
    sync_folder(folder)


def _identity(path: Path) -> list[int] | None:
    """Return the identity of a file, which another file of the same name does not have; None if there is no file."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return [state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns]


def _is_private(folder: Path) -> bool:
    """Return whether a folder is this user's own and closed to others: nobody else can have written a journal there."""
    state = folder.lstat()
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o077


def _set_aside(target: Path, place: Path) -> Path | None:
    """Keep the file at the target under a second name, and return that; None if there is no file."""
    try:
        place.hardlink_to(target)
    except FileNotFoundError:
        return None
    except OSError:  # a file system without links
        shutil.copy2(target, place)
    return place


def _move_new(new: Path, target: Path) -> None:
    """Move a file to a free path; raises FileExistsError if a file has appeared there meanwhile."""
    try:
        target.hardlink_to(new)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        new.replace(target)


def _take_back(moved: list[tuple[Path, Path | None]]) -> None:
    """Restore the files that were there before."""
    for target, old in moved:
        with suppress(OSError):
            target.unlink(missing_ok=True) if old is None else old.replace(target)


def _forget(folders: list[Path]) -> None:
    """Remove the journals after the switch is done or undone."""
    for folder in folders:
        for name in (_JOURNAL, f"{_JOURNAL}.new"):
            with suppress(OSError):
                (folder / name).unlink(missing_ok=True)


def _finish(folder: Path) -> None:
    """Finish a switch whose run was killed: move what is not yet in place, then remove the private folders.

    If somebody has put another file in place since, nothing is moved.
    """
    moves = [(Path(new), Path(target), was) for new, target, was in json.loads((folder / _JOURNAL).read_text())]
    waiting = [(new, target, was) for new, target, was in moves if new.exists()]
    name = moves[-1][1].name.removesuffix(".manifest.json")
    if all(_identity(target) in (was, _identity(new)) for new, target, was in waiting):
        for new, target, _ in waiting:
            new.replace(target)
            sync_folder(target.parent)
        _LOG.warning("an interrupted publication of %s was finished", name)
    else:
        _LOG.warning("an interrupted publication of %s was dropped: its files were changed meanwhile", name)
    for private in dict.fromkeys([*(new.parent for new, _, _ in moves), folder]):
        shutil.rmtree(private, ignore_errors=True)


def refuse_existing(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Check that every path can be written: its folder exists, and it is free or may be replaced. Raises otherwise."""
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
