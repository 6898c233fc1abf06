"""The one door out: nothing but this module writes published data.

Everything is written into a private folder beside the output, synced and checked there, and only then moved
into place, the manifest last. A release without a valid manifest is no release, so whatever happens in between
leaves either nothing or a whole one.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.errors import AlreadyExists, OutputError, SettingsError
from shoal.io.private import private_folder
from shoal.io.table import describe, release_table
from shoal.release import Claim, Members, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

__all__ = ["audit_table", "manifest_path", "refuse_existing", "write_release"]

PUBLIC, PRIVATE = 0o644, 0o600


def write_release(
    release: Release,
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
) -> Release:
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
        Add WGS84 polygons; publish identical records once with their `count`.
    check
        Called with the written file and the audit table before anything is moved into place; it raises to refuse.

    Guarantee: afterwards either a whole release is there or none. Gives the release as it was published.
    A seeded release claims nothing unless its records are identical in groups: seeds can be guessed.
    """
    target = Path(path)
    if geo and target.suffix.lower() != ".parquet":
        raise SettingsError("--geo writes GeoParquet: the release must end in .parquet")
    private = [Path(p) for p in (audit, run_record) if p is not None]
    refuse_existing([target, manifest_path(target), *private], overwrite=overwrite)
    published = _pseudonymised(_compacted(release) if compact else release, seed)
    table = release_table(published, geo=geo)
    members = audit_table(published)
    if audit is not None and members is None:
        raise SettingsError("this release was read from a file: who is in which record is not known")
    with ExitStack() as open_folders:

        def staging(final: Path) -> Path:
            return open_folders.enter_context(private_folder(final.parent)) / final.name

        staged = staging(target)
        _write_table(staged, table, PUBLIC)
        _write_json(manifest_path(staged), _manifest(published, staged, seeded=seed is not None), PUBLIC)
        if check is not None:
            check(staged, members)
        moves = [(staged, target)]
        if audit is not None:
            moves.insert(0, (staging(Path(audit)), Path(audit)))
            _write_table(moves[0][0], members, PRIVATE)
        if run_record is not None:
            moves.insert(0, (staging(Path(run_record)), Path(run_record)))
            _write_json(moves[0][0], _run_record(published, record or {}, seed), PRIVATE)
        _move_into_place(moves, manifest_path(staged), manifest_path(target))
    return published


def manifest_path(path: Path) -> Path:
    """Give where the manifest of a data file stands."""
    return path.with_name(path.name + ".manifest.json")


def refuse_existing(paths: Iterable[Path], *, overwrite: bool) -> None:
    """Raise unless every path can be written: its folder is there, and it is free or may be replaced."""
    for path in paths:
        if not path.parent.is_dir():
            raise OutputError(f"the folder of {path.name} does not exist; make it first")
        if path.is_dir():
            raise OutputError(f"{path.name} is a folder; name a file, e.g. release.parquet")
        if path.exists() and not overwrite:
            raise AlreadyExists(f"{path.name} is there already; choose another name or give --overwrite")


def audit_table(release: Release) -> pa.Table | None:
    """Give who is in which record (record, owner, member), labels as strings; None if it is not known.

    Users who are in no record at all have one row with `record` null.
    """
    if release.members is None:
        return None
    members = release.members
    labels = members.labels.cast(pa.string())
    record = np.repeat(np.arange(len(release)), np.diff(members.offsets))
    owner = members.owners[record]
    if release.multiplicity is not None:
        owner = members.indices
    missing = np.setdiff1d(np.arange(len(labels)), owner)
    none = pa.nulls(len(missing), pa.int64())
    return pa.table(
        {
            "record": pa.chunked_array([pa.array(record, pa.int64()), none]),
            "owner": labels.take(pa.array(np.concatenate([owner, missing]))),
            "member": labels.take(pa.array(np.concatenate([members.indices, missing]))),
        }
    )


def _pseudonymised(release: Release, seed: int | None) -> Release:
    """Give the records in random order; numbered by it, they carry no trace of the input's."""
    n = len(release)
    if seed is None:
        order = np.argsort(np.frombuffer(os.urandom(8 * n), np.uint64), kind="stable")
    else:
        order = np.random.default_rng(seed).permutation(n)
    offsets, rows = _reordered(release.offsets, order)
    members = release.members
    if members is not None:
        member_offsets, kept = _reordered(members.offsets, order)
        members = Members(members.owners[order], member_offsets, members.indices[kept], members.labels)
    claim = release.claim
    if seed is not None and claim.name != "k-anonymity":
        claim = Claim("none", why="research")
    multiplicity = None if release.multiplicity is None else release.multiplicity[order]
    return replace(
        release, offsets=offsets, boxes=release.boxes[rows], members=members, claim=claim, multiplicity=multiplicity
    )


