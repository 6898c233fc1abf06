"""Check a release of boxes: its records, its members, and that everybody is hidden among k."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.seen.audit import read_audit
from shoal.seen.opened import foreign_header
from shoal.seen.original import NO_PLACE
from shoal.seen.people import open_crowd
from shoal.seen.records import Catalogue
from shoal.seen.witness import Witness
from shoal.traces import Traces
from shoal.units import INT32, parse_seconds
from shoal.verifier.cover import check_concealment, check_cover
from shoal.verifier.identical import check_identical
from shoal.verifier.integrity import check_counts
from shoal.verifier.leaks import check_bytes, check_values
from shoal.verifier.order import check_labels, check_numbering
from shoal.verifier.subject import Asked, Given, Opened, Subject, declared_suppressed
from shoal.verifier.truth import check_boxes, check_coarse, check_members
from shoal.verifier.windows import AskedWindows, check_windows, two_digits_up
from shoal.verifier.windows_members import check_merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.run import Run
    from shoal.seen.audit import Witnesses
    from shoal.seen.findings import Findings
    from shoal.seen.header import Header
    from shoal.seen.opened import SeenRelease
    from shoal.seen.people import Crowd
    from shoal.seen.scan import Scan

__all__ = ["BoxSubject"]

_ALWAYS = ("k-anonymity", "k-concealment", "cover")  # claims about all of a person's time


class BoxSubject(Subject[Catalogue]):
    """A release of boxes, checked against samples of the grid."""

    def __init__(self, findings: Findings, opened: Opened[Catalogue], asked: Asked, run: Run) -> None:
        super().__init__(findings, opened, asked, run)
        self.k = _asked_k(findings, asked.k, opened.header)
        self.windows = _asked_windows(findings, self.k, asked.tau, asked.epsilon, opened.header)
        self.crowd: Crowd
        self.published: Crowd
        self.witnesses: Witnesses | None = None

    @staticmethod
    def refuse(given: Given, asked: Asked) -> None:  # noqa: ARG004  all questions are allowed
        """Raise an error for fixes, and for reading options that cut people into parts."""
        if isinstance(given.original, Traces):
            raise CannotCheck("boxes are checked against samples of the grid, not fixes; give files, or Trajectories")
        if given.options is not None:
            given.options.require_whole_users()

    @staticmethod
    def foreign(findings: Findings, given: Given) -> Header:
        """Return the header of another tool's release, with the grid that the caller gives."""
        findings.note("foreign-release")
        return foreign_header(given.original, given.options, crs=given.crs, claim=given.claim)

    @staticmethod
    def accept(findings: Findings, header: Header, given: Given) -> None:
        """Refuse a claim other than the stated one, and note another grid."""
        if given.claim is not None and given.claim != header.claim:
            raise SettingsError("the release states its own claim; leave out the one given, or ask for a larger k")
        options = given.options
        said = {} if options is None else {name: getattr(options, name) for name in options.model_fields_set}
        if given.crs is not None:
            said["crs"] = given.crs
        grid = {"crs": header.grid.crs, "cell": header.grid.cell_m, "slot": header.grid.slot_s}
        if any(said.get(name) not in (None, value) for name, value in grid.items()):
            findings.note("other-grid")

    @staticmethod
    def read(
        findings: Findings, seen: SeenRelease, header: Header, *, own: bool, run: Run
    ) -> tuple[Catalogue, Scan | None] | None:
        """Read the boxes; for a file, also count its wrong values."""
        scan = seen.boxes(findings, header.grid, own=own, run=run)
        if scan is None:
            return None
        if seen.file is not None and seen.file.is_csv and own:
            check_bytes(findings, scan.odd["bytes"], seen.file)
        return scan.records, None if seen.file is None else scan

    @contextmanager
    def people(self, given: Given) -> Iterator[None]:
        """Read everybody's samples on the grid of the release; they can be used while this is open."""
        room = self.run.within(_left(self.run, self.opened, self.audit))
        witness = Witness(given.original)
        grid = self.opened.header.grid
        with open_crowd(given.original, given.options, grid, run=room, witness=witness) as people:
            witness.testify(self.findings)
            self.crowd = people
            _note_sizes(self.findings, people, self.opened.records, self.k)
            _check_places(self.findings, people, self.asked.max_suppressed)
            yield

    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the first and the last second of the samples, and of the boxes."""
        return self.crowd.seconds(self.opened.header.grid), self.opened.records.seconds(self.opened.header.grid)

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Return the steps: records and members, the claim, the file."""
        yield "checking records and members", self._check_records
        yield "counting who hides whom", self._check_claim
        yield "looking for leaks", self._check_file
        yield "comparing the bytes of the file", self.check_bytes

    def _check_records(self) -> None:
        check_boxes(self.findings, self.opened.records)
        if self.opened.header.truth != "member":
            self.findings.figures["truth_level"] = self.opened.header.truth
            self.findings.note("group-level")
        if self.opened.header.method == "uniform":
            check_coarse(self.findings, self.opened.records, self.opened.header)
        timed = self.windows is not None and self.opened.header.claim.name not in _ALWAYS
        self.published, self.witnesses = _check_audit(
            self.findings,
            self.opened,
            self.crowd,
            self.audit,
            self.asked.suppressed,
            self.asked.max_suppressed,
            timed=timed,
            run=self.run,
        )

    def _check_claim(self) -> None:
        stated = None if self.audit is not None else _stated(self.opened, self.asked.suppressed)
        self.homes = _check_claim(
            self.findings,
            self.opened,
            self.published,
            self.k,
            self.windows,
            self.witnesses,
            exact=self.asked.exact,
            stated=stated,
            run=self.run,
        )

    def _check_file(self) -> None:
        given = self.k, self.witnesses, self.homes, self.asked.suppressed
        _check_file(self.findings, self.opened, self.crowd, *given)

    def note_result(self) -> None:
        """Add the sentence about how many people, and which k, the claim holds for."""
        users = len(self.crowd) - self.findings.figures.get("users_left_out", 0)
        _note_result(self.findings, self.opened, users, self.k, self.windows)

    def shown(self) -> Claim:
        """Return the strongest claim that was shown, if nothing failed."""
        return _shown(self.findings, self.opened.header.claim.name, self.k, self.windows)


