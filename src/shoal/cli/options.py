"""Flags that several commands share: how to read, how to run, and the settings of the methods.

Flags of reading and of methods are derived from the declarations in `ReadOptions` and in the methods' classes, by way
of a table (`shoal.cli.declared`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from shoal.cli.declared import declared
from shoal.cli.panels import Rewritten
from shoal.errors import SettingsError

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry

    from shoal.cli.declared import Flag
    from shoal.reading.options import ReadOptions

__all__ = [
    "DEFAULT",
    "MethodSettings",
    "Reading",
    "RunRecord",
    "Running",
    "given",
    "read_options_of",
    "whole_numbers",
]


def _about(flag: Flag, **more: Any) -> Parameter:
    """Return what the help says about a flag."""
    return Parameter(help=flag.help, metavar=flag.metavar, **more)


def _field(name: str, flag: Flag) -> tuple[str, Any, Any]:
    """Return the dataclass field of a flag: a switch, or text that the setting parses."""
    about = _about(flag, allow_leading_hyphen=not flag.switch)
    kind_of = bool if flag.switch else str | None
    return name, Annotated[kind_of, about], field(default=False if flag.switch else None)


def _flags_of_methods() -> list[tuple[str, Any, Any]]:
    """Return a flag for each setting, in the groups of the methods that have it; in no group if most methods do."""
    methods = declared().methods
    flags = []
    for name in dict.fromkeys(name for settings in methods.values() for name in settings):
        having = [method for method, settings in methods.items() if name in settings]
        common = len(having) > len(methods) / 2
        group = {} if common else {"group": [_GROUPS[method] for method in having]}
        about = _about(methods[having[0]][name], **group)
        flags.append((name, Annotated[str | None, about], field(default=None)))
    return flags


def _own_text(settings: dict[str, Flag], entry: HelpEntry) -> HelpEntry:
    """Return an entry of a method's panel with this method's text, since other methods may have the flag too."""
    flag = settings[entry.names[0].removeprefix("--").replace("-", "_")]
    return entry.copy(description=flag.help, metavar=flag.metavar)


DEFAULT = declared().default_method
_GROUPS = {
    name: Group(
        f"Settings of {name}{' (the default method)' if name == DEFAULT else ''}",
        sort_key=10 + order,
        help_formatter=Rewritten(partial(_own_text, settings)),
    )
    for order, (name, settings) in enumerate(declared().methods.items())
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
        [_field(*item) for item in declared().reading.items()],
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
    from shoal.reading.options import ReadOptions

    return ReadOptions(**given(reading))


@Parameter(name="*", group=Group("Running", sort_key=60))
@dataclass(frozen=True, kw_only=True)
class Running:
    """How to run; none of these flags changes a result."""

    threads: Annotated[str | None, _about(declared().running["threads"])] = None
    memory: Annotated[str | None, _about(declared().running["memory"])] = None
    work_dir: Annotated[str | None, _about(declared().running["work_dir"])] = None
    quiet: Annotated[bool, Parameter(help="Show no progress.")] = False
    json: Annotated[bool, Parameter(help="Print the result as JSON, for programs, and show no progress.")] = False


def whole_numbers(text: str, example: str) -> list[int]:
    """Read whole numbers separated by commas; `example` is a sample use of the flag, for the message."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SettingsError(
            f"{example.split(maxsplit=1)[0]} takes whole numbers with commas between: {example}"
        ) from None
