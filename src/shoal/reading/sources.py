"""Sources: find the input files, and check each before anything large is read."""

from __future__ import annotations

import csv
import glob
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import InputError, TooLarge, UnreadableFile
from shoal.reading.forms import bringer_of_ending

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MAX_COLUMNS", "Source", "expand", "is_readable", "look_at"]

MAX_COLUMNS = 10_000
_LOOK = 1 << 20  # how much of a text file is looked at for its header
_MAX_RATIO = 500  # real rows shrink to a tenth; a larger ratio is a decompression bomb
_MAX_FOOTER = 1 << 26
_PACKED = {".gz": "gzip", ".zst": "zstd"}
_TEXT = {".csv": ",", ".tsv": "\t"}
_PARQUET = (".parquet", ".pq")
_ENDINGS = ".csv, .tsv (also .gz, .zst, .bz2) or .parquet"


@dataclass(frozen=True)
class Source:
    """One input: `kind` is csv, parquet or table; files of equal `shape` can be read in one go.

    `columns` are the names in a CSV's header; `rows` is known for Parquet and tables, 0 for
    text.
    """

    kind: str
    name: str
    path: Path | None = None
    columns: tuple[str, ...] = ()
    delimiter: str = ","
    rows: int = 0
    shape: tuple[object, ...] = ()


