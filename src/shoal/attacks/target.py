"""Target: the input of an attack. The people, the records published, and who owns each record, for scoring."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.attacks.matching import BoxMatcher, SampleMatcher
from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import fresh, narrow, spread
from shoal.seen.audit import read_audit
from shoal.seen.findings import Findings
from shoal.seen.opened import foreign_header, open_release
from shoal.seen.people import open_crowd
from shoal.seen.recorded import Recorded, recorded_reading
from shoal.seen.records import Records, catalogue
from shoal.seen.stores import brought
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.reading.options import ReadOptions
    from shoal.release import Release
    from shoal.seen.audit import Witnesses
    from shoal.seen.grid import Grid
    from shoal.seen.header import Header
    from shoal.seen.opened import SeenRelease
    from shoal.seen.original import Original
    from shoal.seen.people import Crowd
    from shoal.seen.records import Catalogue

__all__ = ["Target", "draw_victims", "open_target"]


@dataclass(frozen=True, eq=False)
class Target:
    """People and the release that was made of them.

    `people` are everybody's samples on the release's grid, in absolute granules. `records` are what was published,
    each kind of identical records once (`records.unique`, weighing as many people as were published as it). `k` is
    the promised one, None if it is not known. `suppressed` says that samples may be missing from the records.
    With the audit, for scoring only: `owner[r]` is the user published as record r (one of them, if the release is
    compact), `own[u]` the record of user u (-1: not published), and `members` the users merged into each record:
    record r has `members[1][members[0][r]:members[0][r + 1]]`, ascending. `recorded` says how the original was read.
    """

    people: Original
    records: Catalogue
    claim: Claim
    k: int | None
    grid: Grid
    tz: str = "UTC"
    suppressed: bool = False
    owner: NDArray[np.int64] | None = None
    own: NDArray[np.int64] | None = None
    members: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    recorded: Recorded = field(default_factory=lambda: Recorded(options=None))

    @property
    def promise(self) -> float | None:
        """The greatest chance of success that the promise leaves to an adversary: 1/k."""
        return None if self.k is None else 1 / self.k

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the people and the records take."""
        people = self.people
        return people.offsets.nbytes + people.t.nbytes + people.x.nbytes + people.y.nbytes + self.records.nbytes

    @cached_property
    def matcher(self) -> BoxMatcher:
        """The matcher that finds the kinds of records (`records.unique`) that hold given points; made once."""
        return BoxMatcher(self.records.unique)

    @cached_property
    def raw(self) -> SampleMatcher:
        """The matcher of raw data, which finds the users who have given points, to the granule; made once."""
        people = self.people
        return SampleMatcher(people.offsets, people.t, people.x, people.y)

    @cached_property
    def published(self) -> Original:
        """The people with their published samples only, if the audit says which these are; else with all samples."""
        people = self.people
        if not self.suppressed or self.own is None:
            return people
        user = spread(people.counts)
        kind = self.records.groups[np.maximum(self.own[user], 0)]
        held = self.matcher.find(kind, people.t, people.x, people.y) >= 0
        return people.keep(held & (self.own[user] >= 0))

    def require_audit(self, attack: str) -> None:
        """Raise CannotCheck if there is no audit that says who owns each record."""
        if self.own is None:
            raise CannotCheck(f"the attack {attack} is scored with the private audit file; give `audit`")

    def control(self) -> Target:
        """Return the positive control as a release: everybody's raw samples under a pseudonym; record u is of user u.

        Each sample is a box of one granule. Samples of one user in one slot share a box, so that boxes are disjoint
        in time, like those of a release.
        """
        people, n = self.people, len(self.people)
        offsets, boxes = _slot_boxes(people)
        everyone = np.arange(n, dtype=np.int64)
        records = catalogue(everyone, Records(offsets, boxes, np.ones(n, dtype=np.int64)))
        return Target(
            people,
            records,
            Claim("none", why="raw"),
            None,
            self.grid,
            self.tz,
            owner=everyone,
            own=everyone,
            members=(np.arange(n + 1), everyone),
        )


def _slot_boxes(people: Original) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return each user's samples as boxes, one box for each slot."""
    first = np.flatnonzero(fresh(spread(people.counts), people.t)) if len(people.t) else np.empty(0, np.int64)
    boxes = np.empty((len(first), 6), dtype=people.t.dtype)
    boxes[:, 0] = boxes[:, 1] = people.t[first]
    for column, values in ((2, people.x), (4, people.y)):
        if len(first):
            boxes[:, column] = np.minimum.reduceat(values, first)
            boxes[:, column + 1] = np.maximum.reduceat(values, first)
    return np.searchsorted(first, people.offsets), narrow(boxes)


