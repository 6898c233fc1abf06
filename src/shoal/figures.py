"""Figures: how the numbers of a result are saved and printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Figure", "Figured"]


@dataclass(frozen=True)
class Figure:
    """The declaration of a figure, from which tables and JSON are derived.

    `name` is its name in JSON and in saved tables. `label` is its printed name; a figure without one is saved, but not
    printed. `form` returns a value as text. `interval` says that a share is printed with its 95 % interval, the figures
    `name_low` and `name_high`. `kind` is the type of its values, for a saved column that may be empty throughout.

    >>> Figure("error", "mean error", "{:.1%}".format, interval=True).text(
    ...     {"error": 0.25, "error_low": 0.2, "error_high": 0.3}
    ... )
    '25.0% (20.0–30.0)'
    """

    name: str
    label: str = ""
    form: Callable[[Any], str] = str
    interval: bool = False
    kind: type | None = None

    def text(self, values: Mapping[str, Any]) -> str:
        """Return the printed value of this figure among all values; a dash if there is none."""
        value = values[self.name]
        if value is None:
            return "-"
        if not self.interval:
            return self.form(value)
        low, high = (100 * values[f"{self.name}_{edge}"] for edge in ("low", "high"))
        return f"{self.form(value)} ({low:.1f}–{high:.1f})"


class Figured:
    """A result with a mapping `figures`, which can be read as attributes too."""

    figures: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        """Return a figure; called only for names that are no attributes."""
        figures = self.__dict__.get("figures", {})
        if name not in figures:
            raise AttributeError(f"{type(self).__name__} has no figure {name!r}; it has: {', '.join(figures)}")
        return figures[name]
