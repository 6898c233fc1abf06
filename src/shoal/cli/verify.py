"""`shoal verify`."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.cli.console import show, show_json, working
from shoal.cli.options import Reading, Running, RunRecord, read_options_of
from shoal.errors import SettingsError
from shoal.names import with_flags
from shoal.stores.addresses import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shoal.claim import Claim
    from shoal.verifier.verdict import Verdict

__all__ = ["verify"]

_WIDTH = 110
_MAX_SUPPRESSED = 0.2  # as `shoal.verifier` has it; a test compares them
_CHECKS = {
    "integrity": "the file is the one that its manifest describes",
    "signature": "the manifest is signed with the given key",
    "leaks": "no column, value or numbering reveals more than the rows do",
    "original": "a second parser reads the same rows, people, times and places in the original",
    "truth": "records are well formed",
    "audit": "the audit file names everybody once",
    "suppression": "what was left out is left out everywhere, and the stated number is right",
    "identical": "records are identical in groups",
    "cover": "enough records cover each person",
    "steps": "points are equally far apart in space and in time, as the method says",
    "noise": "points lie around the true places as the claimed noise would place them",
    "windows": "enough records fit each window of each person; what they reveal beyond the window",
}


def verify(
    *paths: Annotated[str, Parameter(help="The files that the release was made from; last, the release.")],
    k: Annotated[
        int | None, Parameter(help="Check that everyone is hidden among k people; by default the claimed k.")
    ] = None,
    tau: Annotated[
        str | None, Parameter(help="Check windows of time of this length, e.g. 60min; by default the claimed length.")
    ] = None,
    epsilon: Annotated[
        str | None, Parameter(help="How much time before or after a window the release may reveal, e.g. 60min.")
    ] = None,
    claim: Annotated[
        str | None, Parameter(help="What a release of another tool claims, e.g. cover, k-anonymity or kte-cover.")
    ] = None,
    audit: Annotated[
        Path | None, Parameter(help="The private audit file; with it more is checked, and faster.")
    ] = None,
    run_record: RunRecord = None,
    exact: Annotated[
        bool, Parameter(help="Count all records that cover a person; by default counting stops at k.")
    ] = False,
    max_suppressed: Annotated[
        float, Parameter(help="The largest share of samples that may be left out.")
    ] = _MAX_SUPPRESSED,
    public_key: Annotated[
        Path | None,
        Parameter(
            help="The release must be signed with this key (PEM, OpenSSH or base64). Without ORIGINAL, only this is "
            "checked."
        ),
    ] = None,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Check a release; return 0 if it holds, 1 if not. Raises (exit code 2) if it can't be checked."""
    from shoal.verifier import verify as check

    asked_of_original = (k, tau, epsilon, claim, audit, run_record)
    if len(paths) == 1 and public_key is not None and not exact and all(value is None for value in asked_of_original):
        return _signature_only(paths[0], public_key, running)
    if len(paths) < 2:
        raise SettingsError("name the ORIGINAL and, last, the RELEASE: shoal verify events.csv release.parquet --k 5")
    with working(running) as run:
        verdict = check(
            list(paths[:-1]),
            paths[-1],
            k=k,
            tau=tau,
            epsilon=epsilon,
            claim=None if claim is None else _claim(claim, k, tau, epsilon),
            audit=audit,
            run_record=run_record,
            options=read_options_of(reading),
            exact=exact,
            max_suppressed=max_suppressed,
            public_key=public_key,
            run=run,
        )
    if running.json:
        show_json(verdict.to_dict())
    else:
        asked = {"k = {}": k, "windows of {}": tau, "at most {} revealed before or after a window": epsilon}
        said = [words.format(value) for words, value in asked.items() if value is not None]
        show_page(verdict, shown(paths[-1]), said)
    return 0 if verdict.ok else 1


def _signature_only(release: str, public_key: Path, running: Running) -> int:
    """Check who signed a release, without its original; return 0 if it was this key and nothing was changed, else 1."""
    from shoal.verifier import verify_signature

    with working(running) as run:
        verdict = verify_signature(release, public_key, run=run)
    if running.json:
        show_json(verdict.to_dict())
    else:
        show_page(verdict, shown(release), [])
    return 0 if verdict.ok else 1


def _claim(name: str, k: int | None, tau: str | None, epsilon: str | None) -> Claim:
    """Return the claim of that name with the values from the flags."""
    from shoal.claim import Claim
    from shoal.units import parse_seconds

    given = {"k": k, "tau_s": tau and parse_seconds(tau), "epsilon_s": epsilon and parse_seconds(epsilon)}
    try:
        return Claim.of(name, **given)
    except SettingsError as error:
        raise SettingsError(f"--claim: {error} (--k, --tau, --epsilon)") from None


