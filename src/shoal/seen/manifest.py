"""The manifest beside a release."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from shoal.errors import CannotCheck
from shoal.regular import open_regular, read_regular
from shoal.seen.header import parse_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["file_digest", "is_manifest", "read_manifest"]

_MOST = 1 << 20  # bytes; a manifest has about one kilobyte
_KEYS = {"shoal", "counts", "seeded", "files"}
_COUNTS = {"records", "samples_published", "samples_suppressed", "samples_created"}
_MOST_COUNTED = 1 << 62


def read_manifest(path: Path) -> Any:
    """Return the manifest beside a release: None if there is none, a string if it is not JSON."""
    manifest = path.with_name(path.name + ".manifest.json")
    try:
        return parse_json(read_regular(manifest, _MOST))
    except FileNotFoundError:
        return None
    except OSError:
        raise CannotCheck("the manifest can't be read: it is too large, no ordinary file, or closed to you") from None


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, as manifests state it. Raises OSError if it can't be read."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_manifest(manifest: Any) -> bool:
    """Return whether a manifest has exactly the members of the format, each of its kind."""
    if not isinstance(manifest, dict) or set(manifest) - {"signature"} != _KEYS:
        return False
    shoal, counts, files = manifest["shoal"], manifest["counts"], manifest["files"]
    if not all(isinstance(part, dict) for part in (shoal, counts, files)) or set(counts) != _COUNTS:
        return False
    if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= _MOST_COUNTED for n in counts.values()):
        return False
    return isinstance(manifest["seeded"], bool) and all(isinstance(sha, str) for sha in files.values())
