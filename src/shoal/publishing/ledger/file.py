"""The file of a ledger: its form, and how it is replaced whole.

    shoal ledger 1 ⏎
    {"key": …, "releases": [{…, "users": n, "grouped": true}, …]} ⏎
    of each release: n fingerprints (uint64, sorted) and, if grouped, n numbers of groups (int32), little-endian
    SHA-256 of all that

It never changes in place: a new one is written into a private folder beside it, and switched into its place together
with the release (`shoal.switch`). Only one run at a time uses a ledger, since it is one of its outputs, which it claims
(`shoal.folders.claimed`).
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from shoal.errors import LedgerError, OutputError, SettingsError
from shoal.folders import private_folder
from shoal.publishing.ledger.fingerprints import KEY_BYTES, People
from shoal.regular import regular_handle
from shoal.settings import Settings
from shoal.switch import switch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Entry", "LedgerFile", "open_file"]

_NAME, _FORMAT = b"shoal ledger ", 1
_SEAL = hashlib.sha256().digest_size
_CHUNK = 1 << 24
_Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT[\d:]{8}[+]00:00$")]


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
    begun: _Moment
    published: _Moment | None = None


class LedgerFile:
    """A ledger: its key, and the releases with their people. Make one with `open_file`."""

    def __init__(self, path: Path, key: bytes, releases: list[tuple[Entry, People]]) -> None:
        self.path, self.key, self.releases = path, key, releases

    def write(self, folder: Path, releases: list[tuple[Entry, People]]) -> Path:
        """Write a ledger of these releases, under the same name, into a private folder; raises LedgerError."""
        new = folder / self.path.name
        try:
            _fill(new, _parts(self.key, releases))
        except OSError as error:
            raise LedgerError(
                f"the ledger {self.path.name} can't be written ({error.strerror}); nothing was published. Make room "
                "or choose another place"
            ) from None
        return new

    def replace(self, releases: list[tuple[Entry, People]]) -> None:
        """Replace the content of the ledger with these releases; raises LedgerError, and it is unchanged then."""
        try:
            with private_folder(self.path.parent) as folder:
                switch([(self.write(folder, releases), self.path)], overwrite=True)
        except OutputError as error:
            raise LedgerError(f"the ledger {self.path.name} can't be replaced: {error}") from None
        self.releases = releases

    def withdraw(self, earlier: list[tuple[Entry, People]]) -> None:
        """Take back a release that was begun: the ledger is as before, and gone if it was not there."""
        if earlier:
            self.replace(earlier)
            return
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            raise LedgerError(f"the ledger {self.path.name} can't be removed ({error.strerror})") from None


def open_file(path: Path) -> LedgerFile:
    """Open a ledger; one that is not there yet is empty and gets a new key.

    Raises LedgerError: it can't be read or written, others may read it, it is damaged or of another version.
    """
    path = path.resolve()
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise LedgerError(f"the folder of the ledger {path.name} is not there or can't be written to; make it first")
    try:
        handle = regular_handle(path)
    except FileNotFoundError:
        return LedgerFile(path, os.urandom(KEY_BYTES), [])
    except OSError as error:
        raise LedgerError(f"the ledger {path.name} can't be opened ({error.strerror}); nothing was published") from None
    try:
        _refuse_public(handle, path.name)
        mapped = _mapped(handle, path.name)
    finally:
        with suppress(OSError):
            os.close(handle)
    return LedgerFile(path, *_content(mapped, path.name))


def _refuse_public(handle: int, name: str) -> None:
    if os.fstat(handle).st_mode & 0o077:
        raise LedgerError(f"the ledger {name} is not private; chmod 600 it, and see who could have read it")


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
        key = bytes.fromhex(header["key"])
        if len(key) != KEY_BYTES:
            raise _damaged(name)
        return key, _columns(body[end + 1 :], entries)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError, SettingsError):
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


def _fill(path: Path, parts: Iterator[bytes | memoryview]) -> None:
    """Write the pieces and their seal into a new private file, synced to the disk."""
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)  # the umask may have taken from it
        for part in parts:
            digest.update(part)
            file.write(part)
        file.write(digest.digest())
        file.flush()
        os.fsync(file.fileno())
