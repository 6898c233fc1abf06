"""Check a release of points: it holds nothing but the points, and they have the claimed noise."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.seen.audit import read_owners
from shoal.seen.fixes import open_fixes
from shoal.seen.header import is_count
from shoal.seen.point_scan import PointScan
from shoal.seen.witness import Witness
from shoal.trajectories import Trajectories
from shoal.verifier.integrity import check_point_counts
from shoal.verifier.leaks import check_bytes, check_point_values
from shoal.verifier.noise import check_noise, check_times
from shoal.verifier.order import check_owned, check_quantities
from shoal.verifier.steps import check_routes, check_steps
from shoal.verifier.subject import Asked, Given, Opened, Subject, declared_suppressed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from shoal.run import Run
    from shoal.seen.findings import Findings
    from shoal.seen.fixes import OriginalFixes
    from shoal.seen.header import Header
    from shoal.seen.opened import SeenRelease
    from shoal.seen.scan import Scan

__all__ = ["PointSubject"]

_NOISE = "geo-indistinguishability"


class PointSubject(Subject[PointScan]):
    """A release of points, checked against fixes.

    Always checked: the file is the one of its manifest; its columns, metadata, values and order tell nothing else. With
    the audit: every record has one owner, numbers do not follow labels, and times lie within the owner's. The claim
    `geo-indistinguishability` needs the audit: every point stands for one fix of its owner, and the distances between
    them are, by statistical tests, those of the claimed noise. Points of Promesse are one step apart and evenly spread
    in time; with the audit, along the route of their owner, without its ends.
    """

    fixes: OriginalFixes
    split: bool

    def __init__(self, findings: Findings, opened: Opened[PointScan], asked: Asked, run: Run) -> None:
        super().__init__(findings, opened, asked, run)
        claimed = opened.header.claim.name == _NOISE
        self.noise = _noise_of(opened.header)
        self.noisy = claimed or (self.noise is not None and self.audit is not None)
        self.step_m = _step_m(opened.header)
        if self.noise is not None and not self.noisy:
            findings.skip("noise")
        if claimed and self.audit is None:
            raise CannotCheck("noise is checked with the private audit file; give it: `audit`")

    @staticmethod
    def refuse(given: Given, asked: Asked) -> None:
        """Raise an error for questions about hiding among k, and for samples of the grid."""
        if any(value is not None for value in (asked.k, asked.tau, asked.epsilon)):
            raise CannotCheck("the release holds points, not boxes: nobody is hidden among k; leave out `k` and `tau`")
        if isinstance(given.original, Trajectories):
            raise CannotCheck("points are checked against fixes, not samples of the grid; give files, or Traces")

    @staticmethod
    def foreign(findings: Findings, given: Given) -> Header:  # noqa: ARG004
        """Raise CannotCheck: without a claim nothing can be checked."""
        raise CannotCheck("the release holds points, not boxes, and claims nothing that could be checked on them")

    @staticmethod
    def accept(findings: Findings, header: Header, given: Given) -> None:  # noqa: ARG004
        """Refuse a claim other than the stated one, and claims about boxes."""
        if given.claim is not None and given.claim != header.claim:
            raise SettingsError("the release states its own claim; leave out the one given")
        if header.claim.name not in (_NOISE, "none"):
            raise CannotCheck("the release holds points, not boxes; this claim can't be checked on points")

    @staticmethod
    def read(
        findings: Findings, seen: SeenRelease, header: Header, *, own: bool, run: Run
    ) -> tuple[PointScan, Scan | None] | None:
        """Read a summary of each record and, if noise is claimed, all points."""
        kept = _noise_of(header) is not None or _step_m(header) is not None
        scan = seen.points(findings, keep=kept, run=run)
        if scan is None:
            return None
        if seen.file is not None and seen.file.is_csv and own:
            check_bytes(findings, scan.odd["bytes"], seen.file)
        return scan, None

    @contextmanager
    def people(self, given: Given) -> Iterator[None]:
        """Read the fixes or, if no noise is claimed, only a summary of each person."""
        routes = self.step_m is not None and self.audit is not None
        self.split = given.options is None or given.options.split_gap is not None
        keep, witness = self.noisy or routes, Witness(given.original)
        self.fixes = open_fixes(given.original, given.options, keep=keep, run=self.run, spill=routes, witness=witness)
        witness.testify(self.findings)
        _note_sizes(self.findings, self.fixes, self.opened.records)
        yield

    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the first and the last second of the fixes, and of the points."""
        begun, ended, _, _ = self.opened.records.edges
        if not len(begun) or not len(self.fixes.labels):
            return (0, 0), (0, 0)
        ends = (self.fixes.first_ms.min(), self.fixes.last_ms.max()), (begun.min(), ended.max())
        return tuple((int(first) // 1000, int(last) // 1000) for first, last in ends)  # type: ignore[return-value]

    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Return the steps: the file, then owners and the claim."""
        yield "looking for leaks", self._check_file
        yield "checking records and owners", self._check_owners
        yield "comparing the bytes of the file", self.check_bytes

    def _check_file(self) -> None:
        """Check values, numbers and counts; records in memory have no numbers yet."""
        scan = self.opened.records
        if self.opened.file is not None:
            check_point_values(self.findings, scan, self.opened.file)
            _check_numbers(self.findings, scan)
        self.findings.fail_if(self.step_m is None and self.opened.header.method == "promesse", "steps/unstated")
        if self.step_m is not None and "leaks" not in self.findings.failures:
            check_steps(self.findings, scan, self.step_m, self.run)
        if self.opened.counts is not None:
            check_point_counts(self.findings, self.opened.counts, len(scan), int(scan.counts.sum()))

    def _check_owners(self) -> None:
        """Check what needs the owner of each record, then the claim."""
        if self.audit is None:
            self.findings.skip("owners")
            return
        scan, fixes = self.opened.records, self.fixes
        owners = read_owners(self.findings, self.audit, fixes.labels, scan.uids, run=self.run)
        if owners is None:
            return
        left_out = len(fixes.labels) - len(np.unique(owners))
        if left_out > 0:
            self.findings.figures["users_left_out"] = left_out
            self.findings.note("left-out", n=left_out, users=len(fixes.labels))
        if self.opened.file is not None:
            lists = {"the number of fixes of their users": fixes.counts}
            check_owned(self.findings, fixes.labels, lists, owners, scan.uids)
        outside = _outside(scan, owners, fixes)
        self.findings.fail_if(outside, "truth/outside-time")
        if self.step_m is not None and not self.findings.failures & {"leaks", "steps"}:
            check_routes(self.findings, scan, owners, fixes, self.step_m, split=self.split, run=self.run)
        for check in (_suppression, _noise) if self.noisy else ():
            check(self, owners)

    def note_result(self) -> None:
        """Add the sentence about how many people the claim holds for."""
        users = len(self.fixes.labels) - self.findings.figures.get("users_left_out", 0)
        _note_result(self.findings, self.opened.header.claim, users)

    def shown(self) -> Claim:
        """Return the claim of noise, or none: nothing else is checked on points."""
        return self.opened.header.claim if self.opened.header.claim.name == _NOISE else Claim("none")


def _step_m(header: Header) -> int | None:
    """Return the step of a release of Promesse; None for other methods."""
    step_m = header.settings.get("step_m")
    return step_m if header.method == "promesse" and is_count(step_m) else None


def _noise_of(header: Header) -> Claim | None:
    """Return what is claimed of noise; for a method that adds noise and claims nothing, with a seed, what it states."""
    if header.claim.name == _NOISE:
        return header.claim
    epsilon = header.settings.get("epsilon_per_m")
    stated = header.method == _NOISE and isinstance(epsilon, float) and 0 < epsilon < float("inf")
    return Claim(_NOISE, epsilon_per_m=epsilon) if stated else None


def _suppression(case: PointSubject, owners: NDArray[np.int64]) -> None:  # noqa: ARG001
    """Check that as many fixes have no point as was stated."""
    missing = int(case.fixes.counts.sum()) - int(case.opened.records.counts.sum())
    stated, tolerance = declared_suppressed(case.opened, None)
    wrong = abs(missing - stated) > tolerance
    case.findings.fail_if(wrong, "suppression/fixes-not-as-stated")


def _noise(case: PointSubject, owners: NDArray[np.int64]) -> None:
    """Check that every point stands for a fix of its owner, and the noise between them."""
    if "leaks" in case.findings.failures:
        return
    scan, fixes = case.opened.records, case.fixes
    rows = check_times(case.findings, scan, owners, fixes)
    if rows is not None and case.noise is not None:
        check_noise(case.findings, scan, owners, fixes, rows, case.noise)


def _note_sizes(findings: Findings, fixes: OriginalFixes, scan: PointScan) -> None:
    findings.figures.update(
        users=len(fixes.labels),
        samples=int(fixes.counts.sum()),
        users_outside=fixes.outside,
        rows_outside=fixes.rows_outside,
        records=len(scan),
        points=int(scan.counts.sum()),
    )
    findings.fail_if(not len(scan), "truth/empty")


def _check_numbers(findings: Findings, scan: PointScan) -> None:
    """Check that the numbers of the records do not follow anything in them."""
    begun, ended, lng, lat = scan.edges
    quantities = {
        "when they begin": begun,
        "when they end": ended,
        "how many points they have": scan.counts,
        "where they begin": lng,
        "where they begin (second axis)": lat,
    }
    check_quantities(findings, quantities, len(scan))


def _outside(scan: PointScan, owners: NDArray[np.int64], fixes: OriginalFixes) -> int:
    begun, ended, _, _ = scan.edges
    return int(((begun < fixes.first_ms[owners]) | (ended > fixes.last_ms[owners])).sum())


def _note_result(findings: Findings, claim: Claim, users: int) -> None:
    findings.conclude("points-only" if claim.name == "none" else "points-hold", users=users)