def draw_victims(eligible: NDArray[np.int64], victims: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """Draw `victims` of the eligible users (all, if there are fewer); return them ascending.

    >>> len(draw_victims(np.arange(50), 9, np.random.default_rng(0)))
    9
    """
    if victims < 1:
        raise SettingsError("an attack needs at least one victim; give e.g. `victims=1000`")
    return np.sort(chance.permutation(eligible)[:victims])


def open_target(
    original: str | Path | Sequence[str | Path] | Trajectories,
    release: str | Path | Release,
    *,
    audit: str | Path | pa.Table | None = None,
    run_record: str | Path | None = None,
    options: ReadOptions | None = None,
    k: int | None = None,
    run: Run = LOCAL,
) -> Target:
    """Read the original, the release and the audit into a target.

    Input: the original (files with the reading `options` of the release, or Trajectories on its grid) and the
    release (a file with at least the box columns, or one in memory). If the file does not state its grid, `options`
    must state it: crs, cell, slot. The `audit` says who owns each record; a release in memory may know it itself.
    Options that are not given come from the private `run_record`, which is found by itself beside the release or the
    audit file. `k` may ask for more than is claimed.
    Output: a Target. Raises CannotCheck if something can't be read or does not belong together, TooLarge if the
    people do not fit into memory. Cost: reading both, and a sort of the records.
    """
    with brought(release, run) as at_hand, run.stage("reading the release"):
        recorded = recorded_reading(original, at_hand, options, run_record=run_record, audit=audit)
        options = recorded.options
        seen = open_release(at_hand)
        header = _header(seen, original, options)
        records = _records(seen, header, run)
    if not len(records) or not records.unique.sound.any():
        raise CannotCheck("the release has no record that could hold anybody; give a file with boxes")
    if k is not None and k < 1:
        raise SettingsError("k must be at least 1; give e.g. `k=5`")
    with (
        run.stage("reading the original"),
        open_crowd(
            original,
            options,
            header.grid,
            run=run.within(None if run.memory is None else max(0, run.memory - records.nbytes)),
        ) as people,
    ):
        recorded.require_same_zone(people.seconds(header.grid), records.seconds(header.grid))
        whole = people.whole()
        audit = seen.audit if audit is None else audit
        witnesses = None if audit is None else _read_audit(audit, people, records, run)
    tz = original.frame.tz if isinstance(original, Trajectories) else (options.tz if options else "UTC")
    largest = max(k or 0, header.k or 0) or None
    left_out = seen.suppressed != 0
    target = Target(whole, records, header.claim, largest, header.grid, tz, suppressed=left_out, recorded=recorded)
    return target if witnesses is None else _with_audit(target, witnesses)


def _header(seen: SeenRelease, original: Any, options: ReadOptions | None) -> Header:
    """Return the header that a release states or, if it states nothing, one from the options of the caller."""
    header = seen.header
    if header is None and seen.stated is None:
        return foreign_header(original, options)
    if header is None:
        raise CannotCheck("the shoal object of the release can't be understood; check the release with shoal verify")
    return header


def _records(seen: SeenRelease, header: Header, run: Run) -> Catalogue:
    """Return the records of the release; raises CannotCheck if some boxes can't be read."""
    findings = Findings()
    scan = seen.boxes(findings, header.grid, run=run)
    if scan is None:
        raise CannotCheck(
            "the release can't be read as boxes: it needs the columns uid, t_start, t_end, x_min, y_min, x_max, y_max "
            "(see the file formats); " + " ".join(findings.messages)
        )
    if scan.odd["wild"]:
        raise CannotCheck(
            f"{scan.odd['wild']:,} rows of the release can't be read; the file formats say how values are written"
        )
    return scan.records


def _read_audit(audit: str | Path | pa.Table, people: Crowd, records: Catalogue, run: Run) -> Witnesses:
    findings = Findings()
    witnesses = read_audit(findings, audit, people, records, run=run)
    if witnesses is None:
        raise CannotCheck("the audit does not belong to this release and original: " + " ".join(findings.messages))
    return witnesses


def _with_audit(target: Target, witnesses: Witnesses) -> Target:
    order = np.lexsort((witnesses.users, witnesses.records))
    offsets = offsets_of(np.bincount(witnesses.records, minlength=len(target.records)))
    return replace(target, owner=witnesses.owner, own=witnesses.own, members=(offsets, witnesses.users[order]))
