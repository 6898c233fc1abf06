"""How exposed people are before publishing, and how precise a release is."""

from shoal.measure.precision import Precision, precision
from shoal.measure.summary import summary
from shoal.measure.unicity import Unicity, unicity

__all__ = ["Precision", "Unicity", "precision", "summary", "unicity"]
