"""`shoal methods`."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.cli.console import show, show_columns, show_json
from shoal.cli.options import DEFAULT

if TYPE_CHECKING:
    from shoal.methods import Method

__all__ = ["methods"]

_WIDTH = 100
_HEADER = ("method", "claim", "works on", "what it does")


def methods(
    name: Annotated[str | None, Parameter(help="The method to describe in full; if not given, all are listed.")] = None,
    /,
    *,
    json: Annotated[bool, Parameter(help="Print the result as JSON, for programs.")] = False,
) -> int:
    """Describe the methods."""
    from shoal.methods import METHODS, method_class

    chosen = METHODS.values() if name is None else [method_class(name)]
    if json:
        show_json({"ok": True, "methods": [described(method) for method in chosen]})
    elif name is None:
        rows = [(method.name, str(method.example().claim), method.takes, method.about) for method in chosen]
        show_columns([_HEADER, *rows], left=_HEADER)
        show()
        show("Claims are shown for example settings (k = 5). Samples are on a grid; fixes are exact places and times.")
        show(f"The default is {DEFAULT}. To describe one method: shoal methods {DEFAULT}")
    else:
        _show(method_class(name))
    return 0


def described(method: type[Method]) -> dict[str, Any]:
    """Return what a method declares about itself."""
    example = method.example()
    return {
        "name": method.name,
        "about": method.about,
        "citation": method.citation,
        "claim": example.claim.to_dict(),
        "promise": example.claim.promise,
        "still_possible": example.claim.still_possible,
        "takes": method.takes,
        "layout": method.layout.name,
        "resumable": method.resumable,
        "variants": list(method.variants),
        "settings": [_setting(method, name) for name in method.model_fields],
    }


def _setting(method: type[Method], name: str) -> dict[str, Any]:
    from shoal.names import flag_of

    about, field = method.settings()[name], method.model_fields[name]
    default = None if field.is_required() else field.get_default()
    return {
        "name": name,
        "flag": flag_of(name),
        "help": about.help,
        "unit": about.unit or None,
        "required": field.is_required(),
        "default": default,
        "public_as": about.public,
    }


def _show(method: type[Method]) -> None:
    """Print the full description of one method."""
    from shoal.names import flag_of

    of = described(method)
    show(f"{of['name']}: {of['about']}")
    show(f"From {of['citation']}. It works on {of['takes']} and publishes {of['layout']}.")
    show()
    for title, text in (
        (
            f"With the settings of the example below, its releases carry the claim {method.example().claim}.",
            of["promise"],
        ),
        ("An adversary can still:", of["still_possible"]),
    ):
        show(title)
        for line in wrap(text, _WIDTH):
            show(f"  {line}")
    show()
    show("Settings, with the same names in Python, on the command line and in TOML:")
    for one in of["settings"]:
        default = "required" if one["required"] else f"default {one['default']}{one['unit'] or ''}"
        said = "not set by default" if one["default"] is None and not one["required"] else default
        public = f"; published as {one['public_as']}" if one["public_as"] else "; private"
        show(f"  {one['flag']:<16} {one['help']} ({said}{public})")
    if not of["settings"]:
        show("  none")
    if method.variants:
        show(f"Variants for shoal compare: {', '.join(f'{method.name}:{word}' for word in method.variants)}")
    elif method.value_setting:
        show(f"For shoal compare, the value of {flag_of(method.value_setting)} follows the name: {method.name}:VALUE")
    show()
    flags = "".join(f" {flag_of(name)} {value}" for name, value in method.examples.items())
    show(f"Example: shoal anonymize events.parquet release.parquet --method {method.name}{flags}")
