"""Truth and suppression where users were merged into a record for some time only: the same, within that time."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from shoal.jit import jit
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks
from shoal.seen.records import boxes_of
from shoal.verifier.truth import check_each, check_suppressed, check_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.jit import Granules, Ints
    from shoal.seen.audit import Witnesses
    from shoal.seen.findings import Findings
    from shoal.seen.original import Original
    from shoal.seen.people import Crowd
    from shoal.seen.records import Catalogue, RecordBoxes, Records

__all__ = ["check_merged"]

_WORK = 200_000  # samples and witnesses in one call of the kernel


class _Claimed(NamedTuple):
    """The claimed pairs, by user: pair p is a kind of record, and the slots from which and up to which it holds."""

    starts: Ints
    record: Ints
    first: Ints
    last: Ints
    whole: NDArray[np.bool_]
    true: NDArray[np.bool_]


_Samples: TypeAlias = "tuple[Granules, Granules, Granules, Ints]"


def check_merged(
    findings: Findings,
    people: Crowd,
    records: Catalogue,
    witnesses: Witnesses,
    *,
    declared: int,
    tolerance: float,
    max_suppressed: float,
    run: Run = LOCAL,
) -> tuple[Crowd, Witnesses]:
    """Check truth and suppression with an audit that says when each member was merged: see `truth.check_members`.

    Every box that lies wholly in a member's time holds a sample of theirs. Every published sample of theirs in that
    time is in a box. The records that they were merged into at the time of a sample all hold it, or it is suppressed.
    An owner is always merged into their own record. Cost: linear in the samples and boxes within the times.
    """
    claimed, order = _claimed(witnesses, records, len(people))
    published = check_suppressed(
        findings,
        people,
        lambda start, part: _check_part(part, records.unique, claimed, start, declared != 0, run),
        declared=declared,
        tolerance=tolerance,
        max_suppressed=max_suppressed,
    )
    check_whole(findings, claimed.whole)
    check_each(findings, claimed.true)
    good = np.empty(len(order), dtype=bool)
    good[order] = claimed.whole & claimed.true
    return published, witnesses.checked(good)


def _claimed(witnesses: Witnesses, records: Catalogue, users: int) -> tuple[_Claimed, NDArray[np.int64]]:
    """Sort the claimed pairs by user."""
    order = np.argsort(witnesses.users, kind="stable")
    starts = np.searchsorted(witnesses.users[order], np.arange(users + 1))
    ever = np.full(len(order), 1 << 62)
    first, last = witnesses.first, witnesses.last
    claimed = _Claimed(
        starts.astype(np.int64),
        records.groups[witnesses.records[order]],
        -ever if first is None else first[order],
        ever if last is None else last[order],
        np.zeros(len(order), dtype=bool),
        np.zeros(len(order), dtype=bool),
    )
    return claimed, order


def _check_part(
    part: Original, records: Records, claimed: _Claimed, start: int, suppressing: bool, run: Run
) -> tuple[int, NDArray[np.bool_]]:
    """Check the pairs of a part's users; give how many samples only some records hold, and which any does."""
    held = np.zeros(len(part.t), dtype=bool)
    boxes = boxes_of(records)
    counts = part.counts + np.diff(claimed.starts[start : start + len(part) + 1])
    mixed, adding = [0], Lock()

    def work(begin: int, end: int) -> None:
        samples = (part.t, part.x, part.y, part.offsets)
        more = _check_users(samples, begin, end, start, boxes, claimed, suppressing, held)
        with adding:
            mixed[0] += int(more)

    run.ranges(work, ((block.start, block.stop) for block in blocks(counts, _WORK)))
    return mixed[0], held


@jit
def _first_after(values: Granules, low: int, high: int, least: int) -> int:
    """Return the first place in low…high-1 of an ascending list whose value is not below `least`, else high."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


# more than six arguments: samples, boxes and pairs are groups already; the rest says which of them, and what is filled
@jit
def _check_pair(
    samples: _Samples, low: int, high: int, kept: RecordBoxes, claimed: _Claimed, p: int, got: Ints, base: int
) -> tuple[int, bool]:
    """Return how many of the samples low…high-1 the record of a pair holds, and whether each box in its time holds one.

    got[q - base] counts the records that hold sample q.
    """
    t, x, y, _ = samples
    r, first, last = claimed.record[p], claimed.first[p], claimed.last[p]
    boxes, b_end = kept.boxes, kept.offsets[r + 1]
    if not kept.sound[r]:
        return 0, False
    held, true = 0, True
    b = _first_after(boxes[:, 1], kept.offsets[r], b_end, first)
    q = low
    while b < b_end and boxes[b, 0] <= last:
        full = False
        while q < high and t[q] < boxes[b, 0]:
            q += 1
        while q < high and t[q] <= boxes[b, 1]:
            if boxes[b, 2] <= x[q] and x[q] <= boxes[b, 3] and boxes[b, 4] <= y[q] and y[q] <= boxes[b, 5]:
                full = True
                held += 1
                got[q - base] += 1
            q += 1
        if not full and boxes[b, 0] >= first and boxes[b, 1] <= last:
            true = False
        b += 1
    return held, true


# more than six arguments: samples, boxes and pairs are groups already; the rest says which users, and what is filled
@jit
def _check_users(
    samples: _Samples,
    begin: int,
    end: int,
    shift: int,
    kept: RecordBoxes,
    claimed: _Claimed,
    suppressing: bool,
    held: NDArray[np.bool_],
) -> int:
    """Fill in the pairs of some users and which of their samples are held; give how many only some records hold."""
    t, _, _, offsets = samples
    mixed = 0
    base = offsets[begin]
    got = np.zeros(offsets[end] - base, np.int64)
    active = np.zeros(offsets[end] - base + 1, np.int64)
    for u in range(begin, end):
        start, stop = offsets[u], offsets[u + 1]
        pairs = range(claimed.starts[shift + u], claimed.starts[shift + u + 1])
        ranges = np.empty((len(pairs), 3), np.int64)
        for n, p in enumerate(pairs):
            low = _first_after(t, start, stop, claimed.first[p])
            high = _first_after(t, low, stop, claimed.last[p] + 1)
            active[low - base] += 1
            active[high - base] -= 1
            ranges[n, 0], ranges[n, 1] = low, high
            ranges[n, 2], claimed.true[p] = _check_pair(samples, low, high, kept, claimed, p, got, base)
        published = np.zeros(stop - start + 1, np.int64)
        now = 0
        for q in range(start, stop):
            now += active[q - base]
            held[q] = got[q - base] > 0
            mixed += held[q] and got[q - base] < now
            published[q - start + 1] = published[q - start] + (held[q] or not suppressing)
        active[stop - base] = 0
        for n, p in enumerate(pairs):
            inside = published[ranges[n, 1] - start] - published[ranges[n, 0] - start]
            claimed.whole[p] = ranges[n, 2] == inside and kept.sound[claimed.record[p]]
    return mixed
