"""Private folders: how they are made, recognised and removed.

A private folder belongs to one run: mode 0700, `.shoal-` and 32 hexadecimal digits as its name, and in it a file `lock`
that the run keeps locked. The file says whose folder this is, by name: a folder that somebody else made, whatever it is
called and holds, is never taken for one of ours. A run is alive as long as its lock is held.

The lock goes last when a folder is removed. So what is left of one is still recognised, whenever its run was killed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path

from shoal.errors import OutputError

__all__ = ["LOCK", "PREFIX", "is_ours", "make", "private_folders", "remove", "remove_empty", "take"]

PREFIX, LOCK = ".shoal-", "lock"
_NAME = re.compile(r"\.(kept-)?shoal-[0-9a-f]{32}")
_TRIES, _PAUSE_S = 25, 0.02  # how long another run may take to look whether a folder is still in use


def make(parent: Path, name: str | None = None) -> tuple[Path, int]:
    """Make a private folder and lock it, or lock the one of this name; return it and its lock, to be closed last.

    Without a name, the folder is new. Raises BlockingIOError if another run holds it, OSError if it can't be made,
    OutputError if a folder of that name is not private.
    """
    for again in reversed(range(_TRIES)):
        folder = parent / (name or f"{PREFIX}{secrets.token_hex(16)}")
        try:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)  # the umask may have taken from it
            _require_private(folder)
            return folder, _locked(folder, new=True)
        except (BlockingIOError, FileNotFoundError):  # somebody looks whether it is in use, or has removed it
            if not again:
                raise
            time.sleep(_PAUSE_S if name else 0)
    raise OutputError("private folders are removed all the time by another program; choose another folder")


def take(folder: Path) -> int | None:
    """Lock a private folder whose run is gone; return its lock, to be closed last, or None if it is not ours.

    Raises BlockingIOError if its run is alive, OSError if it can't be looked at.
    """
    if _NAME.fullmatch(folder.name) is None or not _is_private(folder):
        return None
    try:
        handle = _locked(folder, new=False)
    except FileNotFoundError:  # its run was killed before there was a lock, or when nothing else was left
        return None
    except OutputError:
        return None
    return handle


def is_ours(folder: Path) -> bool:
    """Return whether a folder is one that a run of this user made, alive or not; False if it can't be looked at."""
    try:
        if _NAME.fullmatch(folder.name) is None or not _is_private(folder):
            return False
        handle = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return os.read(handle, 4096) == _mark(folder)
        finally:
            os.close(handle)
    except OSError:
        return False


def private_folders(parent: Path) -> list[Path]:
    """Return what lies in a folder and has the name of a private folder; nothing if it can't be listed."""
    with suppress(OSError):
        return sorted(Path(one) for one in os.scandir(parent) if _NAME.fullmatch(one.name) and one.name[1] == "s")
    return []


def remove(folder: Path) -> None:
    """Remove a private folder of ours, the lock last; what can't be removed stays with its lock, for the next run."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name != LOCK:
                _remove(path)
        if _holds_only_a_lock(folder):
            (folder / LOCK).unlink(missing_ok=True)
            folder.rmdir()


def remove_empty(folder: Path) -> None:
    """Remove a folder with the name of a private one if there is nothing in it: its run was killed at its beginning."""
    with suppress(OSError):
        if _is_private(folder):
            folder.rmdir()


def _holds_only_a_lock(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} <= {LOCK}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _locked(folder: Path, *, new: bool) -> int:
    """Lock a folder and mark it as ours, if it is `new` or was about to be marked; return the open lock."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if new else 0)
    handle = os.open(folder / LOCK, flags, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _require_mark(folder, handle, new=new)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _require_mark(folder: Path, handle: int, *, new: bool) -> None:
    """Check that a lock is in its folder, and that it says whose folder this is; if not yet, write it if it is `new`.

    Raises FileNotFoundError, OutputError.
    """
    state = os.fstat(handle)
    if state.st_nlink == 0:
        raise FileNotFoundError
    mark, found = _mark(folder), os.pread(handle, 4096, 0) if stat.S_ISREG(state.st_mode) else None
    if found == mark:
        return
    if found is None or not mark.startswith(found) or not _holds_only_a_lock(folder):
        raise OutputError(f"the folder {folder.name} is not one that shoal made; move it elsewhere")
    if new:
        os.fchmod(handle, 0o600)  # the umask may have taken from it
        os.pwrite(handle, mark, 0)


def _mark(folder: Path) -> bytes:
    """Return what the lock of a folder says: it names the folder, so that it can't be there by accident."""
    return f"{folder.name} belongs to a run of shoal, which removes it\n".encode()


def _require_private(folder: Path) -> None:
    if not _is_private(folder):
        raise OutputError(f"the folder {folder.name} is not private; remove it or choose another `work_dir`")


def _is_private(folder: Path) -> bool:
    """Return whether a folder is this user's own and closed to others: nobody else can have written into it."""
    state = folder.lstat()
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o077
