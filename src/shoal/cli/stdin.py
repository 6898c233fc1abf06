"""Standard input: `-` among the arguments stands for a private copy of what is piped into the command."""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import UnreadableFile
from shoal.folders import private_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["with_stdin"]

_MAGIC = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"BZh": ".csv.bz2",
    b"\xfd7zXZ\x00": ".csv.xz",
    b"PK\x03\x04": ".zip",
    b"{": ".json",
    b"[{": ".json",
}


@contextmanager
def with_stdin(tokens: Sequence[str]) -> Iterator[list[str]]:
    """Copy standard input into a private folder if an argument is `-`, and yield the arguments with the copy's path.

    The copy is made because the release is checked against the input once more, and can't be read twice otherwise. It
    is in `--work-dir`, or in the system's folder for temporary files, and is removed on any exit. Its kind is told by
    its first bytes.
    """
    if "-" not in tokens:
        yield list(tokens)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise UnreadableFile("- stands for data that is piped into the command, but nothing is; name a file")
    with private_folder(_work_dir(tokens)) as folder:
        spooled = folder / "stdin"
        try:
            with spooled.open("xb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy, 1 << 20)
        except OSError as error:
            raise UnreadableFile(f"what is piped into the command can't be copied ({error.strerror})") from None
        path = spooled.rename(folder / f"stdin{_ending(spooled)}")
        yield [str(path) if token == "-" else token for token in tokens]  # noqa: S105  an argument, no password


def _work_dir(tokens: Sequence[str]) -> Path:
    given = [token.partition("=")[2] for token in tokens if token.startswith("--work-dir=")]
    given += [after for token, after in pairwise(tokens) if token == "--work-dir"]  # noqa: S105
    return Path(given[-1]) if given else Path(tempfile.gettempdir())


def _ending(path: Path) -> str:
    with path.open("rb") as file:
        head = file.read(16).lstrip()
    ending = next((ending for magic, ending in _MAGIC.items() if head.startswith(magic)), ".csv")
    if ending == ".zip" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            return ".xlsx" if "xl/workbook.xml" in packed.namelist() else ".zip"
    return ending
