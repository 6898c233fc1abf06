"""The commands, and the messages when one fails. A command is imported only when it is called."""

from __future__ import annotations

import json
import os
import signal
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Dict

import shoal
from shoal.errors import NotVerified, SettingsError, ShoalError
from shoal.interrupt import heed_signals, signal_number
from shoal.settings import InvalidSettings

__all__ = ["app", "main"]

BROKEN, FAILED, INTERRUPTED = 1, 2, 128  # 128 + the signal: 130 for Ctrl-C


def _worth_showing(default: Any) -> str | None:
    return None if default in (None, False, "") else str(default)


app = App(
    name="shoal",
    help="Publish people's trajectories so that everyone is hidden among at least k, and prove it on the file.",
    version=shoal.__version__,
    default_parameter=Parameter(negative=(), show_default=_worth_showing),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    help_epilogue="Start with: shoal demo",
)
app.meta.suppress_keyboard_interrupt = False
# The texts are here and not at the functions, so that `--help` imports no command.
_COMMANDS = {
    "demo": (
        (
            "Show all steps on a generated town, in ./shoal-demo/.\n\n"
            "Generates a town, shows how exposed its people are, hides them among k and verifies the release."
        ),
        "[OPTIONS]",
        "shoal demo",
    ),
    "synth": (
        "Generate people: call records or GPS fixes.\n\nHomes, work, trips and calls of people who do not exist.",
        "OUTPUT [OPTIONS]",
        "shoal synth people.parquet --users 10000 --seed 1",
    ),
    "inspect": (
        (
            "Show what is in a file and whether it can be read.\n\n"
            "Users, samples, period, area, and what would be dropped and why. Places and times are given roughly "
            "(tenths of a degree, whole days); nobody's own data is shown."
        ),
        "INPUT... [OPTIONS]",
        "shoal inspect events.csv.gz --tz Africa/Dakar",
    ),
    "measure": (
        (
            "Measure how exposed people are before publishing, and how hard they are to hide.\n\n"
            "--k: the k-gap, how far a person's samples must be stretched to look like k-1 others, for several k; "
            "why (space or time, all samples or a few), and what blurring everybody alike would do. --unicity: how "
            "many people are unique from 1 to 10 random points known of them, a place and a time each, at several "
            "resolutions; with 95 % intervals. Only aggregates are shown; the table that --k saves names people."
        ),
        "INPUT... --k K,… | --unicity [OPTIONS]",
        "shoal measure events.parquet --k 2,5,10 --output gaps.parquet --plots figures --tz Africa/Dakar",
    ),
    "anonymize": (
        (
            "Make, verify and publish a release.\n\n"
            "Reads events (user, time, place), hides everyone among at least k, writes OUTPUT and its manifest, and "
            "verifies the written file against the input before it publishes. If the claim can't be shown, nothing is "
            "published."
        ),
        "INPUT... OUTPUT [OPTIONS]",
        "shoal anonymize events.parquet release.parquet --k 5 --tz Africa/Dakar --audit audit.parquet",
    ),
    "methods": (
        "Describe the methods: what each does, what it claims, and its settings.",
        "[NAME] [OPTIONS]",
        "shoal methods promesse",
    ),
    "verify": (
        (
            "Check a release against the original data, from the files alone.\n\n"
            "Exits 0 if everything holds, 1 if something does not, 2 if it could not be checked. Give the reading "
            "options that the release was made with. CRS, cell and slot are taken from the release, unless another "
            "tool made it."
        ),
        "ORIGINAL... RELEASE [OPTIONS]",
        "shoal verify events.parquet release.parquet --k 5 --tz Africa/Dakar --audit audit.parquet",
    ),
    "attack": (
        (
            "Attack a release as an adversary would, and the raw data for comparison.\n\n"
            "Draws victims, gives the adversary what the attack says they know, and shows how often they win, how many "
            "people are left, and what was promised. Exits 1 if the release breaks its promise. Give the reading "
            "options that the release was made with; for another tool's release, with the box columns only, also "
            "--crs, --cell and --slot. A saved table holds only aggregates."
        ),
        "ORIGINAL... RELEASE [OPTIONS]",
        "shoal attack events.parquet release.parquet --attack points --points 4 --tz Africa/Dakar",
    ),
    "evaluate": (
        (
            "Measure how useful a release still is.\n\n"
            "Range queries, the distance of published points from the original route (with --audit), and "
            "compression, as Promesse measures them; of a box, its middle counts. Give the reading options that the "
            "release was made with. Only aggregates are shown or saved."
        ),
        "ORIGINAL... RELEASE [OPTIONS]",
        "shoal evaluate events.parquet release.parquet --split-gap 4h --audit audit.parquet --tz Asia/Shanghai",
    ),
    "compare": (
        (
            "Run several methods on the same people and show them side by side.\n\n"
            "What each claims, how much precision it costs people (k-scale, Eq. 4; sides and durations of the boxes "
            "that hold their samples), what is left out, time and memory. Nothing is published; a saved table holds "
            "only aggregates."
        ),
        "INPUT... [OPTIONS]",
        "shoal compare events.parquet --methods shoal,k-scale,k-scale:marginal --k 2,5,10 --output table.csv",
    ),
}
for _name, (_text, _usage, _example) in _COMMANDS.items():
    app.command(
        f"shoal.cli.{_name}:{_name}",
        name=_name,
        help=_text,
        usage=f"Usage: shoal {_name} {_usage}",
        help_epilogue=f"Example: {_example}",
    )

