"""Tables for the witness: the columns of one file, batch by batch, read with Arrow and Python alone.

Columns are taken by the exact names that the reader's account gives, each of which must be there once.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.seen.witness_files import Unseen
from shoal.seen.witness_values import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from shoal.seen.witness_files import Found

__all__ = ["batches_of"]

_PART = 1 << 20
_BLOCK = 1 << 22
_LONGEST = 1 << 26  # of a line, or of a list in JSON, which is held as a whole
_HEAD = 1_000  # lines among which the names are looked for
_ROWS = 1 << 16
_PLT = ("lat", "lng", "zero", "altitude", "days", "date", "time")  # behind six lines
_MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DELIMITERS = ",\t;| "
_DEEP = 8


def batches_of(
    found: Found, names: Sequence[str], kinds: dict[str, pa.DataType], encoding: str | None
) -> Iterator[dict[str, pa.Array]]:
    """Yield the named columns of a file; rows of a text that are no rows are left out.

    Input: `kinds` are the types in which the columns of a text are wanted, strings by default. Raises Unseen, or an
    error of Arrow or Python for what can't be read so. Memory: a few batches.
    """
    if found.ending in (".parquet", ".pq"):
        return _parquet(found, names)
    if found.ending in (".arrow", ".feather", ".ipc"):
        return _arrow(found, names)
    if found.ending in (".jsonl", ".ndjson", ".json"):
        return _rows(_records(found), names)
    if found.ending == ".gpx":
        return _rows(_points(found), names)
    return _text(found, names, kinds, encoding)


def _once(names: Sequence[str], every: Sequence[str]) -> None:
    if any(list(every).count(name) != 1 for name in names):
        raise Unseen("columns")


def _seekable(found: Found) -> Any:
    if found.plain is not None:
        return found.plain
    with ExitStack() as stack:
        return io.BytesIO(found.open(stack).read())


def _parquet(found: Found, names: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
    source = _seekable(found)
    schema = pq.read_schema(source)
    _once(names, schema.names)
    packed = [name for name in names if is_text(schema.field(name).type)]
    with pq.ParquetFile(source, read_dictionary=packed, buffer_size=_PART, pre_buffer=False) as file:
        for batch in file.iter_batches(_ROWS, columns=list(names), use_threads=False):
            yield {name: batch.column(name) for name in names}


def _arrow(found: Found, names: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
    with pa.OSFile(str(found.plain)) if found.plain is not None else pa.PythonFile(_seekable(found), "r") as file:
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        _once(names, reader.schema.names)
        for batch in (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader:
            batch.validate(full=True)
            yield {name: batch.column(name) for name in names}


class _Form(NamedTuple):
    """The columns of a text, their delimiter, and where the rows begin."""

    columns: list[str]
    delimiter: str
    start: int


def _text(
    found: Found, names: Sequence[str], kinds: dict[str, pa.DataType], encoding: str | None
) -> Iterator[dict[str, pa.Array]]:
    with ExitStack() as stack:
        chunks = _utf8(found.open(stack), encoding)
        look = b""
        while len(look) < _PART and (chunk := next(chunks, b"")):
            look += chunk
        look = look.removeprefix(codecs.BOM_UTF8)
        returns = b"\n" not in look.strip() and b"\r" in look.strip()
        if returns:
            look = look.replace(b"\r", b"\n")
        form = _form(look.decode("utf-8", errors="replace"), found, names)
        rest = look.split(b"\n", form.start)[form.start :]
        lines = _lines(chain(rest, chunks), returns=returns, blanks=form.delimiter == " ")
        asked = {name: f"c{form.columns.index(name)}" for name in names}
        reader = pa_csv.open_csv(
            io.BufferedReader(_Stream(lines), _PART),
            read_options=pa_csv.ReadOptions(
                column_names=[f"c{i}" for i in range(len(form.columns))], block_size=_BLOCK, use_threads=False
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=form.delimiter, newlines_in_values=True, invalid_row_handler=lambda _: "skip"
            ),
            convert_options=pa_csv.ConvertOptions(
                include_columns=list(dict.fromkeys(asked.values())),
                column_types={asked[name]: kinds.get(name, pa.string()) for name in names},
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        for batch in reader:
            yield {name: batch.column(column) for name, column in asked.items()}


def _utf8(file: IO[bytes], encoding: str | None) -> Iterator[bytes]:
    """Yield a text as UTF-8: from its declared encoding, that of its mark, or Windows-1252 if it seems to be that."""
    first = file.read(_PART)
    if encoding is None:
        marked = next((name for mark, name in _MARKS.items() if first.startswith(mark)), None)
        encoding = marked or ("cp1252" if _is_cp1252(first) else "utf-8")
    parts = chain([first], iter(partial(file.read, _PART), b""))
    if codecs.lookup(encoding).name == "utf-8":
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    for part in parts:
        yield decoder.decode(part).encode()
    yield decoder.decode(b"", final=True).encode()


def _is_cp1252(look: bytes) -> bool:
    """Return whether a text is no UTF-8, also not in part, but Windows-1252."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(look, final=len(look) < _PART)
    except UnicodeDecodeError:
        pass
    else:
        return False
    try:
        look.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return look.decode("utf-8", errors="ignore").isascii()


