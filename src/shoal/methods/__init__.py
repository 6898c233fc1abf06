"""The methods, one file each, by the name that the command line knows them by."""

from shoal.methods.geoind import GeoIndistinguishability
from shoal.methods.glove import Glove
from shoal.methods.kconcealment import KConcealment
from shoal.methods.kscale import KScale
from shoal.methods.kte_hide.method import KteHide
from shoal.methods.promesse import Promesse
from shoal.methods.protocol import BoxMethod, CrowdMethod, Estimate, Method, PointMethod
from shoal.methods.shoal import Shoal
from shoal.methods.uniform import Uniform

__all__ = [
    "DEFAULT",
    "METHODS",
    "BoxMethod",
    "CrowdMethod",
    "Estimate",
    "GeoIndistinguishability",
    "Glove",
    "KConcealment",
    "KScale",
    "KteHide",
    "Method",
    "PointMethod",
    "Promesse",
    "Shoal",
    "Uniform",
]

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Shoal, KScale, KConcealment, Glove, KteHide, Promesse, GeoIndistinguishability, Uniform)
}
DEFAULT = Shoal.name
