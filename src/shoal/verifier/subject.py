"""The subject of a check: an open release of boxes or points, and the questions about it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shoal.seen.header import read_header
from shoal.verifier.header import check_header
from shoal.verifier.integrity import check_manifest, rounding
from shoal.verifier.leaks import check_metadata
from shoal.verifier.rewritten import check_rewritten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa

    from shoal.claim import Claim
    from shoal.reading.options import ReadOptions
    from shoal.run import Run
    from shoal.seen.file import File
    from shoal.seen.findings import Findings
    from shoal.seen.header import Header
    from shoal.seen.opened import SeenRelease
    from shoal.seen.scan import Scan
    from shoal.seen.signature import PublicKey

__all__ = ["Asked", "Given", "Opened", "Subject", "declared_suppressed", "open_stated"]

R = TypeVar("R")  # records: a Catalogue of boxes, or a PointScan


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the caller asks for beyond the claim, and what else the caller knows: see `verify`."""

    k: int | None = None
    tau: int | str | None = None
    epsilon: int | str | None = None
    audit: str | Path | pa.Table | None = None
    suppressed: int | None = None
    max_suppressed: float
    exact: bool = False
    public_key: PublicKey | None = None


@dataclass(frozen=True, kw_only=True)
class Given:
    """What the caller says about how the release was made: the original, and how that was read."""

    original: Any
    options: ReadOptions | None = None
    crs: str | None = None
    claim: Claim | None = None


@dataclass(frozen=True)
class Opened(Generic[R]):
    """A release whose grid and claim are known: its records and, if it is a file, what the file holds.

    `scan` counts what is wrong with the values of a file of boxes; `counts` are those of the manifest. `suppressed` is
    the exact number that a release in memory knows. `own` says that shoal made it, as the release says.
    """

    header: Header
    records: R
    audit: pa.Table | None = None
    file: File | None = None
    scan: Scan | None = None
    counts: dict[str, int] | None = None
    suppressed: int = 0
    own: bool = True


class Subject(ABC, Generic[R]):
    """What `verify` does with releases of one layout: a case is one release with one question.

    The class knows what must be refused and how records are read; an instance which checks the claim needs.
    """

    def __init__(self, findings: Findings, opened: Opened[R], asked: Asked, run: Run) -> None:
        self.findings, self.opened, self.asked, self.run = findings, opened, asked, run
        self.audit = opened.audit if asked.audit is None else asked.audit

    @staticmethod
    @abstractmethod
    def refuse(given: Given, asked: Asked) -> None:
        """Raise CannotCheck or SettingsError for an original or a question that makes no sense here."""

    @staticmethod
    @abstractmethod
    def foreign(findings: Findings, given: Given) -> Header:
        """Return the header of a release that states none, from what the caller gives; raises CannotCheck otherwise."""

    @staticmethod
    @abstractmethod
    def accept(findings: Findings, header: Header, given: Given) -> None:
        """Compare what a release states with what the caller says; raises an error if they contradict each other."""

    @staticmethod
    @abstractmethod
    def read(
        findings: Findings, seen: SeenRelease, header: Header, *, own: bool, run: Run
    ) -> tuple[R, Scan | None] | None:
        """Return the records; None, with the failure noted, if they can't be read."""

    @abstractmethod
    def people(self, given: Given) -> AbstractContextManager[None]:
        """Open the original: the people that records are checked against."""

    @abstractmethod
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the first and the last second of the original, and of the release."""

    @abstractmethod
    def steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Return the steps of the check, each with its name, in order."""

    def check_bytes(self) -> None:
        """Check that a Parquet file of shoal holds nothing besides what was read, unless it is known to leak."""
        file = self.opened.file
        if file is not None and file.parquet is not None and self.opened.own and "leaks" not in self.findings.failures:
            check_rewritten(self.findings, file)

    @abstractmethod
    def note_result(self) -> None:
        """Add the sentence about what holds."""

    @abstractmethod
    def shown(self) -> Claim:
        """Return the strongest claim that was shown, if nothing failed."""


def open_stated(
    findings: Findings, seen: SeenRelease, subject: type[Subject[R]], given: Given, *, run: Run
) -> Opened[R] | None:
    """Read a release up to its records; None, with the failure noted, if it can't be understood so far."""
    file = seen.file
    if file is None:
        findings.note("in-memory")
        findings.skip("file")
        return _opened_in_memory(findings, seen, subject, run)
    manifest = check_manifest(findings, file.path, seen.manifest, file.stated, is_csv=file.is_csv)
    if "integrity" not in findings.checked:
        findings.skip("integrity")
    stated = file.stated if file.stated is not None or manifest is None else manifest["shoal"]
    if stated is None:
        header = subject.foreign(findings, given)
    elif (known := read_header(stated)) is None:
        findings.fail("integrity/header")
        return None
    else:
        header = known
        check_header(findings, stated, file.layout)
        subject.accept(findings, header, given)
    own = stated is not None
    check_metadata(findings, file, own=own)
    found = subject.read(findings, seen, header, own=own, run=run)
    if found is None:
        return None
    counts = None if manifest is None else manifest["counts"]
    return Opened(header, found[0], None, file, found[1], counts, own=own)


def _opened_in_memory(findings: Findings, seen: SeenRelease, subject: type[Subject[R]], run: Run) -> Opened[R] | None:
    header = seen.header
    found = None if header is None else subject.read(findings, seen, header, own=True, run=run)
    if header is None or found is None:
        return None
    return Opened(header, found[0], seen.audit, suppressed=seen.suppressed)


def declared_suppressed(opened: Opened[R], suppressed: int | None) -> tuple[int, int]:
    """Return the stated number of suppressed samples (0 if none is stated) and its largest rounding error."""
    if suppressed is not None:
        return suppressed, 0
    if opened.counts is not None:
        stated = opened.counts["samples_suppressed"]
        return stated, rounding(stated)
    return opened.suppressed, 0
