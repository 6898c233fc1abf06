"""The commands, and the messages when one fails. A command is imported only when it is called."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import signal
import sys
import tomllib
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from cyclopts.config import Dict

import shoal
from shoal.cli.limits import refused_by_system, require_room, warn_before_cpu_limit
from shoal.cli.output import sound_streams, to_standard_error
from shoal.cli.panels import Rewritten
from shoal.cli.stdin import with_stdin
from shoal.errors import NaiveTimes, NotVerified, OutputError, SettingsError, ShoalError
from shoal.interrupt import heed_signals, signal_number
from shoal.names import nearest, with_flags
from shoal.parallel import cores
from shoal.stores.addresses import hide_addresses

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry

__all__ = ["app", "main"]

BROKEN, FAILED, INTERRUPTED = 1, 2, 128  # 128 + the signal: 130 for Ctrl-C


def _worth_showing(default: Any) -> str | None:
    return None if default in (None, False, "") else str(default)


app = App(
    name="shoal",
    help="Publish people's trajectories so that everyone is hidden among at least k people, and prove it on the file.",
    version=shoal.__version__,
    default_parameter=Parameter(negative=(), show_default=_worth_showing),
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    help_epilogue="Start with: shoal demo. Each command has examples: shoal anonymize --help",
)
app.meta.suppress_keyboard_interrupt = False
# The texts are here and not at the functions, so that `--help` imports no command.
_COMMANDS = {
    "demo": (
        (
            "Show all steps on a generated town, in ./shoal-demo/.\n\n"
            "The command generates a town and measures how exposed its people are. Then it hides each person among at "
            "least k people and verifies the release."
        ),
        "[OPTIONS]",
        ("shoal demo", "shoal demo --users 1000 --k 5"),
    ),
    "prepare": (
        (
            "Compile everything once, at installation, so that the first use starts at once.\n\n"
            "shoal computes with kernels. Each is compiled when it is first needed and then kept, in the cache folder "
            "of the user. This command runs all steps on a few generated people, which compiles what they need. It "
            "writes nothing else."
        ),
        "[OPTIONS]",
        ("shoal prepare", "shoal prepare --all"),
    ),
    "synth": (
        (
            "Generate data to try shoal on: call records or GPS fixes of people who do not exist.\n\n"
            "The people have homes, work places, trips and calls. The same seed always gives the same file."
        ),
        "OUTPUT [OPTIONS]",
        (
            "shoal synth people.parquet --users 10000 --seed 1",
            "shoal synth fixes.parquet --users 200 --kind gps --scene town --days 7 --seed 1",
        ),
    ),
    "inspect": (
        (
            "Show what is in a file and whether it can be read.\n\n"
            "The command shows the number of users and samples, the period and the area. It also shows how many rows "
            "would be dropped, and why. Places are rounded to tenths of a degree and times to whole days. No single "
            "person's data is shown."
        ),
        "INPUT... [OPTIONS]",
        (
            "shoal inspect events.csv.gz --tz Africa/Dakar",
            "shoal inspect calls.csv --columns user=msisdn,time=start_time,cell=location_id --cells cells.csv",
        ),
    ),
    "measure": (
        (
            "Measure how exposed people are before publishing, and how hard they are to hide.\n\n"
            "--k measures the k-gap: how far a person's samples must be stretched, in space and time, until the person "
            "looks like k-1 others. It also shows why (space or time, all samples or a few) and what happens if "
            "everybody's data is made coarser in the same way. --unicity counts the people who are unique if somebody "
            "knows 1 to 10 random points of them. A point is a place and a time. Give --k, --unicity or both. Only "
            "totals, shares and averages are shown. The table that --k saves names people: keep it private."
        ),
        "INPUT... --k K,… | --unicity [OPTIONS]",
        (
            "shoal measure events.parquet --k 2,5,10 --output gaps.parquet --plots figures --tz Africa/Dakar",
            "shoal measure events.parquet --unicity --points 1,2,4 --resolution native,1km/1h --tz Africa/Dakar",
        ),
    ),
    "anonymize": (
        (
            "Make, verify and publish a release.\n\n"
            "The command reads events (user, time, place) and hides people with the chosen method; the default method "
            "hides each person among at least k people. It writes the release into a private folder and verifies it "
            "against the input. If the claim is shown, it moves the release and its manifest to OUTPUT. If not, "
            "nothing is published."
        ),
        "INPUT... OUTPUT [OPTIONS]",
        (
            "shoal anonymize events.parquet release.parquet --k 5 --tz Africa/Dakar --audit audit.parquet",
            "shoal anonymize fixes.parquet smooth.parquet --method promesse --step 200m --split-gap 4h",
        ),
    ),
    "methods": (
        "Describe the methods: what each does, what it claims, and its settings.",
        "[NAME] [OPTIONS]",
        ("shoal methods", "shoal methods promesse"),
    ),
    "verify": (
        (
            "Check a release against the original data, from the files alone.\n\n"
            "The exit code is 0 if everything holds, 1 if something does not hold, and 2 if it could not be checked. "
            "Use the same reading options as for the release (--tz, --min-samples …). CRS, cell and slot are taken "
            "from the release. If another tool made the release, give --crs, --cell, --slot and --claim. A recipient, "
            "who has no original, can check who signed the release: shoal verify RELEASE --public-key KEY.pub"
        ),
        "ORIGINAL... RELEASE [OPTIONS]",
        (
            "shoal verify events.parquet release.parquet --k 5 --tz Africa/Dakar --audit audit.parquet",
            "shoal verify events.parquet other.csv --crs EPSG:32628 --cell 100m --slot 60s --claim cover --k 5",
        ),
    ),
    "sign": (
        (
            "Sign a release that is published already, so that recipients know who published it.\n\n"
            "The signature (Ed25519) goes into the manifest. The command first checks that the file is the one that "
            "the manifest describes; it needs neither the original nor the machine that has it. shoal anonymize --sign "
            "signs while it publishes. If the key is encrypted, its passphrase is read from SHOAL_SIGN_PASSPHRASE, or "
            "asked for. Needs the extra sign."
        ),
        "RELEASE --key KEY | --new-key KEY [OPTIONS]",
        ("shoal sign --new-key publisher.pem", "shoal sign release.parquet --key publisher.pem"),
    ),
    "attack": (
        (
            "Attack a release as an adversary would, and the raw data for comparison.\n\n"
            "The command draws victims at random and gives the adversary some knowledge about each of them, such as "
            "four known points. It shows how often the adversary finds the victim, how many people remain as "
            "candidates, and what was promised. The exit code is 0 if the release kept its promise, 1 if an attack "
            "shows that it did not, and 2 if the attack could not be played. Use the same reading options as for the "
            "release (--tz, --min-samples …). If another tool made the release, also give --crs, --cell and --slot. "
            "A saved table holds only totals, shares and averages."
        ),
        "ORIGINAL... RELEASE [OPTIONS]",
        (
            "shoal attack events.parquet release.parquet --attack points --points 4 --tz Africa/Dakar",
            "shoal attack events.parquet release.parquet --attack all --audit audit.parquet --output attacks.csv",
        ),
    ),
    "evaluate": (
        (
            "Measure how useful a release still is.\n\n"
            "The command measures, as Promesse does, the error of range queries, the distance of published points "
            "from the original route (needs --audit), and compression. A range query asks how many "
            "traces pass through a square during some time. A box counts as one point, its middle. Use the same "
            "reading options as for the release (--tz, --split-gap …). Only totals, shares and averages are shown or "
            "saved."
        ),
        "ORIGINAL... RELEASE [OPTIONS]",
        ("shoal evaluate fixes.parquet release.parquet --split-gap 4h --audit audit.parquet --tz Asia/Shanghai",),
    ),
    "compare": (
        (
            "Run several methods on the same people and show them side by side.\n\n"
            "For each method the table shows the claim, the loss of precision, the share of samples that are left out, "
            "the time and the memory. Precision is measured on the boxes that hold people's samples: their cost "
            "(k-scale, Eq. 4), sides and durations. Point methods get a table of their own, so they can't be compared "
            "with box methods in one run. Nothing is published. A saved table holds only totals, shares and averages."
        ),
        "INPUT... [OPTIONS]",
        (
            "shoal compare events.parquet --methods shoal,k-scale,k-scale:marginal --k 2,5,10 --output table.csv",
            "shoal compare fixes.parquet --methods raw,promesse:200m --split-gap 4h",
        ),
    ),
}


def _as_in_usage(usage: str, entry: HelpEntry) -> HelpEntry:
    """Return an entry of the help; files are called as in the usage line, e.g. INPUT... OUTPUT."""
    files = re.split(r" (?=\[|--)", usage)[0].strip("[]")
    return entry.copy(positional_label=files) if entry.positional_label else entry


for _name, (_text, _usage, _examples) in _COMMANDS.items():
    app.command(
        f"shoal.cli.{_name}:{_name}",
        name=_name,
        help=_text,
        usage=f"Usage: shoal {_name} {_usage}",
        help_formatter=Rewritten(partial(_as_in_usage, _usage)),
        help_epilogue="\n".join(f"Example: {example}" for example in _examples),
    )

_BARE: dict[str, Any] = {"result_action": "return_value", "exit_on_error": False, "print_error": False}
_MAKES_FILES = ("anonymize", "demo", "prepare", "sign", "synth")
_HELP = {"--help", "-h"}
_FOR_READING = {"--json", "--dry-run", *_HELP}  # then what such a command makes is what it prints
_READS = {"anonymize", "attack", "compare", "evaluate", "inspect", "measure", "verify"}


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[
        Path | None, Parameter(help="TOML file with flags: [read] for reading, [anonymize] etc. for commands.")
    ] = None,
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
    except (ValueError, RecursionError):
        raise SettingsError(f"the configuration file {path.name} is not TOML") from None
    for name, table in tables.items():
        _require_known(path.name, name, table)
    return {name: {key: _as_text(value) for key, value in table.items()} for name, table in tables.items()}


def _require_known(file: str, name: str, table: Any) -> None:
    """Raise SettingsError for a table or a key of a configuration file that nothing reads, with the nearest name."""
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: {name} is in no table; put it below [read] or a command, e.g. [anonymize]")
    tables = ["read", *_COMMANDS]
    if name not in tables:
        raise SettingsError(f"{file}: there is no table [{name}]; {nearest(name, tables, '[{}]')}")
    known = _keys_of(name)
    for key in table:
        if key.replace("-", "_") not in known:
            raise SettingsError(f"{file}: [{name}] has no setting {key}; {nearest(key, known)}")


def _keys_of(name: str) -> list[str]:
    """Return the keys that a table of a configuration file may have: reading options, or the flags of a command."""
    if name == "read":
        from shoal.reading.options import ReadOptions

        return list(ReadOptions.model_fields)
    flags = [flag for one in app[name].assemble_argument_collection() for flag in one.names if flag.startswith("--")]
    return [flag[2:].replace("-", "_") for flag in flags if not flag.startswith("--no-")]


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return ",".join(f"{key}={part}" for key, part in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else value


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits with 0 (done, or the claim holds), 1 (it does not), 2 (failed) or 130 (Ctrl-C).

    As a program (without `arguments`) it heeds signals, and its streams never fail.
    """
    if arguments is not None:
        raise SystemExit(_code(arguments))
    output = sound_streams()
    heed_signals()
    warn_before_cpu_limit()
    _say_notes(sys.argv[1:])
    if _works(sys.argv[1:]):
        from shoal.coredumps import no_core_dumps

        no_core_dumps()
    code = _code(sys.argv[1:])
    sys.stdout.flush()
    raise SystemExit(_told(code, output.lost, sys.argv[1:]))


