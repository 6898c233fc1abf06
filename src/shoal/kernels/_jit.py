"""One decorator decides how every kernel is compiled.

The cache directory is named after a hash of all kernel sources: numba's own check sees only the file of
the cached function, so a change in a helper that lives elsewhere would silently keep the old code.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Floats", "Ints", "Ints32", "jit"]

F = TypeVar("F", bound="Callable[..., Any]")

# What kernels take, for type checkers.
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]


def _sources_hash() -> str:
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_directory() -> str:
    """Give a writable folder for compiled kernels: the user's cache, or a private temporary one."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "shoal" / f"kernels-{_sources_hash()}"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return str(folder)
    except (OSError, RuntimeError):
        pass
    temporary = tempfile.mkdtemp(prefix="shoal-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = _cache_directory()

import numba  # noqa: E402  the cache directory must be set first


def jit(function: F) -> F:
    """Compile a kernel: cached, without the GIL, exact arithmetic (no fastmath)."""
    return cast("F", numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function))
