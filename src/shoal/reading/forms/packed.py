"""Packed files: unpack what the engine can't unpack itself."""

from __future__ import annotations

import bz2
import lzma
import zipfile
import zlib
from pathlib import Path, PurePath, PurePosixPath
from typing import IO

from shoal.errors import TooLarge, UnreadableFile

__all__ = ["bring_members", "bring_unpacked", "copy_unpacked", "inside"]

_PART = 1 << 20
_MAX_RATIO = 500  # as in `sources.py`: a larger ratio is a decompression bomb
_MAX_MEMBERS = 100_000


def bring_unpacked(source: str, folder: Path) -> list[Path]:
    """Unpack a file such as `events.csv.bz2` or `events.csv.xz`, and return the path of the text."""
    path = Path(source)
    target = inside(folder, path) / path.stem
    opener = lzma.open if path.suffix.lower() == ".xz" else bz2.open
    try:
        with opener(path, "rb") as packed:
            copy_unpacked(packed, target, path.stat().st_size, path.name)
    except (lzma.LZMAError, EOFError, ValueError):
        raise UnreadableFile(f"{path.name}: its compression is damaged or cut off; copy it again") from None
    return [target]


def bring_members(source: str, folder: Path) -> list[Path]:
    """Unpack the data files in a .zip, and return their paths in the order of their names.

    Each goes into a folder of its own, under the last two parts of its name, so that no name can lead elsewhere.
    """
    from shoal.reading.sources import is_data, without_rare

    path = Path(source)
    damaged = UnreadableFile(f"{path.name}: not a whole .zip file; copy it again")
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as packed:
            members = {
                name: PurePosixPath(name.replace("\\", "/"))
                for name in sorted(set(packed.namelist()))
                if not name.endswith("/")
            }
            wanted = [inner for inner in members.values() if is_data(inner.name) and not _hidden(inner)]
            kept = set(without_rare([Path(inner) for inner in wanted]))
            members = {name: inner for name, inner in members.items() if inner in wanted and Path(inner) in kept}
            if not members:
                raise UnreadableFile(f"{path.name}: there is no data file in it; unpack it and name the file")
            if len(members) > _MAX_MEMBERS:
                raise TooLarge(f"{path.name}: more than {_MAX_MEMBERS:,} files in it; unpack it and name the folder")
            left, found = max(64 * _PART, _MAX_RATIO * size), []
            for i, (name, inner) in enumerate(members.items()):
                if packed.getinfo(name).flag_bits & 1:
                    raise UnreadableFile(f"{path.name}: it needs a password; unpack it first")
                target = inside(folder / str(i), inner) / inner.name
                with packed.open(name) as member:
                    left -= copy_unpacked(member, target, size, path.name, most=left)
                found.append(target)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError):
        raise damaged from None
    return found


def copy_unpacked(packed: IO[bytes], target: Path, size: int, name: str, *, most: int | None = None) -> int:
    """Copy unpacked bytes into a new file, and return their number; raises TooLarge for a decompression bomb."""
    limit = max(64 * _PART, _MAX_RATIO * size) if most is None else most
    written = 0
    with target.open("xb") as unpacked:
        while part := packed.read(_PART):
            written += len(part)
            if written > limit:
                raise TooLarge(f"{name}: unpacks to more than {_MAX_RATIO} times its size; unpack it and look")
            unpacked.write(part)
    return written


def _hidden(inner: PurePosixPath) -> bool:
    return any(part.startswith((".", "_")) and part.strip(".") != "" for part in inner.parts)


def inside(folder: Path, path: PurePath) -> Path:
    """Return a new folder in a folder, with the names of the last two that a file is in, since they may tell the user.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as new:
    ...     inside(Path(new), PurePath("Data/000/Trajectory/a.plt")).relative_to(new).as_posix()
    '000/Trajectory'
    """
    names = [name for name in path.parent.parts[-2:] if name.strip("./\\")] or ["files"]
    made = folder.joinpath(*names)
    made.mkdir(parents=True, mode=0o700)
    return made
