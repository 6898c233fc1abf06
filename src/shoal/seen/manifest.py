"""The manifest beside a release."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from shoal.errors import CannotCheck
from shoal.seen.header import parse_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["file_digest", "read_manifest"]


def read_manifest(path: Path) -> Any:
    """Return the manifest beside a release: None if there is none, a string if it is not JSON."""
    manifest = path.with_name(path.name + ".manifest.json")
    try:
        return parse_json(manifest.read_bytes())
    except FileNotFoundError:
        return None
    except OSError:
        raise CannotCheck("the manifest can't be read; check its permissions") from None


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, as manifests state it. Raises OSError if it can't be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
