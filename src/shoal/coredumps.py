"""Core dumps: a process that crashes leaves its memory in a file, with the private data in it. Here they are prevented.

On Linux the process is also closed to other processes of the same user: they can't read its memory (`ptrace`, `gdb`,
`py-spy`, `/proc/PID/mem`); root can. Elsewhere only the size of core dumps is limited.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["no_core_dumps", "open_to_itself", "without_core_dumps"]

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4
_lock = Lock()
_blocks = 0
_before: tuple[int, int] = (1, resource.RLIM_INFINITY)


def no_core_dumps() -> None:
    """Prevent core dumps of this process from now on; for programs only.

    Programs that it starts are not concerned, but for the limit on the size of core dumps, which they inherit.
    """
    _prevent()


@contextmanager
def without_core_dumps() -> Iterator[None]:
    """Prevent core dumps of this process until the block ends; also a decorator.

    Input: nothing. Guarantee: when the last of several such blocks ends, in whichever thread, all is as it was before
    the first. What is in memory after the block is not protected. Cost: microseconds.

    >>> import resource
    >>> with without_core_dumps():
    ...     resource.getrlimit(resource.RLIMIT_CORE)[0]
    0
    """
    global _blocks, _before  # noqa: PLW0603  it is about the whole process
    with _lock:
        if not _blocks:
            _before = _prevent()
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                _set(*_before)


@contextmanager
def open_to_itself() -> Iterator[None]:
    """Let this process write to its own files in /proc, for a moment; users other than root can't do so else."""
    before = _dumpable()
    _set_dumpable(1)
    try:
        yield
    finally:
        _set_dumpable(before)


def _prevent() -> tuple[int, int]:
    """Prevent core dumps; return what was set before."""
    before = (_dumpable(), resource.getrlimit(resource.RLIMIT_CORE)[0])
    _set(0, 0)
    return before


def _dumpable() -> int:
    return int(ctypes.CDLL(None).prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0)) if sys.platform == "linux" else 1


def _set(dumpable: int, size: int) -> None:
    _set_dumpable(dumpable)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (size, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _set_dumpable(dumpable: int) -> None:
    if sys.platform == "linux" and dumpable in {0, 1}:  # 2 can't be set
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, dumpable, 0, 0, 0)