def show_page(verdict: Verdict, name: str, asked: list[str]) -> None:
    """Print the verdict as a page: what was claimed and asked for, what was checked or not, what was found."""
    show(f"{name}: {verdict.result}")
    show()
    _section("Claimed", [f"{verdict.claim}.", verdict.claim.promise])
    _section("Asked for", [f"{'; '.join(asked)}."] if asked else [])
    if verdict.shown is not None and verdict.shown != verdict.claim:
        _section("Shown", [f"{verdict.shown}.", verdict.shown.promise])
    _section("Does not hold", verdict.problems, bullet=True)
    _section("Codes, as in the page on findings", [", ".join(verdict.codes)] if verdict.codes else [])
    true = ", and every record is true of everyone in it, by the audit file" if "audit" in verdict.right else ""
    said = {**_CHECKS, "truth": _CHECKS["truth"] + true}
    _section("Found right", [f"{kind}: {said.get(kind, kind)}." for kind in verdict.right], bullet=True)
    _section("Not checked", [f"{what}." for what in verdict.not_checked], bullet=True)
    _section("Found", _found(verdict.figures), bullet=True)
    notes = [message for message in verdict.messages if message not in verdict.problems]
    _section("Notes", notes, bullet=True)
    if verdict.ok and verdict.shown is not None:
        _section("An adversary can still", [verdict.shown.still_possible])


def _section(title: str, lines: Iterable[str], *, bullet: bool = False) -> None:
    """Print a titled list, unless it is empty."""
    lines = list(lines)
    if not lines:
        return
    show(title)
    for line in lines if bullet else [" ".join(lines)]:
        for n, part in enumerate(wrap(with_flags(line), _WIDTH, break_long_words=False, break_on_hyphens=False)):
            show(f"  {('- ' if n == 0 else '  ') if bullet else ''}{part}")
    show()


def _found(figures: dict[str, Any]) -> list[str]:
    """Return the figures as sentences."""
    said = []
    if "users" in figures:
        said.append(
            f"{figures['users']:,} people with {figures['samples']:,} samples; {figures['records']:,} records of "
            + (f"{figures['boxes']:,} boxes." if "boxes" in figures else f"{figures['points']:,} points.")
        )
    said += [sentence.format(figures[key]) for key, sentence in _SENTENCES.items() if key in figures]
    said += [sentence.format(**figures[key]) for key, sentence in _DISTRIBUTIONS.items() if key in figures]
    if "leakage" in figures:
        said += _windows(figures)
    for key, what in (("users_outside", "people"), ("rows_outside", "rows")):
        for rule, number in figures.get(key, {}).items():
            said.append(f"{number:,} {what} are outside the claim by the reading rules ({rule}).")
    return said


_SENTENCES = {
    "k": "k = {:,} was checked.",
    "users_left_out": "{:,} people are left out of the release.",
    "groups": "{:,} groups of identical records.",
    "min_group": "The smallest group has {:,} records.",
    "min_cover": "Everyone is hidden by at least {:,} records (without --exact, counting stops at k).",
    "users_short": "{:,} people are hidden by fewer than k.",
    "min_members": "Every record is about at least {:,} people (without --exact or --audit, counting stops at 2).",
    "suppressed_samples": "{:,} samples were left out.",
    "suppressed_share": "That is a share of {:.2%}.",
    "mixed_samples": "{:,} samples are inside some of their person's records, but not in all.",
    "noise_mean_m": "Points lie {:,.1f} m from the true places on average.",
    "noise_claimed_mean_m": "The claimed noise would put them {:,.1f} m away.",
    "one_way_min": "At least {:,} records hold all samples of a person, whatever else they hold (one-way cover).",
}
_STEPS = {"p50_s": "in half", "p90_s": "in 90 %", "p99_s": "in 99 %", "max_s": "in all"}
_DISTRIBUTIONS = {
    "cover": "Records that cover a person: {min:,} at least, {median:,.0f} in the median, {max:,} at most.",
    "one_way": "One-way cover of a person: {min:,} at least, {median:,.0f} in the median, {max:,} at most.",
    "windows_cover": "Records that fit a window: {min:,} at least, {median:,.0f} in the median, {max:,} at most.",
}


def _windows(figures: dict[str, Any]) -> list[str]:
    """Return sentences on how many windows are hidden, and how much is revealed outside them."""
    leakage = figures["leakage"]
    about = f"{figures['windows']:,} windows of {figures['tau_s']:,} s that start at a sample"
    beyond = f"Leakage beyond {leakage['windows']:,} windows that start or end at a sample"
    none = f"none in {1 - leakage['share_leaking']:.2%} of them"
    steps = ", ".join(f"{leakage[key]:,} s {what}" for key, what in _STEPS.items())
    said = [
        f"{about}: fewer than k records fit {figures['windows_short']:,} of them.",
        f"{beyond}: {none}; up to {steps}.",
        f"Of all samples outside the windows, {leakage['share_outside_held']:.2%} are held by all records that fit.",
    ]
    if figures["windows_ending_short"]:
        short = f"{figures['windows_ending_short']:,} windows that end at a sample"
        said.append(f"Fewer than k records fit {short}. The claim is about windows that start at a sample.")
    if "epsilon_s" in leakage:
        above = f"{leakage['windows_above']:,} windows ({leakage['share_above']:.2%})"
        said.append(f"{above} leak more than {leakage['epsilon_s']:,} s.")
    return said
