"""Search: find candidates for merging, what merging costs, and who is merged with whom."""

from shoal.search.costs import PairCosts, pair_costs
from shoal.search.partners import Homes, Partners, cheapest, homes, sketch_candidates
from shoal.search.proxy import Signatures, proxy_candidates, signatures

__all__ = [
    "Homes",
    "PairCosts",
    "Partners",
    "Signatures",
    "cheapest",
    "homes",
    "pair_costs",
    "proxy_candidates",
    "signatures",
    "sketch_candidates",
]
