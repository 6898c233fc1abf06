"""Find the records that hold the points known of a victim, in a release and in the same way in raw data."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from shoal.errors import TooLarge
from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks, spread
from shoal.seen.index import holders, index_boxes
from shoal.seen.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.seen.index import BoxIndex

__all__ = [
    "Axis",
    "BoxMatcher",
    "KnownPoints",
    "Matcher",
    "PlaceMatcher",
    "RecordFinder",
    "SampleMatcher",
    "axes_of",
    "count_people",
    "matches",
    "pack",
    "unpack",
]

_BLOCK = 250  # queries at a time: in a dense city a single one may match every record
_BITS = 63


class KnownPoints(NamedTuple):
    """The points known of each victim: those of victim q are `offsets[q]:offsets[q+1]`."""

    offsets: NDArray[np.int64]
    t: NDArray[Any]
    x: NDArray[Any]
    y: NDArray[Any]

    def part(self, start: int, stop: int) -> KnownPoints:
        """Return the known points of the victims start…stop-1."""
        rows = slice(int(self.offsets[start]), int(self.offsets[stop]))
        edges = self.offsets[start : stop + 1] - self.offsets[start]
        return KnownPoints(edges, self.t[rows], self.x[rows], self.y[rows])


class RecordFinder(Protocol):
    """Kinds of published records: `weights[r]` people were published as kind r."""

    weights: NDArray[np.int64]

    def holders(self, known: KnownPoints, *, run: Run = LOCAL) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (offsets, kinds): for each victim the kinds, ascending, that hold all their known points."""
        ...


