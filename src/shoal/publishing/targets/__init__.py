"""Targets: where a release goes besides local files. Each is a kind of place behind the same four verbs.

`stage` opens a target, lets it `receive` the written file, and hands what it gives back to the check. `Staged.publish`
calls `send`, which may take long and can be interrupted. Then it switches the private files into place; `commit` is
the last step of that switch (`shoal.switch`). Before `commit` nobody else can see a release; if anything fails, nobody
ever will.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from shoal.errors import SettingsError
from shoal.stores.addresses import DATABASES, OBJECTS, scheme_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from shoal.publishing.stage import Outputs

__all__ = ["Target", "open_target", "refuse_target"]

_KINDS = {
    **dict.fromkeys(DATABASES, "postgres"),
    **dict.fromkeys(OBJECTS, "objects"),
}


class Target(Protocol):
    """A place for a release: `shapes` are the geometries it takes (None: as asked), `local` says it is files.

    `files` are the hashes by which the release is known there, if they are not those of the written file.
    """

    shapes: tuple[str, ...] | None
    local: bool
    files: dict[str, str] | None

    def receive(self, data: Path) -> Path:
        """Take the written data file, with its manifest beside it; return the file that must be verified."""
        ...

    def send(self) -> None:
        """Do what can be done before the release is visible. May be interrupted, which leaves nothing."""
        ...

    def commit(self) -> None:
        """Make the release visible, as one step. Raises OutputError if it is not, Undecided if that is not known."""
        ...


class _Files:
    """Local files: what is verified is what was written, and the switch publishes it."""

    shapes: tuple[str, ...] | None = None
    local = True
    files: dict[str, str] | None = None

    def receive(self, data: Path) -> Path:
        return data

    def send(self) -> None:
        pass

    def commit(self) -> None:
        pass


@contextmanager
def open_target(outputs: Outputs) -> Iterator[Target]:
    """Open the target of the outputs; what was not committed when the block ends is gone."""
    if outputs.address is None:
        yield _Files()
        return
    opened: AbstractContextManager[Target] = _module(outputs.address).opened(outputs.address, outputs)
    with opened as target:
        yield target


def refuse_target(outputs: Outputs) -> None:
    """Check, before any work, that the address can be published to; raises SettingsError or OutputError."""
    if outputs.address is not None:
        _module(outputs.address).refuse(outputs.address, outputs)


def _module(address: str) -> Any:
    kind = _KINDS.get(scheme_of(address) or "")
    if kind is None:
        raise SettingsError(
            f"{scheme_of(address)}:// addresses can't be written to; a release is a file, postgresql://…?table=…, "
            "s3://…, gs://… or az://…"
        )
    return import_module(f"{__name__}.{kind}")
