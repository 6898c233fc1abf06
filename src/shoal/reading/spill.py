"""Spill: keep columns of numbers in private files, written piece by piece, read in part or mapped into memory."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import OutputError
from shoal.reading.engine import DISK_FULL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["SpillFile", "spill_files"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@dataclass(frozen=True, eq=False)
class SpillFile:
    """A private file (mode 0600) of numbers of one type; positions and sizes are counted in numbers."""

    path: Path
    handle: int
    dtype: np.dtype[Any]

    def write(self, values: NDArray[Any], at: int) -> None:
        """Write numbers from a position on. Raises OutputError if the disk is full."""
        data = np.ascontiguousarray(values, dtype=self.dtype).view(np.uint8)
        at *= self.dtype.itemsize
        try:
            while len(data):
                written = os.pwrite(self.handle, data.data, at)
                data, at = data[written:], at + written
        except OSError as error:
            why = DISK_FULL if error.errno in _FULL else f"can't write to the folder for work ({error.strerror})"
            raise OutputError(why) from None

    def read(self, at: int, count: int) -> NDArray[Any]:
        """Read `count` numbers from a position on."""
        return np.fromfile(self.path, self.dtype, count, offset=at * self.dtype.itemsize)

    def map(self) -> NDArray[Any]:
        """Return the whole file as a memory-mapped array.

        The file may be removed at once: its content stays until the array is gone, and goes with it even if the
        process is killed. The array is private to this process (copy on write) rather than read-only, because
        compiled kernels would have to be compiled once more for read-only arrays.
        """
        return np.asarray(np.memmap(self.path, self.dtype, mode="c"))


@contextmanager
def spill_files(folder: Path, columns: Mapping[str, str]) -> Iterator[list[SpillFile]]:
    """Make a file for each column (name: type) in a folder; they are open for writing until the block ends.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder, spill_files(Path(folder), {"t": "i4"}) as (t,):
    ...     t.write(np.array([5, 6, 7]), 0)
    ...     t.read(1, 2).tolist()
    [6, 7]
    """
    files: list[SpillFile] = []
    try:
        for name, dtype in columns.items():
            handle = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            files.append(SpillFile(folder / name, handle, np.dtype(dtype)))
        yield files
    finally:
        for file in files:
            os.close(file.handle)
