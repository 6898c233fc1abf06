"""Engine: a DuckDB connection that is kept small, private and offline."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import OutputError, TooLarge, UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ROW_BYTES", "available_memory", "check_memory", "cpus", "open_engine", "quoted", "text_literal"]

ROW_BYTES = 72  # what a row takes at the worst moment between the file and finished trajectories


def cpus(threads: int | None) -> int:
    """Give the number of threads to use: the one asked for, else that of the processors this process may use."""
    if threads is not None:
        return max(threads, 1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> int:
    """Give the bytes that can still be taken without swapping."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def check_memory(needed: int, what: str) -> None:
    """Refuse what would not fit; raises TooLarge."""
    free = available_memory()
    if needed > free:
        raise TooLarge(
            f"{what} needs about {needed / 2**30:,.1f} GB and {free / 2**30:,.1f} GB are free; "
            "read fewer files or a shorter --period, or use a larger machine"
        )


def quoted(name: str) -> str:
    """Quote a column's name for SQL.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str | os.PathLike[str]) -> str:
    """Quote a text for SQL.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + os.fspath(text).replace("'", "''") + "'"


@contextmanager
def open_engine(
    paths: Sequence[Path], *, threads: int, work_dir: Path | None = None, ordered: bool = False
) -> Iterator[Any]:
    """Open an engine that sees only `paths`, spills to a private folder and is gone afterwards.

    Input: the files to be read, threads, the folder for spill files (None: the system's), and whether rows
    must keep the order of the file. Guarantee: half of the free memory at most; no network, no extensions,
    nothing written outside the folder, which is removed on any exit. The engine's errors become ours,
    without their text, which can quote data.
    """
    import duckdb

    try:
        folder = Path(tempfile.mkdtemp(prefix="shoal-read-", dir=work_dir))
    except OSError:
        raise OutputError("can't make a folder for temporary files; check --work-dir") from None
    try:
        with duckdb.connect(":memory:") as connection:
            for setting in _settings(paths, folder, threads, ordered=ordered):
                connection.execute(setting)
            yield connection
    except (duckdb.OutOfMemoryException, MemoryError):
        raise TooLarge("reading takes more memory than is free; read fewer files, or use a larger machine") from None
    except (duckdb.Error, pa.ArrowException, OSError, RuntimeError, UnicodeDecodeError) as error:
        if isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise UnreadableFile(
            f"{_names(paths)}: can't be read: cut off, damaged, not what its ending says, "
            "or text with broken quotes or two kinds of line ends"
        ) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(paths: Sequence[Path], folder: Path, threads: int, *, ordered: bool) -> list[str]:
    allowed = ", ".join(text_literal(path) for path in paths)
    spill = shutil.disk_usage(folder).free // 2
    return [
        f"SET threads = {threads}",
        f"SET memory_limit = '{max(available_memory() // 2, 2**28)}B'",
        f"SET temp_directory = {text_literal(folder)}",
        f"SET max_temp_directory_size = '{spill}B'",
        f"SET extension_directory = {text_literal(folder)}",
        f"SET secret_directory = {text_literal(folder)}",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET allow_community_extensions = false",
        "SET allow_persistent_secrets = false",
        "SET enable_progress_bar = false",
        "SET python_enable_replacements = false",
        "SET TimeZone = 'UTC'",
        f"SET preserve_insertion_order = {str(ordered).lower()}",
        f"SET allowed_paths = [{allowed}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ]


def _names(paths: Sequence[Path]) -> str:
    return paths[0].name if len(paths) == 1 else f"one of {len(paths):,} files" if paths else "table"