def _left(run: Run, opened: Opened[Catalogue], audit: Any) -> int | None:
    """Return the memory that is left besides the records and the audit, which are kept."""
    if run.memory is None:
        return None
    return max(0, run.memory - opened.records.nbytes - (audit.nbytes if isinstance(audit, pa.Table) else 0))


def _asked_k(findings: Findings, k: int | None, header: Header) -> int:
    if k is not None and not (isinstance(k, int | np.integer) and 1 <= k <= INT32):
        raise SettingsError("k must be a whole number, at least 1; give e.g. `k=5`")
    if k is None and header.k is None and header.claim.name == "none" and header.claim.why != "unclaimed":
        return 1  # nobody is claimed to be hidden: everyone's samples must be in a record of theirs
    if k is None and header.k is None:
        raise CannotCheck("the release does not say for which k; give `k`")
    if k is not None and header.k is not None and k < header.k:
        findings.note("larger-k")
    return max(asked for asked in (k, header.k) if asked is not None)


def _asked_windows(
    findings: Findings, k: int, tau: int | str | None, epsilon: int | str | None, header: Header
) -> AskedWindows | None:
    """Return what to check about windows; None if nothing is to be checked.

    A longer tau than claimed may be asked for, unless leakage is claimed: leakage depends on the exact length of the
    windows. If leakage or nothing is claimed, epsilon bounds leakage (it may be below the claimed one). For
    `kte-cover`, leakage beyond epsilon is only counted.
    """
    tau_s, epsilon_s = (None if given is None else parse_seconds(given) for given in (tau, epsilon))
    if any(given is not None and not 1 <= given <= INT32 for given in (tau_s, epsilon_s)):
        raise SettingsError('tau and epsilon must be at least one second, at most 68 years; give e.g. `tau="60min"`')
    claim = header.claim
    if claim.name == "kte-anonymity" and tau_s not in (None, claim.tau_s):
        raise SettingsError("the release claims leakage for windows of another length; leave out `tau`")
    if tau_s is not None and claim.tau_s is not None and tau_s < claim.tau_s:
        findings.note("longer-windows")
    longest = max(tau_s or 0, header.tau_s or 0)
    if not longest:
        if epsilon_s is not None:
            raise SettingsError('`epsilon` needs the length of the windows; give `tau` too, e.g. `tau="60min"`')
        return None
    bounded = claim.name == "kte-anonymity" or (claim.name != "kte-cover" and epsilon_s is not None)
    if claim.name == "kte-anonymity" and epsilon_s is not None and claim.epsilon_s is not None:
        epsilon_s = min(epsilon_s, claim.epsilon_s)
    stated = None
    if claim.leakage_share is not None and claim.epsilon_s is not None:
        if longest == claim.tau_s:
            stated = claim.epsilon_s, claim.leakage_share
        else:
            findings.skip("leaking-share")
    return AskedWindows(k, longest, epsilon_s or header.epsilon_s, bounded=bounded, stated=stated)


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
    left_out = len(people) - int(records.weights.sum())
    if left_out > 0:
        findings.figures["users_left_out"] = left_out
        findings.note("left-out", n=left_out, users=len(people))
    outside = sum(people.outside.values())
    rows = sum(people.rows_outside.values())
    if outside or rows:
        findings.note("outside-claim", users=outside, rows=rows)


