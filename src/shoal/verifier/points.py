"""The check of points: does a published file of places and times hold what it claims about the original."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.release import Release
from shoal.run import LOCAL, Run
from shoal.seen.audit import read_owners
from shoal.seen.file import POINT, open_file
from shoal.seen.findings import Findings
from shoal.seen.fixes import open_fixes
from shoal.seen.header import read_header
from shoal.seen.manifest import read_manifest
from shoal.seen.point_scan import check_point_values, scan_point_release, scan_points
from shoal.trajectories import Trajectories
from shoal.verifier.header import check_header
from shoal.verifier.integrity import check_manifest, check_point_counts, rounding
from shoal.verifier.leaks import check_bytes, check_metadata
from shoal.verifier.noise import check_noise, check_times
from shoal.verifier.order import check_owned, check_quantities
from shoal.verifier.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.reading.options import ReadOptions
    from shoal.seen.fixes import Fixes
    from shoal.seen.point_scan import PointScan
    from shoal.traces import Traces

__all__ = ["holds_points", "verify_points"]

_CHECKED = ("geo-indistinguishability", "none")


@dataclass(frozen=True)
class _Opened:
    """A release of points: its claim, its records and, if it is a file, what its manifest counts.

    In memory (`written` is false) records have no numbers yet that could tell something.
    """

    claim: Claim
    scan: PointScan
    audit: pa.Table | None = None
    suppressed: int = 0
    counts: dict[str, int] | None = None
    written: bool = True


def holds_points(release: str | Path | Release) -> bool:
    """Return whether a release is one of points, by the columns of its file."""
    if isinstance(release, Release):
        return release.layout.name == "points"
    return sorted(open_file(release).names) == sorted(POINT)


def verify_points(
    original: str | Path | Sequence[str | Path] | Trajectories | Traces,
    release: str | Path | Release,
    *,
    audit: str | Path | pa.Table | None = None,
    options: ReadOptions | None = None,
    claim: Claim | None = None,
    run: Run = LOCAL,
) -> Verdict:
    """Check a release of points against the original it was made from: `verify` for points.

    Always: the file is the one of its manifest, its columns, metadata, values and order tell nothing else. With the
    audit: every record has one owner, numbers do not follow labels, and times lie within the owner's. The claim
    `geo-indistinguishability` needs the audit: every point stands for one fix of its owner, and the distances between
    them are, by statistical tests, those of the claimed noise.
    """
    findings = Findings()
    if isinstance(original, Trajectories):
        raise CannotCheck("points are checked against fixes, not samples of the grid; give files, or Traces")
    with run.stage("reading the release"):
        opened = _open(findings, release, claim, run=run)
    if opened is None:
        return Verdict.of(findings, Claim("none", why="unreadable"))
    audit = opened.audit if audit is None else audit
    noisy = opened.claim.name == "geo-indistinguishability"
    if noisy and audit is None:
        raise CannotCheck("noise is checked with the private audit file; give it: --audit")
    with run.stage("reading the original"):
        fixes = open_fixes(original, options, keep=noisy, run=run)
    _note_sizes(findings, fixes, opened.scan)
    with run.stage("looking for leaks"):
        if opened.written:
            check_point_values(findings, opened.scan)
            _check_numbers(findings, opened.scan)
        if opened.counts is not None:
            check_point_counts(findings, opened.counts, len(opened.scan), int(opened.scan.counts.sum()))
    with run.stage("checking records and owners"):
        _check_audit(findings, opened, fixes, audit)
    _note_result(findings, opened.claim, len(fixes.labels))
    return Verdict.of(findings, opened.claim, opened.claim if noisy else Claim("none"))


def _open(findings: Findings, release: str | Path | Release, claim: Claim | None, *, run: Run) -> _Opened | None:
    """Read a release up to its records; None, with the failure noted, if it can't be understood so far."""
    if isinstance(release, Release):
        from shoal.publishing.audit import audit_table

        findings.say("Integrity not checked, nor leaks: the release is in memory, there is no file yet.")
        findings.skip("integrity and leaks")
        table = audit_table(release)
        return _Opened(release.claim, scan_point_release(release), table, release.suppressed, written=False)
    file = open_file(release)
    manifest = check_manifest(findings, file.path, read_manifest(file.path), file.stated, is_csv=file.is_csv)
    stated = file.stated if file.stated is not None or manifest is None else manifest["shoal"]
    if stated is None:
        raise CannotCheck("the release holds points, not boxes, and claims nothing that could be checked on them")
    if (header := read_header(stated)) is None:
        findings.fail("integrity", "The shoal object of the release can't be understood.")
        return None
    if claim is not None and claim != header.claim:
        raise SettingsError("the release states its own claim; leave out the one given")
    if header.claim.name not in _CHECKED:
        raise CannotCheck("the release holds points, not boxes; this claim can't be checked on points")
    check_header(findings, stated)
    check_metadata(findings, file, own=True)
    keep = header.claim.name == "geo-indistinguishability"
    scan = scan_points(findings, file, keep=keep, run=run)
    if scan is None:
        return None
    if file.is_csv:
        check_bytes(findings, scan.odd["bytes"], file)
    if manifest is None:
        return _Opened(header.claim, scan)
    counts = manifest["counts"]
    return _Opened(header.claim, scan, suppressed=counts["samples_suppressed"], counts=counts)


