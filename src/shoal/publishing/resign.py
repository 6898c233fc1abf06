"""Replace the manifest of a release that is in place by one that is signed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.errors import OutputError
from shoal.folders import private_folder
from shoal.publishing.files import PUBLIC, write_json
from shoal.publishing.manifest import manifest_path
from shoal.switch import switch

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Stamp", "replace_manifest"]


class Stamp(NamedTuple):
    """What tells a file from another one that was moved to the same path."""

    device: int
    number: int
    size: int
    ns: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """Return the stamp of a file; raises OutputError if it is not there."""
        try:
            state = path.stat()
        except OSError:
            raise OutputError(f"{path.name} or its manifest is missing: not a release") from None
        return cls(state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns)


def replace_manifest(path: Path, manifest: dict[str, Any], data: Stamp) -> None:
    """Put a manifest beside a data file, in place of the one that is there, by the same switch as a publication.

    `data` is the stamp of the file that was checked. Raises OutputError, and leaves the old manifest, if another one is
    in place now.
    """

    def unchanged() -> None:
        if Stamp.of(path) != data:
            raise OutputError(f"{path.name} was replaced meanwhile; nothing was signed")

    beside = manifest_path(path)
    with private_folder(path.parent) as folder:
        write_json(folder / beside.name, manifest, PUBLIC)
        switch([(folder / beside.name, beside)], overwrite=True, commit=unchanged)