def expand(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files that files, folders and globs name: absolute, sorted within each folder or glob, each once.

    Of a folder and the folders in it the files with a known ending are taken, but nothing whose name, or that of
    a folder on the way to it, begins with a dot or an underscore. Raises UnreadableFile where there is nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.csv").write_text("uid")
    ...     [path.name for path in expand([folder, f"{folder}/*.csv"])]
    ['a.csv']
    """
    if hasattr(paths, "columns"):
        raise InputError(
            "a data frame is not a file. Instead of shoal.read, call shoal.from_pandas or shoal.from_polars. To other "
            "functions, give an Arrow table: pyarrow.Table.from_pandas(frame), or frame.to_arrow() of a Polars frame"
        )
    asked = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not asked:
        raise UnreadableFile("no input file was given")
    return list(dict.fromkeys(path for one in asked for path in _files(Path(one))))


def _files(path: Path) -> list[Path]:
    try:
        found = _found(path)
    except OSError as error:  # a name that is too long, a folder that can't be entered
        raise UnreadableFile(f"{path.name[:100]}: can't be looked at ({error.strerror})") from None
    return [p.absolute() for p in found]


def _found(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(
            p for p in path.rglob("*") if is_readable(p) and not _hidden(p.relative_to(path)) and p.is_file()
        )
        if not found:
            raise UnreadableFile(f"{path.name}: the folder holds no file that ends in {_ENDINGS}")
        return found
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(p) for p in glob.glob(str(path), recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not found:
            raise UnreadableFile(f"{path.name}: no file matches; put the pattern in quotes and check the folder")
        return found
    if not path.is_file():
        raise UnreadableFile(f"{path.name}: there is no such file")
    return [path]


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def is_readable(path: Path) -> bool:
    """Return whether a file's name has an ending of files that can be read."""
    return bool(_kind(path) or bringer_of_ending(path.name))


def _kind(path: Path) -> str | None:
    suffixes = [s.lower() for s in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in _PARQUET:
        return "parquet"
    text = suffixes[:-1] if suffixes and suffixes[-1] in _PACKED else suffixes
    return "csv" if text and text[-1] in _TEXT else None


def look_at(path: Path) -> Source:
    """Check the beginning or the footer of a file, and return it as a source.

    Raises UnreadableFile for what is empty, broken or of no known kind. Cost: at most 64 MB are read, but compressed
    text is unpacked once, because the engine takes a file that was cut off for a shorter one.
    """
    kind = _kind(path)
    try:
        size = path.stat().st_size
        if size == 0:
            raise UnreadableFile(f"{path.name}: the file is empty")
        if kind is None:
            with path.open("rb") as file:
                hint = " (it looks like Parquet)" if file.read(4) == b"PAR1" else ""
            raise UnreadableFile(f"{path.name}: the kind of file is told by its ending{hint}; use {_ENDINGS}")
        return _look_at_parquet(path, size) if kind == "parquet" else _look_at_text(path, size)
    except OSError:  # pyarrow raises OSError for broken compression, too
        raise UnreadableFile(f"{path.name}: can't be opened, or its compression is damaged") from None


def _look_at_parquet(path: Path, size: int) -> Source:
    """Check the start and end of a Parquet file before its footer is parsed, and its columns before they are used."""
    damaged = UnreadableFile(f"{path.name}: not a whole Parquet file (cut off or damaged); copy it again")
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(max(size - 8, 0))
        tail = file.read(8)
    footer = int.from_bytes(tail[:4], "little")
    if head != b"PAR1" or tail[4:] != b"PAR1" or footer + 12 > size:
        raise damaged
    if footer > _MAX_FOOTER:
        raise UnreadableFile(f"{path.name}: its footer is larger than {_MAX_FOOTER >> 20} MB; write fewer columns")
    try:
        meta = pq.read_metadata(path)
        _check_width(meta.num_columns, path.name)
        shape = tuple(
            (c.path, c.physical_type, str(c.logical_type)) for c in map(meta.schema.column, range(meta.num_columns))
        )
        rows = sum(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise damaged from None
    if rows < 0 or rows != meta.num_rows:
        raise damaged
    return Source("parquet", path.name, path, rows=rows, shape=("parquet", shape))


def _look_at_text(path: Path, size: int) -> Source:
    packed = _PACKED.get(path.suffix.lower())
    with pa.input_stream(path, compression=packed) as stream:
        look = bytes(stream.read(_LOOK))
        if packed:
            _check_packed(path, packed, size)
    if look.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in look.split(b"\n", 1)[0]:
        raise UnreadableFile(f"{path.name}: not UTF-8 text (UTF-16 or binary); convert it to UTF-8")
    text = look.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    delimiter = _delimiter(text, ".tsv" in path.name.lower())
    columns = _header(text, delimiter, path.name, whole=len(look) < _LOOK)
    return Source("csv", path.name, path, columns, delimiter, shape=("csv", columns, delimiter))


def _check_packed(path: Path, packed: str, size: int) -> None:
    """Check that a compressed file is whole and not a decompression bomb, by unpacking it to its end."""
    unpacked = 0
    with pa.input_stream(path, compression=packed) as stream:
        while part := len(stream.read(_LOOK)):
            unpacked += part
            if unpacked > 64 * _LOOK and unpacked > _MAX_RATIO * size:
                raise TooLarge(f"{path.name}: unpacks to more than {_MAX_RATIO} times its size; unpack it and look")


def _delimiter(text: str, is_tsv: bool) -> str:
    """Choose the delimiter that is most frequent in the first line, outside quotes."""
    unquoted = "".join(text.split("\n", 1)[0].split('"')[::2])
    candidates = "\t,;|" if is_tsv else ",\t;|"
    return max(candidates, key=unquoted.count)


def _header(text: str, delimiter: str, name: str, *, whole: bool) -> tuple[str, ...]:
    lines = io.StringIO(text, newline="")
    try:
        columns = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    except csv.Error:
        raise UnreadableFile(f"{name}: the line of column names can't be read; check its quotes") from None
    _check_width(len(columns), name)
    if not whole and lines.tell() >= len(text):
        raise UnreadableFile(f"{name}: the line of column names is longer than {_LOOK >> 20} MB; is it a CSV file?")
    if not any(columns):
        raise UnreadableFile(f"{name}: the first line is empty; it should hold the column names")
    if any("�" in column or "\0" in column for column in columns):
        raise UnreadableFile(f"{name}: the column names are not UTF-8 text; convert the file to UTF-8")
    return tuple(columns)


def _check_width(columns: int, name: str) -> None:
    if columns > MAX_COLUMNS:
        raise TooLarge(f"{name}: more than {MAX_COLUMNS:,} columns; keep those for user, time and place")
