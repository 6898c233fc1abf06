"""Panels of `--help` whose entries differ from what cyclopts derives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyclopts.help import DefaultFormatter

if TYPE_CHECKING:
    from collections.abc import Callable

    from cyclopts.help import HelpEntry, HelpPanel

__all__ = ["Rewritten"]


class Rewritten(DefaultFormatter):
    """Shows the panels of a command or a group, each entry as `rewrite` returns it."""

    def __init__(self, rewrite: Callable[[HelpEntry], HelpEntry]) -> None:
        super().__init__()
        self._rewrite = rewrite

    def __call__(self, console: Any, options: Any, panel: HelpPanel) -> None:
        """Print one panel."""
        super().__call__(console, options, panel.copy(entries=[self._rewrite(entry) for entry in panel.entries]))
