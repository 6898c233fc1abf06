"""Utility: measure how useful a release still is, compared with the original."""

from __future__ import annotations

from shoal.utility.evaluate import Evaluation, evaluate, evaluate_pairs
from shoal.utility.metrics import METRICS, Drawn, Metric, register

# A new metric is a file with a class under `@register`, and one line here. Tables list the metrics in this order.
# isort: off
from shoal.utility.compression import Compression as Compression
from shoal.utility.queries import RangeQueries as RangeQueries
from shoal.utility.space import SpatialError as SpatialError
# isort: on

__all__ = ["METRICS", "Drawn", "Evaluation", "Metric", "evaluate", "evaluate_pairs", "register"]
__all__ += [type(metric).__name__ for metric in METRICS.values()]
