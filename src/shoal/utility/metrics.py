"""The registry of utility metrics: what each one measures, its unit, and whether lower or higher is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.intervals import Z95
from shoal.utility.queries import query_distortions
from shoal.utility.space import spatial_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.run import Run
    from shoal.seen.pairs import Pairs

__all__ = ["METRICS", "Drawn", "Metric"]


@dataclass(frozen=True)
class Drawn:
    """What to draw at random: the number of range queries, and the seed of all draws."""

    queries: int
    seed: int


@dataclass(frozen=True)
class Metric:
    """The declaration of a metric: `measure(pairs, drawn, run)` returns its figures by name.

    `definition` is a sentence with its source, `unit` that of the figures (empty: a ratio), `better` whether lower or
    higher is better. `needs_owners` says that the metric needs the audit, which says who owns each record.
    """

    name: str
    definition: str
    unit: str
    better: Literal["lower", "higher"]
    measure: Callable[[Pairs, Drawn, Run], dict[str, Any]]
    needs_owners: bool = False


def _compression(pairs: Pairs, drawn: Drawn, run: Run) -> dict[str, Any]:  # noqa: ARG001  nothing is drawn
    return {"compression": len(pairs.published.ms) / pairs.original.fixes}


def _range_queries(pairs: Pairs, drawn: Drawn, run: Run) -> dict[str, Any]:
    distortions = query_distortions(pairs, queries=drawn.queries, seed=drawn.seed, run=run)
    mean = float(distortions.mean())
    spread = Z95 * float(distortions.std()) / np.sqrt(len(distortions))
    return {
        "queries": len(distortions),
        "query_distortion": mean,
        "query_distortion_low": max(0.0, mean - float(spread)),
        "query_distortion_high": mean + float(spread),
        "query_distortion_median": float(np.median(distortions)),
    }


def _spatial_error(pairs: Pairs, drawn: Drawn, run: Run) -> dict[str, Any]:
    metres = spatial_errors(pairs, seed=drawn.seed, run=run)
    return {
        "spatial_error_m": float(metres.mean()),
        "spatial_error_m_median": float(np.median(metres)),
        "spatial_error_m_95": float(np.quantile(metres, 0.95)),
    }


# To add a metric, write a function above and add an entry here.
_DECLARED = (
    Metric("compression", "Points published over fixes of the original.", "", "higher", _compression),
    Metric(
        "range queries",
        "Relative error of the number of people in a random square during some hours (Promesse, Def. 5).",
        "",
        "lower",
        _range_queries,
    ),
    Metric(
        "spatial error",
        "Distance of published points to the polyline of the trace they were made of (Promesse, Sec. V-C).",
        "m",
        "lower",
        _spatial_error,
        needs_owners=True,
    ),
)
METRICS: dict[str, Metric] = {one.name: one for one in _DECLARED}
