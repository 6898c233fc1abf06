"""Records: the published boxes as sorted arrays; identical records are kept once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks, fresh, narrow, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Granules, Ints
    from shoal.release import Release
    from shoal.seen.grid import Grid

__all__ = ["Catalogue", "RecordBoxes", "Records", "boxes_of", "catalogue", "records_of_release"]

_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Records:
    """Some records.

    `boxes` is an (m, 6) array `t0, t1, x0, x1, y0, y1` of inclusive, absolute granules, int32 where they fit;
    record r is `boxes[offsets[r]:offsets[r+1]]` and was published for `weights[r]` people. `unlike` says that
    no two of them are identical.
    """

    offsets: NDArray[np.int64]
    boxes: NDArray[Any]
    weights: NDArray[np.int64]
    unlike: bool = False

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """The memory they take, in bytes."""
        return self.offsets.nbytes + self.boxes.nbytes + self.weights.nbytes

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """The number of boxes of each record."""
        return np.diff(self.offsets)

    @cached_property
    def sound(self) -> NDArray[np.bool_]:
        """Which records are sound: they have boxes, none empty, sorted and disjoint in time. Others hold nothing."""
        t0, t1, x0, x1, y0, y1 = self.boxes.T
        bad = (t1 < t0) | (x1 < x0) | (y1 < y0)
        early = np.zeros(len(bad), dtype=bool)
        early[1:] = t0[1:] <= t1[:-1]
        early[self.offsets[:-1][self.counts > 0]] = False  # the first box of a record has no box before it
        wrong = np.searchsorted(self.offsets, np.flatnonzero(bad | early), side="right") - 1
        sound: NDArray[np.bool_] = self.counts > 0
        sound[wrong] = False
        return sound

    @cached_property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return per record its first box, its last box and its bounds, as (R, 6) arrays; empty ones hold nothing."""
        nothing = np.tile(np.array([1, 0] * 3, dtype=np.int64), (len(self), 1))
        first, last, bounds = nothing.copy(), nothing.copy(), nothing
        full = self.counts > 0
        starts = self.offsets[:-1][full]
        if len(starts):
            first[full], last[full] = self.boxes[starts], self.boxes[self.offsets[1:][full] - 1]
            for low in (0, 2, 4):
                bounds[full, low] = np.minimum.reduceat(self.boxes[:, low], starts)
                bounds[full, low + 1] = np.maximum.reduceat(self.boxes[:, low + 1], starts)
        return first, last, bounds

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The number of each record's group of identical records; groups are numbered by first appearance."""
        return np.arange(len(self)) if self.unlike else _groups(self, LOCAL)

    def distinct(self) -> Records:
        """Return each group of identical records once, weighing as many people as the group's records together."""
        return self if self.unlike else _merged(self, self.groups)

    def take(self, chosen: NDArray[np.int64]) -> Records:
        """Return the chosen records; none may be chosen twice."""
        offsets = offsets_of(self.counts[chosen])
        boxes = np.empty((int(offsets[-1]), 6), dtype=self.boxes.dtype)
        for part in blocks(np.diff(offsets)):
            boxes[offsets[part.start] : offsets[part.stop]] = self.boxes[self.rows(chosen[part])]
        return Records(offsets, boxes, self.weights[chosen], self.unlike)

    def rows(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of the boxes of the chosen records, one record after the other."""
        counts = self.counts[chosen]
        shift = self.offsets[:-1][chosen] - offsets_of(counts)[:-1]
        which = spread(counts)
        return np.arange(len(which)) + shift.take(which)


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The records of a release, each kind of identical ones kept once.

    Record r was published under the number `uids[r]` for `weights[r]` people; it is `unique` record `groups[r]`,
    which weighs as many people as its group.
    """

    uids: NDArray[np.int64]
    groups: NDArray[np.int64]
    weights: NDArray[np.int64]
    unique: Records

    def __len__(self) -> int:
        return len(self.uids)

    @property
    def nbytes(self) -> int:
        """The memory it takes, in bytes."""
        return self.uids.nbytes + self.groups.nbytes + self.weights.nbytes + self.unique.nbytes

    def seconds(self, grid: Grid) -> tuple[int, int]:
        """Return the first and the last second that a record covers."""
        boxes = self.unique.boxes
        return (
            (int(boxes[:, 0].min()) * grid.slot_s, (int(boxes[:, 1].max()) + 1) * grid.slot_s) if len(boxes) else (0, 0)
        )


class RecordBoxes(NamedTuple):
    """The boxes of all records: record r has those from offsets[r] to offsets[r+1]; `sound` ones hold something."""

    offsets: Ints
    boxes: Granules
    sound: NDArray[np.bool_]


def boxes_of(records: Records) -> RecordBoxes:
    """Return the boxes of records in the form that kernels take."""
    return RecordBoxes(records.offsets, records.boxes, records.sound)


def catalogue(uids: NDArray[np.int64], records: Records, *, run: Run = LOCAL) -> Catalogue:
    """Find identical records among those published under these numbers, and keep each kind once.

    Cost: linear, and a sort of one number per record.
    """
    groups = _groups(records, run)
    return Catalogue(uids, groups, records.weights, _merged(records, groups))


def records_of_release(release: Release, *, run: Run = LOCAL) -> Catalogue:
    """Make records of a release that is still in memory."""
    boxes = release.boxes.reshape(-1, 6)
    if release.frame.origin_slot:
        boxes = boxes.astype(np.int64)
        boxes[:, :2] += release.frame.origin_slot
        boxes = narrow(boxes)
    size = len(release.offsets) - 1
    weights = np.ones(size) if release.multiplicity is None else release.multiplicity
    records = Records(release.offsets.astype(np.int64), boxes, weights.astype(np.int64))
    return catalogue(np.arange(size), records, run=run)


def _merged(records: Records, groups: NDArray[np.int64]) -> Records:
    """Return the first record of each group with the weight of the whole group."""
    first = np.flatnonzero(fresh(np.maximum.accumulate(groups)))
    if len(first) == len(records):
        return replace(records, unlike=True)
    weights = np.bincount(groups, weights=records.weights).astype(np.int64)
    return replace(records.take(first), weights=weights, unlike=True)


def _groups(records: Records, run: Run) -> NDArray[np.int64]:
    """Return the number of each record's group of identical records, found by a hash and compared box by box."""
    digest = _digests(records, run)
    order = np.argsort(digest, kind="stable")
    new = fresh(digest[order])
    again = np.flatnonzero(~new)
    if not _alike(records, order[again - 1], order[again], run):
        return _groups_by_bytes(records)
    first = order[new]  # the sort is stable: the first of each group in the release
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first, kind="stable")] = np.arange(len(first))
    groups = np.empty(len(records), dtype=np.int64)
    groups[order] = number[np.cumsum(new) - 1]
    return groups


