"""The methods, one file or folder each, by their names on the command line.

>>> from shoal.methods import METHODS, make_method
>>> make_method("promesse", {"step": "200m"})
Promesse(step=200)
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, TypeVar

from shoal.errors import SettingsError
from shoal.methods.geoind import GeoIndistinguishability
from shoal.methods.glove import Glove
from shoal.methods.kconcealment import KConcealment
from shoal.methods.kscale import KScale
from shoal.methods.kte_hide import KteHide
from shoal.methods.promesse import Promesse
from shoal.methods.protocol import CrowdMethod, Estimate, Method, PointMethod
from shoal.methods.shoal import Shoal
from shoal.methods.uniform import Uniform
from shoal.settings import flag_of

__all__ = [
    "DEFAULT",
    "METHODS",
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
    "make_method",
    "method_class",
    "register",
]

M = TypeVar("M", bound=type[Method])

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (Shoal, KScale, KConcealment, Glove, KteHide, Promesse, GeoIndistinguishability, Uniform)
}
DEFAULT = Shoal.name


def register(method: M) -> M:
    """Register a new method, so that every command knows it; also works as a decorator of its class."""
    METHODS[method.name] = method
    return method


def method_class(name: str) -> type[Method]:
    """Return the class of the method with this name; raises SettingsError with the choices if there is none."""
    if name not in METHODS:
        near = get_close_matches(name, METHODS, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise SettingsError(f"no such method{hint}; choose one of: {', '.join(sorted(METHODS))}")
    return METHODS[name]


def make_method(name: str, settings: dict[str, Any]) -> Method:
    """Return a method with some settings; raises SettingsError for settings that it does not have."""
    chosen = method_class(name)
    unknown = sorted(set(settings) - set(chosen.model_fields))
    if unknown:
        known = ", ".join(map(flag_of, chosen.model_fields)) or "none"
        raise SettingsError(
            f"the method {name} has no setting {', '.join(map(flag_of, unknown))}; its settings are: {known}"
        )
    return chosen(**settings)
