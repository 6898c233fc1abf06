"""Seen: a release, its manifest and its original, as an outsider opens them."""

from __future__ import annotations

from shoal.seen.release_file import read_release

__all__ = ["read_release"]
