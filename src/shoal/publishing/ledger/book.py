"""The book: the steps that one run takes with a ledger.

    meet      after reading: are these people in an earlier release? Refuses unless that is allowed
    entered   when the written file has verified: the ledger with the release in it, which is switched into place
              together with the release, as one step

A release that goes to a database or an object store is not published by that step alone. So it is written down as
begun before, and confirmed after. If nothing was published, it is struck out. A run that is killed in between leaves a
release that was begun, which counts like any other.
"""

from __future__ import annotations

import json
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import LedgerError, OverlapError
from shoal.folders import private_folder
from shoal.interrupt import undisturbed
from shoal.publishing.ledger.file import Entry, LedgerFile, open_file
from shoal.publishing.ledger.fingerprints import fingerprints, groups_of, people_of
from shoal.publishing.ledger.overlap import Overlap, find, overlap_of
from shoal.publishing.manifest import manifest_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.publishing.ledger.fingerprints import People
    from shoal.release import Release
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories

__all__ = ["Book", "open_book"]


class Book:
    """The ledger as one run uses it; without a file it allows everything and records nothing."""

    def __init__(self, file: LedgerFile | None, *, allow_overlap: bool) -> None:
        self._file, self._allow = file, allow_overlap
        self._marks: NDArray[np.uint64] | None = None
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

    @contextmanager
    def entered(
        self, release: Release, written: Path, target: Path, *, elsewhere: Callable[[], bool] | None = None
    ) -> Iterator[list[tuple[Path, Path]]]:
        """Compare the release with earlier ones; yield what must be switched into place with it, to record it.

        That is the new ledger, in a private folder, and where it belongs. `elsewhere` is for a release that goes to an
        address: it tells whether that may be published. Raises LedgerError.
        """
        if self._file is None or self._marks is None:
            yield []
            return
        published, groups = groups_of(release)
        people = people_of(self._marks[published], groups)
        entry = _entry(release, written, target, len(published), grouped=groups is not None)
        self.overlap = overlap_of(people, entry.k, self._file.releases)
        if elsewhere is not None:
            with self._begun(self._file, entry, people, elsewhere):
                yield []
            return
        with private_folder(self._file.path.parent) as folder:
            done = entry.model_copy(update={"published": _now()})
            new = self._file.write(folder, [*self._file.releases, (done, people)])
            yield [(new, self._file.path)]

    @contextmanager
    def _begun(
        self, file: LedgerFile, entry: Entry, people: People, may_be_published: Callable[[], bool]
    ) -> Iterator[None]:
        """Record a release as begun before the block, and as published after it; strike it out if it is not."""
        earlier = file.releases
        file.replace([*earlier, (entry, people)])
        try:
            yield
        except BaseException:
            if not may_be_published():
                with undisturbed(), suppress(LedgerError):  # otherwise it counts
                    file.withdraw(earlier)
            raise
        done = entry.model_copy(update={"published": _now()})
        with undisturbed(too_late=True):
            try:
                file.replace([*earlier, (done, people)])
            except LedgerError:
                self.notes = ("the release is published, but the ledger could not be told; its entry counts as it is",)


def open_book(path: Path | None, *, allow_overlap: bool = False) -> Book:
    """Open the ledger at a path; without a path there is no ledger. Raises LedgerError."""
    return Book(None if path is None else open_file(path), allow_overlap=allow_overlap)


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


def _refusal(again: int, people: int, known: list[Entry]) -> str:
    several = "an earlier release" if len(known) == 1 else f"{len(known)} earlier releases"
    begun = sum(entry.published is None for entry in known)
    unsure = f" ({begun} of them begun and never confirmed)" if begun else ""
    return (
        f"about {float(f'{again:.1e}'):,.0f} of {people:,} people are in {several} of this ledger{unsure}, last in "
        f"{known[-1].release} of {known[-1].begun[:10]}; whoever has both can tell people apart whom each of them "
        "hides. Nothing was published. Publish other people, or accept it with `allow_overlap`"
    )
