"""How exposed people are before publishing."""

from shoal.measure.summary import summary
from shoal.measure.unicity import unicity

__all__ = ["summary", "unicity"]
