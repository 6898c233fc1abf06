"""Settings: frozen parameter objects, checked once, the same for Python, the command line and TOML."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from shoal.errors import SettingsError

__all__ = ["Settings"]


class Settings(BaseModel):
    """Base of all parameter objects: frozen, no unknown names, every mistake reported at once.

    Raises SettingsError that names each wrong setting and the rule it breaks, never the value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors()]
            raise SettingsError("; ".join(faults)) from None
