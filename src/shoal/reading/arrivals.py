"""Arrivals: open all inputs as sources; what the engine can't open itself is brought into a private folder first."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import UnreadableFile
from shoal.folders import private_folder
from shoal.progress import SILENT
from shoal.reading.forms import bringer_of_ending, bringer_of_scheme
from shoal.reading.sources import Source, expand, look_at
from shoal.stores.addresses import address_of, scheme_of, shown

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from shoal.progress import Progress
    from shoal.reading.forms import Bringer

__all__ = ["Arrivals", "arrivals"]


@dataclass(eq=False)
class Arrivals:
    """Opens inputs; a private folder is made when the first one has to be brought."""

    parent: Path
    stack: ExitStack
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
                    bringer = bringer_of_ending(path.name)
                    found[path] = [look_at(path)] if bringer is None else self._bring(str(path), path.name, bringer)
        return [source for sources in found.values() for source in sources]

    def _fetch(self, address: str) -> list[Source]:
        """Bring what an address names, and return it under a name that can be printed."""
        fetcher = bringer_of_scheme(address)
        if fetcher is None:
            raise UnreadableFile(f"{scheme_of(address)}:// addresses can't be read; name a file")
        with self.progress.stage("fetch") as advance:
            return self._bring(address, shown(address), partial(fetcher, advance=advance))

    def _bring(self, source: str, name: str, bringer: Bringer) -> list[Source]:
        """Bring one input, and return its sources under its own name."""
        if self.folder is None:
            self.folder = self.stack.enter_context(private_folder(self.parent))
        inside = self.folder / str(len(self.brought))
        inside.mkdir(mode=0o700)
        self.brought.append(inside)
        try:
            files = bringer(source, inside)
        except OSError:
            raise UnreadableFile(f"{name}: can't be opened, or its compression is damaged") from None
        several = len(files) > 1 and scheme_of(source) is not None
        return [replace(look_at(file), name=file.name if several else name) for file in files]


@contextmanager
def arrivals(work_dir: Path | None, progress: Progress = SILENT) -> Iterator[Arrivals]:
    """Open inputs; what was brought into a private folder (in `work_dir`, or the system's) is removed afterwards."""
    with ExitStack() as stack:
        yield Arrivals(work_dir or Path(tempfile.gettempdir()), stack, progress)
