"""Settings: frozen parameter objects, checked once, the same in Python, on the command line and in TOML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shoal.errors import SettingsError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["InvalidSettings", "Setting", "Settings", "flag_of", "setting"]


@dataclass(frozen=True)
class Setting:
    """The description of a setting, besides its type and default.

    `help` is one line for `--help`. `unit` is that of a plain number: m or s. `public` is the name under which its
    value is written into the release; None keeps it private. A `quiet` one is written only if it is not the default.
    """

    help: str
    unit: str = ""
    public: str | None = None
    quiet: bool = False


def setting(
    default: Any = ...,
    /,
    *,
    help: str,  # noqa: A002  that is what command lines call it
    unit: str = "",
    public: str | None = None,
    quiet: bool = False,
    **rules: Any,
) -> Any:
    """Declare a setting of a method: its default, help, public name and the rules for its value.

    >>> class Example(Settings):
    ...     k: int = setting(2, help="Hide everyone among at least k.", public="k", ge=2)
    >>> Example(k=3).k
    3
    """
    return Field(default, description=help, json_schema_extra={"unit": unit, "public": public, "quiet": quiet}, **rules)


def flag_of(name: str) -> str:
    """Return the flag of a setting.

    >>> flag_of("max_span")
    '--max-span'
    """
    return f"--{name.replace('_', '-')}"


class InvalidSettings(SettingsError):
    """Some settings break a rule. The message names the setting and the rule, never the value.

    `faults` are pairs of a setting's name (empty: of several together) and the rule.
    """

    def __init__(self, faults: list[tuple[str, str]]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{name or 'settings'}: {rule}" for name, rule in faults))

    def as_flags(self) -> str:
        """Return the message with settings named as on the command line."""
        return "; ".join(f"{flag_of(name)}: {rule}" if name else rule for name, rule in self.faults)


class Settings(BaseModel):
    """Base of all parameter objects: frozen, no unknown names, every mistake reported at once.

    Raises InvalidSettings that names each wrong setting and the rule it breaks, never the value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise InvalidSettings([_fault(type(self), e["loc"], e["msg"]) for e in error.errors()]) from None

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """Return the descriptions of the settings, by name."""
        return {name: _declared(field) for name, field in cls.model_fields.items()}


def _declared(field: FieldInfo) -> Setting:
    more = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    public = more.get("public")
    unit = str(more.get("unit") or "")
    return Setting(field.description or "", unit, str(public) if public else None, quiet=bool(more.get("quiet")))


def _fault(kind: type[Settings], where: tuple[int | str, ...], rule: str) -> tuple[str, str]:
    """Return the name of a wrong setting, the rule it breaks and its description."""
    name = str(where[0]) if where else ""
    if name and name not in kind.model_fields:
        return name, f"no such setting; there are: {', '.join(kind.model_fields)}"
    field = kind.model_fields.get(name)
    hint = f" ({field.description.rstrip('.')})" if field is not None and field.description else ""
    return name, f"{rule.removeprefix('Value error, ')}{hint}"
