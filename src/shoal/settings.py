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
            raise SettingsError("; ".join(_fault(type(self), e["loc"], e["msg"]) for e in error.errors())) from None


def _fault(kind: type[Settings], where: tuple[int | str, ...], rule: str) -> str:
    """Name a wrong setting, the rule it breaks and, where the setting says so, what to give."""
    field = kind.model_fields.get(str(where[0])) if where else None
    hint = f" ({field.description})" if field is not None and field.description else ""
    return f"{'.'.join(map(str, where)) or 'settings'}: {rule}{hint}"