def _form(text: str, found: Found, names: Sequence[str]) -> _Form:
    """Find the line that names all wanted columns, each once; without one, the first line of data."""
    if ".plt" in found.path.name.lower():
        return _Form(list(_PLT), ",", 6)
    lines = text.split("\n")[:_HEAD]
    marks = [line.strip()[4] for line in lines if line.lower().startswith("sep=") and len(line.strip()) == 5]
    numbered = any(name.startswith("#") and name[1:].isdigit() for name in names)
    for at, line in enumerate(lines):
        for delimiter in (*marks, *_DELIMITERS):
            columns = next(csv.reader([line], delimiter=delimiter), [])
            if delimiter == " ":
                columns = [column for column in columns if column]
            if numbered and len(columns) > 1 and not line.startswith("#"):
                every = [f"#{i + 1}" for i in range(len(columns))]
                if set(names) <= set(every):
                    return _Form(every, delimiter, at)
            elif all(columns.count(name) == 1 for name in names):
                return _Form(_wider(columns, lines[at + 1 :], delimiter), delimiter, at + 1)
    raise Unseen("columns")


def _wider(columns: list[str], lines: list[str], delimiter: str) -> list[str]:
    """Return the names, with one more where every row ends in a delimiter and the names do not."""
    row = next((row for row in csv.reader(lines, delimiter=delimiter) if row), [])
    return [*columns, ""] if len(row) == len(columns) + 1 and not row[-1].strip() else columns


def _lines(parts: Iterable[bytes], *, returns: bool, blanks: bool) -> Iterator[bytes]:
    """Yield whole lines, those that are UTF-8, with common line ends and one blank between columns."""
    kept = b""
    for part in chain(parts, [b"\n"]):
        lines, end, more = (kept + (part.replace(b"\r", b"\n") if returns else part)).rpartition(b"\n")
        if len(more) > _LONGEST:
            raise Unseen("form")
        kept = more
        if end:
            yield _clean(lines + end, blanks=blanks)


def _clean(lines: bytes, *, blanks: bool) -> bytes:
    if not lines.isascii():
        try:
            lines.decode()
        except UnicodeDecodeError:
            lines = b"".join(line for line in lines.splitlines(keepends=True) if _is_utf8(line))
    return b"".join(b" ".join(line.split()) + b"\n" for line in lines.split(b"\n")) if blanks else lines


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Stream(io.RawIOBase):
    """Bytes from an iterator, as a file that Arrow can read."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self.parts, self.left = parts, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.left:
            part = next(self.parts, None)
            if part is None:
                return 0
            self.left = part
        count = min(len(buffer), len(self.left))
        buffer[:count] = self.left[:count]
        self.left = self.left[count:]
        return count


# Records


def _rows(records: Iterator[dict[str, str]], names: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
    seen = set[str]()
    while some := list(islice(records, _ROWS)):
        seen.update(*some)
        yield {name: pa.array([record.get(name) for record in some], pa.string()) for name in names}
    if not seen.issuperset(names):
        raise Unseen("columns")


def _records(found: Found) -> Iterator[dict[str, str]]:
    """Yield the records of a list in JSON, or one a line, as texts; numbers keep their spelling."""
    load = partial(json.loads, parse_float=str, parse_int=str, parse_constant=str)
    with ExitStack() as stack:
        text = stack.enter_context(io.TextIOWrapper(found.open(stack), encoding="utf-8-sig"))
        if found.ending == ".json":
            whole = text.read(_LONGEST + 1)
            if len(whole) > _LONGEST:
                raise Unseen("form")
            if whole.lstrip().startswith("["):
                yield from (dict(_flat(record)) for record in load(whole))
                return
            lines: Iterable[str] = io.StringIO(whole)
        else:
            lines = text
        yield from (dict(_flat(load(line))) for line in lines if line.strip())


def _flat(record: dict[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict) and depth < _DEEP:
            yield from _flat(value, f"{before}{name}.", depth + 1)
        elif value is None or isinstance(value, str | bool):
            yield f"{before}{name}", "" if value is None else str(value)


def _points(found: Found) -> Iterator[dict[str, str]]:
    """Yield the track points of a GPX file."""
    track = ""
    path: list[Any] = []
    with ExitStack() as stack:
        for event, element in ET.iterparse(found.open(stack), events=("start", "end")):  # noqa: S314  refused below
            tag = element.tag.rpartition("}")[2]
            if event == "start":
                path.append(element)
                track = "" if tag == "trk" else track
                continue
            path.pop()
            if tag == "name" and path and path[-1].tag.rpartition("}")[2] == "trk":
                track = (element.text or "").strip()
            if tag == "trkpt":
                inside = {child.tag.rpartition("}")[2]: child.text or "" for child in element}
                yield {"time": inside.get("time", ""), "track": track, **element.attrib}
                element.clear()
