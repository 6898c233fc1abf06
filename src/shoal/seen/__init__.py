"""Seen: open a release, its manifest, its audit and its original, as an outsider would.

`verify`, `attack` and `evaluate` open everything through this package. It uses the parser of input files (`reading`)
and the basic modules. It uses no code that makes releases: no method, search, kernel or writer.
"""

from __future__ import annotations

from shoal.seen.opened import SeenRelease, open_release
from shoal.seen.release_file import read_release

__all__ = ["SeenRelease", "open_release", "read_release"]
