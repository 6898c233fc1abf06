"""Sources: find the input files, and check each before anything large is read."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import InputError, UnreadableFile
from shoal.reading.forms import bringer_of_ending
from shoal.reading.geometry import Geo, geo_of
from shoal.reading.limits import MAX_FOOTER, check_rows, check_unpacked, check_width
from shoal.reading.paths import PARQUET, TEXT, UNPACKED_BY_ENGINE, printable_name
from shoal.reading.rejects import LineCheck, check_lines
from shoal.reading.texts import Repair, decoded, form_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.reading.options import ReadOptions

T = TypeVar("T", bound=PurePath)

__all__ = ["Source", "expand", "is_data", "look_at", "without_rare"]

_LOOK = 1 << 20  # how much of a text file is looked at for its header
_RARELY_DATA = (".txt", ".json")  # in a folder these are taken only if there is nothing else
_ENDINGS = ".csv, .tsv, .txt (also .gz, .zst, .bz2, .xz, .zip), .xlsx, .jsonl, .geojson, .gpx, .arrow or .parquet"


@dataclass(frozen=True)
class Source:
    """One input: `kind` is csv, parquet or table; files of equal `shape` can be read in one go.

    `name` is for messages, `path` is where the engine opens the file, and `told` is the path that may tell the user.
    `columns` are the names in a CSV's header, or the numbers of its columns without a `header`; `skip` lines stand
    before them. A text with `repair` must be written anew before it can be read. `rows` is known for Parquet and
    tables, 0 for text; `geo` is the column of points that a file names.
    """

    kind: str
    name: str
    path: Path | None = None
    columns: tuple[str, ...] = ()
    delimiter: str = ","
    rows: int = 0
    shape: tuple[object, ...] = ()
    geo: Geo | None = None
    notes: tuple[str, ...] = ()
    header: bool = True
    skip: int = 0
    repair: Repair | None = None
    told: PurePath | None = None
    fits: bool = True  # whether the names of a text fit its first row


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
    if any(os.fspath(one) == "" for one in asked):
        raise UnreadableFile("an input has no name; is a variable empty? The current folder is called .")
    return list(dict.fromkeys(path for one in asked for path in _files(Path(one))))


def _files(path: Path) -> list[Path]:
    try:
        found = _found(path)
    except OSError as error:  # a name that is too long, a folder that can't be entered
        raise UnreadableFile(f"{printable_name(path)[:100]}: can't be looked at ({error.strerror})") from None
    except ValueError:  # NUL in a name
        raise UnreadableFile(f"{printable_name(path)[:100]}: this can't be the name of a file") from None
    return [p.absolute() for p in found]


def _found(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(
            p for p in path.rglob("*") if is_data(p.name) and not _hidden(p.relative_to(path)) and p.is_file()
        )
        found = without_rare(found)
        if not found:
            raise UnreadableFile(f"{printable_name(path)}: the folder holds no file that ends in {_ENDINGS}")
        return found
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(p) for p in glob.glob(str(path), recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not found:
            raise UnreadableFile(
                f"{printable_name(path)}: no file matches; put the pattern in quotes and check the folder"
            )
        return found
    if path.exists() and not path.is_file():  # never opened: it could wait, or deliver, without end
        raise UnreadableFile(f"{printable_name(path)}: a pipe or a device; save its content in a file first")
    if not path.is_file():
        raise UnreadableFile(f"{printable_name(path)}: there is no such file")
    return [path]


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _kind(name: str) -> str | None:
    suffixes = PurePath(name.lower()).suffixes[-2:]
    if suffixes and suffixes[-1] in PARQUET:
        return "parquet"
    text = suffixes[:-1] if suffixes and suffixes[-1] in UNPACKED_BY_ENGINE else suffixes
    return "csv" if text and text[-1] in TEXT else None


def is_data(name: str) -> bool:
    """Return whether a file's name ends as that of a file that can be read.

    >>> is_data("a.csv.gz"), is_data("a.csv.manifest.json"), is_data("a.docx")
    (True, False, False)
    """
    known = _kind(name) is not None or bringer_of_ending(name) is not None
    return known and not name.lower().endswith((".manifest.json", ".run.json"))


def without_rare(paths: list[T]) -> list[T]:
    """Return the files without those that are rarely data (.txt, .json), unless there are no others."""
    return [path for path in paths if path.suffix.lower() not in _RARELY_DATA] or paths


def look_at(path: Path, name: str, options: ReadOptions | None = None) -> Source:
    """Check the beginning or the footer of a file, and return it as a source.

    `name` is that of the file for messages, while `path` may be a link to it with the same ending. `options` tell the
    encoding and numbers of columns. Raises UnreadableFile for what is empty, broken or of no known kind. Cost: at most
    64 MB are read, but compressed text is unpacked once, because the engine takes a file that was cut off for a shorter
    one.
    """
    kind = _kind(path.name)
    try:
        size = path.stat().st_size
        if size == 0:
            raise UnreadableFile(f"{name}: the file is empty")
        if kind is None:
            with path.open("rb") as file:
                hint = " (it looks like Parquet)" if file.read(4) == b"PAR1" else ""
            raise UnreadableFile(f"{name}: the kind of file is told by its ending{hint}; use {_ENDINGS}")
        return (
            _look_at_parquet(path, name, size, options)
            if kind == "parquet"
            else _look_at_text(path, name, size, options)
        )
    except OSError:  # pyarrow raises OSError for broken compression, too
        raise UnreadableFile(f"{name}: can't be opened, or its compression is damaged") from None


def _look_at_parquet(path: Path, name: str, size: int, options: ReadOptions | None) -> Source:
    """Check the start and end of a Parquet file before its footer is parsed, and its columns before they are used."""
    damaged = UnreadableFile(f"{name}: not a whole Parquet file (cut off or damaged); copy it again")
    with path.open("rb") as file:
        head = file.read(4)
        file.seek(max(size - 8, 0))
        tail = file.read(8)
    footer = int.from_bytes(tail[:4], "little")
    if head != b"PAR1" or tail[4:] != b"PAR1" or footer + 12 > size:
        raise damaged
    if footer > MAX_FOOTER:
        raise UnreadableFile(f"{name}: its footer is larger than {MAX_FOOTER >> 20} MB; write fewer columns")
    try:
        meta = pq.read_metadata(path)
        check_width(meta.num_columns, name)
        shape = tuple(
            (c.path, c.physical_type, str(c.logical_type)) for c in map(meta.schema.column, range(meta.num_columns))
        )
        groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
        rows, unpacked = sum(group.num_rows for group in groups), sum(group.total_byte_size for group in groups)
        geo = geo_of(meta.metadata or {})
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise damaged from None
    if rows < 0 or rows != meta.num_rows:
        raise damaged
    check_rows(rows, size, name, options)
    check_unpacked(unpacked, size, name)
    return Source("parquet", name, path, rows=rows, shape=("parquet", shape, geo), geo=geo)


def _look_at_text(path: Path, name: str, size: int, options: ReadOptions | None) -> Source:
    packed = UNPACKED_BY_ENGINE.get(path.suffix)
    with pa.input_stream(path, compression=packed) as stream:
        look = bytes(stream.read(_LOOK))
    whole = len(look) < _LOOK
    given = options.columns if options is not None else {}
    text, repair, notes = decoded(look, options.encoding if options is not None else None, name, whole=whole)
    form = form_of(text, name, path.suffixes[0], given, whole=whole)
    if form.repair is not None:
        repair = replace(form.repair, encoding=repair.encoding if repair is not None else "utf-8")
    check_width(len(form.columns), name)
    if packed:
        _check_packed(path, name, packed, size)
    elif repair is None:
        with path.open("rb") as file:
            check_lines(file, size, name)
    shape = ("csv", form.columns, form.delimiter, form.header, form.skip)
    return Source(
        "csv", name, path, form.columns, form.delimiter, shape=shape, notes=notes, header=form.header,
        skip=form.skip,
        fits=form.fits, repair=repair,
    )  # fmt: skip


def _check_packed(path: Path, name: str, packed: str, size: int) -> None:
    """Check that a compressed file is whole and not a decompression bomb, by unpacking it to its end."""
    unpacked, lines = 0, LineCheck(name)
    with pa.input_stream(path, compression=packed) as stream:
        while part := bytes(stream.read(_LOOK)):
            unpacked += len(part)
            check_unpacked(unpacked, size, name)
            lines.add(part)
