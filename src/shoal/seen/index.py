"""Who is held by which records: compiled searches over boxes, exact, and shared with nothing that makes releases.

Boxes are found by the cells of as many grids as there are sizes of boxes; a box touches at most 8 cells of its grid.
Cells are hashed: a collision gives a candidate too many, never one too few, and every candidate is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.lists import offsets_of, ranges_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import spread
from shoal.seen.records import boxes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Granules, Ints, Ints32
    from shoal.seen.original import Original
    from shoal.seen.records import RecordBoxes, Records

__all__ = ["BoxIndex", "CoverPairs", "Held", "covering", "hold", "holders", "index_boxes", "index_rarest", "mark_boxes"]

_QUERIES = 2_000  # in one call of a kernel: well below a second
_HOUR, _PLACE = 6, 4  # bits of slots and of cells that share a counter of the crowd
_COUNTERS = 1 << 22
_COUNTED = 10_000_000  # samples at most, to tell where people are many
_LOW, _MIX = (1 << 31) - 1, 0x5E3779B1
_LOOKED_AT = 256  # counters at most that a box is looked up in


class BoxIndex(NamedTuple):
    """Some boxes of records, by cell: row n is box `rows[n]` of record `record[n]`.

    `sizes` are the grids (bits of time, bits of space); `entry[starts[c]:starts[c+1]]` are the rows in cell c. Record
    r is `boxes[offsets[r]:offsets[r+1]]`; `apart[r]` says that its boxes are sorted and disjoint in time.
    """

    sizes: Ints
    starts: Ints
    entry: Ints32
    rows: Ints
    record: Ints
    offsets: Ints
    boxes: Granules
    apart: NDArray[np.bool_]


class Held(NamedTuple):
    """Per pair: how many of the user's samples the record holds, and how many of its boxes hold one of them."""

    samples: NDArray[np.int64]
    boxes: NDArray[np.int64]


class _Samples(NamedTuple):
    """Everybody's samples: user u has those from offsets[u] to offsets[u+1]."""

    t: Granules
    x: Granules
    y: Granules
    offsets: Ints


class CoverPairs(NamedTuple):
    """Pairs of a user and a record, and how many samples of the user are outside it; by user."""

    user: NDArray[np.int64]
    record: NDArray[np.int64]
    outside: NDArray[np.int64]


@jit
def _bits(span: int) -> int:
    """Return the least even b with span < 2**b."""
    b = 0
    while span >> b:
        b += 2
    return b


@jit
def _cell(long: int, wide: int, t: int, x: int, y: int, mask: int) -> int:
    """Hash the cell of a point on the grid of boxes that long and wide."""
    mixed = np.int64(long * 64 + wide)
    for part in (t >> long, x >> wide, y >> wide):
        mixed = (mixed ^ (np.int64(part) & _LOW)) * _MIX  # 31 bits times 31: never too large
        mixed = (mixed ^ (mixed >> 29)) & _LOW
    return int(mixed & mask)


@jit
def _fill_cells(
    boxes: Granules, rows: Ints, starts: Ints, entry: Ints32, grids: NDArray[np.bool_], *, place: bool
) -> None:
    """Count the rows in each cell (starts[cell + 1]), or, `place`, put them there and move starts[cell] on."""
    mask = len(starts) - 2
    for n in range(len(rows)):
        t0, t1, x0, x1, y0, y1 = boxes[rows[n]]
        long = _bits(np.int64(t1) - t0)
        wide = _bits(max(np.int64(x1) - x0, np.int64(y1) - y0))
        grids[long, wide] = True
        for i in range(1 + ((t0 >> long) != (t1 >> long))):
            for j in range(1 + ((x0 >> wide) != (x1 >> wide))):
                for m in range(1 + ((y0 >> wide) != (y1 >> wide))):
                    cell = _cell(long, wide, t1 if i else t0, x1 if j else x0, y1 if m else y0, mask)
                    if place:
                        entry[starts[cell]] = n
                        starts[cell] += 1
                    else:
                        starts[cell + 1] += 1


def _index(records: Records, rows: NDArray[np.int64], record: NDArray[np.int64]) -> BoxIndex:
    n_cells = 1 << max(4, int(4 * len(rows)).bit_length())
    starts = np.zeros(n_cells + 1, np.int64)
    grids = np.zeros((64, 64), np.bool_)
    none = np.empty(0, np.int32)
    _fill_cells(records.boxes, rows, starts, none, grids, place=False)
    starts = np.cumsum(starts)
    entry = np.empty(int(starts[-1]), np.int32)
    _fill_cells(records.boxes, rows, starts, entry, grids, place=True)
    starts = np.concatenate([[0], starts[:-1]])  # every cell's start has moved to its end
    sizes = np.ascontiguousarray(np.argwhere(grids), np.int64)  # one layout: kernels are compiled for each
    return BoxIndex(sizes, starts, entry, rows, record, records.offsets, records.boxes, records.sound)


