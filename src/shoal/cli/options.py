"""Flags that several commands share: how to read, how to run, and the settings of the methods.

Flags of reading and of methods are derived from the declarations in `ReadOptions` and in the methods' classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from cyclopts import Group, Parameter

from shoal.cli.panels import Rewritten
from shoal.errors import SettingsError
from shoal.methods import DEFAULT, METHODS
from shoal.reading.options import ReadOptions
from shoal.run import Limits

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry

    from shoal.methods import Method
    from shoal.settings import Settings

__all__ = [
    "MethodSettings",
    "Reading",
    "RunRecord",
    "Running",
    "given",
    "metavar_of",
    "read_options_of",
    "whole_numbers",
]

_UNSAID: tuple[Any, ...] = (None, False, "", {}, (), 0)
_UNITS = {"m": "LENGTH", "s": "DURATION", "B": "SIZE"}
_KINDS: dict[Any, str] = {int: "INT", float: "NUMBER", Path: "PATH"}


def _help_of(kind: type[Settings], name: str) -> str:
    """Return the help of a setting, with its default."""
    about, default = kind.settings()[name], kind.model_fields[name].get_default()
    if default in _UNSAID or kind.model_fields[name].is_required():
        return about.help
    if about.unit == "s" and default % 60 == 0 and default > 60:
        return f"{about.help} [default: {default // 60}min]"
    return f"{about.help} [default: {default}{about.unit}]"


def metavar_of(kind: type[Settings], name: str) -> str | None:
    """Return the word that stands for the value of a setting in the help; None for text."""
    annotation = kind.model_fields[name].annotation
    kinds = [annotation, *get_args(annotation)]
    if any(get_origin(one) is Literal for one in kinds):
        return "CHOICE"
    return _UNITS.get(kind.settings()[name].unit) or next((_KINDS[one] for one in kinds if one in _KINDS), None)


def _about(kind: type[Settings], name: str, **more: Any) -> Parameter:
    """Return what the help says about the flag of a setting."""
    return Parameter(help=_help_of(kind, name), metavar=metavar_of(kind, name), **more)


def _flag(kind: type[Settings], name: str) -> tuple[str, Any, Any]:
    """Return the dataclass field of a flag: a switch, or text that the setting parses."""
    switch = kind.model_fields[name].annotation is bool
    about = _about(kind, name, allow_leading_hyphen=not switch)
    kind_of = bool if switch else str | None
    return name, Annotated[kind_of, about], field(default=False if switch else None)


def _flags_of_methods() -> list[tuple[str, Any, Any]]:
    """Return a flag for each setting, in the groups of the methods that have it; in no group if most methods do."""
    names = dict.fromkeys(name for method in METHODS.values() for name in method.model_fields)
    flags = []
    for name in names:
        having = [method for method in METHODS.values() if name in method.model_fields]
        common = len(having) > len(METHODS) / 2
        group = {} if common else {"group": [_GROUPS[method.name] for method in having]}
        about = _about(having[0], name, **group)
        flags.append((name, Annotated[str | None, about], field(default=None)))
    return flags


def _own_text(method: type[Method], entry: HelpEntry) -> HelpEntry:
    """Return an entry of a method's panel with this method's text, since other methods may have the flag too."""
    name = entry.names[0].removeprefix("--").replace("-", "_")
    return entry.copy(description=_help_of(method, name), metavar=metavar_of(method, name))


_GROUPS = {
    name: Group(
        f"Settings of {name}{' (the default method)' if name == DEFAULT else ''}",
        sort_key=10 + order,
        help_formatter=Rewritten(partial(_own_text, method)),
    )
    for order, (name, method) in enumerate(METHODS.items())
}


def _group_of_flags(name: str, flags: list[tuple[str, Any, Any]], about: Parameter) -> Any:
    """Return a frozen dataclass of flags that commands take as one argument."""
    return about(make_dataclass(name, flags, frozen=True, kw_only=True, namespace={"__module__": __name__}))


if TYPE_CHECKING:

    class Reading:
        """How to read the original data; the same flags for all commands that read it."""

    class MethodSettings:
        """The settings of all methods; the chosen method refuses settings of others."""

else:
    Reading = _group_of_flags(
        "Reading",
        [_flag(ReadOptions, name) for name in ReadOptions.model_fields],
        Parameter(name="*", group=Group("Reading", sort_key=50)),
    )
    MethodSettings = _group_of_flags("MethodSettings", _flags_of_methods(), Parameter(name="*"))


RunRecord = Annotated[
    Path | None,
    Parameter(
        name=["--run-record", "--options-from"],
        help="The private run record: reading options that are not given come from it. It is found by itself beside "
        "the release or the audit file.",
    ),
]


def given(flags: Any) -> dict[str, Any]:
    """Return the given flags of a group, by name."""
    values = {flag.name: getattr(flags, flag.name) for flag in fields(flags)}
    return {name: value for name, value in values.items() if value not in (None, False)}


def read_options_of(reading: Any) -> ReadOptions:
    """Return the given reading flags as ReadOptions; raises SettingsError if they make no sense."""
    return ReadOptions(**given(reading))


@Parameter(name="*", group=Group("Running", sort_key=60))
@dataclass(frozen=True, kw_only=True)
class Running:
    """How to run; none of these flags changes a result."""

    threads: Annotated[str | None, _about(Limits, "threads")] = None
    memory: Annotated[str | None, _about(Limits, "memory")] = None
    work_dir: Annotated[str | None, _about(Limits, "work_dir")] = None
    quiet: Annotated[bool, Parameter(help="Show no progress bars.")] = False
    json: Annotated[bool, Parameter(help="Print the result as JSON, for programs.")] = False


def whole_numbers(text: str, example: str) -> list[int]:
    """Read whole numbers separated by commas; `example` is a sample use of the flag, for the message."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SettingsError(
            f"{example.split(maxsplit=1)[0]} takes whole numbers with commas between: {example}"
        ) from None
