"""Folders: where outputs may go, and private folders for work in progress (mode 0700, swept when their run is gone)."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import AlreadyExists, OutputError
from shoal.interrupt import undisturbed
from shoal.private import LOCK, PREFIX, make, private_folders, remove, remove_empty, take
from shoal.switch import is_needed, mend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "claimed",
    "drop_kept",
    "kept_folder",
    "private_folder",
    "refuse_existing",
    "require_different",
    "require_names",
]

_KEPT = ".kept-shoal-"
_LONGEST_NAME = 255  # bytes, on nearly all file systems


@contextmanager
def private_folder(parent: Path) -> Iterator[Path]:
    """Open a private folder in `parent`; it is removed on exit or, after SIGKILL, by the next run.

    A folder with files of a switch that is neither finished nor taken back stays until it is (`shoal.switch.mend`).
    """
    _sweep(parent)
    with _held(parent, None, _drop) as folder:
        yield folder


@contextmanager
def claimed(outputs: Iterable[Path]) -> Iterator[None]:
    """Claim outputs for this run alone, until the block ends; raises OutputError if another run has one of them.

    Each is claimed under the name that is given and, if that is a link, under the one it leads to. What killed runs
    left in these folders is mended and swept.
    """
    places = {_real(path.parent) / path.name for path in outputs}
    places |= {_real(place) for place in places if place.is_symlink() and os.access(_real(place).parent, os.W_OK)}
    for place in places:
        _require_folder(place)
    for parent in {place.parent for place in places}:
        _sweep(parent)
    with ExitStack() as claims:
        for place in sorted(places):
            claim = f"{PREFIX}{_digest('output', place.name)}"
            claims.enter_context(_held(place.parent, claim, remove, what=place.name))
        yield


@contextmanager
def _held(
    parent: Path, name: str | None, leave: Callable[[Path], None], *, what: str = "this output"
) -> Iterator[Path]:
    """Make a private folder and hold its lock until the block ends; then `leave` it."""
    folder, handle = None, -1
    try:
        try:
            with undisturbed():
                folder, handle = make(parent, name)
        except BlockingIOError:
            raise OutputError(f"another run is using {what} now; wait for it, or choose another name") from None
        except OSError as error:
            raise OutputError(
                f"can't make a private folder ({error.strerror}); choose another output folder or `work_dir`"
            ) from None
        yield folder
    finally:
        with undisturbed():
            if folder is not None:
                leave(folder)
            if handle >= 0:
                _close(handle)


def _close(handle: int) -> None:
    """Close a lock; nothing was written through it that could be lost."""
    with suppress(OSError):
        os.close(handle)


def _digest(kind: str, name: str) -> str:
    return hashlib.sha256(f"{kind}\0{name}".encode(errors="surrogateescape")).hexdigest()[:32]


@contextmanager
def kept_folder(parent: Path, name: str, key: str) -> Iterator[Path]:
    """Open the private folder for a run's finished parts; it is removed only after success.

    `name` is the run's output: each output has one folder. The parts of an earlier run are kept if its `key` was the
    same, and removed if not. Raises OutputError if another run is using the folder.
    """
    with _held(parent, _kept(name), lambda _: None) as folder:
        inside = folder / key
        try:
            for other in folder.iterdir():
                if other.name not in (key, LOCK):
                    remove(other)
            inside.mkdir(mode=0o700, exist_ok=True)
            inside.chmod(0o700)
        except OSError as error:
            raise OutputError(f"can't keep finished parts ({error.strerror}); choose another `work_dir`") from None
        yield inside
        with undisturbed():
            remove(folder)


def drop_kept(parent: Path, name: str) -> None:
    """Remove the finished parts of an interrupted run for this output, unless that run is still alive."""
    _take_away(parent / _kept(name), remove)


def _kept(name: str) -> str:
    return f"{_KEPT}{_digest('kept', name)}"


def _sweep(parent: Path) -> None:
    """Remove the folders of killed runs, which hold their lock no more; mend the publications they had decided."""
    mend(parent)
    for folder in private_folders(parent):
        _take_away(folder, _drop)


def _take_away(folder: Path, leave: Callable[[Path], None]) -> None:
    """Remove a private folder if it is ours and its run is gone."""
    with suppress(OSError), undisturbed():  # BlockingIOError: its run is alive
        handle = take(folder)
        if handle is None:
            remove_empty(folder)
            return
        try:
            leave(folder)
        finally:
            _close(handle)


def _drop(folder: Path) -> None:
    if not is_needed(folder):
        remove(folder)


def require_different(written: Iterable[Path], read: Iterable[Path] = ()) -> None:
    """Check that no two files are the same one under two names, by path, link or hard link; raises OutputError.

    Files that are `read` may be the same as each other, but not as one that is `written`.
    """
    known: dict[object, str] = {}
    for path, name in [*((one, "") for one in read), *((one, one.name) for one in written)]:
        for key in _identity(path):
            if name and key in known:
                raise OutputError(
                    f"{name} is an input; an input is never overwritten"
                    if not known[key]
                    else "the release, its manifest, the audit file, the run record and the ledger need different names"
                )
        known |= dict.fromkeys(_identity(path), name)


def require_names(written: Iterable[Path]) -> None:
    """Check that the names of files can be written into a manifest and onto a file system; raises OutputError."""
    for path in written:
        try:
            if len(path.name.encode()) > _LONGEST_NAME:
                raise OutputError(f"{path.name[:20]}… is too long as the name of a file; choose a shorter one")
        except UnicodeEncodeError:
            raise OutputError(
                "the name of an output is not UTF-8, so no manifest can name it; choose another one"
            ) from None


def _identity(path: Path) -> list[object]:
    """Return what tells a file: its path without links and, if it is there, its device and number."""
    with suppress(OSError):
        state = path.stat()
        return [_real(path), (state.st_dev, state.st_ino)]
    return [_real(path)]


def _real(path: Path) -> Path:
    """Return a path without links, as far as it leads."""
    return Path(os.path.realpath(path))


def refuse_existing(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Check that every path can be written: its folder exists, and it is free or may be replaced. Raises otherwise.

    A publication into these folders that a killed run had decided is mended first.
    """
    wanted = list(paths)
    for parent in dict.fromkeys(path.parent for path in wanted):
        mend(parent)
    for path in wanted:
        _require_folder(path)
        if path.is_dir():
            raise OutputError(f"{path.name} is a folder; name a file, e.g. release.parquet")
        if os.path.lexists(path):
            _refuse_replacing(path, overwrite=overwrite)


def _require_folder(path: Path) -> None:
    """Check that the folder of a path is there and may be written to."""
    if not path.parent.is_dir():
        raise OutputError(f"the folder of {path.name} does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise OutputError(f"the folder of {path.name} can't be written to; choose another")


def _refuse_replacing(path: Path, *, overwrite: bool) -> None:
    """Check that what is at a path may be replaced."""
    if not overwrite:
        raise AlreadyExists(f"{path.name} is there already; choose another name or give `overwrite`")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise OutputError(f"{path.name} is no ordinary file; choose another name")
