"""The methods, one file each, by the name that the command line knows them by."""

from shoal.methods.kscale import KScale
from shoal.methods.protocol import Estimate, Method

__all__ = ["DEFAULT", "METHODS", "Estimate", "KScale", "Method"]

METHODS: dict[str, type[Method]] = {"k-scale": KScale}
DEFAULT = "k-scale"
