"""`shoal attack`."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.attacks import (
    ATTACKS,
    Outcome,
    Pairs,
    Target,
    brought,
    known_attacks,
    open_pairs,
    open_release,
    open_target,
    play,
    setting_names,
)
from shoal.attacks.knowledge import percent
from shoal.cli.console import show, show_columns, show_json, working
from shoal.cli.declared import metavar_of
from shoal.cli.options import Reading, Running, RunRecord, read_options_of
from shoal.errors import SettingsError
from shoal.names import flag_of
from shoal.tables import refuse_table, save_rows

__all__ = ["attack"]

# Printed names of columns; the others keep their own names.
_WORDS = {
    "success": "won",
    "control": "raw data",
    "control_ranked": "raw data, ranked",
    "tau_s": "window",
    "fscore": "F-score",
    "learned": "learned beyond",
    "control_learned": "from raw data",
}
_SHARES = {
    "precision",
    "recall",
    "fscore",
    "not_found",
    "below_k",
    "learned",
    "control_learned",
    "above_epsilon",
    "control_above_epsilon",
}
_UNITS = {"h", "min", "s", "km", "m"}
_TRIPLE = ("_min", "_median", "_mean")
# The candidates on raw data add little to the share, so they are only in the saved table.
_UNSHOWN = ("control_candidates", "control_run", "control_side", "control_duration", "run_h_mean")


def _flag(name: str) -> tuple[str, Any, Any]:
    """Return the flag of a setting; its help names the attacks that take it."""
    having = [one for one in ATTACKS.values() if name in one.settings.model_fields]
    about, declared = having[0].settings.settings()[name], having[0].settings.model_fields[name]
    kind: Any = str if about.unit else declared.annotation
    shown = Parameter(
        help=f"{', '.join(one.name for one in having)}: {about.help}", metavar=metavar_of(having[0].settings, name)
    )
    return name, Annotated[kind | None, shown], field(default=None)


if TYPE_CHECKING:

    class AttackFlags:
        """The settings of all attacks; a setting that none of the chosen attacks takes is refused."""

else:
    AttackFlags = Parameter(name="*")(
        make_dataclass(
            "AttackFlags",
            [_flag(name) for name in setting_names()],
            frozen=True,
            kw_only=True,
            namespace={"__module__": __name__},
        )
    )


def attack(
    *paths: Annotated[str, Parameter(help="The files that the release was made from; last, the release.")],
    attack: Annotated[
        str,
        Parameter(
            help=f"One or several attacks, with commas: {', '.join(ATTACKS)}; or all that "
            "are possible with this release and the files given."
        ),
    ] = "points",
    settings: AttackFlags = AttackFlags(),  # noqa: B008  frozen
    other: Annotated[Path | None, Parameter(help="intersection: the second release.")] = None,
    other_original: Annotated[
        Path | None, Parameter(help="intersection: the file that the second release was made from, if another.")
    ] = None,
    other_audit: Annotated[
        Path | None, Parameter(help="intersection: the private audit file of the second release.")
    ] = None,
    victims: Annotated[int, Parameter(help="How many people to attack, drawn at random.")] = 1000,
    seed: Annotated[int, Parameter(help="Seed of all draws: the same seed gives the same figures.")] = 0,
    k: Annotated[int | None, Parameter(help="The k that the release should keep, if it does not state one.")] = None,
    audit: Annotated[
        Path | None, Parameter(help="The private audit file; some attacks need it to know which guesses are right.")
    ] = None,
    run_record: RunRecord = None,
    output: Annotated[Path | None, Parameter(help="Save the table: .csv, .json or .parquet.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace an existing table.")] = False,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Attack a release; return 0 if the promise was kept, 1 if not. Raises (exit code 2) if it can't be attacked."""
    if len(paths) < 2:
        raise SettingsError("name the ORIGINAL and, last, the RELEASE: shoal attack events.csv release.parquet")
    named, chosen = _named(attack), _given(settings)
    _refuse_unused(named, chosen, other)
    originals = list(paths[:-1])
    if output is not None:
        secret = (audit, run_record, other, other_original, other_audit)
        private = [path for path in secret if path is not None]
        refuse_table(output, [*paths, *private], overwrite=overwrite)
    source = originals if other_original is None else [str(other_original)]
    options = read_options_of(reading)
    with working(running) as run, brought(paths[-1], run) as release:
        layout = open_release(release).layout
        _refuse_other_layouts(named, layout)
        names = named or known_attacks(layout, audit=audit is not None, other=other is not None)
        own = {name: ATTACKS[name].own(chosen) for name in names}
        target = pairs = None
        how: dict[str, Any] = {"audit": audit, "run_record": run_record, "options": options, "run": run}
        if not all(ATTACKS[name].on_traces for name in names):
            target = open_target(originals, release, k=k, **how)
        if any(ATTACKS[name].on_traces for name in names):
            pairs = open_pairs(originals, release, **how)
        if other is not None:
            second = open_target(source, other, audit=other_audit, options=options, run=run)
            own |= {name: {**own[name], "other": second} for name in names if ATTACKS[name].needs_other}
        if target is not None:  # before any is played, so that no work is lost
            for name in names:
                ATTACKS[name].require_room([target, *([own[name]["other"]] if "other" in own[name] else [])], run)
        drawn: dict[str, Any] = {"victims": victims, "seed": seed, "run": run}
        outcomes = [play(_stage(name, target, pairs), name, **own[name], **drawn) for name in names]
    if output is not None:
        save_rows(_rows(outcomes), output, overwrite=overwrite)
    if running.json:
        show_json({"ok": all(one.ok for one in outcomes), "attacks": [one.to_dict() for one in outcomes]})
    else:
        opened = target or pairs
        for note in opened.recorded.said() if opened else ():
            show(f"note: {note}")
        _show(target, outcomes)
    return 0 if all(one.ok for one in outcomes) else 1


