"""Arrivals: open all inputs as sources; what the engine can't open itself is brought into a private folder first."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from shoal.errors import UnreadableFile
from shoal.folders import private_folder
from shoal.progress import SILENT
from shoal.reading.forms import bringer_of_ending, bringer_of_scheme
from shoal.reading.sources import Source, expand, look_at
from shoal.reading.texts import Repair, rewrite
from shoal.stores.addresses import address_of, scheme_of, shown

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from shoal.progress import Progress
    from shoal.reading.forms import Bringer
    from shoal.reading.options import ReadOptions

__all__ = ["Arrivals", "arrivals"]

_FOLDERS = 2  # whose names may tell the user: GeoLife has 000/Trajectory/…
_DEPTH = 2  # a .zip may hold .xlsx or .xz, but those hold no further ones


@dataclass(eq=False)
class Arrivals:
    """Opens inputs; a private folder is made when the first one has to be brought."""

    parent: Path
    stack: ExitStack
    options: ReadOptions | None = None
    progress: Progress = SILENT
    folder: Path | None = None
    brought: list[Path] = field(default_factory=list)

    def open(self, inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Source]:
        """Return the sources of files, folders, globs and addresses, in this order.

        Raises UnreadableFile for what is missing, empty, broken or of no known kind.
        """
        asked = [inputs] if not isinstance(inputs, list | tuple) else list(inputs)
        if hasattr(inputs, "columns") or not asked:
            expand(inputs)  # raises
        found: dict[object, list[Source]] = {}
        for one in asked:
            if (address := address_of(one)) is not None:
                if one not in found:
                    found[one] = self._fetch(address)
                continue
            for path in expand(one):
                if path not in found:
                    found[path] = self._open(path, path.name)
        return [source for sources in found.values() for source in sources]

    def _open(self, path: Path, name: str, depth: int = 0) -> list[Source]:
        """Return the sources of one file; what is packed inside a file is opened as well, but no further."""
        bringer = bringer_of_ending(path.name)
        if bringer is not None and depth < _DEPTH:
            return self._bring(str(path), name, bringer, self._inside(path), depth + 1)
        source = look_at(path, self.options)
        if source.repair is not None:
            source = self._repaired(source, path)
        return [replace(source, name=name)]

    def _repaired(self, source: Source, path: Path) -> Source:
        """Return a text that was written anew, since the engine can't read it as it is."""
        name = path.stem if path.suffix.lower() in {".gz", ".zst"} else path.name
        target = self._inside(path) / name
        with pa.input_stream(path, compression="detect") as stream:
            rewrite(stream, target, source.repair or Repair(), path.name)
        options = None if self.options is None else self.options.model_copy(update={"encoding": "utf-8"})
        return replace(look_at(target, options), notes=source.notes)

    def _fetch(self, address: str) -> list[Source]:
        """Bring what an address names, and return it under a name that can be printed."""
        fetcher = bringer_of_scheme(address)
        if fetcher is None:
            raise UnreadableFile(f"{scheme_of(address)}:// addresses can't be read; name a file")
        with self.progress.stage("fetch") as advance:
            return self._bring(address, shown(address), partial(fetcher, advance=advance), self._inside(), 0)

    def _inside(self, path: Path | None = None) -> Path:
        """Return a new folder inside the private one; it ends as that of the file, since folders may tell the user."""
        if self.folder is None:
            self.folder = self.stack.enter_context(private_folder(self.parent))
        parents = [] if path is None else path.absolute().parts[1:-1][-_FOLDERS:]
        inside = self.folder.joinpath(str(len(self.brought)), *parents)
        inside.mkdir(parents=True, mode=0o700)
        self.brought.append(inside)
        return inside

    def _bring(self, source: str, name: str, bringer: Bringer, folder: Path, depth: int) -> list[Source]:
        """Bring one input into a folder, and return its sources under its own name."""
        try:
            files = bringer(source, folder)
        except OSError:
            raise UnreadableFile(f"{name}: can't be opened, or its compression is damaged") from None
        several = len(files) > 1 and scheme_of(source) is not None
        return [one for file in files for one in self._open(file, file.name if several else name, depth)]


@contextmanager
def arrivals(
    work_dir: Path | None, options: ReadOptions | None = None, progress: Progress = SILENT
) -> Iterator[Arrivals]:
    """Open inputs; what was brought into a private folder (in `work_dir`, or the system's) is removed afterwards."""
    with ExitStack() as stack:
        yield Arrivals(work_dir or Path(tempfile.gettempdir()), stack, options, progress)
