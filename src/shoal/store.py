"""Store: the finished parts of an interrupted run, kept on request in private so that it can continue."""

from __future__ import annotations

import hashlib
import json
import math
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
        """Return what was kept under a name, or None."""
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
    """Keeps arrays as files of a private folder; a file appears whole or not at all.

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
        """Return what was kept under a name; None if there is nothing, or it is damaged."""
        try:
            kept = (self._path / f"{name}.part").read_bytes()
        except OSError:
            return None
        digest, payload = kept[:_DIGEST], kept[_DIGEST:]
        return _unpacked(payload) if hashlib.sha256(payload).digest() == digest else None

    def save(self, name: str, arrays: Arrays) -> None:
        """Keep arrays under a name; raises OutputError if the disk won't take them."""
        payload = _packed(arrays)
        new = self._path / f"{name}.new"
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(hashlib.sha256(payload).digest())
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            new.rename(self._path / f"{name}.part")
        except OSError as error:
            raise OutputError(
                f"can't keep finished parts ({error.strerror}); make room or choose another `work_dir`"
            ) from None


def _packed(arrays: Arrays) -> bytes:
    """Return arrays of numbers as bytes: a line of JSON (name, kind, shape), then the numbers; never executable."""
    if any(array.dtype.hasobject for array in arrays.values()):
        raise TypeError("only arrays of numbers can be kept")
    head = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    return b"".join([json.dumps(head).encode(), b"\n", *(array.tobytes() for array in arrays.values())])


def _unpacked(payload: bytes) -> Arrays | None:
    """Return the arrays that were packed; None if these bytes are something else."""
    head, _, body = payload.partition(b"\n")
    arrays, at = {}, 0
    try:
        for name, kind, shape in json.loads(head):
            flat = np.frombuffer(body, np.dtype(kind), math.prod(shape), at)
            arrays[name] = flat.reshape(shape).copy()
            at += flat.nbytes
    except (TypeError, ValueError):
        return None
    return arrays if at == len(body) else None