def _digests(records: Records, run: Run) -> NDArray[np.uint64]:
    """Hash every record: its boxes and their positions in it."""
    digest = records.counts.astype(np.uint64)
    full = records.counts > 0

    def work(start: int, stop: int) -> None:
        counts, first = records.counts[start:stop], int(records.offsets[start])
        boxes = records.boxes[first : records.offsets[stop]]
        starts = records.offsets[start:stop] - first
        mixed = (np.arange(len(boxes)) - starts.take(spread(counts))).astype(np.uint64)
        for column in boxes.T:
            mixed ^= column.astype(np.int64).view(np.uint64)
            mixed *= _MIX
            mixed ^= mixed >> np.uint64(29)
        some = full[start:stop]
        if len(mixed):
            digest[start:stop][some] += np.add.reduceat(mixed, starts[some])

    run.ranges(work, ((part.start, part.stop) for part in blocks(records.counts)))
    return digest


def _alike(records: Records, left: NDArray[np.int64], right: NDArray[np.int64], run: Run) -> bool:
    """Return whether these pairs of records are all identical."""
    if not np.array_equal(records.counts[left], records.counts[right]):
        return False
    differ = []

    def work(start: int, stop: int) -> None:
        one, other = records.rows(left[start:stop]), records.rows(right[start:stop])
        if not np.array_equal(records.boxes.take(one, axis=0), records.boxes.take(other, axis=0)):
            differ.append(start)

    run.ranges(work, ((part.start, part.stop) for part in blocks(records.counts[left])))
    return not differ


def _groups_by_bytes(records: Records) -> NDArray[np.int64]:
    """Compare records by their bytes, one after the other: for hashes that happen to be the same."""
    seen: dict[bytes, int] = {}
    edges = zip(records.offsets[:-1].tolist(), records.offsets[1:].tolist(), strict=True)
    return np.array([seen.setdefault(records.boxes[a:b].tobytes(), len(seen)) for a, b in edges], dtype=np.int64)
