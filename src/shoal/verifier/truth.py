"""Check truth: no sample is created or lost uncounted, and every box is about the members of its record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal.run import LOCAL, Run
from shoal.seen.area import count_visits
from shoal.seen.arrays import ROWS, blocks, fresh, spread
from shoal.seen.header import is_count
from shoal.seen.index import hold, mark_boxes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.seen.audit import Witnesses
    from shoal.seen.findings import Findings
    from shoal.seen.header import Header
    from shoal.seen.original import Original
    from shoal.seen.people import Crowd
    from shoal.seen.records import Catalogue, Records

__all__ = [
    "check_boxes",
    "check_coarse",
    "check_each",
    "check_members",
    "check_some",
    "check_suppressed",
    "check_whole",
]


def check_boxes(findings: Findings, records: Catalogue) -> None:
    """Check, without an audit, that every record has boxes, sorted and disjoint in time."""
    broken = int((~records.unique.sound[records.groups]).sum())
    findings.fail_if(broken, "truth/boxes")


def check_coarse(findings: Findings, records: Catalogue, header: Header) -> None:
    """Check that every box is one slot of the coarser grid that uniform generalization states, and some cells of it."""
    grid, unique = header.grid, records.unique
    slot_s, cell_m = header.settings.get("slot_s"), header.settings.get("cell_m")
    if not is_count(slot_s) or not is_count(cell_m) or slot_s % grid.slot_s or cell_m % grid.cell_m:
        findings.fail("truth/finer-grid", n=int(unique.counts[records.groups].sum()))
        return
    slots, cells = slot_s // grid.slot_s, cell_m // grid.cell_m
    t0, t1, *edges = unique.boxes.T.astype(np.int64)
    off = (t0 % slots != 0) | (t1 - t0 + 1 != slots)
    for low, high in (edges[:2], edges[2:]):
        off |= (low % cells != 0) | ((high + 1) % cells != 0)
    findings.fail_if(int(off.sum()), "truth/finer-grid")


def check_members(
    findings: Findings,
    people: Crowd,
    records: Catalogue,
    witnesses: Witnesses,
    *,
    declared: int,
    tolerance: float,
    max_suppressed: float,
    level: str = "member",
    run: Run = LOCAL,
) -> tuple[Crowd, Witnesses]:
    """Check truth, and suppression, with the members that an audit names.

    Every sample of a member that was not suppressed is in a box (in one only, since boxes are disjoint), and every box
    of a record holds a sample of every member (level `member`) or of some member (level `group`). At the weaker level
    every member was in the area of every box at some time: in GLOVE, a piece of a merged box keeps its whole area, so
    a box of one person's own is none of GLOVE's. A sample that none
    of the user's records holds is suppressed; held by some only is a failure. `declared` is the count that was stated,
    within `tolerance`: if it is 0, a sample that no record holds is lost, not suppressed. Returns the people with their
    published samples and the witnesses with the outcome for each pair.
    """
    pairs = _pairs(witnesses, records, len(people))
    marked = np.zeros(len(records.unique.boxes) if level == "group" else 0, dtype=bool)
    published = check_suppressed(
        findings,
        people,
        lambda start, part: _check_part(part, records.unique, pairs, start, marked, run),
        declared=declared,
        tolerance=tolerance,
        max_suppressed=max_suppressed,
    )
    whole = (pairs.samples == published.counts[pairs.users])[pairs.of]
    check_whole(findings, whole)
    if level == "group":
        check_some(findings, marked)
        elsewhere = int((pairs.visited < records.unique.counts[pairs.records])[pairs.of].sum())
        findings.fail_if(elsewhere, "truth/member-elsewhere")
        _note_empty(findings, pairs, records.unique)
        some = (pairs.samples > 0)[pairs.of]  # a user without published samples hides nobody
        return published, witnesses.checked(whole & some)
    true = (pairs.boxes == records.unique.counts[pairs.records])[pairs.of]
    check_each(findings, true)
    return published, witnesses.checked(whole & true)


def check_suppressed(
    findings: Findings,
    people: Crowd,
    check: Callable[[int, Original], tuple[int, NDArray[np.bool_]]],
    *,
    declared: int,
    tolerance: float,
    max_suppressed: float,
) -> Crowd:
    """Check people part by part; return them with their published samples.

    `check` takes the number of a part's first user, and the part; it returns how many samples only some of their user's
    records hold, and which any does. Where nothing is `declared` to be suppressed, every sample counts as published.
    """
    mixed, masks, counts = 0, [], people.counts.copy()
    for start, part in people.parts():
        more, held = check(start, part)
        mixed += more
        if declared != 0:
            masks.append(held)
            counts[start : start + len(part)] = np.diff(np.searchsorted(np.flatnonzero(held), part.offsets))
    published = people.keep(masks, counts) if declared != 0 else people
    _check_share(findings, people.samples - published.samples, people.samples, declared, tolerance, max_suppressed)
    findings.fail_if(mixed, "suppression/mixed")
    findings.figures["mixed_samples"] = mixed
    return published


def check_whole(findings: Findings, whole: NDArray[np.bool_]) -> None:
    """Check that, for all claimed pairs, the record holds all published samples of its member."""
    lost = int((~whole).sum())
    findings.fail_if(lost, "truth/member-outside")


def check_each(findings: Findings, true: NDArray[np.bool_]) -> None:
    """Check truth of level `member`: for all claimed pairs, every box of the record holds a sample of the member."""
    created = int((~true).sum())
    findings.fail_if(created, "truth/member-without-sample")


def check_some(findings: Findings, marked: NDArray[np.bool_]) -> None:
    """Check truth of level `group`: every box is marked, so it holds a sample of a member of its record."""
    created = int((~marked).sum())
    findings.fail_if(created, "truth/box-without-sample")


def _note_empty(findings: Findings, pairs: _MemberPairs, records: Records) -> None:
    """Report how often a member of a record has no sample in a box of it; level `group` allows that."""
    boxes = int(records.counts[pairs.records].sum())
    share = 1 - int(pairs.boxes.sum()) / boxes if boxes else 0.0
    findings.figures["empty_pairs_share"] = round(share, 6)
    findings.note("group-truth", share=share)


@dataclass(frozen=True, eq=False)
class _MemberPairs:
    """The distinct pairs of a user and a unique record, by user, and the pair `of` each witness.

    `first[u]` is the first pair of user u. `samples` and `boxes` are filled in: see `Held`. So is, for truth of level
    `group`, `visited`: in the area of how many boxes the user was.
    """

    users: NDArray[np.int64]
    records: NDArray[np.int64]
    of: NDArray[np.int64]
    first: NDArray[np.int64]
    samples: NDArray[np.int64]
    boxes: NDArray[np.int64]
    visited: NDArray[np.int64]


def _pairs(witnesses: Witnesses, records: Catalogue, users: int) -> _MemberPairs:
    """Return each pair of a user and a kind of record once: what holds for a record holds for identical ones."""
    kinds = len(records.unique)
    key = witnesses.users * kinds + records.groups[witnesses.records]
    order = np.argsort(key)
    key = key[order]
    new = fresh(key)
    of = np.empty(len(order), dtype=np.int64)
    of[order] = np.cumsum(new) - 1
    user, record = np.divmod(key[new], max(kinds, 1))
    first = np.searchsorted(user, np.arange(users + 1))
    return _MemberPairs(user, record, of, first, *np.zeros((3, len(user)), dtype=np.int64))


def _check_part(
    part: Original, records: Records, pairs: _MemberPairs, start: int, marked: NDArray[np.bool_], run: Run
) -> tuple[int, NDArray[np.bool_]]:
    """Fill in the pairs of a part's users; return how many samples only some records hold, and which any holds.

    `marked`, if it is not empty: mark the boxes that hold a sample.
    """
    first = pairs.first[start : start + len(part) + 1]
    claimed = np.diff(first)
    held = np.zeros(len(part.t), dtype=bool)
    mixed = []

    def work(begin: int, end: int) -> None:
        rows = slice(int(part.offsets[begin]), int(part.offsets[end]))
        mine = slice(int(first[begin]), int(first[end]))
        tally = np.zeros(rows.stop - rows.start, dtype=np.int32)
        users = pairs.users[mine] - start
        if len(users):
            skipped = int(part.offsets[users[0]]) - rows.start
            pairs.samples[mine], pairs.boxes[mine] = hold(
                part, records, users, pairs.records[mine], tally=tally[skipped:]
            )
            if len(marked):
                mark_boxes(part, records, users, pairs.records[mine], marked)
                pairs.visited[mine] = count_visits(part, records, users, pairs.records[mine])
        held[rows] = tally > 0
        if claimed[begin:end].max() > 1:
            mixed.append(int((held[rows] & (tally < claimed[begin:end].take(spread(part.counts[begin:end])))).sum()))

    ranges = ((block.start, block.stop) for block in blocks(part.counts * np.maximum(claimed, 1), ROWS // 2))
    run.ranges(work, ranges)
    return sum(mixed), held


def _check_share(
    findings: Findings, suppressed: int, samples: int, declared: int, tolerance: float, limit: float
) -> None:
    """Check that no more samples were suppressed than are stated and accepted."""
    share = suppressed / samples if samples else 1.0
    findings.figures["suppressed_samples"] = suppressed
    findings.figures["suppressed_share"] = round(share, 6)
    findings.fail_if(share > limit, "suppression/too-many", share=share, limit=limit)
    findings.fail_if(suppressed == samples, "suppression/nothing-published")
    wrong = abs(suppressed - declared) > tolerance
    findings.fail_if(wrong, "suppression/not-as-stated")
