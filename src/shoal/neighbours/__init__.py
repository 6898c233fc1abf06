"""Who is near whom: candidates for being merged, and what merging them costs."""

from shoal.neighbours.costs import PairCosts, pair_costs
from shoal.neighbours.proxy import Signatures, proxy_candidates, signatures

__all__ = ["PairCosts", "Signatures", "pair_costs", "proxy_candidates", "signatures"]
