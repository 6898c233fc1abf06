"""Open files of which only ordinary ones make sense: not a pipe, which may wait for ever, nor a device or a folder."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from io import BufferedReader
    from pathlib import Path

__all__ = ["open_regular", "read_regular", "regular_handle"]


def regular_handle(path: str | Path, flags: int = os.O_RDONLY) -> int:
    """Return the descriptor of an ordinary file; raise OSError for anything else, without waiting for a writer.

    What the descriptor is open on is looked at, so that nothing can be put in its place in between.

    >>> regular_handle("/dev/zero")
    Traceback (most recent call last):
    OSError: [Errno 22] no ordinary file: '/dev/zero'
    """
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "no ordinary file", str(path))
    os.set_blocking(handle, True)
    return handle


def open_regular(path: str | Path) -> BufferedReader:
    """Open an ordinary file for reading; raise OSError for anything else."""
    return os.fdopen(regular_handle(path), "rb")


def read_regular(path: str | Path, most: int) -> bytes:
    """Return the bytes of an ordinary file; raise OSError for anything else, and for a file of more than `most`."""
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, "too large", str(path))
    return data