class Matcher(RecordFinder, Protocol):
    """Kinds of published records with access to their boxes."""

    def find(self, kind: NDArray[np.int64], t: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
        """Return for each row the box of the kind that holds the point; -1 if there is none."""
        ...

    def within(
        self, kind: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each row the range (start, stop) of the kind's boxes that lie wholly in the slots first…last."""
        ...

    def boxes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the boxes with these numbers, as `find` counts them: t0, t1, x0, x1, y0, y1, all inclusive."""
        ...


class BoxMatcher:
    """The matcher of a release. It uses sound records only: their boxes are sorted and disjoint in time."""

    def __init__(self, records: Records) -> None:
        self.records, self.weights = records, records.weights

    @cached_property
    def _index(self) -> BoxIndex:
        return index_boxes(self.records)

    @cached_property
    def _edges(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return np.ascontiguousarray(self.records.boxes[:, 0]), np.ascontiguousarray(self.records.boxes[:, 1])

    def holders(self, known: KnownPoints, *, run: Run = LOCAL) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each victim the kinds that hold all their known points."""
        return holders(self._index, *known, run=run)

    def find(self, kind: NDArray[np.int64], t: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
        """Return the box that holds the point: only the last one that does not start later can; -1 if it does not."""
        low, high = self.records.offsets[kind], self.records.offsets[kind + 1]
        box = _bisect(self._edges[0], low, high, t) - 1
        inside = (box >= low) & self.records.sound[kind]
        candidate = self.records.boxes[np.where(inside, box, 0)]
        for column, value in ((0, t), (2, x), (4, y)):
            inside &= (candidate[:, column] <= value) & (value <= candidate[:, column + 1])
        return np.where(inside, box, -1)

    def within(
        self, kind: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the range of the boxes of the kind that lie wholly in the slots first…last."""
        low, high = self.records.offsets[kind], self.records.offsets[kind + 1]
        start, end = self._edges
        return _bisect(start, low, high, first - 1), _bisect(end, low, high, last)

    def boxes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the boxes with these numbers."""
        return self.records.boxes[rows].astype(np.int64)


class PlaceMatcher:
    """The matcher of a release without its times: box b counts for the categories hours[b, 0]…hours[b, 1] only.

    Categories take the place of slots. Very many records hold a place, so the holders of a place are kept as bits, and
    looked up once for all victims who share it.
    """

    def __init__(self, records: Records, hours: NDArray[np.int64]) -> None:
        boxes = records.boxes.copy()
        boxes[:, :2] = hours
        boxes[~records.sound[spread(records.counts)], :2] = (1, 0)  # holds nothing
        self.weights = records.weights
        self._index = index_boxes(Records(records.offsets, boxes, records.weights), overlapping=True)
        self._held: dict[tuple[int, ...], NDArray[np.uint8]] = {}

    def holders(self, known: KnownPoints, *, run: Run = LOCAL) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each victim the kinds that hold every known place in its category."""
        places = list(zip(*(column.tolist() for column in known[1:]), strict=True))
        self._look_up([place for place in dict.fromkeys(places) if place not in self._held], run)
        counts, found = np.zeros(len(known.offsets) - 1, dtype=np.int64), [np.empty(0, np.int64)]
        for query, (start, stop) in enumerate(pairwise(known.offsets.tolist())):
            if start < stop:
                bits = np.bitwise_and.reduce([self._held[place] for place in places[start:stop]])
                found.append(np.flatnonzero(np.unpackbits(bits)[: len(self.weights)]))
                counts[query] = len(found[-1])
        return offsets_of(counts), np.concatenate(found)

    def _look_up(self, places: list[tuple[int, ...]], run: Run) -> None:
        """Find the kinds that hold each place, some places at a time."""
        for start in range(0, len(places), _BLOCK):
            some = places[start : start + _BLOCK]
            t, x, y = np.array(some, dtype=np.int64).T.copy()
            offsets, kinds = holders(self._index, np.arange(len(some) + 1), t, x, y, run=run)
            for place, (first, last) in zip(some, pairwise(offsets.tolist()), strict=True):
                holds = np.zeros(len(self.weights), dtype=bool)
                holds[kinds[first:last]] = True
                self._held[place] = np.packbits(holds)


class SampleMatcher:
    """The matcher of raw data: record u is the samples of user u, to the granule, distinct and sorted by (t, x, y)."""

    def __init__(self, offsets: NDArray[np.int64], t: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> None:
        self._offsets, self._columns = offsets, (t, x, y)
        self._axes = axes_of(t, x, y)
        self._keys = pack(self._axes, t, x, y)
        self.weights = np.ones(len(offsets) - 1, dtype=np.int64)

    @cached_property
    def _by_granule(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self._keys, kind="stable")
        return self._keys[order], order

    def holders(
        self,
        known: KnownPoints,
        *,
        run: Run = LOCAL,  # noqa: ARG002  sorted arrays need no threads
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return for each victim the users who have all their known points; the rarest point is looked up first."""
        keys, order = self._by_granule
        point = pack(self._axes, *known[1:])
        first, last = (np.searchsorted(keys, point, side) for side in ("left", "right"))
        some = np.flatnonzero(np.diff(known.offsets) > 0)
        rarest = _least(last - first, known.offsets, some)
        counts = np.zeros(len(known.offsets) - 1, dtype=np.int64)
        found = []
        for part in blocks((last - first)[rarest]):
            at = rarest[part]
            n = last[at] - first[at]
            query = some[part][spread(n)]
            rows = np.arange(len(query)) + (first[at] - offsets_of(n)[:-1])[spread(n)]
            user = np.searchsorted(self._offsets, order[rows], side="right") - 1
            for step in range(int(np.diff(known.offsets)[some[part]].max(initial=0))):
                asked = np.minimum(known.offsets[query] + step, known.offsets[query + 1] - 1)
                has = self._row(user, point[asked]) >= 0
                query, user = query[has], user[has]
            counts += np.bincount(query, minlength=len(counts))
            found.append(user[np.lexsort((user, query))])
        return offsets_of(counts), np.concatenate([np.empty(0, np.int64), *found])

    def find(self, kind: NDArray[np.int64], t: NDArray[Any], x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.int64]:
        """Return for each row the sample of the user that equals the point; -1 if there is none."""
        return self._row(kind, pack(self._axes, t, x, y))

    def within(
        self, kind: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the range of the user's samples that are in the slots first…last."""
        low, high = self._offsets[kind], self._offsets[kind + 1]
        t = self._columns[0]
        return _bisect(t, low, high, first - 1), _bisect(t, low, high, last)

    def boxes(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return these samples as boxes of one granule."""
        return np.repeat(np.stack([column[rows] for column in self._columns], axis=1), 2, axis=1).astype(np.int64)

    def _row(self, user: NDArray[np.int64], key: NDArray[np.int64]) -> NDArray[np.int64]:
        low = self._offsets[user]
        row = _bisect(self._keys, low, self._offsets[user + 1], key) - 1
        same = row >= low
        same &= self._keys[np.where(same, row, 0)] == key
        return np.where(same, row, -1)


def matches(
    matcher: RecordFinder, known: KnownPoints, *, run: Run = LOCAL
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield (query, kind) for every kind that holds all known points, some queries at a time, sorted by query."""
    for start in range(0, len(known.offsets) - 1, _BLOCK):
        stop = min(start + _BLOCK, len(known.offsets) - 1)
        offsets, kinds = matcher.holders(known.part(start, stop), run=run)
        yield start + spread(np.diff(offsets)), kinds


def count_people(matcher: RecordFinder, known: KnownPoints, *, run: Run = LOCAL) -> NDArray[np.int64]:
    """Count for each victim the people published as records that hold all the victim's known points."""
    people = np.zeros(len(known.offsets) - 1, dtype=np.int64)
    for query, kind in matches(matcher, known, run=run):
        people += np.bincount(query, weights=matcher.weights[kind], minlength=len(people)).astype(np.int64)
    return people


def _bisect(
    values: NDArray[Any], low: NDArray[np.int64], high: NDArray[np.int64], wanted: NDArray[Any]
) -> NDArray[np.int64]:
    """Return for each row the first index in the sorted values[low:high] of a value above `wanted`; else high."""
    low, high = low.copy(), high.copy()
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        open_ = low < high
        below = open_ & (values[np.where(open_, middle, 0)] <= wanted)
        low = np.where(below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    return low


def _least(values: NDArray[np.int64], offsets: NDArray[np.int64], lists: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of the least value of each list (none may be empty), the first one of equal values."""
    which = spread(np.diff(offsets))
    order = np.lexsort((values, which))
    return order[offsets[lists]]


class Axis(NamedTuple):
    """How a coordinate becomes a number below 2**bits: its distance from `low`, or its rank among `ranks`."""

    low: int
    high: int
    bits: int
    ranks: NDArray[Any] | None


def axes_of(*columns: NDArray[Any]) -> list[Axis]:
    """Return how to pack rows of whole numbers, such as (t, x, y), into one number of 63 bits that sorts like them."""
    axes = []
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        axes.append(Axis(low, high, (high - low).bit_length(), None))
    if sum(axis.bits for axis in axes) > _BITS:
        axes = [
            Axis(axis.low, axis.high, (len(values) - 1).bit_length(), values)
            for axis, values in zip(axes, map(np.unique, columns), strict=True)
        ]
    if sum(axis.bits for axis in axes) > _BITS:
        raise TooLarge("there are more places and times than can be numbered; attack fewer people or a shorter period")
    return axes


def pack(axes: list[Axis], *columns: NDArray[Any]) -> NDArray[np.int64]:
    """Pack each point into one number; -1 for points that nobody has."""
    packed = np.zeros(len(columns[0]), dtype=np.int64)
    strange = np.zeros(len(packed), dtype=bool)
    for axis, column in zip(axes, columns, strict=True):
        strange |= (column < axis.low) | (column > axis.high)
        value = np.clip(column, axis.low, axis.high).astype(np.int64) - axis.low
        if axis.ranks is not None:
            value = np.searchsorted(axis.ranks, np.clip(column, axis.low, axis.high))
            strange |= axis.ranks[value] != column
        packed = (packed << axis.bits) | value
    return np.where(strange, -1, packed)


def unpack(axes: list[Axis], packed: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the columns of rows that were packed into one number each.

    >>> columns = np.array([7, 9]), np.array([-1, 5])
    >>> axes = axes_of(*columns)
    >>> [column.tolist() for column in unpack(axes, pack(axes, *columns))]
    [[7, 9], [-1, 5]]
    """
    columns = []
    for axis in reversed(axes):
        value = packed & ((1 << axis.bits) - 1)
        columns.append(value + axis.low if axis.ranks is None else axis.ranks[value].astype(np.int64))
        packed = packed >> axis.bits
    return columns[::-1]
