"""The commands, and what a person sees when one fails. Commands are imported only when they are called."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.config import Toml

import shoal
from shoal.errors import NotVerified, ShoalError

__all__ = ["app", "main"]

BROKEN, FAILED, INTERRUPTED = 1, 2, 130

app = App(
    name="shoal",
    help="Publish people's trajectories so that everyone is hidden among at least k, and prove it on the file.",
    version=shoal.__version__,
    default_parameter=Parameter(negative=()),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    help_epilogue="Start with: shoal demo",
)
app.command("shoal.cli.demo:demo", name="demo", help="Tell the whole story on a generated town, in ./shoal-demo/.")
app.command("shoal.cli.synth:synth", name="synth", help="Generate people: call records or GPS fixes.")
app.command("shoal.cli.inspect:inspect", name="inspect", help="Say what is in a file and whether it would read.")
app.command("shoal.cli.anonymize:anonymize", name="anonymize", help="Make, verify and publish a release.")
app.command("shoal.cli.verify:verify", name="verify", help="Check a release against the original data.")

_READS = {"anonymize", "inspect", "verify"}


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(help="TOML file: [read] and one table per command.")] = None,
) -> int | None:
    if config is not None:
        if not config.is_file():
            raise ShoalError(f"the configuration file {config.name} is not there")
        layers = [Toml(config)]
        if tokens and tokens[0] in _READS:
            layers.append(Toml(config, root_keys=("read",), use_commands_as_keys=False))
        app.config = tuple(layers)
    result: int | None = app(tokens, result_action="return_value")
    return result


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits 0 (done, holds), 1 (does not hold), 2 (could not), 130 (Ctrl-C)."""
    tokens = sys.argv[1:] if arguments is None else arguments
    try:
        code = app.meta(tokens, result_action="return_value")
    except KeyboardInterrupt:
        _say_failure(tokens, "Interrupted", "stopped; nothing was published")
        code = INTERRUPTED
    except NotVerified as error:
        _say_failure(tokens, type(error).__name__, str(error))
        code = BROKEN
    except ShoalError as error:
        _say_failure(tokens, type(error).__name__, str(error))
        code = FAILED
    except MemoryError:
        _say_failure(tokens, "TooLarge", "memory ran out; use a larger machine or fewer rows (--period, --bbox)")
        code = FAILED
    except Exception as error:  # noqa: BLE001  its text may hold values of the data
        if os.environ.get("SHOAL_DEBUG"):
            raise
        _say_failure(tokens, "InternalError", f"{type(error).__name__} in {_where(error)}; SHOAL_DEBUG=1 shows more")
        code = FAILED
    raise SystemExit(code or 0)


def _say_failure(tokens: list[str], kind: str, message: str) -> None:
    if "--json" in tokens:
        print(json.dumps({"ok": False, "error": {"kind": kind, "message": message}}))  # noqa: T201
    sys.stderr.write(f"shoal: {message}\n")


def _where(error: BaseException) -> str:
    """Name the innermost place of ours that an unexpected error came through."""
    place, trace = "shoal", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "shoal" in file.parts:
            place = f"{file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
