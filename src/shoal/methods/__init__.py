"""The methods, one file each, by the name that the command line knows them by."""

from shoal.methods.glove import Glove
from shoal.methods.kconcealment import KConcealment
from shoal.methods.kscale import KScale
from shoal.methods.protocol import Estimate, Method
from shoal.methods.shoal import Shoal

__all__ = ["DEFAULT", "METHODS", "Estimate", "Glove", "KConcealment", "KScale", "Method", "Shoal"]

METHODS: dict[str, type[Method]] = {method.name: method for method in (Shoal, KScale, KConcealment, Glove)}
DEFAULT = Shoal.name
