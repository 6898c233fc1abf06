"""The decorators that compile kernels, so that all are compiled the same way.

The cache directory of a module is named after a hash of its source and of all modules with kernels that it imports:
numba's own check sees only the file of the cached function, so a change in a helper that lives elsewhere would
silently keep the old code.

A cache of compiled code is code: numba unpickles it. So it is used only if it belongs to this user or to root, and
nobody else can write to it. A cache that is damaged, full or not writable is no error: kernels are compiled again.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numpy.typing import NDArray

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
def _cache_directory(file: str) -> str:
    """Return the folder for the compiled kernels of a module."""
    digest = hashlib.sha256(numba.__version__.encode())
    for source, text in sorted(_sources(Path(file), {}).items()):
        digest.update(source.name.encode() + b"\0" + text)
    return str(Path(_BASE) / f"{Path(file).stem}-{digest.hexdigest()[:16]}")


def _base_directory() -> str:
    """Return a folder for compiled kernels that only this user and root can write to.

    It is the one that `NUMBA_CACHE_DIR` names, that of the user, or a temporary one. Kernels that were shipped
    (`SHOAL_KERNELS`, as in the Docker image) are copied into a new one.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    with suppress(OSError, RuntimeError):
        cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(given) if given else Path(cache_home) / "shoal" / "compiled"
        fresh = not folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_ours(folder) and os.access(folder, os.W_OK):
            if fresh:
                _copy_shipped(folder)
            return str(folder)
    temporary = tempfile.mkdtemp(prefix="shoal-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    _copy_shipped(Path(temporary))
    return temporary


def _is_ours(folder: Path) -> bool:
    """Say whether only this user and root can write to a folder."""
    about = folder.lstat()
    return (
        stat.S_ISDIR(about.st_mode)
        and about.st_uid in {0, os.geteuid()}
        and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _copy_shipped(folder: Path) -> None:
    shipped = os.environ.get("SHOAL_KERNELS")
    with suppress(OSError):
        if shipped and _is_ours(Path(shipped)):
            shutil.copytree(shipped, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)


_BASE = _base_directory()


def kernels_folder() -> Path:
    """Return the folder of the compiled kernels."""
    return Path(_BASE)


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
        if before < _PATIENCE_S <= self._spent:
            logging.getLogger("shoal").warning(
                "compiling, once: about a minute; later runs start at once (the folder is %s)", _BASE
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


class _Forgiving:
    """The cache of one kernel: if it can't be read or written, the kernel is compiled."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kept, name)

    def load_overload(self, *arguments: Any) -> Any:
        try:
            return self._kept.load_overload(*arguments)
        except Exception:
            with suppress(Exception):
                self._kept.flush()  # what is damaged would stay so
            return None

    def save_overload(self, *arguments: Any) -> None:
        with suppress(Exception):
            self._kept.save_overload(*arguments)


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
        compiled: Any = _njit(function, cached=True, forceinline=forceinline)
        if hasattr(compiled, "_cache"):  # a Python function has none, if NUMBA_DISABLE_JIT is set
            compiled._cache = _Forgiving(compiled._cache)  # noqa: SLF001
    except (OSError, RuntimeError):  # no kernel can be kept there
        compiled = _njit(function, cached=False, forceinline=forceinline)
    finally:
        numba.config.CACHE_DIR = others  # type: ignore[attr-defined]
    return cast("F", compiled)


def _njit(function: F, *, cached: bool, forceinline: bool) -> Any:
    decorate = numba.njit(cache=cached, nogil=True, fastmath=False, error_model="numpy", forceinline=forceinline)
    return decorate(function)
