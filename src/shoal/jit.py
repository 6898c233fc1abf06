"""The decorators that compile kernels, so that all are compiled the same way.

The cache directory of a module is named after a hash of its source and of all modules with kernels that it imports:
numba's own check sees only the file of the cached function, so a change in a helper that lives elsewhere would
silently keep the old code.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Floats", "Granules", "Ints", "Ints32", "inlined", "jit"]

F = TypeVar("F", bound="Callable[..., Any]")

# What kernels take, for type checkers.
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Floats = NDArray[np.float64]
Granules = Ints | Ints32  # whole numbers of either width; a kernel is compiled for each


_PACKAGE = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from shoal\.([\w.]+) import", re.MULTILINE)


def _sources(file: Path, known: dict[Path, bytes]) -> dict[Path, bytes]:
    """Collect the source of a module with kernels, and of all such modules that it imports."""
    text = file.read_bytes()
    imported = _IMPORT.findall(text.decode())
    if file not in known and (file == Path(__file__) or "jit" in imported):
        known[file] = text
        for name in imported:
            other = _PACKAGE / f"{name.replace('.', '/')}.py"
            if other.is_file():
                _sources(other, known)
    return known


@cache
def _cache_directory(file: str) -> str:
    """Return the folder for the compiled kernels of a module."""
    digest = hashlib.sha256()
    for source, text in sorted(_sources(Path(file), {}).items()):
        digest.update(source.name.encode() + b"\0" + text)
    return str(Path(_BASE) / f"{Path(file).stem}-{digest.hexdigest()[:16]}")


def _base_directory() -> str:
    """Return a writable folder for compiled kernels: the user's cache, or a private temporary one."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "shoal" / "kernels"
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return str(folder)
    except (OSError, RuntimeError):
        pass
    temporary = tempfile.mkdtemp(prefix="shoal-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


_BASE = os.environ.get("NUMBA_CACHE_DIR") or _base_directory()


def jit(function: F) -> F:
    """Compile a kernel: cached, without the GIL, exact arithmetic (no fastmath)."""
    return _compiled(function)


def inlined(function: F) -> F:
    """Compile a step that several kernels share, as `jit` does, but copy its code into each of them.

    For steps so short that the call would cost as much as the work: every array of an argument is seven values.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool = False) -> F:
    others = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = _cache_directory(function.__code__.co_filename)  # type: ignore[attr-defined]
    try:  # numba reads the setting here and not when it compiles
        compiled = numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy", forceinline=forceinline)
        return cast("F", compiled(function))
    finally:
        numba.config.CACHE_DIR = others  # type: ignore[attr-defined]
