"""The methods, one file or folder each, by their names on the command line.

>>> from shoal.methods import METHODS, make_method
>>> make_method("promesse", {"step": "200m"})
Promesse(step=200)
"""

from __future__ import annotations

from shoal.methods.protocol import CrowdMethod, Estimate, Method, PointMethod
from shoal.methods.registry import METHODS, make_method, method_class, register

# A new method is a file with a class under `@register`, and one line here. Help and documents list the methods in the
# order of these lines. `as` makes the names public for type checkers.
# isort: off
from shoal.methods.shoal import Shoal as Shoal
from shoal.methods.kscale import KScale as KScale
from shoal.methods.kconcealment import KConcealment as KConcealment
from shoal.methods.glove import Glove as Glove
from shoal.methods.kte_hide import KteHide as KteHide
from shoal.methods.promesse import Promesse as Promesse
from shoal.methods.geoind import GeoIndistinguishability as GeoIndistinguishability
from shoal.methods.uniform import Uniform as Uniform
# isort: on

__all__ = [
    "DEFAULT",
    "METHODS",
    "CrowdMethod",
    "Estimate",
    "Method",
    "PointMethod",
    "make_method",
    "method_class",
    "register",
]
__all__ += [method.__name__ for method in METHODS.values()]

DEFAULT = Shoal.name
