"""Attacks: play an adversary against a release and, as a control, against the raw data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Unpack

from shoal.attacks.outcome import ATTACKS, Attack, Outcome, register
from shoal.attacks.target import Target, open_target
from shoal.errors import CannotCheck, SettingsError
from shoal.reading.options import ReadOptions, read_options
from shoal.run import LOCAL, Run
from shoal.seen.opened import open_release
from shoal.seen.pairs import Pairs, open_pairs
from shoal.seen.stores import brought
from shoal.trajectories import Trajectories

# A new attack is a file with a declaration that is registered, and one line here. Its settings are added to the
# signature of `attack`, for type checkers. `all` plays the attacks in this order.
# isort: off
from shoal.attacks.points import POINTS as POINTS
from shoal.attacks.places import HOME_WORK as HOME_WORK, TOP_LOCATIONS as TOP_LOCATIONS
from shoal.attacks.window import WINDOW as WINDOW
from shoal.attacks.owner import OWNER as OWNER
from shoal.attacks.covers import INTERSECT_COVERS as INTERSECT_COVERS
from shoal.attacks.intersection import INTERSECTION as INTERSECTION
from shoal.attacks.poi import POI as POI
# isort: on

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from shoal.reading.options import Reading
    from shoal.release import Release
    from shoal.traces import Traces

__all__ = [
    "ATTACKS",
    "Attack",
    "Outcome",
    "Pairs",
    "Target",
    "attack",
    "brought",
    "known_attacks",
    "open_pairs",
    "open_release",
    "open_target",
    "play",
    "register",
    "setting_names",
]


def attack(
    original: str | Path | Sequence[str | Path] | Trajectories | Traces,
    release: str | Path | Release,
    attack: str = "points",
    *,
    victims: int = 1000,
    seed: int = 0,
    audit: str | Path | pa.Table | None = None,
    run_record: str | Path | None = None,
    k: int | None = None,
    other: str | Path | Release | None = None,
    other_original: str | Path | Sequence[str | Path] | Trajectories | None = None,
    other_audit: str | Path | pa.Table | None = None,
    points: int | None = None,
    locations: int | None = None,
    tau: int | str | None = None,
    epsilon: int | str | None = None,
    knows: Literal["victim", "everybody"] | None = None,
    diameter: int | str | None = None,
    stay: int | str | None = None,
    match: int | str | None = None,
    options: ReadOptions | None = None,
    run: Run = LOCAL,
    **reading: Unpack[Reading],
) -> Outcome:
    """Play an adversary against a release, and return how often they win.

    Parameters
    ----------
    original, release
        The data that the release was made from, and the release: files, or objects in memory.
    attack
        The name of the attack, e.g. `"points"`; `shoal.attacks.ATTACKS` has them all, and docs/attacks.md explains
        them.
    victims, seed
        How many people to draw, and the seed of all draws.
    audit
        The private audit file, which says who owns each record. Some attacks need it to know which guesses are right.
    run_record
        The private run record, from which reading options come that are not given; it is found by itself beside the
        release or the audit file.
    k
        The k that the release should keep, if the release does not state one.
    other, other_original, other_audit
        For `intersection`: a second release, the data it was made from (by default the same original) and its audit.
    points, locations, tau, epsilon, knows, diameter, stay, match
        Settings of single attacks; None for the default. A number is metres or seconds; text has a unit: `"200m"`,
        `"1h"`.
    options, **reading
        The reading options that the release was made with, as an object or as keywords (`tz="Africa/Dakar"`).
    run
        Threads, memory and the folder for temporary files.

    Returns
    -------
    Outcome
        The table of results, and the promises that the release broke.

    Raises
    ------
    SettingsError
        The attack or a setting is unknown.
    CannotCheck
        Something is missing or can't be read.
    TooLarge
        The attack does not fit into the memory of the run.

    Guarantee: the outcome is the same for the same seed, with any number of threads.

    Cost: that of reading both, and that of the attack: minutes for 100,000 people.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=60, scene="town", days=3, seed=1))
    >>> outcome = attack(people, shoal.Shoal(k=3).anonymize(people), "points", points=4, victims=50)
    >>> outcome.rows[0]["success"], outcome.rows[0]["control"] > 0.9, outcome.rows[0]["candidates_min"] >= 3
    (0.0, True, True)
    """
    named: dict[str, Any] = {**locals(), **reading}
    entry, settings = _entry(attack), setting_names()
    given = {name: named[name] for name in settings if named.get(name) is not None}
    fields = {name: named[name] for name in reading if name not in settings}
    strange = sorted((given.keys() - entry.takes) | (fields.keys() - ReadOptions.model_fields.keys()))
    if strange:
        raise SettingsError(f"neither a setting of this attack nor a reading option: {', '.join(strange)}")
    given = entry.own(given)
    how: dict[str, Any] = {"options": read_options(options, **fields) if fields else options, "run": run}
    if entry.on_traces:
        if isinstance(original, Trajectories):
            raise CannotCheck(f"the attack {attack} is about places and times as they are; give files, or Traces")
        pairs = open_pairs(original, release, audit=audit, run_record=run_record, **how)
        return play(pairs, attack, victims=victims, seed=seed, run=run, **given)
    target = open_target(original, release, audit=audit, run_record=run_record, k=k, **how)  # type: ignore[arg-type]
    if other is not None:
        if not entry.needs_other:
            raise SettingsError(f"the attack {attack} takes one release; leave out the other one")
        second = original if other_original is None else other_original
        given["other"] = open_target(second, other, audit=other_audit, **how)  # type: ignore[arg-type]
    return play(target, attack, victims=victims, seed=seed, run=run, **given)


def play(
    target: Target | Pairs, attack: str, *, victims: int = 1000, seed: int = 0, run: Run = LOCAL, **settings: Any
) -> Outcome:
    """Play one attack on an open target; settings of other attacks are accepted only if they are None."""
    entry = _entry(attack)
    if seed < 0:
        raise SettingsError("the seed must not be negative; give e.g. `seed=1`")
    strange = sorted(name for name, value in settings.items() if name not in entry.takes and value is not None)
    if strange:
        raise SettingsError(f"the attack {attack} has no setting {', '.join(strange)}")
    given = entry.own(settings)
    if entry.on_traces != isinstance(target, Pairs):
        raise CannotCheck(f"the attack {attack} is played on {'traces' if entry.on_traces else 'boxes'}; open those")
    if entry.needs_audit and isinstance(target, Target):
        target.require_audit(attack)
    if entry.needs_other:
        if settings.get("other") is None:
            raise CannotCheck(f"the attack {attack} needs a second release; give `other`")
        given["other"] = settings["other"]
    if isinstance(target, Target):
        entry.require_room([target, given["other"]] if entry.needs_other else [target], run)
    return entry.run(target, victims=victims, seed=seed, run=run, **given)


def known_attacks(layout: str, *, audit: bool = False, other: bool = False) -> list[str]:
    """Return the attacks on releases of a layout that can be played with or without an audit and a second release."""
    return [
        name
        for name, entry in ATTACKS.items()
        if entry.layouts[0] == layout and (audit or not entry.needs_audit) and (other or not entry.needs_other)
    ]


def setting_names() -> list[str]:
    """Return the names of the settings of all attacks."""
    return list(dict.fromkeys(name for entry in ATTACKS.values() for name in entry.settings.model_fields))


def _entry(attack: str) -> Attack:
    if attack not in ATTACKS:
        raise SettingsError(f"no such attack; choose among: {', '.join(ATTACKS)}")
    return ATTACKS[attack]
