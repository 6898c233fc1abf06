"""The standard streams of a command. Writing to them never fails and never stops the work, whatever is behind them.

A stream may be closed, a pipe that nobody reads, a full disk, or a terminal that can't show every character. What can't
be written is dropped, and `lost` tells why, so that the exit code can say it (`shoal.cli.app.main`).
"""

from __future__ import annotations

import codecs
import io
import os
import select
import shutil
import sys
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["Output", "sound_streams", "to_standard_error"]

_PLAIN = {"–": "-", "—": "-", "−": "-", "×": "x", "·": "*", "≤": "<=", "≥": ">=", "Δ": "delta", "τ": "tau", "ε": "eps"}
_ERRORS = "shoal.plain"
_NARROWEST = 40  # characters


class Output(io.RawIOBase):
    """Writes to a file descriptor until that fails; then it drops what comes, and `lost` is the reason."""

    def __init__(self, number: int) -> None:
        self._number = number
        self.lost: OSError | None = None

    def writable(self) -> bool:
        """Return true."""
        return True

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._number

    def isatty(self) -> bool:
        """Say whether it is a terminal."""
        return os.isatty(self._number)

    def write(self, data: ReadableBuffer, /) -> int:
        """Write bytes or drop them; return how many. One that is full for the moment is waited for."""
        while self.lost is None:
            try:
                return os.write(self._number, data)
            except BlockingIOError:
                select.select([], [self._number], [])
            except OSError as error:
                self.lost = error
        return memoryview(data).nbytes


def sound_streams() -> Output:
    """Replace standard output and standard error by streams that never fail; return the one of standard output.

    For programs only, at their start. Descriptors 0, 1 and 2 that are closed are opened on nothing: else the first
    files that are opened would get these numbers, and messages would be written into them.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    if shutil.get_terminal_size().columns < _NARROWEST or os.environ.get("COLUMNS") == "0":
        os.environ["COLUMNS"] = str(_NARROWEST)  # in less, help is never done with breaking its lines
    codecs.register_error(_ERRORS, _plainly)
    out, err = Output(1), Output(2)
    sys.stdout, sys.stderr = _text(out, sys.stdout), _text(err, sys.stderr)
    return out


def _text(raw: Output, before: io.TextIOWrapper | object | None) -> io.TextIOWrapper:
    encoding = getattr(before, "encoding", None) or "utf-8"
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, _ERRORS, line_buffering=True)


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Return what to write for characters that a stream can't show: something like them, or question marks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(one) or _without_marks(one) or "?" for one in text), error.end


def _without_marks(character: str) -> str:
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()


def to_standard_error(line: str) -> None:
    """Write a line to standard error, if there is one that can be written to."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