def _check_places(findings: Findings, people: Crowd, max_suppressed: float) -> None:
    """Check that the CRS chosen by the release does not leave out more samples than may be suppressed."""
    lost = people.rows_outside.get(NO_PLACE, 0)
    if lost > max_suppressed * (people.samples + lost):
        findings.fail("suppression/no-place", limit=max_suppressed)


def _check_audit(
    findings: Findings,
    opened: Opened[Catalogue],
    people: Crowd,
    audit: str | Path | pa.Table | None,
    suppressed: int | None,
    max_suppressed: float,
    *,
    timed: bool,
    run: Run,
) -> tuple[Crowd, Witnesses | None]:
    """Check members, truth and suppression; return the people with their published samples and the witnesses.

    `timed`: the audit may say that a member was merged for some time only. Without `timed`, such a member hides nobody.
    """
    if audit is None:
        findings.skip("members")
        stated = declared_suppressed(opened, suppressed)[0]
        if stated > max_suppressed * people.samples:
            findings.fail("suppression/stated-too-many", limit=max_suppressed)
        return people, None
    slot_s = opened.header.grid.slot_s if timed else None
    witnesses = read_audit(findings, audit, people, opened.records, slot_s=slot_s, run=run)
    if witnesses is None:
        return people, None
    declared, tolerance = declared_suppressed(opened, suppressed)
    given: dict[str, Any] = {
        "declared": declared,
        "tolerance": tolerance,
        "max_suppressed": max_suppressed,
        "run": run,
    }
    if witnesses.first is not None:
        return check_merged(findings, people, opened.records, witnesses, **given)
    return check_members(findings, people, opened.records, witnesses, level=opened.header.truth, **given)


def _stated(opened: Opened[Catalogue], suppressed: int | None) -> int | None:
    """Return the largest number of suppressed samples that is stated; None if none are stated."""
    declared, tolerance = declared_suppressed(opened, suppressed)
    return declared + tolerance if declared else None


class _Case(NamedTuple):
    """The input of the check of a claim; `people` have their published samples only.

    `stated` is the stated number of suppressed samples, if no audit says which they are.
    """

    findings: Findings
    opened: Opened[Catalogue]
    people: Crowd
    k: int
    windows: AskedWindows | None
    witnesses: Witnesses | None
    exact: bool
    stated: int | None
    run: Run

    @property
    def how(self) -> dict[str, Any]:
        """The arguments that all checks of claims take."""
        return {"witnesses": self.witnesses, "run": self.run}


