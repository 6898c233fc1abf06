"""Windows, looked through one by one: how many people fit, and what all of them tell beyond the window. Compiled.

A record *fits* a window of a user if it holds all of their samples in it and has no box wholly inside the window
without one of them. All windows that start, or end, at a sample are looked through, user after user, by their last
sample. Records that fitted an earlier window of the user are tried first; then, only if the answer is still open, those
that hold the last sample and have held all before it in the window. It is open until k people were found and no sample
outside is held by all of them: a further record can't change anything then.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.jit import jit
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks
from shoal.seen.index import index_boxes
from shoal.verifier.windows_holders import find_holders, no_holders

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Granules, Ints, Ints32
    from shoal.seen.index import BoxIndex
    from shoal.seen.original import Original
    from shoal.seen.records import Records
    from shoal.verifier.windows_holders import Holders

__all__ = ["WindowTally", "look_through"]

_SAMPLES = 20_000  # of users in one call of the kernel: about a second
_REMEMBERED = 1 << 25  # bytes for records that fitted other windows of the user
# Which of the two windows at a sample a record fits. For each plain int the kernels would be compiled anew.
_STARTS: Any = np.int64(1)
_ENDS: Any = np.int64(2)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, eq=False)
class WindowTally:
    """What was found in all windows.

    `least[u]` is the smallest number of people that fit a window of user u that starts at a sample (below k exact,
    else at least k), `short` the number of those windows with fewer than k, of `windows`; `ending_short` the same for
    windows that end at a sample. `leaks` and `times` are how far (in slots, on the longer side) what all records that
    fit hold reaches without a break, and in how many windows, of both kinds. Of the `outside` samples of all windows,
    `told` are held by all records that fit. `counts`, if asked for, is the number of people that fit each window.
    """

    least: NDArray[np.int64]
    windows: int
    short: int
    ending_short: int
    leaks: NDArray[np.int64]
    times: NDArray[np.int64]
    outside: int
    told: int
    counts: NDArray[np.int64]


class _Task(NamedTuple):
    """Everybody's samples, all boxes, how many people each record counts for, and the question.

    `record[e]` and `around[e]` are the record and the box of entry e of the grid: copies, side by side as they are
    looked through, for memory far apart is what takes the time. A window may be closed with `enough` people; `room` is
    for records that are kept, in bytes.
    """

    t: Granules
    x: Granules
    y: Granules
    offsets: Ints
    grid: BoxIndex
    record: Ints32
    around: Granules
    weights: Ints
    tried: tuple[Ints, Ints]
    length: int
    k: int
    enough: int
    room: int


class _User(NamedTuple):
    """The windows of a user: `times[j]` is the first sample of their j-th time.

    The window that starts then has the samples times[j]…ends[j]-1, the one that ends then begins[j]…times[j+1]-1.
    `missed` and `bad` are room to work in.
    """

    times: Ints
    ends: Ints
    begins: Ints
    missed: Ints
    bad: Ints


class _Kept(NamedTuple):
    """Records that fit some window of a user: `fits[j, n]` which of those at time j, `bits[n]` the samples it holds.

    There are `size[0]` of them; `keeper[r]` is the last user that record r was kept for.
    """

    record: Ints
    fits: NDArray[np.uint8]
    bits: NDArray[np.uint64]
    size: Ints
    keeper: Ints


class _Window(NamedTuple):
    """The window of the samples low…high-1 that begins at `begin`, and ends with its last slot, `end`."""

    low: int
    high: int
    begin: int
    end: int


class _Answer(NamedTuple):
    """About a window: the people found, and the outside samples that all of them hold.

    `span` are the words of `told` that are not zero.
    """

    persons: Ints
    told: NDArray[np.uint64]
    span: Ints


def look_through(
    people: Original,
    records: Records,
    weights: NDArray[np.int64],
    *,
    length: int,
    k: int,
    known: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
    exact: bool,
    room: int = _REMEMBERED,
    run: Run = LOCAL,
) -> WindowTally:
    """Look through all windows of `length` slots.

    Input: the people with their published samples, distinct records, how many people each is published for, and,
    `known`, lists (starts, records) of the records to try first for each user. Guarantee: exact, whatever the threads,
    `known` and `room` (bytes to remember records in); `exact` counts all people of each window. Cost: for each sample
    the boxes around it, until the answer can't change, and for each record that fits some window of a user a walk
    through their samples and its boxes.
    """
    index = index_boxes(records)
    record = index.record.astype(np.int32)[index.entry]
    around = np.ascontiguousarray(records.boxes[index.rows[index.entry]].T)
    tried = known or (np.zeros(len(people) + 1, np.int64), np.empty(0, np.int64))
    enough = np.iinfo(np.int64).max if exact else k  # people: a window that has them may be closed
    task = _Task(
        people.t, people.x, people.y, people.offsets, index, record, around, weights, tried, length, k, enough, room
    )
    least = np.full(len(people), np.iinfo(np.int64).max)
    sums = np.zeros(5, np.int64)
    leaks: dict[int, int] = {}
    counts: dict[int, NDArray[np.int64]] = {}
    longest = int(records.counts.max(initial=0))
    adding = Lock()

    def work(start: int, stop: int) -> None:
        rows = 2 * int(people.offsets[stop] - people.offsets[start])
        leak, fitting, own = np.empty(rows, np.int64), np.empty(rows // 2, np.int64), np.zeros(5, np.int64)
        n = _look(task, start, stop, longest, least, leak, fitting, own)
        values, times = np.unique(leak[:n], return_counts=True)
        with adding:
            np.add(sums, own, out=sums)
            for value, time in zip(values.tolist(), times.tolist(), strict=True):
                leaks[value] = leaks.get(value, 0) + time
            counts[start] = fitting[: own[0] if exact else 0].copy()

    run.ranges(work, ((part.start, part.stop) for part in blocks(people.counts, _SAMPLES)))
    far = np.array(sorted(leaks), np.int64)
    windows, short, ending_short, outside, told = sums.tolist()
    return WindowTally(
        least,
        windows,
        short,
        ending_short,
        far,
        np.array([leaks[value] for value in far.tolist()], np.int64),
        outside,
        told,
        np.concatenate([np.empty(0, np.int64), *(counts[start] for start in sorted(counts))]),
    )


@jit
def _holds(boxes: Granules, b: int, t: int, x: int, y: int) -> bool:
    """Return whether a box holds a sample; time first, which tells most."""
    if t < boxes[b, 0] or t > boxes[b, 1]:
        return False
    return bool(boxes[b, 2] <= x and x <= boxes[b, 3] and boxes[b, 4] <= y and y <= boxes[b, 5])


@jit
def _fits(task: _Task, window: _Window, row: int, first: int, last: int) -> bool:
    """Return whether a record, the boxes first…last-1, fits a window; box `row` holds the last sample in it."""
    t, x, y, boxes = task.t, task.x, task.y, task.grid.boxes
    if row + 1 < last and boxes[row + 1, 1] <= window.end:
        return False
    b = row
    for p in range(window.high - 2, window.low - 1, -1):
        if boxes[b, 0] > t[p]:  # the box before is next: between two samples, it may not be without one
            b -= 1
        if b < first or not _holds(boxes, b, t[p], x[p], y[p]):
            return False
    return not (b - 1 >= first and boxes[b - 1, 0] >= window.begin)


@jit
def _times(t: Granules, start: int, stop: int) -> Ints:
    """Return where each distinct time of sorted samples begins, and where the last ends."""
    begins = np.empty(stop - start + 1, np.int64)
    n = 0
    for p in range(start, stop):
        if p == start or t[p] != t[p - 1]:
            begins[n] = p
            n += 1
    begins[n] = stop
    return begins[: n + 1]


@jit
def _reaches(t: Granules, times: Ints, length: int) -> tuple[Ints, Ints]:
    """Return for each time where the window that starts there has its last sample, and the one that ends its first."""
    start, stop, n = times[0], times[-1], len(times) - 1
    ends, begins = np.empty(n, np.int64), np.empty(n, np.int64)
    end = begin = start
    for j in range(n):
        now = np.int64(t[times[j]])
        while end < stop and t[end] < now + length:
            end += 1
        while t[begin] <= now - length:
            begin += 1
        ends[j], begins[j] = end, begin
    return ends, begins


@jit
def _note(task: _Task, user: _User, r: int, fits: NDArray[np.uint8], bits: NDArray[np.uint64]) -> None:
    """Note which windows of the user record r fits, and which of their samples it holds."""
    t, x, y, boxes, length = task.t, task.x, task.y, task.grid.boxes, task.length
    first, last = task.grid.offsets[r], task.grid.offsets[r + 1]
    times, ends, begins, missed, bad = user.times, user.ends, user.begins, user.missed, user.bad
    start, stop = times[0], times[-1]
    bits[:] = 0
    n_bad = 0
    p = start
    missed[0] = 0
    for b in range(first, last + 1):
        full = False
        while p < stop and (b == last or t[p] <= boxes[b, 1]):
            inside = b < last and _holds(boxes, b, t[p], x[p], y[p])
            missed[p - start + 1] = missed[p - start] + (not inside)
            if inside:
                full = True
                bits[(p - start) >> 6] |= np.uint64(1) << np.uint64((p - start) & 63)
            p += 1
        if b < last and not full:
            bad[n_bad] = b
            n_bad += 1
    after = before = 0
    for j in range(len(times) - 1):
        now = np.int64(t[times[j]])
        while after < n_bad and boxes[bad[after], 0] < now:
            after += 1
        while before < n_bad and boxes[bad[before], 1] <= now:
            before += 1
        fits[j] = 0
        clear = after == n_bad or boxes[bad[after], 1] >= now + length
        if clear and missed[ends[j] - start] == missed[times[j] - start]:
            fits[j] |= _STARTS
        clear = before == 0 or boxes[bad[before - 1], 0] <= now - length
        if clear and missed[times[j + 1] - start] == missed[begins[j] - start]:
            fits[j] |= _ENDS


@jit
def _has(told: NDArray[np.uint64], p: int) -> bool:
    return bool((told[p >> 6] >> np.uint64(p & 63)) & np.uint64(1))


# more than six arguments: plain numbers of one window, counted from the user's first sample, and the samples told
@jit
def _reach(t: Granules, start: int, n: int, told: NDArray[np.uint64], low: int, high: int, begin: int, end: int) -> int:
    """Return how far the told run beyond the window begin…end, of the samples low…high-1, reaches; the longer side."""
    p = high
    while p < n and _has(told, p):
        p += 1
    after = t[start + p - 1] - end if p > high else 0
    p = low
    while p > 0 and _has(told, p - 1):
        p -= 1
    return max(after, begin - t[start + p] if p < low else 0)


@jit
def _keep(task: _Task, u: int, user: _User, r: int, kept: _Kept, most: int) -> tuple[_Kept, int]:
    """Note what record r tells of the user and keep it if there is room, at most `most`; give where it is."""
    n = kept.size[0]
    if n + 1 == len(kept.record) and n + 1 < most:
        kept = _wider(kept)
    _note(task, user, r, kept.fits[:, n], kept.bits[n])
    if n + 1 < most:  # else it is forgotten again: the last place is for that
        kept.keeper[r], kept.record[n] = u, r
        kept.size[0] += 1
    return kept, n


@jit
def _wider(kept: _Kept) -> _Kept:
    """Return room for twice as many records."""
    n = len(kept.record)
    record = np.empty(2 * n, np.int64)
    fits = np.empty((len(kept.fits), 2 * n), np.uint8)
    bits = np.empty((2 * n, kept.bits.shape[1]), np.uint64)
    for i in range(n):  # a slice takes seconds to compile, for the words of its error
        record[i] = kept.record[i]
        for j in range(len(fits)):
            fits[j, i] = kept.fits[j, i]
        for word in range(bits.shape[1]):
            bits[i, word] = kept.bits[i, word]
    return _Kept(record, fits, bits, kept.size, kept.keeper)


@jit
def _try_first(task: _Task, u: int, user: _User, kept: _Kept, most: int) -> _Kept:
    """Keep the records that are to be tried first."""
    for e in range(task.tried[0][u], task.tried[0][u + 1]):
        r = task.tried[1][e]
        if kept.keeper[r] != u and task.weights[r] and task.grid.apart[r] and kept.size[0] + 1 < most:
            kept, _ = _keep(task, u, user, r, kept, most)
    return kept


@jit
def _begin(user: _User, window: _Window, answer: _Answer) -> None:
    """Begin with everything outside the window told, by nobody so far."""
    start, n, told = user.times[0], len(user.missed) - 1, answer.told
    told[:] = _ALL
    if n & 63:
        told[len(told) - 1] = (np.uint64(1) << np.uint64(n & 63)) - np.uint64(1)
    for p in range(window.low - start, window.high - start):
        told[p >> 6] &= ~(np.uint64(1) << np.uint64(p & 63))
    answer.persons[0] = 0
    answer.span[0], answer.span[1] = 0, len(told)


@jit
def _add(answer: _Answer, persons: int, bits: NDArray[np.uint64], n: int, enough: int) -> bool:
    """Add a record, which holds bits[n]; say whether that closes the window: enough people, and nothing told."""
    told, low, high = answer.told, answer.span[0], answer.span[1]
    for word in range(low, high):
        told[word] &= bits[n, word]
    while low < high and told[low] == 0:
        low += 1
    while low < high and told[high - 1] == 0:
        high -= 1
    answer.span[0], answer.span[1] = low, high
    answer.persons[0] += persons
    return bool(answer.persons[0] >= enough and low == high)


@jit
def _recall(task: _Task, j: int, side: int, answer: _Answer, kept: _Kept) -> bool:
    """Add the kept records that fit a window at time j, the latest first; say whether that closes it."""
    fits = kept.fits[j]
    for i in range(kept.size[0] - 1, -1, -1):
        if fits[i] & side and _add(answer, task.weights[kept.record[i]], kept.bits, i, task.enough):
            return True
    return False


# more than six arguments: each is a group already, and lives for another time: all users, one user, one window
@jit
def _look_at(
    task: _Task,
    u: int,
    user: _User,
    j: int,
    side: int,
    window: _Window,
    answer: _Answer,
    kept: _Kept,
    most: int,
    holders: Holders,
) -> _Kept:
    """Answer for a window, the one at time j of that side."""
    _begin(user, window, answer)
    if _recall(task, j, side, answer, kept):
        return kept
    while holders.at[0] < window.high:
        find_holders(task, holders.at[0], holders)
    offsets = task.grid.offsets
    for i in range(holders.at[1]):
        r = holders.record[i]
        if holders.run[r] < window.high - window.low or kept.keeper[r] == u:
            continue
        if _fits(task, window, holders.row[i], offsets[r], offsets[r + 1]):
            kept, n = _keep(task, u, user, r, kept, most)
            if _add(answer, task.weights[r], kept.bits, n, task.enough):
                break
    return kept


@jit
def _report(task: _Task, user: _User, window: _Window, answer: _Answer, sums: Ints) -> int:
    """Count what is outside of a window and what of it is told; give how far the latter reaches."""
    start, n = user.times[0], len(user.missed) - 1
    low, high, begin, end = window
    sums[3] += n - (high - low)
    if answer.persons[0] == 0:
        return 0
    for word in range(answer.span[0], answer.span[1]):
        rest = answer.told[word]
        while rest:
            rest &= rest - np.uint64(1)
            sums[4] += 1
    return _reach(task.t, start, n, answer.told, low - start, high - start, begin, end)


# more than six arguments: besides the task, a range of users and four lists that are filled
@jit
def _look(task: _Task, first: int, last: int, longest: int, least: Ints, leaks: Ints, fitting: Ints, sums: Ints) -> int:
    """Look through the windows of some users; give how many leaks were filled in. `sums`: see `WindowTally`."""
    n_records = len(task.weights)
    keeper, bad = np.full(n_records, -1, np.int64), np.empty(longest, np.int64)
    holders = no_holders(n_records)
    n_leaks = 0
    for u in range(first, last):
        start, stop = task.offsets[u], task.offsets[u + 1]
        if start == stop:
            continue
        times = _times(task.t, start, stop)
        ends, begins = _reaches(task.t, times, task.length)
        user = _User(times, ends, begins, np.empty(stop - start + 1, np.int64), bad)
        words = (stop - start + 63) >> 6
        most = max(8, task.room // (len(ends) + 8 * words))
        fits, bits = np.empty((len(ends), 64), np.uint8), np.empty((64, words), np.uint64)
        kept = _Kept(np.empty(64, np.int64), fits, bits, np.zeros(1, np.int64), keeper)
        answer = _Answer(np.zeros(1, np.int64), np.zeros(words, np.uint64), np.zeros(2, np.int64))
        kept = _try_first(task, u, user, kept, most)
        i: Any = np.int64(0)
        for j in range(len(ends)):  # the windows that have sample times[j+1] - 1 as their last
            if kept.size[0] + 1 >= most:
                for n in range(kept.size[0]):
                    keeper[kept.record[n]] = -1
                kept.size[0] = 0
            holders.at[0] = max(holders.at[0], begins[j])
            now: Any = np.int64(task.t[times[j]])
            if task.t[begins[j]] != now - task.length + 1:  # else it starts at a sample too, and is among the others
                window = _Window(begins[j], times[j + 1], now - task.length + 1, now)
                kept = _look_at(task, u, user, j, _ENDS, window, answer, kept, most, holders)
                sums[2] += answer.persons[0] < task.k
                leaks[n_leaks] = _report(task, user, window, answer, sums)
                n_leaks += 1
            while i < len(ends) and ends[i] == times[j + 1]:
                begin: Any = np.int64(task.t[times[i]])
                window = _Window(times[i], ends[i], begin, begin + task.length - 1)
                kept = _look_at(task, u, user, i, _STARTS, window, answer, kept, most, holders)
                least[u] = min(least[u], answer.persons[0])
                fitting[sums[0]] = answer.persons[0]
                sums[0] += 1
                sums[1] += answer.persons[0] < task.k
                leaks[n_leaks] = _report(task, user, window, answer, sums)
                n_leaks += 1
                i += 1
    return n_leaks
