"""Utility: what a release is still good for, measured against the original."""

from __future__ import annotations

from shoal.utility.evaluate import Evaluation, evaluate, evaluate_pairs

__all__ = ["Evaluation", "evaluate", "evaluate_pairs"]
