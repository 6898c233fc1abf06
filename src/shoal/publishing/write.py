"""The one door out: nothing but this module writes published data.

Everything is written into a private folder beside the output, synced and checked there, and only then moved
into place, the manifest last. A release without a valid manifest is no release, so whatever happens in between
leaves either nothing or a whole one.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.arrow import to_arrow_array
from shoal.errors import AlreadyExists, OutputError, SettingsError
from shoal.folders import private_folder, refuse_existing, sync_folder
from shoal.lists import offsets_of
from shoal.parallel import ahead
from shoal.points import PointRelease
from shoal.publishing.numbering import numbered, taken
from shoal.publishing.schema import describe, release_batches
from shoal.release import Members, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shoal.publishing.numbering import Numbered
    from shoal.release import Claim

__all__ = ["audit_table", "manifest_path", "refuse_form", "write_release"]

PUBLIC, PRIVATE = 0o644, 0o600
# Boxes have edges in common, which dictionaries hold once; points have next to nothing in common but their steps.
_POINT_ENCODING = {"use_dictionary": ["uid"], "column_encoding": {"datetime": "DELTA_BINARY_PACKED"}}


def write_release(
    release: Release | PointRelease,
    path: str | Path,
    *,
    audit: str | Path | None = None,
    run_record: str | Path | None = None,
    record: dict[str, Any] | None = None,
    overwrite: bool = False,
    geo: bool = False,
    compact: bool = False,
    seed: int | None = None,
    check: Callable[[Path, pa.Table | None], object] | None = None,
) -> Numbered:
    """Publish a release: data file, manifest and, if asked for, the private audit file and run record.

    Parameters
    ----------
    release
        What a method made. Its records get fresh pseudonyms in random order (from the OS, or from `seed`).
    path
        The data file, `.parquet` or `.csv`. Its folder must exist.
    audit, run_record
        Private files (mode 0600): who is in which record; `record` and the exact counts.
    overwrite
        Replace what is there. Otherwise AlreadyExists.
    geo, compact
        Of boxes: add WGS84 polygons; publish identical records once with their `count`.
    check
        Called with the written file and the audit table before anything is moved into place; it raises to refuse.

    Guarantee: afterwards either a whole release is there or none. Gives what was published, and under which numbers.
    A seeded release claims nothing unless its records are identical in groups: seeds can be guessed. Memory: some
    batches of a million rows; the records are brought into their order on the way.
    """
    target = Path(path)
    final = [target, manifest_path(target), *(Path(p) for p in (audit, run_record) if p is not None)]
    points = isinstance(release, PointRelease)
    refuse_form(target, audit, release.claim, release.frame.crs, geo=geo, compact=compact, points=points)
    refuse_existing(final, overwrite=overwrite)
    if audit is not None and release.members is None:
        raise SettingsError("this release was read from a file: who is in which record is not known")
    if compact and isinstance(release, Release):
        release = _compacted(release)
    published = numbered(release, seed)
    members = audit_table(published.release, published.members())
    with ExitStack() as open_folders:
        staged = [open_folders.enter_context(private_folder(path.parent)) / path.name for path in final[:1] + final[2:]]
        rows = release_batches(published.release, published.order, geo=geo)
        _write_tables(staged[0], rows, PUBLIC, **(_POINT_ENCODING if points else {}))
        staged.insert(1, manifest_path(staged[0]))
        _write_json(staged[1], _manifest(published.release, staged[0], seed), PUBLIC)
        if check is not None:
            check(staged[0], members)
        if audit is not None:
            _write_tables(staged[2], iter([members]), PRIVATE)
        if run_record is not None:
            _write_json(staged[-1], _run_record(published.release, record or {}, seed), PRIVATE)
        moves = list(zip(staged, final, strict=True))
        _move_into_place([*moves[2:], moves[0], moves[1]], overwrite=overwrite)
    return published


def manifest_path(path: Path) -> Path:
    """Return where the manifest of a data file stands."""
    return path.with_name(path.name + ".manifest.json")


def refuse_form(
    path: Path,
    audit: str | Path | None,
    claim: Claim,
    crs: str | None,
    *,
    geo: bool,
    compact: bool,
    points: bool = False,
) -> None:
    """Raise SettingsError for endings and options that do not go together; `points` says that it has no boxes."""
    if geo and points:
        raise SettingsError("--geo draws boxes, but this method publishes points; leave it out")
    for file in (path, audit):
        if file is not None and Path(file).suffix.lower() not in {".parquet", ".csv"}:
            raise SettingsError("a release or audit file must end in .parquet or .csv")
    if geo and path.suffix.lower() != ".parquet":
        raise SettingsError("--geo writes GeoParquet: the release must end in .parquet")
    if geo and crs is None:
        raise SettingsError("--geo needs geography: this data came as grid cells without a CRS")
    if compact and claim.name != "k-anonymity":
        raise SettingsError("--compact needs identical records: it goes with methods that claim k-anonymity")


def audit_table(release: Release | PointRelease, members: Members[Any] | None = None) -> pa.Table | None:
    """Return who is in which record (record, owner, member), labels as strings; None if it is not known.

    `members` are those of the release, unless its records are published in another order.
    Users who are in no record at all have one row with `record` null. Where users were merged for some time only,
    `t_start` and `t_end` say when; they are null for the owner.
    """
    members = members or release.members
    if members is None:
        return None
    labels = members.people.labels.cast(pa.string())
    record = np.repeat(np.arange(len(release)), np.diff(members.offsets))
    owner = members.owners[record]
    if isinstance(release, Release) and release.multiplicity is not None:
        owner = members.indices
    missing = np.setdiff1d(np.arange(len(labels)), owner)
    none = pa.nulls(len(missing), pa.int64())
    columns: dict[str, Any] = {
        "record": pa.chunked_array([to_arrow_array(record), none]),
        "owner": labels.take(to_arrow_array(np.concatenate([owner, missing]))),
        "member": labels.take(to_arrow_array(np.concatenate([members.indices, missing]))),
    }
    if members.spans is not None:
        always = np.concatenate([members.indices == owner, np.ones(len(missing), dtype=bool)])
        for name, edge in zip(("t_start", "t_end"), members.spans.T, strict=True):
            instant = np.concatenate([release.frame.epoch_s(edge) * 1000, np.zeros(len(missing), np.int64)])
            columns[name] = pa.array(instant, mask=always).cast(pa.timestamp("ms", "UTC"))
    return pa.table(columns)


def _compacted(release: Release) -> Release:
    """Keep one record of each group of identical ones, with the number of users it stands for."""
    first: dict[bytes, int] = {}
    boxes = np.ascontiguousarray(release.boxes)
    digests = (hashlib.sha256(boxes[start:stop].data).digest() for start, stop in pairwise(release.offsets.tolist()))
    group = np.array([first.setdefault(digest, record) for record, digest in enumerate(digests)], np.int64)
    kept, counts = np.unique(group, return_counts=True)
    members = release.members
    if members is not None:
        by_group = np.argsort(group, kind="stable")
        members = Members(members.owners[kept], offsets_of(counts), members.owners[by_group], members.people)
    offsets, boxes = taken(release.offsets, kept, release.boxes)
    return replace(release, offsets=offsets, boxes=boxes, members=members, multiplicity=counts.astype(np.int32))


def _manifest(release: Release | PointRelease, path: Path, seed: int | None) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    counts = {key: _two_digits(value) for key, value in _counts(release).items()}
    seeded = seed is not None or (isinstance(release, PointRelease) and release.seeded)
    return {"shoal": describe(release), "counts": counts, "seeded": seeded, "files": {path.name: digest}}


def _counts(release: Release | PointRelease) -> dict[str, int]:
    return {
        "records": len(release),
        "samples_published": release.samples,
        "samples_suppressed": release.suppressed,
        "samples_created": release.created if isinstance(release, PointRelease) else 0,
    }


def _two_digits(value: int) -> int:
    """Round to two significant digits: exact totals of two releases would tell who was added."""
    return int(float(f"{value:.1e}"))


def _run_record(release: Release | PointRelease, record: dict[str, Any], seed: int | None) -> dict[str, Any]:
    counts = _counts(release)
    if isinstance(release, PointRelease):
        counts["traces_discarded"] = release.discarded
    return {"shoal": describe(release), "counts": counts, "seed": seed, **record}


def _write_tables(path: Path, tables: Iterator[pa.Table], mode: int, **encoding: Any) -> None:
    """Write tables of one schema, one after the other; each is made while the one before it is written."""
    as_text = path.suffix.lower() != ".parquet"
    quoting = "needed" if mode == PRIVATE else "none"  # labels may hold commas, published values never do
    writer: Any = None
    with _new_file(path, mode) as file, ExitStack() as open_writer:
        for made in ahead(tables):
            table = _as_text(made) if as_text else made
            if writer is None and as_text:
                file.write((",".join(table.column_names) + "\n").encode())
                options = pa_csv.WriteOptions(include_header=False, quoting_style=quoting)
                writer = open_writer.enter_context(pa_csv.CSVWriter(file, table.schema, write_options=options))
            elif writer is None:
                parquet = pq.ParquetWriter(file, table.schema, compression="zstd", **encoding)
                writer = open_writer.enter_context(parquet)
            writer.write_table(table)


def _as_text(table: pa.Table) -> pa.Table:
    """Return a table whose times are ISO 8601 with Z, as CSV releases have them."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            instant = column.to_numpy().astype("datetime64[ms]")
            text = np.datetime_as_string(instant, unit="ms", timezone="UTC")
            column = pa.array(text, pa.string(), mask=np.isnat(instant))
        columns[name] = column
    return pa.table(columns)