def index_boxes(records: Records, *, overlapping: bool = False) -> BoxIndex:
    """Index all boxes of all sound records; `overlapping`: of all that are not empty, sound or not.

    Cost: up to 32 bytes of memory for each of at most 8 cells a box, and 16 for the box.
    """
    record = spread(records.counts)
    good = np.ones(len(record), dtype=bool) if overlapping else records.sound.take(record)
    low, high = records.boxes[:, 0::2], records.boxes[:, 1::2]
    rows = np.flatnonzero(good & (low <= high).all(axis=1))
    return _index(records, rows, record[rows])


@jit
def _count_crowd(t: Granules, x: Granules, y: Granules, step: int, crowd: Ints32) -> None:
    for p in range(0, len(t), step):
        crowd[_cell(_HOUR, _PLACE, t[p], x[p], y[p], len(crowd) - 1)] += 1


@jit
def _crowd_in(box: Granules, crowd: Ints32) -> float:
    """Guess how many samples a box holds; a box of very many counters holds more than any other, by its size."""
    t0, t1, x0, x1, y0, y1 = box
    hours = (t1 >> _HOUR) - (t0 >> _HOUR) + 1
    across = (x1 >> _PLACE) - (x0 >> _PLACE) + 1
    along = (y1 >> _PLACE) - (y0 >> _PLACE) + 1
    if np.float64(hours) * across * along > _LOOKED_AT:
        return float(1e12 * np.float64(hours) * across * along)
    n = 0
    for hour in range(hours):
        for i in range(across):
            for j in range(along):
                at = (t0 + (hour << _HOUR), x0 + (i << _PLACE), y0 + (j << _PLACE))
                n += crowd[_cell(_HOUR, _PLACE, at[0], at[1], at[2], len(crowd) - 1)]
    return float((n + 1.0) * min(1.0, (t1 - t0 + 1.0) / (hours << _HOUR)))


@jit
def _rarest(records: RecordBoxes, crowd: Ints32, start: int, stop: int, rows: Ints) -> None:
    """Fill the box of each record that holds fewest samples, by the guess; -1 for records that hold nothing."""
    for r in range(start, stop):
        rows[r] = -1
        least = np.inf
        if records.sound[r]:
            for b in range(records.offsets[r], records.offsets[r + 1]):
                n = _crowd_in(records.boxes[b], crowd)
                if n < least:
                    least = n
                    rows[r] = b


