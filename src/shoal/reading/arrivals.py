"""Arrivals: open all inputs as sources; what the engine can't open itself is brought into a private folder first."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import pyarrow as pa

from shoal.errors import UnreadableFile
from shoal.folders import private_folder
from shoal.progress import SILENT
from shoal.reading.forms import bringer_of_ending, bringer_of_scheme
from shoal.reading.paths import UNPACKED_BY_ENGINE, ending_of, linked, printable_name
from shoal.reading.sources import Source, expand, look_at
from shoal.reading.texts import Repair, rewrite
from shoal.stores.addresses import address_of, scheme_of, shown

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from shoal.progress import Progress
    from shoal.reading.forms import Brought
    from shoal.reading.options import ReadOptions

__all__ = ["Arrivals", "arrivals"]

_DEPTH = 2  # a .zip may hold .xlsx or .xz, but those hold no further ones


@dataclass(eq=False)
class Arrivals:
    """Opens inputs; a private folder for links and for what has to be brought is made when the first file comes."""

    parent: Path
    stack: ExitStack
    options: ReadOptions | None = None
    progress: Progress = SILENT
    folder: Path | None = None
    _made: Iterator[int] = field(default_factory=count, repr=False)

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
                    found[path] = self._open(path, path, printable_name(path))
        return [source for sources in found.values() for source in sources]

    def _open(self, path: Path, told: PurePath, name: str, depth: int = 0) -> list[Source]:
        """Return the sources of one file; what is packed inside a file is opened as well, but no further.

        `told` is the path that may tell the user, `name` that of the file for messages.
        """
        link = linked(path, self._private() / f"{next(self._made)}{ending_of(path.name)}")
        bringer = bringer_of_ending(link.name)
        if bringer is not None and depth < _DEPTH:
            return self._bring(partial(bringer, link, name=name), told, name, depth + 1)
        source = look_at(link, name, self.options)
        if source.repair is not None:
            source = self._repaired(source, link)
        return [replace(source, told=told)]

    def _repaired(self, source: Source, path: Path) -> Source:
        """Return a text that was written anew, since the engine can't read it as it is."""
        target = self._inside() / f"rows{path.suffixes[0]}"
        with pa.input_stream(path, compression=UNPACKED_BY_ENGINE.get(path.suffix)) as stream:
            rewrite(stream, target, source.repair or Repair(), source.name)
        options = None if self.options is None else self.options.model_copy(update={"encoding": "utf-8"})
        return replace(look_at(target, source.name, options), notes=source.notes)

    def _fetch(self, address: str) -> list[Source]:
        """Bring what an address names, and return it under a name that can be printed."""
        fetcher = bringer_of_scheme(address)
        if fetcher is None:
            raise UnreadableFile(f"{scheme_of(address)}:// addresses can't be read; name a file")
        with self.progress.stage("fetch") as advance:
            return self._bring(partial(fetcher, address, advance=advance), None, shown(address), 0)

    def _private(self) -> Path:
        if self.folder is None:
            self.folder = self.stack.enter_context(private_folder(self.parent))
        return self.folder

    def _inside(self) -> Path:
        """Return a new folder inside the private one."""
        inside = self._private() / str(next(self._made))
        inside.mkdir(mode=0o700)
        return inside

    def _bring(self, bring: Callable[..., list[Brought]], told: PurePath | None, name: str, depth: int) -> list[Source]:
        """Bring one input into a folder, and return its sources; those of an address have names of their own."""
        try:
            files = bring(folder=self._inside())
        except OSError:
            raise UnreadableFile(f"{name}: can't be opened, or its compression is damaged") from None
        sources = []
        for path, inner in files:
            teller = told or path if inner is None else inner if told is None else told.parent / inner
            own = told is None and len(files) > 1
            sources += self._open(path, teller, printable_name(teller) if own else name, depth)
        return sources


@contextmanager
def arrivals(
    work_dir: Path | None, options: ReadOptions | None = None, progress: Progress = SILENT
) -> Iterator[Arrivals]:
    """Open inputs; what was brought into a private folder (in `work_dir`, or the system's) is removed afterwards."""
    with ExitStack() as stack:
        yield Arrivals(work_dir or Path(tempfile.gettempdir()), stack, options, progress)
