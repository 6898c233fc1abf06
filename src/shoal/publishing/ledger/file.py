"""The file of a ledger: its form, its lock, and how it is replaced whole.

    shoal ledger 1 ⏎
    {"key": …, "releases": [{…, "users": n, "grouped": true}, …]} ⏎
    of each release: n fingerprints (uint64, sorted) and, if grouped, n numbers of groups (int32), little-endian
    SHA-256 of all that

The file is locked as long as a run works with it. It never changes in place: a new one is written beside it, locked
and moved over it, so that what is at the path is always whole. A lock counts only if its file still is at the path.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import mmap
import os
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from shoal.errors import LedgerError, OutputError, SettingsError
from shoal.folders import private_folder
from shoal.interrupt import undisturbed
from shoal.publishing.ledger.fingerprints import KEY_BYTES, People
from shoal.regular import regular_handle
from shoal.settings import Settings
from shoal.switch import place_new, sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Entry", "LedgerFile", "open_file"]

_NAME, _FORMAT = b"shoal ledger ", 1
_SEAL = hashlib.sha256().digest_size
_CHUNK = 1 << 24
_TRIES = 20


class Entry(Settings):
    """One release in the ledger. `published` is None for one that was begun and never confirmed: it counts too."""

    release: str
    sha256: str
    method: str
    claim: dict[str, Any]
    k: int | None
    period: tuple[str, str]
    seeded: bool
    users: Annotated[int, Field(ge=0)]
    grouped: bool
    begun: str
    published: str | None = None


class LedgerFile:
    """An open, locked ledger: its key, and the releases with their people. Make one with `open_file`."""

    def __init__(self, path: Path, handle: int, *, fresh: bool) -> None:
        self._path, self._handle, self._fresh = path, handle, fresh
        self.key, self.releases = _content(_mapped(handle, path.name), path.name)

    def replace(self, releases: list[tuple[Entry, People]]) -> None:
        """Replace the content of the ledger with these releases; if it raises, the ledger is unchanged."""
        with undisturbed():
            new = _write(self._path, self.key, releases, over=True)
            if new is not None:  # None only where nothing may be replaced
                os.close(self._handle)
                self._handle, self.releases = new, releases

    def close(self) -> None:
        """Unlock the ledger; a new one without releases is removed."""
        if self._fresh and not self.releases:
            self._path.unlink(missing_ok=True)
        os.close(self._handle)


def open_file(path: Path) -> LedgerFile:
    """Open a ledger for this run only; a new one is made if there is none.

    Raises LedgerError: another run has it, it can't be read or written, others may read it, it is damaged or of
    another version.
    """
    path = path.resolve()
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise LedgerError(f"the folder of the ledger {path.name} is not there or can't be written to; make it first")
    for _ in range(_TRIES):
        handle, fresh = _open_or_make(path)
        if handle is not None:
            try:
                if _is_at(path, handle):
                    return LedgerFile(path, handle, fresh=fresh)
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)
    raise LedgerError(f"the ledger {path.name} is being replaced all the time; wait for other runs")


def _open_or_make(path: Path) -> tuple[int | None, bool]:
    """Return the locked file and whether it is new; None for the file if another run made one at the same time."""
    try:
        handle = regular_handle(path, os.O_RDWR)
    except FileNotFoundError:
        return _write(path, os.urandom(KEY_BYTES), [], over=False), True
    except OSError as error:
        raise LedgerError(f"the ledger {path.name} can't be opened ({error.strerror}); nothing was published") from None
    try:
        _lock(handle, path.name)
        _refuse_public(handle, path.name)
    except BaseException:
        os.close(handle)
        raise
    return handle, False


def _refuse_public(handle: int, name: str) -> None:
    if os.fstat(handle).st_mode & 0o077:
        raise LedgerError(f"the ledger {name} is not private; chmod 600 it, and see who could have read it")


def _lock(handle: int, name: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LedgerError(f"another run is using the ledger {name} now; wait for it, then run this again") from None
    except OSError as error:
        raise LedgerError(f"the ledger {name} can't be locked ({error.strerror}); put it on another disk") from None


def _is_at(path: Path, handle: int) -> bool:
    """Return whether the open file is still the one at the path."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(handle)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _mapped(handle: int, name: str) -> mmap.mmap:
    try:
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):  # an empty file can't be mapped
        raise _damaged(name) from None


