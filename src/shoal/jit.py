"""The decorators that compile kernels, so that all are compiled the same way.

The cache folder of a module is named after a hash of its source and of all modules with kernels that it imports, so
that a change in a helper that lives elsewhere compiles anew. `shoal.kernelcache` reads and writes it.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numpy.typing import NDArray

from shoal.kernelcache import KernelCache, cache_folders

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["Floats", "Granules", "Ints", "Ints32", "inlined", "jit", "kernels_folder", "watch_compiling"]

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
def _cache_name(file: str) -> str:
    """Return the name of the folder for the compiled kernels of a module; it changes with the source."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source, text in sorted(_sources(Path(file), {}).items()):
        digest.update(source.name.encode() + b"\0" + text)
    return f"{Path(file).stem}-{digest.hexdigest()[:16]}"


_FOLDERS = cache_folders()


def kernels_folder() -> Path | None:
    """Return the folder of the compiled kernels; None if they are not kept."""
    return next(iter(_FOLDERS), None)


_PATIENCE_S = 5.0  # of compiling, until people are told


class _Announced(event.Listener):
    """Logs once that kernels are compiled, if that takes long."""

    def __init__(self) -> None:
        self._started: list[float] = []
        self._spent = 0.0

    def on_start(self, _: Any) -> None:
        self._started.append(time.monotonic())

    def on_end(self, _: Any) -> None:
        took = time.monotonic() - self._started.pop()
        before = self._spent
        self._spent += 0 if self._started else took  # one kernel compiles those that it calls
        if before < _PATIENCE_S <= self._spent and _FOLDERS:
            logging.getLogger("shoal.compiling").warning(
                "compiling, once: about a minute; later runs start at once (the folder is %s)", kernels_folder()
            )


event.register("numba:compile", _Announced())  # type: ignore[no-untyped-call]


def watch_compiling(changed: Callable[[int], None]) -> AbstractContextManager[object]:
    """Call `changed(1)` when the compiler starts on a kernel and `changed(-1)` when it is done, until the context ends.

    Kernels that are in the cache are not compiled. A kernel may start others that it calls.
    """

    class Watch(event.Listener):
        def on_start(self, _: Any) -> None:
            changed(1)

        def on_end(self, _: Any) -> None:
            changed(-1)

    watching: AbstractContextManager[object] = event.install_listener("numba:compile", Watch())
    return watching


def jit(function: F) -> F:
    """Compile a kernel: cached, without the GIL, exact arithmetic (no fastmath)."""
    return _compiled(function)


def inlined(function: F) -> F:
    """Compile a step that several kernels share, as `jit` does, but copy its code into each of them.

    For steps so short that the call would cost as much as the work: every array of an argument is seven values.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool = False) -> F:
    decorate = numba.njit(nogil=True, fastmath=False, error_model="numpy", forceinline=forceinline)
    compiled: Any = decorate(function)
    if hasattr(compiled, "_cache"):  # a Python function has none, if NUMBA_DISABLE_JIT is set
        compiled._cache = KernelCache(function, _cache_name(function.__code__.co_filename), _FOLDERS)  # noqa: SLF001
    return cast("F", compiled)
