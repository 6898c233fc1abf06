"""Read a file that holds a key: a small, regular file, never a pipe or a device."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.errors import ShoalError

__all__ = ["read_key_file"]

_MOST = 1 << 16


def read_key_file(path: Path, what: str, failed: type[ShoalError]) -> tuple[bytes, os.stat_result]:
    """Return the content of a file and its state; raises `failed`, with `what` the file is, if it can't be a key."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer must not wait
        with os.fdopen(handle, "rb") as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                raise failed(f"{path.name}: {what} must be a file, not a folder, a pipe or a device")
            text = file.read(_MOST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not a name of a file"
        raise failed(f"{path.name}: {what} can't be read ({why})") from None
    if len(text) > _MOST:
        raise failed(f"{path.name}: {what} can't be that large; is it another file?")
    return text, state
