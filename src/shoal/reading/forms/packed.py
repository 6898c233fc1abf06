"""Packed files: unpack what the engine can't unpack itself."""

from __future__ import annotations

import bz2
import lzma
import zipfile
import zlib
from typing import IO, TYPE_CHECKING

from shoal.errors import TooLarge, UnreadableFile
from shoal.reading.forms import Brought, inner_path
from shoal.reading.limits import MAX_MEMBERS, check_unpacked
from shoal.reading.paths import ending_of

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

__all__ = ["bring_members", "bring_unpacked", "copy_unpacked"]

_PART = 1 << 20


def bring_unpacked(path: Path, folder: Path, name: str) -> list[Brought]:
    """Unpack a file such as `events.csv.bz2` or `events.csv.xz`, and return the path of the text."""
    target = folder / f"rows{ending_of(path.name).removesuffix(path.suffix)}"
    opener = lzma.open if path.suffix == ".xz" else bz2.open
    try:
        with opener(path, "rb") as packed:
            copy_unpacked(packed, target, path.stat().st_size, name)
    except (lzma.LZMAError, EOFError, ValueError):
        raise UnreadableFile(f"{name}: its compression is damaged or cut off; copy it again") from None
    return [Brought(target)]


def bring_members(path: Path, folder: Path, name: str) -> list[Brought]:
    """Unpack the data files in a .zip, and return them in the order of their names.

    Each tells its whole name inside the archive, since folders may tell the user. Raises UnreadableFile if two of them
    have one name.
    """
    from shoal.reading.sources import is_data, without_rare

    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as packed:
            inside = [
                (inner_path(one.filename.replace("\\", "/")), one)
                for one in packed.infolist()
                if one.filename and not one.is_dir()
            ]
            data = [inner for inner, _ in inside if is_data(inner.name) and not _hidden(inner)]
            kept = set(without_rare(data))
            members = sorted((pair for pair in inside if pair[0] in kept), key=lambda pair: pair[1].filename)
            if not members:
                raise UnreadableFile(f"{name}: there is no data file in it; unpack it and name the file")
            if len(members) > MAX_MEMBERS:
                raise TooLarge(f"{name}: more than {MAX_MEMBERS:,} files in it; unpack it and name the folder")
            if len(members) > len(kept):
                raise UnreadableFile(f"{name}: two files in it have one name; unpack them and name the folder")
            found: list[Brought] = []
            unpacked = 0
            for number, (inner, one) in enumerate(members):
                if one.flag_bits & 1:
                    raise UnreadableFile(f"{name}: it needs a password; unpack it first")
                target = folder / f"{number}{ending_of(inner.name)}"
                with packed.open(one) as member:
                    unpacked = copy_unpacked(member, target, size, name, before=unpacked)
                found.append(Brought(target, inner))
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, RuntimeError, ValueError):
        raise UnreadableFile(f"{name}: not a whole .zip file; copy it again") from None
    return found


def copy_unpacked(packed: IO[bytes], target: Path, size: int, name: str, *, before: int = 0) -> int:
    """Copy unpacked bytes into a new file, and return their number and that of bytes `before`.

    Raises TooLarge for a decompression bomb.
    """
    written = before
    with target.open("xb") as unpacked:
        while part := packed.read(_PART):
            written += len(part)
            check_unpacked(written, size, name)
            unpacked.write(part)
    return written


def _hidden(inner: PurePosixPath) -> bool:
    return any(part.startswith((".", "_")) and part.strip(".") != "" for part in inner.parts)