def _reordered(offsets: NDArray[np.int64], order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the offsets and the rows of lists taken in another order."""
    counts = np.diff(offsets)[order]
    starts = np.concatenate([[0], np.cumsum(counts)])
    return starts, np.arange(starts[-1]) + np.repeat(offsets[order] - starts[:-1], counts)


def _compacted(release: Release) -> Release:
    """Keep one record of each group of identical ones, with the number of users it stands for."""
    if release.claim.name != "k-anonymity":
        raise SettingsError("--compact needs identical records: it goes with methods that claim k-anonymity")
    first: dict[bytes, int] = {}
    group = np.array([first.setdefault(release.record(r).tobytes(), r) for r in range(len(release))])
    kept, counts = np.unique(group, return_counts=True)
    offsets, rows = _reordered(release.offsets, kept)
    members = release.members
    if members is not None:
        by_group = np.argsort(group, kind="stable")
        ends = np.concatenate([[0], np.cumsum(counts)])
        members = Members(members.owners[kept], ends, members.owners[by_group], members.labels)
    return replace(
        release, offsets=offsets, boxes=release.boxes[rows], members=members, multiplicity=counts.astype(np.int32)
    )


def _manifest(release: Release, path: Path, *, seeded: bool) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    counts = {key: _two_digits(value) for key, value in _counts(release).items()}
    return {"shoal": describe(release), "counts": counts, "seeded": seeded, "files": {path.name: digest}}


def _counts(release: Release) -> dict[str, int]:
    return {
        "records": len(release),
        "samples_published": release.samples,
        "samples_suppressed": release.suppressed,
        "samples_created": 0,
    }


def _two_digits(value: int) -> int:
    """Round to two significant digits: exact totals of two releases would tell who was added."""
    return int(float(f"{value:.1e}"))


def _run_record(release: Release, record: dict[str, Any], seed: int | None) -> dict[str, Any]:
    return {"shoal": describe(release), "counts": _counts(release), "seed": seed, **record}


def _write_table(path: Path, table: pa.Table, mode: int) -> None:
    kind = path.suffix.lower()
    quoting = "needed" if mode == PRIVATE else "none"  # labels may hold commas, published values never do
    if kind not in {".parquet", ".csv"}:
        raise SettingsError("a release or audit file must end in .parquet or .csv")
    with _new_file(path, mode) as file:
        if kind == ".parquet":
            pq.write_table(table, file, compression="zstd")
        else:
            file.write((",".join(table.column_names) + "\n").encode())
            pa_csv.write_csv(_as_text(table), file, pa_csv.WriteOptions(include_header=False, quoting_style=quoting))


def _as_text(table: pa.Table) -> pa.Table:
    """Give a table whose times are ISO 8601 with Z, as CSV releases have them."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            text = np.datetime_as_string(column.to_numpy().astype("datetime64[ms]"), unit="ms", timezone="UTC")
            column = pa.array(text.tolist(), pa.string())
        columns[name] = column
    return pa.table(columns)


def _write_json(path: Path, value: dict[str, Any], mode: int) -> None:
    with _new_file(path, mode) as file:
        file.write((json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n").encode())


class _new_file:  # noqa: N801  reads as a function: `with _new_file(path, mode) as file`
    """A new file that is on the disk, not only in its cache, when the block ends; I/O errors are typed."""

    def __init__(self, path: Path, mode: int) -> None:
        self._path, self._mode = path, mode

    def __enter__(self) -> Any:
        self._file = os.fdopen(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, self._mode), "wb")
        return self._file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            with self._file:
                if error is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
        except OSError as broken:
            error = broken
        if isinstance(error, OSError):
            raise OutputError(f"writing failed ({error.strerror or 'I/O error'}); nothing was published") from None


def _move_into_place(moves: list[tuple[Path, Path]], staged_manifest: Path, manifest: Path) -> None:
    """Move the files out of the private folder, the manifest last; from the first move on, no old one is valid."""
    try:
        manifest.unlink(missing_ok=True)
        for source, target in [*moves, (staged_manifest, manifest)]:
            source.replace(target)
            _sync_folder(target.parent)
    except OSError as error:
        raise OutputError(f"moving the release into place failed ({error.strerror}); it has no manifest") from None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
