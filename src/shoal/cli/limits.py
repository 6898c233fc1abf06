"""What the system allows a command: checked before it starts, and said in plain words if it is met on the way.

Below these limits libraries crash or hang while they load, where nothing can be caught.
"""

from __future__ import annotations

import errno
import resource
from threading import Event, Thread

from shoal.errors import TooLarge

__all__ = ["refused_by_system", "require_room", "warn_before_cpu_limit"]

# What the libraries reserve, most of it never used: measured 2.9 GB with two cores, on little data.
_ADDRESSES, _ADDRESSES_PER_CORE = 3_000_000_000, 150_000_000
_FILES = 64
_CPU_LEFT_S = 5

_REFUSED = {
    errno.ENOMEM: ("TooLarge", "memory ran out; use a larger machine or fewer rows (--period, --bbox)"),
    errno.EMFILE: ("TooLarge", "too many files are open for one process; allow more (ulimit -n)"),
    errno.ENFILE: ("TooLarge", "too many files are open on this machine"),
    errno.EAGAIN: ("TooLarge", "the system starts no more threads or processes; allow more (ulimit -u)"),
    errno.ENOSPC: ("OutputError", "the disk is full; make room, or name another --work-dir"),
    errno.EDQUOT: ("OutputError", "the quota of the disk is used up; make room, or name another --work-dir"),
    errno.EFBIG: ("OutputError", "a file would be larger than the system allows (ulimit -f)"),
    errno.ENAMETOOLONG: ("OutputError", "a name is too long for the file system; choose a shorter one"),
}


def require_room(cores: int) -> None:
    """Check that the limits of this process let the libraries work at all; raises TooLarge."""
    needed = _ADDRESSES + _ADDRESSES_PER_CORE * cores
    for kind, flag in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d")):
        if _limit(kind, needed) < needed:
            raise TooLarge(
                f"this process may reserve too little memory ({flag}): the libraries need {needed / 1e9:.1f} GB with "
                f"{cores} cores, though they use less; allow that, and limit what is used with `memory`"
            )
    if _limit(resource.RLIMIT_NOFILE, _FILES) < _FILES:
        raise TooLarge(f"this process may open too few files (ulimit -n); allow at least {_FILES}")
    if not _can_start(2 * cores + 4):
        raise TooLarge(f"the system starts too few threads for {cores} cores; allow more (ulimit -u)")


def _limit(kind: int, enough: int) -> int:
    soft = resource.getrlimit(kind)[0]
    return enough if soft == resource.RLIM_INFINITY else soft


def _can_start(number: int) -> bool:
    """Say whether so many threads can run at the same time."""
    ended, threads = Event(), []
    try:
        for _ in range(number):
            thread = Thread(target=ended.wait, daemon=True)
            thread.start()
            threads.append(thread)
    except RuntimeError:
        return False
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    return True


def warn_before_cpu_limit() -> None:
    """Have the system warn this process some seconds before its time is over, so that it can clean up.

    `ulimit -t` sets one limit for both, the warning (SIGXCPU) and the end (SIGKILL).
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if resource.RLIM_INFINITY not in {soft, hard} and soft == hard:
        resource.setrlimit(resource.RLIMIT_CPU, (max(1, hard - max(1, min(_CPU_LEFT_S, hard // 5))), hard))


def refused_by_system(error: BaseException) -> tuple[str, str] | None:
    """Return the kind of error and a message if the system refused something; None if it was something else."""
    if isinstance(error, MemoryError):
        return _REFUSED[errno.ENOMEM]
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _REFUSED[errno.EAGAIN]
    if isinstance(error, OSError) and error.errno is not None:
        said = f"the system refuses a file or folder ({error.strerror}); choose another, or name another --work-dir"
        return _REFUSED.get(error.errno, ("OutputError", said))
    return None
