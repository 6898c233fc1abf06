"""Records: the published boxes as sorted arrays, and the search of the box that may hold a sample."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Records"]


@dataclass(frozen=True, eq=False)
class Records:
    """The records of a release.

    `boxes` is an (m, 6) int64 array `t0, t1, x0, x1, y0, y1` of inclusive, absolute granules; record r is
    `boxes[offsets[r]:offsets[r+1]]` and was published under the number `uids[r]` for `weights[r]` people.
    """

    uids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    boxes: NDArray[np.int64]
    weights: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many boxes each record has."""
        return np.diff(self.offsets)

    @cached_property
    def sound(self) -> NDArray[np.bool_]:
        """Which records have boxes, none of them empty, sorted and disjoint in time. Others hold nothing."""
        t0, t1, x0, x1, y0, y1 = self.boxes.T
        bad = (t1 < t0) | (x1 < x0) | (y1 < y0)
        record = np.repeat(np.arange(len(self)), self.counts)
        bad[1:] |= (record[1:] == record[:-1]) & (t0[1:] <= t1[:-1])
        sound: NDArray[np.bool_] = (self.counts > 0) & (np.bincount(record[bad], minlength=len(self)) == 0)
        return sound

    @cached_property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Give per record its first box, its last box and its bounds, as (R, 6) arrays; empty ones hold nothing."""
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
    def _keys(self) -> tuple[NDArray[np.int64], int, int]:
        low, high = (int(self.boxes[:, 0].min()), int(self.boxes[:, 0].max())) if len(self.boxes) else (0, 0)
        span = high - low + 3
        record = np.repeat(np.arange(len(self), dtype=np.int64), self.counts)
        return record * span + (self.boxes[:, 0] - low + 1), low, span

    def find(
        self, record: NDArray[np.int64], t: NDArray[np.int64], x: NDArray[np.int64], y: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Give, for each (record, sample), the box of that record that holds the sample, or -1.

        Boxes of a sound record are sorted and disjoint in time, so the last box that starts no later than the
        sample is the only one that can hold it.
        """
        keys, low, span = self._keys
        if not len(keys):
            return np.full(len(record), -1, dtype=np.int64)
        wanted = record * span + np.clip(t - low + 1, 0, span - 1)
        box = np.searchsorted(keys, wanted, side="right") - 1
        inside = self.sound[record] & (box >= self.offsets[record])
        box[~inside] = 0
        candidate = self.boxes[box]
        inside &= (t >= candidate[:, 0]) & (t <= candidate[:, 1])
        inside &= (x >= candidate[:, 2]) & (x <= candidate[:, 3])
        inside &= (y >= candidate[:, 4]) & (y <= candidate[:, 5])
        return np.where(inside, box, -1)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """Give each record the number of its group of identical records, numbered by first appearance."""
        seen: dict[bytes, int] = {}
        groups = np.empty(len(self), dtype=np.int64)
        data = np.ascontiguousarray(self.boxes)
        for record, (start, end) in enumerate(zip(self.offsets[:-1], self.offsets[1:], strict=True)):
            digest = hashlib.sha256(data[start:end].tobytes()).digest()
            groups[record] = seen.setdefault(digest, len(seen))
        return groups

    def distinct(self) -> Records:
        """Give each group of identical records once, weighing as many people as the group's records together."""
        groups = self.groups
        before = np.concatenate([[-1], np.maximum.accumulate(groups)[:-1]])
        weights = np.bincount(groups, weights=self.weights).astype(np.int64)
        return replace(self.take(np.flatnonzero(groups > before)), weights=weights)

    def take(self, chosen: NDArray[np.int64]) -> Records:
        """Give some of the records."""
        counts = self.counts[chosen]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        rows: Any = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], counts)
        return Records(self.uids[chosen], offsets, self.boxes[rows], self.weights[chosen])
