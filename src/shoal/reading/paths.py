"""Paths: what the name of a file says, apart from the name under which the engine opens it.

The engine takes some signs in a name as a pattern, a folder `lat=48.5` for a column, and an ending for a compression.
Every file is therefore opened through a link with a name of ours. The name that people gave it is used for messages,
and for users who are told by it (`@file`, `@folder`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import ColumnsNotFound, OutputError
from shoal.reading.forms import ENDINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.reading.sources import Source

__all__ = [
    "PARQUET",
    "TEXT",
    "UNPACKED_BY_ENGINE",
    "ending_of",
    "linked",
    "printable_name",
    "teller_of",
    "with_users",
]

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".txt", ".plt")
UNPACKED_BY_ENGINE = {".gz": "gzip", ".zst": "zstd"}
_KNOWN = {*PARQUET, *TEXT, ".dat", *UNPACKED_BY_ENGINE, *ENDINGS}
_ENDINGS = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(_KNOWN, key=len, reverse=True)))})+$", re.IGNORECASE)


def printable_name(path: PurePath | str) -> str:
    r"""Return the name of a file as it can be printed anywhere: in UTF-8 and without control characters.

    >>> printable_name("in/a.csv"), printable_name(os.fsdecode(b"caf\xe9.csv")), printable_name("a\x1b[2J.csv")
    ('a.csv', 'caf�.csv', 'a�[2J.csv')
    """
    name = os.fsencode(PurePath(path).name).decode("utf-8", "replace")
    return "".join(sign if sign.isprintable() else "�" for sign in name)


def ending_of(name: str) -> str:
    """Return the ending that tells the kind of a file, and the one inside it of a file that is packed.

    >>> ending_of("events.v2.CSV.gz"), ending_of("a.b.parquet"), ending_of("a.[b].zst"), ending_of("notes")
    ('.csv.gz', '.parquet', '.zst', '')
    """
    ending = ""
    for suffix in reversed(PurePath(name.lower()).suffixes[-3:]):
        if suffix not in _KNOWN:
            break
        ending = suffix + ending
    return ending


def linked(path: Path, link: Path) -> Path:
    """Make a link to a file, and return it. Raises OutputError where the folder can't hold links."""
    try:
        link.symlink_to(path.absolute())
    except OSError as error:
        raise OutputError(
            f"the folder for work can't hold links ({error.strerror}); choose another `work_dir`"
        ) from None
    return link


def teller_of(role: str, path: PurePath) -> str:
    """Return the user that a path tells: the name of the file without its ending (`@file`), or of its folder.

    A folder called Trajectory is passed over: GeoLife has one in the folder of each user. Names that are not UTF-8 stay
    different from each other.

    >>> teller_of("@file", PurePath("in/ann.lee.csv.gz")), teller_of("@folder", PurePath("in/007/Trajectory/a.plt"))
    ('ann.lee', '007')
    """
    if role == "@file":
        found = _ENDINGS.sub("", path.name) or path.name
    else:
        folder = path.parent
        passed = folder.name == "Trajectory" and folder.parent.name
        found = folder.parent.name if passed else folder.name
    return os.fsencode(found).decode("utf-8", "backslashreplace")


def with_users(engine: Any, table: str, path: str, files: Sequence[Source], role: str, number: int) -> tuple[str, str]:
    """Return a table expression with a column for the user that the path of each row's file tells, and its name.

    `table` has the path of each row's file in the column `path`.
    """
    tellers = [teller_of(role, file.told) for file in files if file.told is not None]
    if not tellers:
        raise ColumnsNotFound(f'{files[0].name}: a table has no file; name the column of the user: `columns="user=…"`')
    engine.register(f"told_{number}", pa.table({"path": [str(file.path) for file in files], "shoal_user": tellers}))
    return f"(SELECT * FROM {table} JOIN told_{number} AS told ON f.{path} = told.path) AS f", "shoal_user"  # noqa: S608