def index_rarest(records: Records, people: Original, *, run: Run = LOCAL) -> BoxIndex:
    """Index one box of each sound record: the one that fewest of these people's samples are in, as far as is known.

    Whoever has a sample in every box of a record has one in that box; any other box would do too, only slower.
    """
    crowd = np.zeros(_COUNTERS, np.int32)
    _count_crowd(people.t, people.x, people.y, 1 + len(people.t) // _COUNTED, crowd)
    rows, boxes = np.empty(len(records), np.int64), boxes_of(records)

    def work(start: int, stop: int) -> None:
        _rarest(boxes, crowd, start, stop, rows)

    run.ranges(work, ranges_of(len(records), _QUERIES))
    record = np.flatnonzero(rows >= 0)
    return _index(records, rows[record], record)


@jit
def _holds(box: Granules, t: int, x: int, y: int) -> bool:
    return bool(box[0] <= t and t <= box[1] and box[2] <= x and x <= box[3] and box[4] <= y and y <= box[5])


@jit
def _record_holds(index: BoxIndex, record: int, t: int, x: int, y: int) -> bool:
    """Return whether a box of the record holds the point."""
    low, high = index.offsets[record], index.offsets[record + 1]
    if not index.apart[record]:
        while low < high and not _holds(index.boxes[low], t, x, y):
            low += 1
        return bool(low < high)
    while low < high:  # the last box that starts no later than t is the only one that can hold it
        middle = (low + high) // 2
        if index.boxes[middle, 0] <= t:
            low = middle + 1
        else:
            high = middle
    return bool(low > index.offsets[record] and _holds(index.boxes[low - 1], t, x, y))


@jit
def _grown(values: Ints) -> Ints:
    more = np.empty(2 * len(values), np.int64)
    for n in range(len(values)):  # a slice takes seconds to compile, for the words of its error
        more[n] = values[n]
    return more


# more than six arguments: the innermost loop of every search; its callers hold these arrays in different groups
@jit
def _walk(
    t: Granules,
    x: Granules,
    y: Granules,
    start: int,
    stop: int,
    boxes: Granules,
    first: int,
    last: int,
    most: int,
    tally: Ints32,
) -> tuple[int, int]:
    """Return how many of the samples start…stop-1 are outside the boxes first…last-1, and how many boxes hold one.

    Both come sorted in time, the boxes disjoint. With most >= 0 it stops, saying that too many are outside, as soon
    as there are more than that or a box holds none. `tally`, if it is not empty, counts who holds each sample.
    """
    outside = 0
    full = 0
    p = start
    for b in range(first, last):
        while p < stop and t[p] < boxes[b, 0]:
            p += 1
            outside += 1
        inside = 0
        while p < stop and t[p] <= boxes[b, 1]:
            if boxes[b, 2] <= x[p] and x[p] <= boxes[b, 3] and boxes[b, 4] <= y[p] and y[p] <= boxes[b, 5]:
                inside += 1
                if len(tally):
                    tally[p - start] += 1
            else:
                outside += 1
            p += 1
        if inside:
            full += 1
        if most >= 0 and (outside > most or inside == 0):
            return stop - start + 1, full
    return outside + stop - p, full


@jit
def _pairs_of(people: _Samples, users: Ints, index: BoxIndex, stop_at: int, *, whole: bool) -> tuple[Ints, Ints, Ints]:
    """Return (user, record, outside) where every box of a record holds a sample of the user; `whole`: none outside.

    The index has one box of each record. No more than `stop_at` records of a user are given; -1: all.
    """
    t, x, y, offsets = people
    mask = len(index.starts) - 2
    seen = np.full(len(index.apart), -1, np.int64)
    no_tally = np.empty(0, np.int32)
    user_of, record_of, outside_of = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    n = 0
    for u in users:
        start, stop = offsets[u], offsets[u + 1]
        most = 0 if whole else stop - start
        found = 0
        for p in range(start, stop):
            if found == stop_at:
                break
            for size in index.sizes:
                cell = _cell(size[0], size[1], t[p], x[p], y[p], mask)
                for e in range(index.starts[cell], index.starts[cell + 1]):
                    row = index.entry[e]
                    r = index.record[row]
                    if seen[r] == u or not _holds(index.boxes[index.rows[row]], t[p], x[p], y[p]):
                        continue
                    seen[r] = u
                    if found == stop_at:
                        continue
                    first, last = index.offsets[r], index.offsets[r + 1]
                    if whole and (t[start] < index.boxes[first, 0] or t[stop - 1] > index.boxes[last - 1, 1]):
                        continue
                    outside, _ = _walk(t, x, y, start, stop, index.boxes, first, last, most, no_tally)
                    if outside > most:
                        continue
                    if n == len(user_of):
                        user_of, record_of, outside_of = _grown(user_of), _grown(record_of), _grown(outside_of)
                    user_of[n], record_of[n], outside_of[n] = u, r, outside
                    n += 1
                    found += 1
    return user_of[:n], record_of[:n], outside_of[:n]


def covering(
    people: Original,
    index: BoxIndex,
    users: NDArray[np.int64],
    *,
    stop_at: int | None = None,
    whole: bool = True,
    run: Run = LOCAL,
) -> CoverPairs:
    """Return the pairs of these users and records in which every box of the record holds a sample of the user.

    `index` has one box of each record: `index_rarest`. With `whole` (two-way cover) no sample may be outside;
    `stop_at` gives no more than so many records of a user. Guarantee: exact, by user, the same whatever the threads.
    Cost: a look into each grid of boxes for each sample, and a walk through each record that fits so far.
    """
    found: dict[int, tuple[Any, Any, Any]] = {}
    samples = _Samples(people.t, people.x, people.y, people.offsets)

    def work(start: int, stop: int) -> None:
        found[start] = _pairs_of(samples, users[start:stop], index, stop_at or -1, whole=whole)

    run.ranges(work, ranges_of(len(users), _QUERIES))
    return CoverPairs(*(_joined([found[start][side] for start in sorted(found)]) for side in range(3)))


@jit
def _rarest_point(index: BoxIndex, t: Granules, x: Granules, y: Granules, start: int, stop: int) -> int:
    """Return the point in whose cells are fewest boxes."""
    mask = len(index.starts) - 2
    fewest = len(index.entry) + 1
    best = start
    for p in range(start, stop):
        n = 0
        for size in index.sizes:
            cell = _cell(size[0], size[1], t[p], x[p], y[p], mask)
            n += index.starts[cell + 1] - index.starts[cell]
        if n < fewest:
            fewest = n
            best = p
    return best


@jit
def _holders_of(index: BoxIndex, points: _Samples, queries: Ints, stop_at: int, counts: Ints) -> Ints:
    """Return the records that hold all points of each query, ascending, `stop_at` at most (-1: all); fill how many."""
    t, x, y, offsets = points
    mask = len(index.starts) - 2
    seen = np.full(len(index.apart), -1, np.int64)
    record_of = np.empty(64, np.int64)
    n = 0
    for number, q in enumerate(queries):
        start, stop = offsets[q], offsets[q + 1]
        begun = n
        if start < stop:
            best = _rarest_point(index, t, x, y, start, stop)
            for size in index.sizes:
                cell = _cell(size[0], size[1], t[best], x[best], y[best], mask)
                for e in range(index.starts[cell], index.starts[cell + 1]):
                    row = index.entry[e]
                    r = index.record[row]
                    if n - begun == stop_at:
                        break
                    if seen[r] == q or not _holds(index.boxes[index.rows[row]], t[best], x[best], y[best]):
                        continue
                    seen[r] = q
                    p = start
                    while p < stop and _record_holds(index, r, t[p], x[p], y[p]):
                        p += 1
                    if p == stop:
                        if n == len(record_of):
                            record_of = _grown(record_of)
                        record_of[n] = r
                        n += 1
        record_of[begun:n].sort()
        counts[number] = n - begun
    return record_of[:n]


def holders(
    index: BoxIndex,
    offsets: NDArray[np.int64],
    t: NDArray[Any],
    x: NDArray[Any],
    y: NDArray[Any],
    *,
    stop_at: int | None = None,
    run: Run = LOCAL,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each query the records that hold all its points, each in some box: one-way.

    Query q is the points `offsets[q]:offsets[q+1]` in any order; one without points has no holders. `index` has all
    boxes: `index_boxes`. Output: (offsets, records), ascending in each query; with `stop_at` no more than so many.
    Cost: the boxes around the rarest point of a query, times its points.
    """
    t, x, y = (np.ascontiguousarray(column) for column in (t, x, y))
    n_queries, points = len(offsets) - 1, _Samples(t, x, y, offsets)
    counts = np.zeros(n_queries, np.int64)
    found: dict[int, NDArray[np.int64]] = {}

    def work(start: int, stop: int) -> None:
        found[start] = _holders_of(index, points, np.arange(start, stop), stop_at or -1, counts[start:stop])

    run.ranges(work, ranges_of(n_queries, _QUERIES))
    return offsets_of(counts), _joined([found[start] for start in sorted(found)])


@jit
def _hold(people: _Samples, records: RecordBoxes, users: Ints, record: Ints, held: Held, tally: Ints32) -> None:
    """Fill what each pair holds; `tally`, if it is not empty, begins with the first user's first sample."""
    base = people.offsets[users[0]] if len(users) else 0
    first, boxes = records.offsets, records.boxes
    for n in range(len(users)):
        start, stop = people.offsets[users[n]], people.offsets[users[n] + 1]
        r = record[n]
        held.samples[n] = held.boxes[n] = 0
        if records.sound[r]:
            mine = tally[start - base : stop - base] if len(tally) else tally
            outside, full = _walk(people.t, people.x, people.y, start, stop, boxes, first[r], first[r + 1], -1, mine)
            held.samples[n] = stop - start - outside
            held.boxes[n] = full


def hold(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    record: NDArray[np.int64],
    *,
    tally: NDArray[np.int32] | None = None,
) -> Held:
    """Count what is held, for each pair of `users[p]` and `record[p]`.

    With `tally`, one number for each sample from that of `users[0]` on, users ascending: the number of records
    that hold a sample is added to it. Records that are not sound hold nothing. Cost: a walk through the samples and
    boxes of each pair.
    """
    held = Held(np.empty(len(users), np.int64), np.empty(len(users), np.int64))
    samples = _Samples(people.t, people.x, people.y, people.offsets)
    none = np.empty(0, np.int32)
    _hold(samples, boxes_of(records), users, record, held, none if tally is None else tally)
    return held


@jit
def _mark(people: _Samples, records: RecordBoxes, users: Ints, record: Ints, marked: NDArray[np.bool_]) -> None:
    """Mark the boxes of each pair's record that hold a sample of its user."""
    first, boxes = records.offsets, records.boxes
    for n in range(len(users)):
        p, stop = people.offsets[users[n]], people.offsets[users[n] + 1]
        if not records.sound[record[n]]:
            continue
        for b in range(first[record[n]], first[record[n] + 1]):
            while p < stop and people.t[p] <= boxes[b, 1]:
                if _holds(boxes[b], people.t[p], people.x[p], people.y[p]):
                    marked[b] = True
                p += 1


def mark_boxes(
    people: Original, records: Records, users: NDArray[np.int64], record: NDArray[np.int64], marked: NDArray[np.bool_]
) -> None:
    """Mark the boxes of `record[p]` that hold a sample of `users[p]`, for each pair; sound records only.

    Cost: a walk through the samples and boxes of each pair.
    """
    samples = _Samples(people.t, people.x, people.y, people.offsets)
    _mark(samples, boxes_of(records), users, record, marked)


def _joined(lists: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *lists])
