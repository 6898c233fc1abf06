"""The registry of utility metrics, and what each one declares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

if TYPE_CHECKING:
    from shoal.figures import Figure
    from shoal.run import Run
    from shoal.seen.pairs import Pairs

__all__ = ["METRICS", "Drawn", "Metric", "register"]


@dataclass(frozen=True)
class Drawn:
    """What to draw at random: the number of range queries, and the seed of all draws."""

    queries: int
    seed: int


class Metric(ABC):
    """A way to measure how useful a release still is; one class that declares everything about itself.

    `evaluate`, its table and its JSON, the table of `compare` for points, and the table in docs/evaluate.md are derived
    from the class variables:

    `name`, `definition`
        The name of the metric, and what it measures, with its source.
    `unit`, `better`
        The unit of the figures (empty: a ratio), and whether lower or higher is better.
    `figures`, `compared`
        The figures that `measure` returns, as `evaluate` saves and prints them; those of them that `compare` saves and
        prints.
    `needs_owners`
        Whether the metric needs the audit, which says who owns each record.
    `fix_bytes`, `point_bytes`
        The memory that it takes at most for each original fix and each published point.
    """

    name: ClassVar[str]
    definition: ClassVar[str]
    unit: ClassVar[str] = ""
    better: ClassVar[Literal["lower", "higher"]]
    figures: ClassVar[tuple[Figure, ...]]
    compared: ClassVar[tuple[Figure, ...]] = ()
    needs_owners: ClassVar[bool] = False
    fix_bytes: ClassVar[int] = 0
    point_bytes: ClassVar[int] = 0

    @abstractmethod
    def measure(self, pairs: Pairs, drawn: Drawn, run: Run) -> dict[str, Any]:
        """Return the figures by name."""

    def require_room(self, pairs: Pairs, run: Run) -> None:
        """Check that the metric fits into the memory of the run; raises TooLarge."""
        needed = self.fix_bytes * pairs.original.fixes + self.point_bytes * pairs.published.fixes
        run.require_room(needed, self.name, "allow more: `memory`", held=pairs.published.nbytes)


METRICS: dict[str, Metric] = {}
M = TypeVar("M", bound=type[Metric])


def register(metric: M) -> M:
    """Register a metric, so that `evaluate` and `compare` measure it; a decorator of its class."""
    METRICS[metric.name] = metric()
    return metric
