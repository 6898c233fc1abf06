"""Memory: how much is available, and a check before much is taken, with advice."""

from __future__ import annotations

import os
import re
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import TooLarge

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["available_bytes", "held_bytes", "human_bytes", "left_bytes", "require_memory"]

_LIBRARIES = 2**28  # what the program takes before any data is there

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available_bytes() -> int:
    """Return the bytes of memory that can be taken now: what the system has free, within the limits that are set.

    They are those of the container, and of the process (`ulimit -v`, `ulimit -d`).
    """
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    meminfo = Path("/proc/meminfo")
    if meminfo.exists() and (free := re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.MULTILINE)):
        available = int(free[1]) * 1024
    for limit, used in _CGROUPS:
        if Path(limit).exists() and (most := Path(limit).read_text().strip()).isdigit():
            available = min(available, int(most) - int(Path(used).read_text()))
    return max(0, min(available, _left_to_the_process(resource.RLIMIT_AS), _left_to_the_process(resource.RLIMIT_DATA)))


def _left_to_the_process(limit: int) -> int:
    """Return the bytes that this process may still reserve by one of its limits."""
    most, _ = resource.getrlimit(limit)
    if most == resource.RLIM_INFINITY:
        return sys.maxsize
    status = Path("/proc/self/status")
    name = "VmSize" if limit == resource.RLIMIT_AS else "VmData"
    taken = re.search(rf"^{name}:\s+(\d+) kB", status.read_text(), re.MULTILINE) if status.exists() else None
    return most - int(taken[1]) * 1024 if taken else most


def left_bytes(limit: int | None, held: int = 0) -> int:
    """Return the bytes that work may take now: what a limit for the process leaves beside the libraries and held data.

    Without a limit, what is available. Of small limits, half is for the work, since the libraries can't take less.

    >>> left_bytes(1_000_000_000, held=200_000_000)
    531564544
    """
    if limit is None:
        return available_bytes()
    return max(0, max(limit - _LIBRARIES, limit // 2) - held)


def held_bytes(*arrays: NDArray[Any]) -> int:
    """Return the bytes of memory that arrays take; arrays in mapped files take none.

    >>> import numpy as np
    >>> held_bytes(np.zeros(3), np.zeros(1, np.int8))
    25
    """
    import numpy as np

    return sum(array.nbytes for array in arrays if not isinstance(array.base, np.memmap))


def require_memory(needed: int, what: str, advice: str, *, left: int) -> None:
    """Check that `needed` bytes are left; raises TooLarge.

    >>> require_memory(2**60, "reading", "read less", left=10**9)
    Traceback (most recent call last):
    shoal.errors.TooLarge: reading would take about 1,152,921.5 TB of memory, more than the 1.0 GB left; read less
    """
    if needed > left:
        raise TooLarge(
            f"{what} would take about {human_bytes(needed)} of memory, more than the {human_bytes(left)} left; {advice}"
        )


def human_bytes(count: float) -> str:
    """Return a number of bytes as readable text.

    >>> human_bytes(1_500_000_000)
    '1.5 GB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:,.1f} {unit}" if unit != "B" else f"{int(count)} B"
        count /= 1000
    return f"{count:,.1f} TB"
