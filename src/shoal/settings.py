"""Settings: frozen parameter objects, checked once, the same in Python, on the command line and in TOML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shoal.errors import SettingsError
from shoal.names import flag_of, nearest

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

__all__ = ["InvalidSettings", "Setting", "Settings", "setting"]

# The rules that a value can break, as pydantic names them, and the kinds of values.
_RULES = {
    "greater_than": "must be above {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be below {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "finite_number": "must be a finite number",
}
_KINDS = {
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "string": "must be text",
    "path": "must be a path",
    "tuple": "must be a list of values",
    "dict": "must be a table of names and values",
    "mapping": "must be a table of names and values",
}


@dataclass(frozen=True)
class Setting:
    """The description of a setting, besides its type and default.

    `help` is one line for `--help`. `unit` is that of a plain number: m, s or B. `public` is the name under which its
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

    def __init__(self, *unnamed: Any, **values: Any) -> None:
        if unnamed:
            name = type(self).__name__
            raise SettingsError(
                f"settings of {name} are given by name, e.g. {name}({next(iter(type(self).model_fields))}=…)"
            )
        try:
            super().__init__(**values)
        except ValidationError as error:
            faults = dict.fromkeys(_fault(type(self), one) for one in error.errors())
            raise InvalidSettings(list(faults)) from None

    @classmethod
    def settings(cls) -> dict[str, Setting]:
        """Return the descriptions of the settings, by name."""
        return {name: _declared(field) for name, field in cls.model_fields.items()}


def _declared(field: FieldInfo) -> Setting:
    more = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    public = more.get("public")
    unit = str(more.get("unit") or "")
    return Setting(field.description or "", unit, str(public) if public else None, quiet=bool(more.get("quiet")))


def _fault(kind: type[Settings], error: ErrorDetails) -> tuple[str, str]:
    """Return the name of a wrong setting, the rule it breaks and its description."""
    name = str(error["loc"][0]) if error["loc"] else ""
    if name and name not in kind.model_fields:
        return name, f"no such setting; {nearest(name, kind.model_fields)}"
    field = kind.model_fields.get(name)
    if error["type"] == "missing" and field is not None and field.description:
        return name, f"is missing: {field.description[0].lower()}{field.description[1:].rstrip('.')}"
    hint = f" ({field.description.rstrip('.')})" if field is not None and field.description else ""
    return name, f"{_rule(error)}{hint}"


def _rule(error: ErrorDetails) -> str:
    """Return the broken rule in our words."""
    kind, values = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return str(values["error"])
    words = _RULES.get(kind) or next((said for part, said in _KINDS.items() if kind.startswith(part)), "is not valid")
    return words.format(**values)