def _damaged(name: str) -> LedgerError:
    return LedgerError(
        f"the ledger {name} is damaged, or no ledger; nothing was published. Restore it from a backup: "
        "without it, nobody knows who was published before"
    )


def _content(mapped: mmap.mmap, name: str) -> tuple[bytes, list[tuple[Entry, People]]]:
    """Parse a ledger; raises LedgerError if anything in it was changed or damaged."""
    first = mapped[:64].partition(b"\n")[0]
    version = first.removeprefix(_NAME)
    if first.startswith(_NAME) and version.isdigit() and int(version) != _FORMAT:
        raise LedgerError(
            f"the ledger {name} has the format {int(version)}, not {_FORMAT}: another version of shoal wrote it; "
            "use that version"
        )
    data = memoryview(mapped)
    body, seal = data[:-_SEAL], data[-_SEAL:]
    digest = hashlib.sha256()
    for chunk in _chunks(body):
        digest.update(chunk)
    if digest.digest() != seal:
        raise _damaged(name)
    try:
        start = len(first) + 1
        end = mapped.find(b"\n", start)
        header = json.loads(mapped[start:end])
        entries = [Entry(**entry) for entry in header["releases"]]
        return bytes.fromhex(header["key"]), _columns(body[end + 1 :], entries)
    except (ValueError, TypeError, KeyError, SettingsError):
        raise _damaged(name) from None


def _columns(data: memoryview, entries: list[Entry]) -> list[tuple[Entry, People]]:
    """Return the releases with their people; the arrays are views of the mapped file."""
    releases, at = [], 0
    for entry in entries:
        marks = np.frombuffer(data, "<u8", entry.users, at)
        at += marks.nbytes
        groups = np.frombuffer(data, "<i4", entry.users, at) if entry.grouped else None
        at += 0 if groups is None else groups.nbytes
        releases.append((entry, People(marks, groups)))
    if at != len(data):
        raise ValueError("more columns than releases")
    return releases


def _parts(key: bytes, releases: list[tuple[Entry, People]]) -> Iterator[bytes | memoryview]:
    """Return the pieces of a ledger, without its seal."""
    header = {"key": key.hex(), "releases": [entry.model_dump(mode="json") for entry, _ in releases]}
    yield _NAME + str(_FORMAT).encode() + b"\n" + json.dumps(header).encode() + b"\n"
    for _, people in releases:
        yield from _chunks(_bytes(people.fingerprints, "<u8"))
        if people.groups is not None:
            yield from _chunks(_bytes(people.groups, "<i4"))


def _bytes(column: NDArray[Any], dtype: str) -> memoryview:
    return np.ascontiguousarray(column, dtype).view(np.uint8).data


def _chunks(data: memoryview) -> Iterator[memoryview]:
    return (data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK))


def _write(path: Path, key: bytes, releases: list[tuple[Entry, People]], *, over: bool) -> int | None:
    """Write a ledger beside its path and move it there, locked; return the open file, None if another run was first."""
    handle = -1
    try:
        with private_folder(path.parent) as folder:
            handle = os.open(folder / path.name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            _fill(handle, _parts(key, releases))
            _lock(handle, path.name)
            if not over and not place_new(folder / path.name, path):
                os.close(handle)
                return None
            if over:
                (folder / path.name).replace(path)
            sync_folder(path.parent)
    except BaseException as error:
        if handle >= 0:
            os.close(handle)
        if not isinstance(error, OSError | OutputError):
            raise
        why = getattr(error, "strerror", None) or "no private folder beside it"
        raise LedgerError(f"the ledger {path.name} can't be written ({why}); choose another place") from None
    return handle


def _fill(handle: int, parts: Iterator[bytes | memoryview]) -> None:
    """Write the pieces and their seal, synced to the disk."""
    digest = hashlib.sha256()
    with os.fdopen(os.dup(handle), "wb") as file:
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())
