"""Arrivals: open all inputs as sources; what the engine can't open itself is brought into a private folder first."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import UnreadableFile
from shoal.folders import private_folder
from shoal.reading.forms import bringer_of_ending, bringer_of_scheme, scheme_of
from shoal.reading.owners import folder_of, stem
from shoal.reading.sources import Source, expand, look_at

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from shoal.reading.forms import Bringer

__all__ = ["Arrivals", "arrivals"]


@dataclass(eq=False)
class Arrivals:
    """Opens inputs; a private folder is made when the first one has to be brought."""

    parent: Path
    stack: ExitStack
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
            if isinstance(one, str) and scheme_of(one) is not None:
                if one not in found:
                    found[one] = self._bring(one, "the source", bringer_of_scheme(one))
                continue
            for path in expand(one):
                if path not in found:
                    bringer = bringer_of_ending(path.name)
                    brought = [look_at(path)] if bringer is None else self._bring(str(path), path.name, bringer)
                    found[path] = [_owned(source, path, str(one)) for source in brought]
        return [source for sources in found.values() for source in sources]

    def _bring(self, source: str, name: str, bringer: Bringer | None) -> list[Source]:
        """Bring one input, and return its sources under its own name."""
        if bringer is None:
            raise UnreadableFile(f"{scheme_of(source)}:// addresses can't be read; name a file")
        if self.folder is None:
            self.folder = self.stack.enter_context(private_folder(self.parent))
        inside = self.folder / str(len(self.brought))
        inside.mkdir(mode=0o700)
        self.brought.append(inside)
        try:
            files = bringer(source, inside)
        except OSError:
            raise UnreadableFile(f"{name}: can't be opened, or its compression is damaged") from None
        return [replace(look_at(file), name=name) for file in files]


def _owned(source: Source, path: Path, asked: str) -> Source:
    """Return a source with the names that may tell whose it is; a file out of an archive has its own name."""
    inside = source.path is not None and source.path != path and stem(source.path.name) != stem(path.name)
    name = source.path.name if inside and source.path is not None else path.name
    return replace(source, file=stem(name), folder=folder_of(path, asked))


@contextmanager
def arrivals(work_dir: Path | None) -> Iterator[Arrivals]:
    """Open inputs; what was brought into a private folder (in `work_dir`, or the system's) is removed afterwards."""
    with ExitStack() as stack:
        yield Arrivals(work_dir or Path(tempfile.gettempdir()), stack)
