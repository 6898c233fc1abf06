"""The manifest, which is public, and the run record, which is private."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from shoal.publishing.schema import describe

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.release import Release

__all__ = ["manifest", "manifest_path", "run_record"]


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


def run_record(release: Release, record: dict[str, Any], seed: int | None) -> dict[str, Any]:
    """Return the private run record: the description, exact counts, the seed and what the caller adds."""
    counts = _counts(release) | ({"traces_discarded": release.discarded} if release.layout.traced else {})
    return {"shoal": describe(release), "counts": counts, "seed": seed, **record}


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
