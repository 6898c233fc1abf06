"""The registry of methods: each by its name on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from shoal.errors import SettingsError
from shoal.names import flag_of, nearest

if TYPE_CHECKING:
    from shoal.methods.protocol import Method

    M = TypeVar("M", bound=type[Method])

__all__ = ["METHODS", "make_method", "method_class", "register"]

METHODS: dict[str, type[Method]] = {}


def register(method: M) -> M:
    """Register a method, so that every command knows it; a decorator of its class."""
    METHODS[method.name] = method
    return method


def method_class(name: str) -> type[Method]:
    """Return the class of the method with this name; raises SettingsError with advice if there is none."""
    if name not in METHODS:
        raise SettingsError(f"no such method; {nearest(name, METHODS)}")
    return METHODS[name]


def make_method(name: str, settings: dict[str, Any]) -> Method:
    """Return a method with some settings; raises SettingsError for settings that it does not have."""
    chosen = method_class(name)
    unknown = sorted(set(settings) - set(chosen.model_fields))
    if unknown:
        known = ", ".join(map(flag_of, chosen.model_fields)) or "none"
        raise SettingsError(
            f"the method {name} has no setting {', '.join(map(flag_of, unknown))}; its settings are: {known}"
            + (". It does not hide people among k others" if "k" in unknown else "")
        )
    return chosen(**settings)
