"""The manifest, which is public, and the run record, which is private."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from shoal.publishing.schema import describe

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.release import Release

__all__ = ["manifest", "manifest_path", "run_record", "run_record_path"]


def manifest_path(path: Path) -> Path:
    """Return the path of a data file's manifest."""
    return path.with_name(path.name + ".manifest.json")


def manifest(release: Release, path: Path, *, seeded: bool) -> dict[str, Any]:
    """Return the manifest of a written data file: its description, rounded counts and its SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    counts = {key: _two_digits(value) for key, value in _counts(release).items()}
    return {
        "shoal": describe(release),
        "counts": counts,
        "seeded": seeded or release.seeded,
        "files": {path.name: digest},
    }


def run_record(release: Release, files: dict[str, str], record: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """Return the private run record: the description, exact counts, hashes, the seed, how people were read and more.

    `files` are those of the manifest, so that the record can be told from that of another release. `record` is what
    the caller adds.
    """
    counts = _counts(release) | ({"traces_discarded": release.discarded} if release.layout.traced else {})
    account = release.members.people.account if release.members is not None else None
    read = {"read": account.read, "cleaning": account.to_dict()} if account is not None and account.read else {}
    return {"shoal": describe(release), "counts": counts, "files": files, "seed": seed, **read, **record}


def run_record_path(path: Path, audit: Path) -> Path:
    """Return the path of the run record of a data file, beside its audit file."""
    return audit.with_name(path.name + ".run.json")


def _counts(release: Release) -> dict[str, int]:
    return {
        "records": len(release),
        "samples_published": release.samples,
        "samples_suppressed": release.suppressed,
        "samples_created": release.created,
    }


def _two_digits(value: int) -> int:
    """Round to two significant digits, because exact totals of two releases would reveal who was added."""
    return int(float(f"{value:.1e}"))
