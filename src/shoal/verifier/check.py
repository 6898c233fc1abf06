"""The check itself: does the published file hold what it claims about the original."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.release import Release
from shoal.run import LOCAL, Run
from shoal.seen.audit import read_audit
from shoal.seen.file import open_file
from shoal.seen.findings import Findings
from shoal.seen.grid import Grid
from shoal.seen.header import Header, read_header, truth_level
from shoal.seen.manifest import read_manifest
from shoal.seen.original import NO_PLACE
from shoal.seen.people import open_crowd
from shoal.seen.scan import Scan, records_of_release, scan_file
from shoal.traces import Traces
from shoal.trajectories import Trajectories
from shoal.units import parse_seconds
from shoal.verifier.cover import check_concealment, check_cover
from shoal.verifier.header import check_header
from shoal.verifier.identical import check_identical
from shoal.verifier.integrity import check_counts, check_manifest, rounding
from shoal.verifier.leaks import check_bytes, check_metadata, check_values
from shoal.verifier.order import check_labels, check_numbering
from shoal.verifier.points import holds_points, verify_points
from shoal.verifier.truth import check_boxes, check_members
from shoal.verifier.verdict import Verdict
from shoal.verifier.windows import Windows, check_windows, two_digits_up
from shoal.verifier.windows_members import check_merged

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from shoal.reading.options import ReadOptions
    from shoal.seen.audit import Witnesses
    from shoal.seen.file import File
    from shoal.seen.people import Crowd
    from shoal.seen.records import Catalogue

__all__ = ["MAX_SUPPRESSED", "verify"]

_LARGEST = 2**31 - 1
MAX_SUPPRESSED = 0.2  # the largest share of samples that may be left out
_ALWAYS = ("k-anonymity", "k-concealment", "cover")  # claims about all of a person's time
_CHECKED = (*_ALWAYS, "kte-anonymity", "kte-cover", "none")


@dataclass(frozen=True)
class _Opened:
    """A release whose grid and claim are known: its records and, if it is a file, what the file holds."""

    header: Header
    records: Catalogue
    audit: pa.Table | None = None
    file: File | None = None
    scan: Scan | None = None
    counts: dict[str, int] | None = None
    suppressed: int = 0
    own: bool = True  # made by shoal, as it says


def verify(
    original: str | Path | Sequence[str | Path] | Trajectories | Traces,
    release: str | Path | Release,
    *,
    k: int | None = None,
    tau: int | str | None = None,
    epsilon: int | str | None = None,
    audit: str | Path | pa.Table | None = None,
    options: ReadOptions | None = None,
    crs: str | None = None,
    claim: Claim | None = None,
    suppressed: int | None = None,
    max_suppressed: float = MAX_SUPPRESSED,
    exact: bool = False,
    run: Run = LOCAL,
    **reading: Any,
) -> Verdict:
    """Check a release against the original it was made from.

    Input: the original (files, or Trajectories on the release's grid), the release (a file, or one in memory,
    whose file can't be checked then), and what it was made with: the reading `options`, whose fields may be given
    as keywords too (`tz="America/New_York"`), and, where the release itself does not say, `crs` and `claim`. `k`
    may ask for more than is claimed, not for less; `tau` and `epsilon` (seconds, or text such as "60min") ask for
    windows of that length and leakage up to that: see `Windows` and `_asked_windows`. With the private `audit` file
    truth and suppression are checked too; `suppressed` is the exact number of suppressed samples, if it is known
    (from the private run record); where nobody states any, there are none. `exact` counts cover beyond k. `memory` is
    what the check may take, in bytes (None: what is available). Releases of points are checked by `verify_points`.
    Output: a `Verdict`; `CannotCheck` if no verdict is possible.
    Guarantee: `ok` only if the claim was checked and every check that could run passed; what could not is said. The
    verdict is the same whatever `memory` and `threads` are; claims other than identical groups need everybody's
    samples at once and raise `TooLarge` if these do not fit.
    Nothing of `methods`, `neighbours` or `kernels` is used; only the parsing of files is shared.
    Cost: with an audit, two binary searches for each box of each member's record; without, for each candidate. In
    memory the boxes stay, 24 bytes each, identical records once; the original is gone through in parts.

    >>> import numpy as np, pyarrow as pa
    >>> from shoal import Frame
    >>> grid = Frame(crs=None, cell_m=500, slot_s=1800)
    >>> ids = np.array([0, 1, 2], dtype=np.int64)
    >>> place = np.array([3, 4], dtype=np.int32)
    >>> people = Trajectories(ids, place, place, place, grid, pa.array(["ann", "bob"]))
    >>> box = np.array([[3, 4, 3, 4, 3, 4]], dtype=np.int32)
    >>> both = Release(ids, np.concatenate([box, box]), grid, "by-hand", {"k": 2}, Claim("k-anonymity", k=2))
    >>> verify(people, both).ok, verify(people, both, k=3).failures
    (True, ('identical',))
    >>> verify(people, both, tau="1h").figures["windows"]
    2
    """
    findings = Findings()
    if not 0 <= max_suppressed <= 1:
        raise SettingsError("the largest share that may be suppressed is a number from 0 to 1, e.g. 0.2")
    options = _reading(options, reading)
    if holds_points(release):
        if any(asked is not None for asked in (k, tau, epsilon)):
            raise CannotCheck("the release holds points, not boxes: nobody is hidden among k; leave out --k and --tau")
        return verify_points(
            original,
            release,
            audit=audit,
            options=options,
            claim=claim,
            run=run,
        )
    if isinstance(original, Traces):
        raise CannotCheck("boxes are checked against samples of the grid, not fixes; give files, or Trajectories")
    if options is not None:
        options.require_whole_users()
    with run.stage("reading the release"):
        opened = _open(findings, original, release, options=options, crs=crs, claim=claim, run=run)
    if opened is None:
        return Verdict.of(findings, Claim("none", why="unreadable"))
    asked = _asked_k(findings, k, opened.header)
    windows = _asked_windows(findings, asked, tau, epsilon, opened.header)
    audit = opened.audit if audit is None else audit
    with ExitStack() as reading_on:
        with run.stage("reading the original"):
            people = reading_on.enter_context(
                open_crowd(original, options, opened.header.grid, run=run.within(_left(run, opened, audit)))
            )
        _note_sizes(findings, people, opened.records, asked)
        _check_places(findings, people, max_suppressed)
        with run.stage("checking records and members"):
            check_boxes(findings, opened.records)
            timed = windows is not None and opened.header.claim.name not in _ALWAYS
            kept, witnesses = _check_audit(
                findings, opened, people, audit, suppressed, max_suppressed, timed=timed, run=run
            )
        with run.stage("counting who hides whom"):
            stated = None if audit is not None else _stated(opened, suppressed)
            _check_claim(findings, opened, kept, asked, windows, witnesses, exact=exact, stated=stated, run=run)
        with run.stage("looking for leaks"):
            _check_file(findings, opened, people, asked, witnesses, suppressed)
    _note_result(findings, opened, len(people), asked, windows)
    return Verdict.of(findings, opened.header.claim, _shown(findings, opened.header.claim.name, asked, windows))


def _left(run: Run, opened: _Opened, audit: Any) -> int | None:
    """Return what of the memory is left besides the records and the audit, which stay."""
    if run.memory is None:
        return None
    return max(0, run.memory - opened.records.nbytes - (audit.nbytes if isinstance(audit, pa.Table) else 0))


def _reading(options: ReadOptions | None, reading: dict[str, Any]) -> ReadOptions | None:
    """Put keywords on top of the reading options."""
    if not reading:
        return options
    from shoal.reading.options import read_options

    return read_options(options, **reading)


def _open(
    findings: Findings,
    original: Any,
    release: str | Path | Release,
    *,
    options: ReadOptions | None,
    crs: str | None,
    claim: Claim | None,
    run: Run,
) -> _Opened | None:
    """Read a release up to its records; None, with the failure noted, if it can't be understood so far."""
    if isinstance(release, Release):
        findings.say("Integrity not checked, nor leaks: the release is in memory, there is no file yet.")
        findings.skip("integrity and leaks")
        frame = release.frame
        asked = ("k", "tau_s", "epsilon_s")
        k, tau_s, epsilon_s = (getattr(release.claim, name) or release.parameters.get(name) for name in asked)
        truth = truth_level(release.method, release.parameters)
        grid = Grid(frame.crs, frame.cell_m, frame.slot_s)
        header = Header(grid, release.claim, k, tau_s, epsilon_s, truth)
        records = records_of_release(release, run=run)
        return _Opened(header, records, _audit_of(release), suppressed=release.suppressed)
    file = open_file(release)
    manifest = check_manifest(findings, file.path, read_manifest(file.path), file.stated, is_csv=file.is_csv)
    if "integrity" not in findings.checked:
        findings.skip("integrity")
    stated = file.stated if file.stated is not None or manifest is None else manifest["shoal"]
    if stated is None:
        header = _foreign_header(findings, original, options, crs, claim)
    elif (known := read_header(stated)) is None:
        findings.fail("integrity", "The shoal object of the release can't be understood.")
        return None
    else:
        header = known
        check_header(findings, stated)
        _note_other_settings(findings, header, options, crs, claim)
    check_metadata(findings, file, own=stated is not None)
    scan = scan_file(findings, file, header.grid, own=stated is not None, run=run)
    if scan is None:
        return None
    if file.is_csv and stated is not None:
        check_bytes(findings, scan.odd["bytes"], file)
    counts = None if manifest is None else manifest["counts"]
    return _Opened(header, scan.records, None, file, scan, counts, own=stated is not None)


def _audit_of(release: Release) -> pa.Table | None:
    from shoal.publishing.audit import audit_table

    return audit_table(release)


def _foreign_header(
    findings: Findings, original: Any, options: ReadOptions | None, crs: str | None, claim: Claim | None
) -> Header:
    """Take the grid of another tool's release from what the caller says."""
    findings.say("Integrity not checked: the release does not say which tool made it, on which grid.")
    claim = claim or Claim("none", why="unclaimed")
    if isinstance(original, Trajectories):
        frame = original.frame
        return Header(Grid(frame.crs, frame.cell_m, frame.slot_s), claim, claim.k, claim.tau_s, claim.epsilon_s)
    if options is None or not {"cell", "slot"} <= options.model_fields_set:
        raise CannotCheck("the release does not say on which grid it is; give --crs, --cell and --slot")
    grid = Grid(crs or options.crs, options.cell, options.slot)
    return Header(grid, claim, claim.k, claim.tau_s, claim.epsilon_s)


def _note_other_settings(
    findings: Findings, header: Header, options: ReadOptions | None, crs: str | None, claim: Claim | None
) -> None:
    if claim is not None and claim != header.claim:
        raise SettingsError("the release states its own claim; leave out the one given, or ask for a larger k")
    given = {} if options is None else {name: getattr(options, name) for name in options.model_fields_set}
    if crs is not None:
        given["crs"] = crs
    grid = {"crs": header.grid.crs, "cell": header.grid.cell_m, "slot": header.grid.slot_s}
    if any(given.get(name) not in (None, value) for name, value in grid.items()):
        findings.say("Another grid was given than the release states; the release's was used.")


def _asked_k(findings: Findings, k: int | None, header: Header) -> int:
    if k is not None and not (isinstance(k, int | np.integer) and 1 <= k <= _LARGEST):
        raise SettingsError("k must be a whole number, at least 1; give e.g. --k 5")
    if k is None and header.k is None and header.claim.name == "none" and header.claim.why != "unclaimed":
        return 1  # nobody is said to be hidden: everyone's samples must be in a record of hers
    if k is None and header.k is None:
        raise CannotCheck("the release does not say for which k; give --k")
    if k is not None and header.k is not None and k < header.k:
        findings.say("The release claims a larger k than asked for; the larger one was checked.")
    return max(asked for asked in (k, header.k) if asked is not None)


def _asked_windows(
    findings: Findings, k: int, tau: int | str | None, epsilon: int | str | None, header: Header
) -> Windows | None:
    """Return what is to be checked about windows, None if nothing is.

    A longer tau than claimed may be asked for where leakage is not claimed (it is a matter of windows of that very
    length). epsilon bounds leakage where that is claimed (it may ask for less) or nothing is claimed; for
    `kte-cover` leakage beyond it is only counted.
    """
    tau_s, epsilon_s = (None if given is None else parse_seconds(given) for given in (tau, epsilon))
    if any(given is not None and not 1 <= given <= _LARGEST for given in (tau_s, epsilon_s)):
        raise SettingsError("tau and epsilon must be at least one second, at most 68 years; give e.g. --tau 60min")
    claim = header.claim
    if claim.name == "kte-anonymity" and tau_s not in (None, claim.tau_s):
        raise SettingsError("the release claims leakage for windows of another length; leave out --tau")
    if tau_s is not None and claim.tau_s is not None and tau_s < claim.tau_s:
        findings.say("The release claims longer windows than asked for; these were checked.")
    longest = max(tau_s or 0, header.tau_s or 0)
    if not longest:
        if epsilon_s is not None:
            raise SettingsError("epsilon is about windows of a length; give it too, e.g. --tau 60min")
        return None
    bounded = claim.name == "kte-anonymity" or (claim.name != "kte-cover" and epsilon_s is not None)
    if claim.name == "kte-anonymity" and epsilon_s is not None and claim.epsilon_s is not None:
        epsilon_s = min(epsilon_s, claim.epsilon_s)
    stated = None
    if claim.leakage_share is not None and claim.epsilon_s is not None:
        if longest == claim.tau_s:
            stated = claim.epsilon_s, claim.leakage_share
        else:
            findings.skip("the stated share of windows that leak, which is about shorter ones")
    return Windows(k, longest, epsilon_s or header.epsilon_s, bounded=bounded, stated=stated)


def _note_sizes(findings: Findings, people: Crowd, records: Catalogue, k: int) -> None:
    findings.figures.update(
        users=len(people),
        samples=people.samples,
        users_outside=people.outside,
        rows_outside=people.rows_outside,
        records=len(records),
        boxes=int(records.unique.counts[records.groups].sum()),
        k=k,
    )
    outside = sum(people.outside.values())
    rows = sum(people.rows_outside.values())
    if outside or rows:
        findings.say(
            f"{outside:,} users and {rows:,} rows were left out by the reading rules and are outside the claim."
        )


def _check_places(findings: Findings, people: Crowd, max_suppressed: float) -> None:
    """Check that the release's own CRS, which nobody asked for, does not leave out more than may be suppressed."""
    lost = people.rows_outside.get(NO_PLACE, 0)
    if lost > max_suppressed * (people.samples + lost):
        findings.fail(
            "suppression", f"More than {max_suppressed:.0%} of the original has no place in the release's CRS."
        )


def _check_audit(
    findings: Findings,
    opened: _Opened,
    people: Crowd,
    audit: str | Path | pa.Table | None,
    suppressed: int | None,
    max_suppressed: float,
    *,
    timed: bool,
    run: Run,
) -> tuple[Crowd, Witnesses | None]:
    """Check members, truth and suppression; give the people with their published samples and the witnesses.

    `timed`: the audit may say that a member was merged for some time only. Elsewhere that would hide nobody.
    """
    if audit is None:
        findings.skip("truth of members and suppression, which need the audit file")
        stated = _declared(opened, suppressed)[0]
        if stated > max_suppressed * people.samples:
            findings.fail("suppression", f"More than {max_suppressed:.0%} of the samples are stated to be suppressed.")
        return people, None
    slot_s = opened.header.grid.slot_s if timed else None
    witnesses = read_audit(findings, audit, people, opened.records, slot_s=slot_s)
    if witnesses is None:
        return people, None
    declared, tolerance = _declared(opened, suppressed)
    given: dict[str, Any] = {
        "declared": declared,
        "tolerance": tolerance,
        "max_suppressed": max_suppressed,
        "run": run,
    }
    if witnesses.first is not None:
        return check_merged(findings, people, opened.records, witnesses, **given)
    return check_members(findings, people, opened.records, witnesses, level=opened.header.truth, **given)


def _declared(opened: _Opened, suppressed: int | None) -> tuple[int, int]:
    """Return how many samples are said to be suppressed (none, if nobody says) and how far that may be off."""
    if suppressed is not None:
        return suppressed, 0
    if opened.counts is not None:
        stated = opened.counts["samples_suppressed"]
        return stated, rounding(stated)
    return opened.suppressed, 0


def _stated(opened: _Opened, suppressed: int | None) -> int | None:
    """Return how many samples at most are said to be suppressed; None if nobody says that some are."""
    declared, tolerance = _declared(opened, suppressed)
    return declared + tolerance if declared else None


def _check_claim(
    findings: Findings,
    opened: _Opened,
    people: Crowd,
    k: int,
    windows: Windows | None,
    witnesses: Witnesses | None,
    *,
    exact: bool,
    stated: int | None,
    run: Run,
) -> None:
    """Check the claim; `stated` is how many samples are said to be suppressed where no audit tells which."""
    name = opened.header.claim.name
    if name not in _CHECKED:
        raise CannotCheck(f"the claim {name} is about points, not boxes; it can't be checked here")
    if name == "k-anonymity":
        check_identical(
            findings, people, opened.records, k, witnesses=witnesses, stated=stated, level=opened.header.truth, run=run
        )
    elif name in ("k-concealment", "cover") or windows is None:
        check_cover(findings, people.whole(), opened.records, k, witnesses=witnesses, exact=exact, run=run)
    if name == "k-concealment":
        check_concealment(findings, people.whole(), opened.records, k, witnesses=witnesses, run=run)
    if windows is not None:
        check_windows(
            findings,
            people.whole(),
            opened.records,
            windows,
            slot_s=opened.header.grid.slot_s,
            witnesses=witnesses,
            exact=exact,
            run=run,
        )
    blurred = stated is not None and (name != "k-anonymity" or windows is not None)
    if blurred and findings.failures <= {"cover", "windows"}:
        raise CannotCheck("samples were suppressed, so cover can't be told from loss; give the audit file: --audit")


def _check_file(
    findings: Findings, opened: _Opened, people: Crowd, k: int, witnesses: Witnesses | None, suppressed: int | None
) -> None:
    if opened.file is None or opened.scan is None:
        return
    check_values(findings, opened.scan, k, opened.file, claim=opened.header.claim.name, own=opened.own)
    if opened.counts is not None:
        stated, tolerance = _declared(opened, suppressed)
        missing = findings.figures.get("suppressed_samples", None if tolerance else stated)
        check_counts(findings, opened.counts, len(opened.records), people.samples, missing)
    check_numbering(findings, opened.records)
    check_labels(findings, people, opened.records, witnesses)


def _note_result(findings: Findings, opened: _Opened, users: int, k: int, windows: Windows | None) -> None:
    skipped = "; ".join(findings.skipped)
    if findings.failures:
        if skipped:
            findings.say(f"Not checked: {skipped}.")
        return
    cover = "cover" if windows is None else "cover of windows"
    holds = f"Nothing is claimed; {cover}" if opened.header.claim.name == "none" else "The claim"
    asked = f"k = {k}" if windows is None else f"k = {k} in windows of {windows.tau_s:,} s"
    findings.say(f"{holds} holds for {users:,} users, checked with {asked}{', except ' if skipped else ''}{skipped}.")


def _shown(findings: Findings, name: str, k: int, windows: Windows | None) -> Claim:
    """Return the strongest claim that was shown, if nothing failed; that owners are hidden needs the audit file."""
    if findings.failures or k == 1:
        return Claim("none")
    if name == "k-anonymity" or (name == "k-concealment" and "audit" in findings.checked):
        return Claim(name, k=k)
    if windows is None or name in _ALWAYS:
        return Claim("cover", k=k)
    leakage, epsilon_s = findings.figures["leakage"], windows.epsilon_s
    if epsilon_s is None:
        return Claim("kte-cover", k=k, tau_s=windows.tau_s)
    if not leakage["windows_above"]:
        return Claim("kte-anonymity", k=k, tau_s=windows.tau_s, epsilon_s=epsilon_s)
    share = two_digits_up(leakage["windows_above"] / leakage["windows"])
    return Claim("kte-cover", k=k, tau_s=windows.tau_s, epsilon_s=epsilon_s, leakage_share=share)
