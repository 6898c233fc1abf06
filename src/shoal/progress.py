"""Progress: how long work reports its stages. The command line draws them; other callers may ignore them."""

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
        """Open a stage of `total` units (None: unknown); the context is a function that advances it."""
        ...


class _Silent:
    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Callable[[float], None]]:  # noqa: ARG002
        yield lambda _: None


SILENT: Progress = _Silent()
