"""Measure how exposed people are before publishing, how hard they are to hide, and how precise a release is."""

from shoal.measure.correlates import Properties, correlations, properties
from shoal.measure.kgap import Gaps, k_gap
from shoal.measure.precision import Precision, precision
from shoal.measure.stretch import Stretch, stretch_effort
from shoal.measure.summary import summary
from shoal.measure.sweep import Level, sweep
from shoal.measure.tails import Tails, tails
from shoal.measure.unicity import Unicity, unicity

__all__ = [
    "Gaps",
    "Level",
    "Precision",
    "Properties",
    "Stretch",
    "Tails",
    "Unicity",
    "correlations",
    "k_gap",
    "precision",
    "properties",
    "stretch_effort",
    "summary",
    "sweep",
    "tails",
    "unicity",
]
