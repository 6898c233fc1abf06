"""Engine: a DuckDB connection that is kept small, private and offline."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.errors import OutputError, TooLarge, UnreadableFile
from shoal.folders import private_folder
from shoal.memory import available_bytes, left_bytes
from shoal.reading.limits import broken_limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "DISK_FULL",
    "FEWER",
    "ROW_BYTES",
    "batches",
    "memory_limit",
    "open_engine",
    "rows_within",
    "text_literal",
]

FEWER = "read fewer files or a shorter `period`, or use a larger machine"
DISK_FULL = "the disk is full; make room, or choose another `work_dir`"
ROW_BYTES = 48  # what a row takes at the worst moment between the file and finished trajectories
_LEAST = 2**28  # below this the engine can't work


def memory_limit(memory: int | None) -> int:
    """Return the memory that work may take, in bytes: the given limit, or what is available now.

    >>> memory_limit(2**30)
    1073741824
    """
    return available_bytes() if memory is None else memory


def rows_within(limit: int) -> int:
    """Return how many rows can be read into trajectories within a limit of memory.

    >>> rows_within(10**9)
    15240928
    """
    return left_bytes(limit) // ROW_BYTES


def text_literal(text: str | os.PathLike[str]) -> str:
    """Quote a text for SQL.

    >>> text_literal("it's")
    "'it''s'"
    """
    return "'" + os.fspath(text).replace("'", "''") + "'"


@contextmanager
def open_engine(
    paths: Sequence[Path],
    *,
    threads: int,
    work_dir: Path | None = None,
    ordered: bool = False,
    memory: int | None = None,
    where: str = "table",
) -> Iterator[Any]:
    """Open an engine that can read only `paths` and spills to a private folder, which is removed afterwards.

    Input: the files to be read, what messages call them (`where`), threads, the folder for spill files (None: the
    system's), whether rows must keep the order of the file, and the bytes that the whole work may take (None: what is
    available). Guarantee: a quarter of them at most, but 256 MB at least; no network, no extensions, nothing written
    outside the folder, which is removed on any exit. The engine's errors become ours, without their text, which can
    quote data; others pass.
    """
    import duckdb

    try:
        with (
            private_folder(work_dir or Path(tempfile.gettempdir())) as folder,
            duckdb.connect(":memory:") as connection,
        ):
            for setting in _settings(paths, folder, threads, ordered=ordered, memory=memory):
                connection.execute(setting)
            yield connection
    except (duckdb.OutOfMemoryException, MemoryError):
        raise TooLarge(f"reading takes more memory than is free; {FEWER}") from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError) as error:
        if (beyond := broken_limit(error, where)) is not None:
            raise beyond from None
        if isinstance(error, duckdb.IOException) and os.strerror(errno.ENOSPC) in str(error):
            raise OutputError(DISK_FULL) from None
        raise UnreadableFile(
            f"{where}: can't be read: cut off, damaged, not what its ending says, "
            "or text with broken quotes or two kinds of line ends"
        ) from None
    except RuntimeError as error:
        if str(error) == "Query interrupted":  # how the engine reports Ctrl-C
            raise KeyboardInterrupt from None
        raise


def batches(connection: Any, query: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the result of a query in batches of rows.

    Errors are the engine's: under way Arrow turns each into an OSError that begins with its kind.
    """
    import duckdb

    reader = connection.sql(query).to_arrow_reader(rows)
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:
            kinds = {"INTERRUPT": duckdb.InterruptException, "Out of Memory": duckdb.OutOfMemoryException}
            raise kinds.get(str(error).partition(" Error:")[0], duckdb.IOException)(str(error)) from None
        yield batch


def _settings(paths: Sequence[Path], folder: Path, threads: int, *, ordered: bool, memory: int | None) -> list[str]:
    allowed = ", ".join(text_literal(path) for path in paths)
    spill = shutil.disk_usage(folder).free // 2
    return [
        f"SET threads = {threads}",
        f"SET memory_limit = '{max(memory_limit(memory) // 4, _LEAST)}B'",
        f"SET temp_directory = {text_literal(folder)}",
        f"SET max_temp_directory_size = '{spill}B'",
        f"SET extension_directory = {text_literal(folder)}",
        f"SET secret_directory = {text_literal(folder)}",
        "SET streaming_buffer_size = '16MB'",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET allow_community_extensions = false",
        "SET allow_persistent_secrets = false",
        "SET enable_progress_bar = false",
        "SET python_enable_replacements = false",
        "SET enable_geoparquet_conversion = false",  # one broken geometry would end the reading
        # It packs values by what a file's statistics say of them, and ends the process where these are wrong.
        "SET disabled_optimizers = 'compressed_materialization'",
        "SET TimeZone = 'UTC'",
        f"SET preserve_insertion_order = {str(ordered).lower()}",
        f"SET allowed_paths = [{allowed}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ]
