"""The cache of compiled kernels: files that are code, so they are read only if nobody else can have written them.

A cache folder is used if it belongs to this user or to root, and nobody else can write to it or change the way to it.
Each file is checked again when it is opened: its owner, its mode, its links, and a digest of its content. A file that
is damaged, half written or not there means that the kernel is compiled, and so does a folder that can't be written to.
numba's own cache is not used: it falls back to folders that nobody has checked, and unpickles its index unchecked.
"""

from __future__ import annotations

import grp
import hashlib
import logging
import os
import pwd
import secrets
import stat
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["KernelCache", "cache_folders"]

_MAGIC = b"shoal kernel 1\n"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # on the way to a folder, as in Linux


def cache_folders() -> list[Path]:
    """Return the folders of compiled kernels, the one that new kernels are written to first; none if none is safe.

    The first is the one that `NUMBA_CACHE_DIR` names, else that of the user; it is made if it is not there. The second
    holds kernels that were shipped (`SHOAL_KERNELS`, as in the Docker image) and is only read. If nothing can be kept,
    the logger `shoal` says so.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    wanted = [Path(given)] if given else _of_the_user()
    own = next((folder for folder in wanted if _usable(folder)), None)
    shipped = os.environ.get("SHOAL_KERNELS")
    if own is None:
        logging.getLogger("shoal").warning(
            "%s is not used for compiled kernels: it can't be made, or others can write to it or to a folder above it. "
            "Each run compiles anew, for about a minute. Name a folder of your own in NUMBA_CACHE_DIR",
            "the folder in NUMBA_CACHE_DIR" if given else "the user's cache folder",
        )
    return [*filter(None, [own]), *([Path(shipped)] if shipped and _is_safe(Path(shipped)) else [])]


def _of_the_user() -> list[Path]:
    """Return where this user's cache may be: as the environment says, or else by the user's number."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    homes = [Path(named)] if named.startswith("/") else []
    homes += [Path(home, ".cache") for home in [os.environ.get("HOME", "")] if home.startswith("/")]
    with suppress(KeyError):
        homes.append(Path(pwd.getpwuid(os.geteuid()).pw_dir, ".cache"))
    return [home / "shoal" / "compiled" for home in homes]


def _usable(folder: Path) -> bool:
    """Make a cache folder if it is not there; return whether it is safe."""
    try:
        folder = folder.absolute()
        missing = [one for one in (folder, *folder.parents) if not os.path.lexists(one)]
        if missing and not _is_safe(missing[-1].parent, shared=True):
            return False
        for one in reversed(missing):
            with suppress(FileExistsError):  # another run has made it
                one.mkdir(mode=0o700)
                one.chmod(0o700)  # whatever the umask is
        return _is_safe(folder)
    except OSError:
        return False


def _is_safe(folder: Path, *, shared: bool = False) -> bool:
    """Say whether only this user and root can write to a folder, and change what its path leads to.

    Folders above it, and the folder itself if it may be `shared`, may be like /tmp: others add to it but move nothing.
    """
    try:
        *above, last = _on_the_way(folder.absolute())
    except OSError:
        return False
    return all(_is_ours(one, shared=True) for one in above) and _is_ours(last, shared=shared)


def _on_the_way(path: Path) -> Iterator[os.stat_result]:
    """Yield what is known of each folder and each link that a path leads through, and of the folder at its end."""
    place, names, links = Path("/"), list(path.parts[1:]), 0
    yield place.lstat()
    while names:
        name = names.pop(0)
        place = place.parent if name == ".." else place / name
        about = place.lstat()
        if stat.S_ISLNK(about.st_mode):
            links += 1
            if links > _MOST_LINKS or not names:  # the folder itself is no link
                raise OSError
            if about.st_uid not in _trusted():
                raise PermissionError
            to = place.readlink()
            place, names = Path("/") if to.is_absolute() else place.parent, [*to.parts[to.is_absolute() :], *names]
        else:
            yield about


def _trusted() -> set[int]:
    return {0, os.geteuid()}


def _is_ours(about: os.stat_result, *, shared: bool = False) -> bool:
    """Say whether a folder belongs to this user or root and others can't write to it, or can't move what is in it."""
    if not stat.S_ISDIR(about.st_mode) or about.st_uid not in _trusted():
        return False
    open_to = about.st_mode & _OTHERS_WRITE
    return not open_to or (shared and (bool(about.st_mode & stat.S_ISVTX) or _only_own_group(about)))


