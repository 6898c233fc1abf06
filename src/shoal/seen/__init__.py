"""Seen: a release, its manifest, its audit and its original, as an outsider opens them.

`verify`, `attack` and `evaluate` open everything through this room. It uses the parser of input files (`reading`) and
the ground floor, and nothing of the code that makes releases: no method, search, kernel or writer.
"""

from __future__ import annotations

from shoal.seen.opened import SeenRelease, open_release
from shoal.seen.release_file import read_release

__all__ = ["SeenRelease", "open_release", "read_release"]
