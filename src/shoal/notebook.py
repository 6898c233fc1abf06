"""Display of results: one short line as text, a small table in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any

__all__ = ["Displayed"]


class Displayed(ABC):
    """A result that is shown in one line (`repr`) and, in notebooks, as a small table."""

    @abstractmethod
    def summary(self) -> list[tuple[str, Any]]:
        """Return the figures of the table: aggregates only, nothing about a single person."""

    def __repr__(self) -> str:
        figures = ", ".join(f"{name} {_text(value)}" for name, value in self.summary())
        return f"{type(self).__name__}({figures})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th><td>{escape(_text(value))}</td></tr>"
            for name, value in self.summary()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
