"""Progress: how long work tells what it is doing. The command line draws it; everyone else may ignore it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = ["SILENT", "Progress"]


class Progress(Protocol):
    """Draws the stages of a piece of work."""

    def stage(self, name: str, total: float | None = None) -> AbstractContextManager[Callable[[float], None]]:
        """Open a stage of `total` units (None: unknown); the context gives a function that advances it."""
        ...


class _Silent:
    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Callable[[float], None]]:  # noqa: ARG002
        yield lambda _: None


SILENT: Progress = _Silent()
