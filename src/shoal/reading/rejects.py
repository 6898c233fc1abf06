"""Rejects: the lines of a text that are no rows of its table, and those after which no line can be trusted.

The engine sets aside what it can't split into columns. Most of it is counted, as rows that are dropped. But after a
line that is too long, or a quote that is never closed, the engine loses its place and leaves out rows without a word.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import TooLarge, UnreadableFile
from shoal.reading.limits import MAX_LINE, MAX_REJECTS
from shoal.reading.paths import UNPACKED_BY_ENGINE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.reading.sources import Source

__all__ = ["LineCheck", "check_lines", "encoding_note", "refuse_lost_rows", "rejected_rows"]

_STEP, _PART = MAX_LINE // 2, 1 << 12


def rejected_rows(engine: Any, sources: Sequence[Source], *, first: bool = False) -> int:
    """Return the number of text lines that are not rows (or the number of the `first` such line, 0 for none)."""
    if all(source.kind != "csv" for source in sources):
        return 0
    what = "coalesce(min(line), 0)" if first else "count(DISTINCT (scan_id, file_id, line))"
    (found,) = engine.execute(f"SELECT {what} FROM reject_errors").fetchall()[0]  # noqa: S608
    # The caller takes one line of names for granted.
    return int(found) - sources[0].skip + (not sources[0].header) if first and found else int(found)


def encoding_note(engine: Any, sources: Sequence[Source]) -> list[str]:
    """Return a note if lines were dropped since they are not UTF-8."""
    if all(source.kind != "csv" for source in sources):
        return []
    wanted = "SELECT count(*) FROM reject_errors WHERE error_type = 'INVALID ENCODING'"
    if not engine.execute(wanted).fetchall()[0][0]:
        return []
    return ['some lines are not UTF-8 and were dropped; if that is wrong, give the encoding, e.g. `encoding="cp1252"`']


def refuse_lost_rows(engine: Any, sources: Sequence[Source]) -> None:
    """Raise if lines may be lost besides those that are set aside: UnreadableFile, or TooLarge for a limit."""
    if all(source.kind != "csv" for source in sources):
        return
    names = {str(source.path): source.name for source in sources}
    most = engine.execute("SELECT count(*) FROM reject_errors GROUP BY scan_id, file_id ORDER BY 1 DESC").fetchone()
    if most is not None and most[0] >= MAX_REJECTS:
        name = sources[0].name if len(sources) == 1 else "one of the files"
        raise TooLarge(f"{name}: some {MAX_REJECTS:,} lines are not rows of the table; check the delimiter and quotes")
    odd = engine.execute(
        "SELECT error_type, file_path, byte_position FROM reject_errors JOIN reject_scans USING (scan_id, file_id) "
        "WHERE error_type IN ('LINE SIZE OVER MAXIMUM', 'UNQUOTED VALUE')"
    ).fetchall()
    for kind, path, position in odd:
        name = names.get(path, "the file of cells")
        if kind != "UNQUOTED VALUE":
            raise _too_long(name)
        if _has_lines_after(path, int(position or 1) - 1):
            raise UnreadableFile(
                f"{name}: a quote is opened and not closed as it should be, so that rows after it are lost; "
                "correct the quotes"
            )


def _has_lines_after(path: str, position: int) -> bool:
    """Return whether there is a further line after the one at a position."""
    ending = path[path.rfind(".") :]
    with pa.input_stream(path, compression=UNPACKED_BY_ENGINE.get(ending)) as stream:
        while position > 0:
            passed = len(stream.read(min(position, 1 << 20)))
            if not passed:
                return False
            position -= passed
        rest = bytes(stream.read(MAX_LINE)).replace(b"\r", b"\n").partition(b"\n")[2]
        return bool(rest.strip()) or bool(stream.read(1))


class LineCheck:
    """Looks for lines that are too long in a text that comes in parts; raises TooLarge."""

    def __init__(self, name: str) -> None:
        self._name, self._length = name, 0

    def add(self, part: bytes) -> None:
        """Look at the next part."""
        newline = max(part.find(b"\n"), part.find(b"\r"))
        self._length = len(part) if newline >= 0 else self._length + len(part)
        if newline < 0 and self._length > MAX_LINE:
            raise _too_long(self._name)


def check_lines(file: IO[bytes], size: int, name: str) -> None:
    """Raise TooLarge for a line so long that the engine passes it over; cost: a few kilobytes of each megabyte."""
    for start in range(0, size, _STEP):
        file.seek(start)
        check = LineCheck(name)
        while part := file.read(_PART):
            check.add(part)
            if b"\n" in part or b"\r" in part:
                break


def _too_long(name: str) -> TooLarge:
    return TooLarge(
        f"{name}: a line has more than {MAX_LINE:,} bytes; check that lines end and that all quotes are closed"
    )