def _identical(case: _Case) -> NDArray[np.int64] | None:
    truth, records = case.opened.header.truth, case.opened.records
    return check_identical(case.findings, case.people, records, case.k, stated=case.stated, level=truth, **case.how)


def _cover(case: _Case) -> None:
    check_cover(case.findings, case.people.whole(), case.opened.records, case.k, exact=case.exact, **case.how)


def _concealment(case: _Case) -> None:
    check_concealment(case.findings, case.people.whole(), case.opened.records, case.k, **case.how)


def _in_windows(case: _Case) -> None:
    slot_s, people = case.opened.header.grid.slot_s, case.people.whole()
    if case.windows is not None:
        asked = case.windows
        check_windows(case.findings, people, case.opened.records, asked, slot_s=slot_s, exact=case.exact, **case.how)


# The checks that each claim needs. Windows are checked with any claim, if they are claimed or asked for.
_CHECKS: dict[str, tuple[Callable[[_Case], Any], ...]] = {
    "k-anonymity": (_identical,),
    "k-concealment": (_cover, _concealment),
    "cover": (_cover,),
    "kte-anonymity": (),
    "kte-cover": (),
    "none": (),
}


def _check_claim(
    findings: Findings,
    opened: Opened[Catalogue],
    people: Crowd,
    k: int,
    windows: AskedWindows | None,
    witnesses: Witnesses | None,
    *,
    exact: bool,
    stated: int | None,
    run: Run,
) -> NDArray[np.int64] | None:
    """Check the claim; check cover if the claim has no check of its own and no windows are asked for.

    Returns the group that everybody is in, if records are identical in groups and no audit says it.
    """
    name = opened.header.claim.name
    if name not in _CHECKS:
        raise CannotCheck(f"the claim {name} is about points, not boxes; it can't be checked here")
    case = _Case(findings, opened, people, k, windows, witnesses, exact, stated, run)
    checks = (*_CHECKS[name], *((_in_windows,) if windows is not None else ())) or (_cover,)
    homes: NDArray[np.int64] | None
    homes, *_ = [check(case) for check in checks]
    blurred = stated is not None and (name != "k-anonymity" or windows is not None)
    if blurred and findings.failures <= {"cover", "windows"}:
        raise CannotCheck(
            "samples were suppressed, so a missing sample may be a fault or not; give the audit file: `audit`"
        )
    return homes


def _check_file(
    findings: Findings,
    opened: Opened[Catalogue],
    people: Crowd,
    k: int,
    witnesses: Witnesses | None,
    homes: NDArray[np.int64] | None,
    suppressed: int | None,
) -> None:
    if opened.file is None or opened.scan is None:
        return
    check_values(findings, opened.scan, k, opened.file, claim=opened.header.claim.name, own=opened.own)
    if opened.counts is not None:
        stated, tolerance = declared_suppressed(opened, suppressed)
        missing = findings.figures.get("suppressed_samples", None if tolerance else stated)
        check_counts(findings, opened.counts, len(opened.records), people.samples, missing)
    check_numbering(findings, opened.records)
    check_labels(findings, people, opened.records, witnesses, homes)


def _note_result(
    findings: Findings, opened: Opened[Catalogue], users: int, k: int, windows: AskedWindows | None
) -> None:
    cover = "cover" if windows is None else "cover of windows"
    what = f"Nothing is claimed; {cover}" if opened.header.claim.name == "none" else "The claim"
    asked = f"k = {k}" if windows is None else f"k = {k} in windows of {windows.tau_s:,} s"
    findings.conclude("holds", what=what, users=users, asked=asked)


def _shown(findings: Findings, name: str, k: int, windows: AskedWindows | None) -> Claim:
    """Return the strongest claim that was shown, if nothing failed; hidden owners can be shown with the audit only."""
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
