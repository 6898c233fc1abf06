"""Object stores as a target: data first, manifest last, and both only after the release has verified.

1. `receive` does nothing: what is verified is the staged file on this machine.
2. `send` uploads the data and reads it back: its hash must be that of the verified file. A data object without a
   manifest is no release, so that nothing is published yet. With `overwrite` the data goes to a temporary object
   (`NAME.shoal-…`) first, so that the old release stays as it is.
3. `commit` uploads the manifest. With `overwrite` it first copies the temporary object over the old data, inside the
   store. Between these two steps readers see new data with the old manifest, whose hash does not fit: no release.

If the run fails, what was uploaded is removed. If it is killed, a data object without a manifest, or a temporary one,
may stay: neither is a release. The next run with `overwrite` replaces the former; the latter can be deleted.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from shoal.errors import AlreadyExists, OutputError, ShoalError
from shoal.stores.addresses import shown
from shoal.stores.objects import CHUNK, Bucket, opened_bucket
from shoal.switch import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from shoal.publishing.stage import Outputs

__all__ = ["opened", "refuse"]

_MANIFEST = ".manifest.json"


def refuse(address: str, outputs: Outputs) -> None:
    """Check that the bucket can be reached and that the object is free or may be replaced."""
    with opened_bucket(address, failed=OutputError) as bucket:
        if bucket.path.endswith("/") or "/" not in bucket.path:
            raise OutputError(f"{shown(address)}: name the object, with its ending: bucket/…/release.parquet")
        paths = (bucket.path, bucket.path + _MANIFEST)
        there = any(one.path == path for path in paths for one in bucket.objects(path))
        if there and not outputs.overwrite:
            raise AlreadyExists(f"{shown(address)} is there already; choose another name or give `overwrite`")


@contextmanager
def opened(address: str, outputs: Outputs) -> Iterator[_Objects]:
    """Open an object store for a release; what was uploaded and not published is removed."""
    target = _Objects(address, overwrite=outputs.overwrite)
    try:
        yield target
    finally:
        with suppress(ShoalError):
            target.clear()


class _Objects:
    """A data object and its manifest."""

    shapes: tuple[str, ...] | None = None
    local = False
    files: dict[str, str] | None = None

    def __init__(self, address: str, *, overwrite: bool) -> None:
        self._address, self._overwrite = address, overwrite
        self._data: Path | None = None
        self._sent: str | None = None
        self._published = False

    def receive(self, data: Path) -> Path:
        """Remember the written file, which is the one to verify."""
        self._data = data
        return data

    def send(self) -> None:
        """Upload the data, and check what arrived."""
        with opened_bucket(self._address, failed=OutputError) as bucket:
            data = self._file()
            self._sent = f"{bucket.path}.shoal-{secrets.token_hex(8)}" if self._overwrite else bucket.path
            digest, size = _uploaded(bucket, data, self._sent)
            if (digest, size) != _hash_of(bucket, self._sent):
                raise OutputError(f"{shown(self._address)}: what arrived is not what was sent; nothing was published")

    def commit(self) -> None:
        """Upload the manifest, which makes the data a release."""
        try:
            with opened_bucket(self._address, failed=OutputError) as bucket:
                if self._overwrite and self._sent is not None:
                    bucket.files.copy_file(self._sent, bucket.path)
                data = self._file()
                _uploaded(bucket, data.with_name(data.name + _MANIFEST), bucket.path + _MANIFEST)
        except ShoalError as error:
            if self._overwrite:
                raise Undecided(f"{error}; it may be published or not: look with shoal verify") from None
            raise
        self._published = True

    def clear(self) -> None:
        """Remove what was uploaded and is no part of a release."""
        if self._sent is None or (self._published and not self._overwrite):
            return
        with opened_bucket(self._address, failed=OutputError) as bucket:
            for path in [self._sent, *([] if self._overwrite else [bucket.path + _MANIFEST])]:
                with suppress(OSError):
                    bucket.files.delete_file(path)

    def _file(self) -> Path:
        if self._data is None:
            raise OutputError(f"{shown(self._address)}: nothing was staged")
        return self._data


def _uploaded(bucket: Bucket, file: Path, path: str) -> tuple[str, int]:
    """Upload a file; return the hash and the size of what was sent."""
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as local, bucket.files.open_output_stream(path) as remote:
        while part := local.read(CHUNK):
            remote.write(part)
            digest.update(part)
            size += len(part)
    return digest.hexdigest(), size


def _hash_of(bucket: Bucket, path: str) -> tuple[str, int]:
    """Return the hash and the size of an object, as the store gives it back."""
    digest, size = hashlib.sha256(), 0
    with bucket.files.open_input_stream(path) as remote:
        while part := remote.read(CHUNK):
            digest.update(part)
            size += len(part)
    return digest.hexdigest(), size