def _only_own_group(about: os.stat_result) -> bool:
    """Say whether a folder that its group can write to has a group of this user only, as many systems make them."""
    if about.st_mode & stat.S_IWOTH:
        return False
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(about.st_gid)
    except KeyError:
        return False
    return group.gr_gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


class KernelCache:
    """The cache of one kernel, as numba's dispatcher uses it. Its methods never raise.

    Input: the function, the name of its module's folder (which changes with the source), and the folders.
    """

    cache_path = None  # of numba's own cache

    def __init__(self, function: Callable[..., Any], name: str, folders: list[Path]) -> None:
        self._function, self._name, self._folders = function, name, folders

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the kernel compiled for a signature, or None."""
        with suppress(Exception):
            target.refresh()
            name = self._file(signature, target.codegen())
            for folder in self._folders:
                content = _read(folder, self._name, name)
                if content is not None:
                    known, reduced = loads(content)  # nobody else can have written it
                    if known == signature:
                        return CompileResult._rebuild(target, *reduced)  # type: ignore[no-untyped-call]  # noqa: SLF001
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled kernel into the first folder, if it can be kept."""
        with suppress(Exception):
            if self._folders and not result.lifted and not result.library.has_dynamic_globals:
                content = dumps((signature, result._reduce()))  # type: ignore[no-untyped-call]  # noqa: SLF001
                _write(self._folders[0], self._name, self._file(signature, result.codegen), content)

    def _file(self, signature: Any, codegen: Any) -> str:
        """Return the name of the file: it tells apart all that the compiled code depends on, besides the source."""
        code = self._function.__code__
        held = [cell.cell_contents for cell in self._function.__closure__ or ()]
        place = (code.co_filename, self._function.__qualname__, code.co_firstlineno)
        text = (code.co_code, dumps(held) if held else b"")  # type: ignore[no-untyped-call]
        key = (sys.implementation.cache_tag, numba.__version__, signature, codegen.magic_tuple(), place, text)
        return f"{self._function.__name__}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.kernel"

    def enable(self) -> None:
        """Do nothing: a cache can't be switched."""

    disable = flush = enable


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.blake2b(name.encode() + b"\0" + content, digest_size=32).digest()


def _read(folder: Path, below: str, name: str) -> bytes | None:
    """Return the content of a file that is whole and that nobody else can have written; None if there is none."""
    with suppress(OSError), _opened(folder, below) as place:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        with os.fdopen(file, "rb") as opened:
            about = os.fstat(file)
            ours = stat.S_ISREG(about.st_mode) and about.st_uid in _trusted() and about.st_nlink == 1
            if not ours or about.st_mode & _OTHERS_WRITE:
                return None
            magic, digest = opened.read(len(_MAGIC)), opened.read(32)
            content = opened.read()
            return content if magic == _MAGIC and digest == _digest(name, content) else None
    return None


def _write(folder: Path, below: str, name: str, content: bytes) -> None:
    """Write a file at once: others see it whole or not at all. Raises OSError."""
    with _opened(folder) as place, suppress(FileExistsError):
        os.mkdir(below, 0o700, dir_fd=place)
        os.chmod(below, 0o700, dir_fd=place)  # whatever the umask is
    with _opened(folder, below) as place:
        new = f".{name}.{secrets.token_hex(8)}"
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=place)
        try:
            with os.fdopen(file, "wb") as opened:
                os.fchmod(file, 0o600)
                opened.write(_MAGIC + _digest(name, content) + content)
            os.rename(new, name, src_dir_fd=place, dst_dir_fd=place)
        except BaseException:
            with suppress(OSError):
                os.unlink(new, dir_fd=place)
            raise


@contextmanager
def _opened(folder: Path, *below: str) -> Iterator[int]:
    """Open a folder and, in it, one of `below`, none by a link; each is checked as it is opened. Raises OSError."""
    with ExitStack() as opened:
        place = _open_folder(str(folder), None, opened)
        for name in below:
            place = _open_folder(name, place, opened)
        yield place


def _open_folder(name: str, place: int | None, opened: ExitStack) -> int:
    number = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
    opened.callback(os.close, number)
    if not _is_ours(os.fstat(number)):
        raise PermissionError
    return number