def _note_sizes(findings: Findings, fixes: Fixes, scan: PointScan) -> None:
    findings.figures.update(
        users=len(fixes.labels),
        samples=int(fixes.counts.sum()),
        users_outside=fixes.outside,
        rows_outside=fixes.rows_outside,
        records=len(scan),
        points=int(scan.counts.sum()),
    )
    findings.fail_if(not len(scan), "truth", "Nothing is published.")


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


def _check_audit(findings: Findings, opened: _Opened, fixes: Fixes, audit: str | Path | pa.Table | None) -> None:
    """Check what needs the owner of each record."""
    if audit is None:
        findings.skip("owners and labels, which need the audit file")
        return
    scan = opened.scan
    owners = read_owners(findings, audit, fixes.labels, scan.uids)
    if owners is None:
        return
    if opened.written:
        check_owned(findings, fixes.labels, {"the number of fixes of their users": fixes.counts}, owners, scan.uids)
    outside = _outside(scan, owners, fixes)
    findings.fail_if(outside, "truth", f"{outside:,} records speak of times at which their owner has no data.")
    if opened.claim.name == "geo-indistinguishability":
        missing = int(fixes.counts.sum()) - int(scan.counts.sum())
        wrong = abs(missing - opened.suppressed) > (rounding(opened.suppressed) if opened.written else 0)
        findings.fail_if(wrong, "suppression", "The number of fixes without a point is not the one that was stated.")
    if opened.claim.name == "geo-indistinguishability" and "leaks" not in findings.failures:
        rows = check_times(findings, scan, owners, fixes)
        if rows is not None:
            check_noise(findings, scan, owners, fixes, rows, opened.claim)


def _outside(scan: PointScan, owners: NDArray[np.int64], fixes: Fixes) -> int:
    begun, ended, _, _ = scan.edges
    return int(((begun < fixes.first_ms[owners]) | (ended > fixes.last_ms[owners])).sum())


def _note_result(findings: Findings, claim: Claim, users: int) -> None:
    skipped = "; ".join(findings.skipped)
    if findings.failures:
        if skipped:
            findings.say(f"Not checked: {skipped}.")
        return
    if claim.name == "none":
        said = f"Nothing is claimed about {users:,} users; the file is well formed and tells nothing besides its points"
    else:
        said = f"The claim holds for each point of {users:,} users"
    findings.say(f"{said}{', except ' if skipped else ''}{skipped}.")
