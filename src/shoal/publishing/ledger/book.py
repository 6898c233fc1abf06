"""The book: the steps that one run takes with a ledger.

    meet      after reading: are these people in an earlier release? Refuses unless that is allowed
    intend    when the written file has verified and before it is published: the release is written down as begun
    confirm   when it is published
    leave     nothing was published after all: what was begun is struck out

A run that is killed in between leaves a release that was begun, which counts like any other.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import LedgerError, OverlapError
from shoal.interrupt import undisturbed
from shoal.publishing.ledger.file import Entry, LedgerFile, open_file
from shoal.publishing.ledger.fingerprints import fingerprints, groups_of, people_of
from shoal.publishing.ledger.overlap import Overlap, find, overlap_of
from shoal.publishing.manifest import manifest_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.release import Release
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories

__all__ = ["Book", "open_book"]


class Book:
    """The ledger as one run uses it; without a file it allows everything and records nothing."""

    def __init__(self, file: LedgerFile | None, *, allow_overlap: bool) -> None:
        self._file, self._allow = file, allow_overlap
        self._marks: NDArray[np.uint64] | None = None
        self._begun: tuple[Entry, Callable[[], bool]] | None = None
        self.overlap: Overlap | None = None
        self.notes: tuple[str, ...] = ()

    def meet(self, people: Trajectories | Traces) -> None:
        """Compute everybody's fingerprints; raise OverlapError if some are in an earlier release, unless allowed."""
        if self._file is None:
            return
        self._marks = fingerprints(people.labels, self._file.key)
        met = [find(self._marks, theirs.fingerprints)[1] for _, theirs in self._file.releases]
        again = int(np.any(met, axis=0).sum()) if met else 0
        if again and not self._allow:
            known = [entry for (entry, _), both in zip(self._file.releases, met, strict=True) if both.any()]
            raise OverlapError(_refusal(again, len(people.labels), known))

    def intend(
        self, release: Release, written: Path, target: Path, *, in_place: Callable[[], bool] | None = None
    ) -> None:
        """Record the release as begun, and compare it with earlier ones; raises LedgerError.

        `in_place` tells whether it may be published, if that is not told by a file at `target`.
        """
        if self._file is None or self._marks is None:
            return
        published, groups = groups_of(release)
        people = people_of(self._marks[published], groups)
        entry = _entry(release, written, target, len(published), grouped=groups is not None)
        self.overlap = overlap_of(people, entry.k, self._file.releases)
        with undisturbed():
            self._file.replace([*self._file.releases, (entry, people)])
            self._begun = entry, in_place or partial(_in_place, entry, target)

    def confirm(self) -> None:
        """Record that the release is published; if that can't be written, the release still counts."""
        if self._file is None or self._begun is None:
            return
        *earlier, (entry, people) = self._file.releases
        done = entry.model_copy(update={"published": _now()})
        self._begun = None
        with undisturbed(too_late=True):
            try:
                self._file.replace([*earlier, (done, people)])
            except LedgerError:
                self.notes = ("the release is published, but the ledger could not be told; its entry counts as it is",)

    def leave(self) -> None:
        """Close the ledger; remove a release that was begun but never published. If that fails, the release counts."""
        if self._file is None:
            return
        try:
            if self._begun is not None and not self._begun[1]():
                begun, _ = self._begun
                with suppress(LedgerError):
                    self._file.replace([known for known in self._file.releases if known[0] is not begun])
        finally:
            self._file.close()


@contextmanager
def open_book(path: Path | None, *, allow_overlap: bool = False) -> Iterator[Book]:
    """Open the ledger at a path for this run only; without a path there is no ledger. Raises LedgerError."""
    book = Book(None if path is None else open_file(path), allow_overlap=allow_overlap)
    try:
        yield book
    finally:
        book.leave()


def _entry(release: Release, written: Path, target: Path, users: int, *, grouped: bool) -> Entry:
    """Return the ledger's entry for a release, described as in its manifest, with the period in whole days."""
    manifest = json.loads(manifest_path(written).read_bytes())
    public = manifest["shoal"]
    first, last = (str(np.datetime64(second // 86_400, "D")) for second in release.period_s)
    return Entry(
        release=target.name,
        sha256=manifest["files"][written.name],
        method=public["method"],
        claim=public["claim"],
        k=public["claim"].get("k", public["parameters"].get("k")),
        period=(first, last),
        seeded=manifest["seeded"],
        users=users,
        grouped=grouped,
        begun=_now(),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _in_place(entry: Entry, target: Path) -> bool:
    try:
        with target.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256
    except FileNotFoundError:
        return False
    except OSError:
        return True  # can't be seen, so it may be there


def _refusal(again: int, people: int, known: list[Entry]) -> str:
    several = "an earlier release" if len(known) == 1 else f"{len(known)} earlier releases"
    begun = sum(entry.published is None for entry in known)
    unsure = f" ({begun} of them begun and never confirmed)" if begun else ""
    return (
        f"about {float(f'{again:.1e}'):,.0f} of {people:,} people are in {several} of this ledger{unsure}, last in "
        f"{known[-1].release} of {known[-1].begun[:10]}; whoever has both can tell people apart whom each of them "
        "hides. Nothing was published. Publish other people, or accept it with `allow_overlap`"
    )
