"""Check that a release keeps what it claims about the original."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Unpack

from shoal.claim import Claim
from shoal.errors import SettingsError
from shoal.run import LOCAL, Run
from shoal.seen.findings import Findings
from shoal.seen.opened import open_release
from shoal.seen.recorded import recorded_reading
from shoal.seen.stores import brought
from shoal.verifier.boxes import BoxSubject
from shoal.verifier.points import PointSubject
from shoal.verifier.signed import check_signature, given_key
from shoal.verifier.subject import Asked, Given, Subject, open_stated
from shoal.verifier.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from shoal.reading.options import ReadingRules, ReadOptions
    from shoal.release import Release
    from shoal.seen.recorded import Recorded
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories

__all__ = ["MAX_SUPPRESSED", "verify"]

_FEW, _SINGLE = 10, 1.1  # of fewer people nothing is said; more samples each are nothing odd
MAX_SUPPRESSED = 0.2  # the largest share of samples that may be left out
_SUBJECTS: dict[str, type[Subject[Any]]] = {"boxes": BoxSubject, "points": PointSubject}


def verify(
    original: str | Path | Sequence[str | Path] | Trajectories | Traces,
    release: str | Path | Release,
    *,
    k: int | None = None,
    tau: int | str | None = None,
    epsilon: int | str | None = None,
    audit: str | Path | pa.Table | None = None,
    run_record: str | Path | None = None,
    options: ReadOptions | None = None,
    crs: str | None = None,
    claim: Claim | None = None,
    suppressed: int | None = None,
    max_suppressed: float = MAX_SUPPRESSED,
    exact: bool = False,
    public_key: str | Path | bytes | None = None,
    run: Run = LOCAL,
    **reading: Unpack[ReadingRules],
) -> Verdict:
    """Check a release against the original it was made from.

    Input: the original (files; for boxes also Trajectories on the release's grid, for points Traces), the release (a
    file, or one in memory, whose file can't be checked then), and what it was made with: the reading `options`, whose
    fields may be given as keywords too (`tz="America/New_York"`), and, where the release itself does not say, `crs` and
    `claim`. `k` may ask for more than is claimed, not for less; `tau` and `epsilon` (seconds, or text such as "60min")
    ask for windows of that length and leakage up to that. With the private `audit` file truth and suppression are
    checked too, and the noise of points. Reading options that are not given come from the private `run_record`, which
    is found by itself beside the release or the audit file. `suppressed` is the exact number of suppressed samples, if
    it is known; if no number is stated, there are none. `exact` counts cover beyond k. With `public_key` (a file, or
    32 bytes) the manifest must be signed with that key; without, a signature must still be one of this manifest.
    Output: a `Verdict`; `CannotCheck` if no verdict is possible.
    Guarantee: `ok` only if the claim was checked and every check that could run passed; the messages name the checks
    that could not run. The verdict does not depend on the memory and threads of `run`. Claims other than identical
    groups need everybody's samples at once and raise `TooLarge` if these do not fit.
    No code that makes releases is used; `shoal.verifier` lists what is shared with it: the parser of input
    files, the types that flow, and tools.
    Cost: with an audit, two binary searches for each box of each member's record; without, for each candidate. In
    memory the boxes stay, 24 bytes each, identical records once; the original is read in parts.

    >>> import numpy as np, pyarrow as pa
    >>> from shoal import Frame, Release, Trajectories
    >>> from shoal.layouts import Boxes
    >>> grid = Frame(crs=None, cell_m=500, slot_s=1800)
    >>> ids = np.array([0, 1, 2], dtype=np.int64)
    >>> place = np.array([3, 4], dtype=np.int32)
    >>> people = Trajectories(ids, place, place, place, grid, pa.array(["ann", "bob"]))
    >>> box = np.array([[3, 4, 3, 4, 3, 4]], dtype=np.int32)
    >>> both = Release(ids, Boxes(np.concatenate([box, box])), grid, "by-hand", {"k": 2}, Claim("k-anonymity", k=2))
    >>> verify(people, both).ok, verify(people, both, k=3).failures
    (True, ('identical',))
    >>> verify(people, both, tau="1h").figures["windows"]
    2
    """
    if not 0 <= max_suppressed <= 1:
        raise SettingsError("the largest share that may be suppressed is a number from 0 to 1, e.g. 0.2")
    asked = Asked(
        k=k,
        tau=tau,
        epsilon=epsilon,
        audit=audit,
        suppressed=suppressed,
        max_suppressed=max_suppressed,
        exact=exact,
        public_key=given_key(public_key, release),
    )
    chosen = _reading(options, reading)
    with brought(release, run) as at_hand:
        recorded = recorded_reading(original, at_hand, chosen, run_record=run_record, audit=audit)
        given = Given(original=original, options=recorded.options, crs=crs, claim=claim)
        return _verdict(at_hand, given, asked, recorded, run)


def _verdict(release: Path | Release, given: Given, asked: Asked, recorded: Recorded, run: Run) -> Verdict:
    """Return the verdict on a release in a file or in memory."""
    findings, seen = Findings(), open_release(release)
    recorded.note(findings)
    subject = _SUBJECTS[seen.layout]
    subject.refuse(given, asked)
    check_signature(findings, seen.manifest, asked.public_key)
    with run.stage("reading the release"):
        opened = open_stated(findings, seen, subject, given, run=run)
    if opened is None:
        return Verdict.of(findings, Claim("none", why="unreadable"))
    case = subject(findings, opened, asked, run)
    with ExitStack() as original_open:
        with run.stage("reading the original"):
            original_open.enter_context(case.people(given))
        for name, step in case.steps():
            with run.stage(name):
                step()
        if findings.failures:
            _note_options(findings, case, recorded)
    case.note_result()
    return Verdict.of(findings, opened.header.claim, case.shown())


def _note_options(findings: Findings, case: Subject[Any], recorded: Recorded) -> None:
    """Say that reading options may be what is wrong, after a failure, where nobody said which were used."""
    figures = findings.figures
    if figures.get("users", 0) >= _FEW and figures["samples"] <= _SINGLE * figures["users"]:
        findings.note("one-sample-each")
    if recorded.strange is not None and case.asked.audit is not None:
        findings.note("audit-of-another")
    hours = recorded.apart(*case.spans())
    if hours is not None:
        findings.note("shifted", hours=hours)
    elif recorded.unsaid:
        findings.note("options-missing")


def _reading(options: ReadOptions | None, reading: ReadingRules) -> ReadOptions | None:
    """Return the reading options with the keywords applied."""
    if not reading:
        return options
    from shoal.reading.options import read_options

    return read_options(options, **reading)