_BARE: dict[str, Any] = {"result_action": "return_value", "exit_on_error": False, "print_error": False}
_READS = {"anonymize", "attack", "compare", "evaluate", "inspect", "measure", "verify"}


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(help="TOML file: [read] and one table per command.")] = None,
) -> int | None:
    layers = []
    if config is not None:
        settings = _toml(config)
        layers.append(Dict(settings, source=config.name))
        if tokens and tokens[0] in _READS:
            layers.append(Dict(settings, root_keys=("read",), use_commands_as_keys=False, source=config.name))
    app.config = tuple(layers)
    try:
        result: int | None = app(tokens, **_BARE)
    finally:
        app.config = ()
    return result


def _toml(path: Path) -> dict[str, Any]:
    """Read a configuration file; lists and tables become the text that the flags take."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise SettingsError(f"the configuration file {path.name} is not there or can't be read") from None
    except ValueError:
        raise SettingsError(f"the configuration file {path.name} is not TOML") from None
    return {
        name: {key: _as_text(value) for key, value in table.items()} if isinstance(table, dict) else table
        for name, table in tables.items()
    }


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return ",".join(f"{key}={part}" for key, part in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else value


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with 0 (done, or the claim holds), 1 (it does not), 2 (failed) or 130 (Ctrl-C)."""
    tokens = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        heed_signals()
    try:
        code = app.meta(tokens, **_BARE) or 0
    except BaseException as error:
        code = _failed(tokens, error)
    raise SystemExit(code)


def _failed(tokens: list[str], error: BaseException) -> int:
    """Print in one line what went wrong, never a value of the data; return the exit code."""
    kind, message, code = type(error).__name__, str(error), FAILED
    if isinstance(error, KeyboardInterrupt) or signal_number() is not None:
        kind, message = "Interrupted", message if isinstance(error, KeyboardInterrupt) and message else "stopped"
        code = INTERRUPTED + (signal_number() or signal.SIGINT)
    elif isinstance(error, NotVerified):
        code = BROKEN
    elif isinstance(error, InvalidSettings):
        kind, message = "SettingsError", error.as_flags()
    elif isinstance(error, CycloptsError):
        kind, message = "SettingsError", f"{' '.join(message.split())} See shoal --help."
    elif isinstance(error, MemoryError):
        kind, message = "TooLarge", "memory ran out; use a larger machine or fewer rows (--period, --bbox)"
    elif isinstance(error, SystemExit):
        raise error
    elif not isinstance(error, ShoalError):
        if os.environ.get("SHOAL_DEBUG"):
            raise error
        kind, message = "InternalError", f"{kind} in {_where(error)}; SHOAL_DEBUG=1 shows more"
    _say_failure(tokens, kind, message)
    return code


def _say_failure(tokens: list[str], kind: str, message: str) -> None:
    if "--json" in tokens:
        print(json.dumps({"ok": False, "error": {"kind": kind, "message": message}}))
    sys.stderr.write(f"shoal: {message}\n")


def _where(error: BaseException) -> str:
    """Return the innermost line of shoal's own code that an unexpected error came through."""
    place, trace = "shoal", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "shoal" in file.parts:
            place = f"{file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
