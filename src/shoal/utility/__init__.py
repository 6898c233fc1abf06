"""Utility: measure how useful a release still is, compared with the original."""

from __future__ import annotations

from shoal.utility.evaluate import Evaluation, evaluate, evaluate_pairs
from shoal.utility.metrics import METRICS, Metric

__all__ = ["METRICS", "Evaluation", "Metric", "evaluate", "evaluate_pairs"]