def _code(tokens: list[str]) -> int:
    """Run a command; return the exit code."""
    try:
        _require_surroundings(tokens)
        with with_stdin(tokens) as told, warnings.catch_warnings():
            warnings.simplefilter("ignore", NaiveTimes)  # the notes on reading say it
            return app.meta(told, **_BARE) or 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
    except BaseException as error:
        return _failed(tokens, error)


def _say_notes(tokens: list[str]) -> None:
    """Print what the library logs; that it compiles, the console says."""
    notes = logging.StreamHandler(sys.stderr)
    notes.setFormatter(logging.Formatter("shoal: note: %(message)s"))
    notes.addFilter(lambda record: record.name == "shoal")
    logging.getLogger("shoal").addHandler(logging.NullHandler() if "--quiet" in tokens else notes)


def _works(tokens: list[str]) -> bool:
    """Say whether a command will work, and not only show its help."""
    return bool(tokens) and tokens[0] in _COMMANDS and not _HELP.intersection(tokens)


def _require_surroundings(tokens: list[str]) -> None:
    """Check, before a command is imported, that it can work here at all; raises OutputError, TooLarge."""
    if not _works(tokens):
        return
    try:
        Path.cwd()
    except OSError:
        raise OutputError("the current folder is not there any more; change to another one") from None
    require_room(cores())


