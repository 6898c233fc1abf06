"""Memory is estimated before it is taken; too much is refused with advice."""

from __future__ import annotations

import os
from pathlib import Path

from shoal.errors import TooLarge

__all__ = ["available_bytes", "human_bytes", "require_memory"]

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def available_bytes() -> int:
    """Give the bytes of memory that can be taken now: what the system has free, within the container's limit."""
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        available = int(fields["MemAvailable"].split()[0]) * 1024
    for limit in map(Path, _CGROUP_LIMITS):
        if limit.exists() and (text := limit.read_text().strip()).isdigit():
            available = min(available, int(text))
    return available


def require_memory(needed: int, what: str, advice: str) -> None:
    """Raise TooLarge if `needed` bytes are more than can be taken now.

    >>> require_memory(2**60, "reading", "read fewer files")
    Traceback (most recent call last):
    shoal.errors.TooLarge: reading would take about 1,152,921.5 TB of memory, more than ...; read fewer files
    """
    available = available_bytes()
    if needed > available:
        raise TooLarge(
            f"{what} would take about {human_bytes(needed)} of memory, more than the {human_bytes(available)} "
            f"available; {advice}"
        )


def human_bytes(count: float) -> str:
    """Write a number of bytes as people do.

    >>> human_bytes(1_500_000_000)
    '1.5 GB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:,.1f} {unit}" if unit != "B" else f"{int(count)} B"
        count /= 1000
    return f"{count:,.1f} TB"
