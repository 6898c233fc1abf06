"""Compression: how many points are published, compared with the fixes of the original (Promesse, Sec. V-D)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shoal.figures import Figure
from shoal.utility.metrics import Drawn, Metric, register

if TYPE_CHECKING:
    from shoal.run import Run
    from shoal.seen.pairs import Pairs

__all__ = ["Compression"]


@register
class Compression(Metric):
    """The number of published points divided by the number of fixes."""

    name: ClassVar[str] = "compression"
    definition: ClassVar[str] = "Number of published points divided by the number of fixes read."
    better: ClassVar[Literal["lower", "higher"]] = "higher"
    figures: ClassVar[tuple[Figure, ...]] = (Figure("compression", "compression", "{:.1%}".format),)
    compared: ClassVar[tuple[Figure, ...]] = (Figure("compression", "compression", "{:.0%}".format),)

    def measure(self, pairs: Pairs, drawn: Drawn, run: Run) -> dict[str, Any]:  # noqa: ARG002  nothing is drawn
        """Return the ratio."""
        return {"compression": len(pairs.published.ms) / pairs.original.fixes}
