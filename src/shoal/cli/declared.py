"""The flags that commands derive from declarations, kept in `flags.json`, so that `--help` imports no method.

`derived` makes the table from the declarations: `ReadOptions`, `Limits`, and the classes of the methods.
`python -m shoal.cli.declared` (`make flags`) writes it. A test says when the file is behind the declarations.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

if TYPE_CHECKING:
    from shoal.settings import Settings

__all__ = ["Declared", "Flag", "declared", "derived", "metavar_of", "write"]

_READING, _RUNNING = "[read]", "[run]"
_FILE = Path(__file__).with_name("flags.json")
_UNSAID: tuple[Any, ...] = (None, False, "", {}, (), 0)
_UNITS = {"m": "LENGTH", "s": "DURATION", "B": "SIZE"}
_KINDS: dict[Any, str] = {int: "INT", float: "NUMBER", Path: "PATH"}


class Flag(NamedTuple):
    """What a flag shows: its help, the word that stands for its value (None for text), and whether it is a switch."""

    help: str
    metavar: str | None
    switch: bool


class Declared(NamedTuple):
    """All derived flags by name: of reading, of a run and of each method; and the default method."""

    reading: dict[str, Flag]
    running: dict[str, Flag]
    methods: dict[str, dict[str, Flag]]
    default_method: str


@cache
def declared() -> Declared:
    """Return the flags as the file has them; as the declarations have them, if these were imported already.

    Whoever registers a method of their own imports them.
    """
    if "shoal.methods" in sys.modules:
        return derived()
    table = json.loads(_FILE.read_text(encoding="utf-8"))
    groups: dict[str, dict[str, Flag]] = {}
    for group, name, *flag in table["flags"]:
        groups.setdefault(group, {})[name] = Flag(*flag)
    return Declared(groups.pop(_READING), groups.pop(_RUNNING), groups, table["default_method"])


def derived() -> Declared:
    """Return the flags as the declarations have them."""
    from shoal.methods import DEFAULT, METHODS
    from shoal.reading.options import ReadOptions
    from shoal.run import Limits

    methods = {name: _flags_of(method) for name, method in METHODS.items()}
    return Declared(_flags_of(ReadOptions), _flags_of(Limits), methods, DEFAULT)


def write(flags: Declared) -> None:
    """Write the file, a line for each flag."""
    groups = {_READING: flags.reading, _RUNNING: flags.running, **flags.methods}
    rows = [[group, name, *flag] for group, found in groups.items() for name, flag in found.items()]
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    first = json.dumps(flags.default_method)
    _FILE.write_text(f'{{"default_method": {first}, "flags": [\n  {lines}\n]}}\n', encoding="utf-8")


def _flags_of(kind: type[Settings]) -> dict[str, Flag]:
    """Return the flags of some settings, in their order."""
    return {
        name: Flag(_help_of(kind, name), metavar_of(kind, name), field.annotation is bool)
        for name, field in kind.model_fields.items()
    }


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


if __name__ == "__main__":
    write(derived())
