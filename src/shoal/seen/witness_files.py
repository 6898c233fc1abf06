"""Files for the witness: which files an original is made of, found and unpacked without the reader.

Names are taken literally: a file that exists is never a pattern. Only Python's own modules unpack (and Arrow, for
`.zst`); everything is read as a stream.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import re
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

import pyarrow as pa

from shoal.stores.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Found", "Unseen", "files_of"]

_TEXT = (".csv", ".tsv", ".txt", ".plt")
_STREAMS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TABLES = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".jsonl", ".ndjson", ".json", ".gpx")
_OTHERS = (".xlsx", ".xlsm", ".ods", ".geojson", ".geojsonl", ".geojsons", ".ndgeojson", ".mfjson")
_RARE = (".txt", ".json")  # in a folder these are data only if there is nothing else
_PRIVATE = (".manifest.json", ".run.json")
_ENDINGS = re.compile(
    r"([.](sheet\d+|csv|tsv|txt|plt|dat|parquet|pq|arrow|feather|ipc|jsonl|ndjson|json|xlsx|gz|zst|bz2|xz|zip))+$",
    re.IGNORECASE,
)
_IN_MEMORY = 1 << 26  # the largest member of a .zip that is held in memory, where it can't be read as a stream
_DEPTH = 2


Opener: TypeAlias = "Callable[[ExitStack], IO[bytes]]"


class Unseen(Exception):
    """What the witness can't open; `why` is one of the reasons in `witness.py`."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True)
class Found:
    """One table: the path that may tell its user, and how its content ends (`.csv`, `.parquet`).

    `open` returns the unpacked content; what was opened is closed with the stack that it is given.
    """

    path: PurePath
    ending: str
    open: Opener
    plain: Path | None = None  # the file itself, unless it is packed

    def user(self, role: str) -> str:
        """Return the user that the name of the file (`@file`) or of its folder (`@folder`) tells.

        >>> Found(PurePath("/data/007/Trajectory/1.plt"), ".plt", open).user("@folder")
        '007'
        """
        if role == "@file":
            return _ENDINGS.sub("", self.path.name)
        *_, above, folder = ("", "", *self.path.parts[:-1])
        return above if folder == "Trajectory" else folder


def files_of(original: Any) -> Iterator[Found]:
    """Yield the tables in files, folders and patterns, each file once. Raises Unseen for what is none of these."""
    asked = [original] if isinstance(original, str | os.PathLike) else original
    if not isinstance(asked, Sequence) or not all(isinstance(one, str | os.PathLike) for one in asked):
        raise Unseen("memory")
    if any(is_address(one) for one in asked):
        raise Unseen("address")
    paths = dict.fromkeys(path.absolute() for one in asked for path in _paths(Path(one)))
    for path in paths:
        yield from _unpacked(path, partial(_opened, path), plain=path)


def _opened(path: Path, stack: ExitStack) -> IO[bytes]:
    return stack.enter_context(path.open("rb"))


def _paths(path: Path) -> list[Path]:
    if path.is_dir():
        inside = [p for p in path.rglob("*") if _is_data(p.name) and not _hidden(p.relative_to(path)) and p.is_file()]
        return _without_rare(inside)
    if path.exists():
        return [path]
    return [p for p in map(Path, glob.glob(str(path), recursive=True)) if p.is_file()]  # noqa: PTH207


def _hidden(path: PurePath) -> bool:
    return any(part.startswith((".", "_")) and part.strip(".") != "" for part in path.parts)


def _is_data(name: str) -> bool:
    lower = name.lower()
    if lower.endswith(_PRIVATE):
        return False
    text = lower.removesuffix(".gz").removesuffix(".zst") if lower.endswith((".gz", ".zst")) else lower
    return text.endswith(_TEXT) or lower.endswith((*_TABLES, *_OTHERS, ".zip", ".bz2", ".xz"))


def _without_rare(paths: Sequence[Any]) -> list[Any]:
    return [path for path in paths if path.suffix.lower() not in _RARE] or list(paths)


def _unpacked(path: PurePath, opener: Opener, *, plain: Path | None = None, depth: int = 0) -> Iterator[Found]:
    ending = path.suffix.lower()
    if depth > _DEPTH:
        raise Unseen("form")
    if ending == ".zip":
        yield from _members(path, opener, depth)
    elif ending == ".zst":
        yield from _unpacked(path.with_suffix(""), partial(_zst, opener), depth=depth + 1)
    elif ending in _STREAMS:
        yield from _unpacked(path.with_suffix(""), partial(_wrapped, _STREAMS[ending], opener), depth=depth + 1)
    elif ending in _OTHERS or ending not in (*_TEXT, *_TABLES):
        raise Unseen("form")
    else:
        yield Found(path, ending, opener, plain)


def _wrapped(unpack: Callable[..., Any], opener: Opener, stack: ExitStack) -> IO[bytes]:
    return cast("IO[bytes]", stack.enter_context(unpack(opener(stack), "rb")))


def _zst(opener: Opener, stack: ExitStack) -> IO[bytes]:
    packed = pa.CompressedInputStream(pa.PythonFile(opener(stack), "r"), "zstd")
    return cast("IO[bytes]", stack.enter_context(packed))


def _members(path: PurePath, opener: Opener, depth: int) -> Iterator[Found]:
    with ExitStack() as stack, zipfile.ZipFile(opener(stack)) as packed:
        names = {name: PurePosixPath(name.replace("\\", "/")) for name in set(packed.namelist()) if name[-1:] != "/"}
        sizes = {name: packed.getinfo(name).file_size for name in names}
    data = {name: inner for name, inner in names.items() if _is_data(inner.name) and not _hidden(inner)}
    kept = set(_without_rare(list(data.values())))
    for name, inner in data.items():
        if inner not in kept:
            continue
        if not inner.name.lower().endswith((*_TEXT, ".gz", ".bz2", ".xz", ".zst")) and sizes[name] > _IN_MEMORY:
            raise Unseen("form")
        parts = [part for part in inner.parts if part.strip("./")]
        yield from _unpacked(path.parent.joinpath(*parts), partial(_member, opener, name), depth=depth + 1)


def _member(opener: Opener, name: str, stack: ExitStack) -> IO[bytes]:
    packed = stack.enter_context(zipfile.ZipFile(opener(stack)))
    return stack.enter_context(packed.open(name))