def _told(code: int, lost: OSError | None, tokens: list[str]) -> int:
    """Return the exit code of a command whose output was perhaps lost.

    A reader that goes away has had enough. If the disk is full, what was printed is lost: then a command has failed,
    unless what it makes are files.
    """
    if lost is None or lost.errno == errno.EPIPE:
        return code
    to_standard_error(f"shoal: standard output can't be written ({lost.strerror}); what was printed is lost")
    files = tokens[:1] in ([name] for name in _MAKES_FILES) and not _FOR_READING.intersection(tokens)
    return code or (0 if files else FAILED)


def _failed(tokens: list[str], error: BaseException) -> int:
    """Print in one line what went wrong, never a value of the data; return the exit code."""
    from shoal.settings import InvalidSettings

    kind, message, code = type(error).__name__, str(error), FAILED
    if isinstance(error, KeyboardInterrupt) or signal_number() is not None:
        kind, message = "Interrupted", message if isinstance(error, KeyboardInterrupt) and message else "stopped"
        if signal_number() == signal.SIGXCPU:
            message += "; the system allows no more time of the processor (ulimit -t)"
        code = INTERRUPTED + (signal_number() or signal.SIGINT)
    elif isinstance(error, NotVerified):
        code = BROKEN
    elif isinstance(error, InvalidSettings):
        kind, message = "SettingsError", error.as_flags()
    elif isinstance(error, CycloptsError):
        kind, message = "SettingsError", f"{' '.join(message.split())} See shoal --help."
        message = message.replace("multiple times.", "several times; give it once, with commas between the values.")
    elif (refused := refused_by_system(error)) is not None and not os.environ.get("SHOAL_DEBUG"):
        kind, message = refused
    elif not isinstance(error, ShoalError):
        if os.environ.get("SHOAL_DEBUG"):
            raise error
        kind, message = "InternalError", f"{kind} in {_where(error)}; SHOAL_DEBUG=1 shows more"
    _say_failure(tokens, kind, hide_addresses(with_flags(message)))
    return code


def _say_failure(tokens: list[str], kind: str, message: str) -> None:
    if "--json" in tokens:
        print(json.dumps({"ok": False, "error": {"kind": kind, "message": message}}))
    to_standard_error(f"shoal: {message}")


def _where(error: BaseException) -> str:
    """Return the innermost line of shoal's own code that an unexpected error came through."""
    place, trace = "shoal", error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "shoal" in file.parts:
            place = f"{file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