def _write_json(path: Path, value: dict[str, Any], mode: int) -> None:
    with _new_file(path, mode) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n").encode())


@contextmanager
def _new_file(path: Path, mode: int) -> Iterator[BinaryIO]:
    """Open a new file that is on the disk, not only in its cache, when the block ends; I/O errors are typed."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise OutputError(f"writing failed ({error.strerror or 'I/O error'}); nothing was published") from None


def _move_into_place(moves: list[tuple[Path, Path]], *, overwrite: bool) -> None:
    """Move the files out of their private folders, the manifest last; from the first move on, no old one is valid.

    Ctrl-C in between comes too late: the release is published.
    """
    manifest = moves[-1][1]
    moved: list[Path] = []
    with _undisturbed():
        try:
            if overwrite:
                manifest.unlink(missing_ok=True)
            for source, target in moves:
                _move(source, target, overwrite=overwrite)
                moved.append(target)
                sync_folder(target.parent)
        except OSError as error:
            for target in moved:
                target.unlink(missing_ok=True)
            if isinstance(error, FileExistsError):
                raise AlreadyExists("a file of that name has appeared meanwhile; nothing was published") from None
            raise OutputError(f"moving into place failed ({error.strerror}); nothing was published") from None


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C for a moment; threads other than the main one never see it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)


def _move(source: Path, target: Path, *, overwrite: bool) -> None:
    """Rename a file; without `overwrite`, fail if the target has come into being since it was looked for."""
    if not overwrite:
        try:
            target.hardlink_to(source)
        except FileExistsError:
            raise
        except OSError:
            pass  # a file system without links
        else:
            return
    source.replace(target)
