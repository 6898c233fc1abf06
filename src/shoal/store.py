"""What an interrupted run has finished, kept so that it can go on: private, and only where it was asked for."""

from __future__ import annotations

import hashlib
import io
import os
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from shoal.errors import OutputError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["NOTHING_KEPT", "Arrays", "Folder", "Store"]

_DIGEST = hashlib.sha256().digest_size

Arrays: TypeAlias = "dict[str, NDArray[Any]]"


class Store(Protocol):
    """Keeps arrays by name."""

    def load(self, name: str) -> Arrays | None:
        """Give what was kept under a name, or None."""
        ...

    def save(self, name: str, arrays: Arrays) -> None:
        """Keep arrays under a name."""
        ...


class _Nothing:
    def load(self, name: str) -> Arrays | None:  # noqa: ARG002
        return None

    def save(self, name: str, arrays: Arrays) -> None:
        pass


NOTHING_KEPT: Store = _Nothing()


class Folder:
    """Keeps arrays as files of a private folder; a file is there whole or not at all.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Folder(Path(folder)).save("one", {"a": np.arange(3)})
    ...     Folder(Path(folder)).load("one")["a"].tolist(), Folder(Path(folder)).load("two")
    ([0, 1, 2], None)
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self, name: str) -> Arrays | None:
        """Give what was kept under a name; None if there is nothing, or it is damaged."""
        try:
            kept = (self._path / f"{name}.part").read_bytes()
        except OSError:
            return None
        digest, payload = kept[:_DIGEST], kept[_DIGEST:]
        if hashlib.sha256(payload).digest() != digest:
            return None
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}

    def save(self, name: str, arrays: Arrays) -> None:
        """Keep arrays under a name; raises OutputError if the disk won't take them."""
        payload = io.BytesIO()
        new = self._path / f"{name}.new"
        try:
            np.savez(payload, allow_pickle=False, **arrays)
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(hashlib.sha256(payload.getbuffer()).digest())
                file.write(payload.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            new.rename(self._path / f"{name}.part")
        except OSError as error:
            raise OutputError(
                f"can't keep finished parts ({error.strerror}); make room or choose another --work-dir"
            ) from None