def _named(text: str) -> list[str]:
    """Return the attacks of these names; all attacks if no name is given."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if names == ["all"]:
        return []
    if not names or not set(names) <= set(ATTACKS):
        raise SettingsError(f"no such attack; choose among: {', '.join(ATTACKS)}, all")
    return names


def _stage(name: str, target: Target | None, pairs: Pairs | None) -> Target | Pairs:
    """Return the data and releases that an attack works on."""
    stage = pairs if ATTACKS[name].on_traces else target
    if stage is None:
        raise SettingsError(f"the attack {name} can't be played on this release")
    return stage


def _given(flags: AttackFlags) -> dict[str, Any]:
    """Return the given settings by name, as they were typed."""
    values = {name: getattr(flags, name) for name in setting_names()}
    return {name: value for name, value in values.items() if value is not None}


def _refuse_unused(names: list[str], settings: dict[str, Any], other: Path | None) -> None:
    """Raise for settings that none of the attacks takes."""
    taken = {name for attack in names or ATTACKS for name in ATTACKS[attack].takes}
    unused = {*settings, *(["other"] if other is not None else [])} - taken
    if unused:
        flags = ", ".join(map(flag_of, sorted(unused)))
        raise SettingsError(f"{', '.join(names)} takes no {flags}; leave it out or choose another --attack")


def _refuse_other_layouts(names: list[str], layout: str) -> None:
    """Raise for attacks that can't be played on a release of this layout."""
    other = [name for name in names if layout not in ATTACKS[name].layouts]
    if other:
        needed, fitting = " or ".join(ATTACKS[other[0]].layouts), ",".join(known_attacks(layout))
        raise SettingsError(
            f"the release holds {layout}, and {', '.join(other)} needs {needed}; give --attack {fitting}"
        )


def _rows(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Return all tables as one, each row with its attack and the promise; aggregates only."""
    rows = []
    for one in outcomes:
        about = {"attack": one.attack, "claim": one.figures.get("claim"), "k": one.figures.get("k")}
        whole = {
            name: value for name, value in one.figures.items() if name not in about and not isinstance(value, dict)
        }
        rows += [about | row | {"seed": one.settings.get("seed")} | whole for row in one.rows]
    return rows


def _show(target: Target | None, outcomes: list[Outcome]) -> None:
    if target is not None:
        show(f"Promised: {target.claim}. {target.claim.promise}")
    if target is not None and target.promise is not None:
        show(f"A guess among {target.k} people is right in {percent(target.promise)} of cases.")
    if target is None:
        show("Nobody is hidden among others here. Somebody who knows a few points of a person can find that person, as")
        show("in raw data. What follows is only how many of the places where people stay an adversary still finds.")
    for one in outcomes:
        show()
        show(f"{one.attack}: {one.victims:,} victims; the adversary knows {ATTACKS[one.attack].knows}.")
        for message in one.messages:
            show(f"  {message}")
        for failure in one.failures:
            show(f"  BROKEN: {failure}")
        _show_rows(one.rows)


def _show_rows(rows: list[dict[str, Any]]) -> None:
    """Print the table: a share with its 95 % interval in one cell; minimum, median and mean in another."""
    lines = [_cells(row) for row in rows]
    shown = [name for name in lines[0] if any(line[name] not in ("0 %", "-") for line in lines) or name == "won"]
    show_columns([shown, *([line[name] for name in shown] for line in lines)], indent="  ")


def _cells(row: dict[str, Any]) -> dict[str, str]:
    cells = {}
    for name, value in row.items():
        stem = next((name.removesuffix(end) for end in _TRIPLE if name.endswith(end)), name)
        if name == "victims" or name.endswith(("_low", "_high")) or name.startswith(_UNSHOWN):
            continue
        if f"{name}_low" in row:
            span = f"{row[f'{name}_low'] * 100:.1f}–{row[f'{name}_high'] * 100:.1f}"
            cells[_header(name)] = f"{percent(value)} ({span})"
        elif all(stem + end in row for end in _TRIPLE):
            cells[f"{_header(stem)}: least, median, mean"] = " / ".join(
                "-" if row[stem + end] is None else f"{row[stem + end]:,.4g}" for end in _TRIPLE
            )
        else:
            cells[_header(name)] = percent(value) if name in _SHARES or f"{stem}_low" in row else _text(name, value)
    return cells


def _header(name: str) -> str:
    """Return the printed name of a column, without its unit, which is printed in the cells."""
    return _WORDS.get(name) or " ".join(part for part in name.split("_") if part not in _UNITS)


def _text(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "tau_s":
        return f"{value / 3600:g} h"
    unit = next((f" {part}" for part in name.split("_") if part in _UNITS), "")
    return f"{value:,.1f}{unit}" if isinstance(value, float) else f"{value}{unit}"
