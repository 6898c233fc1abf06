"""Check identical groups: records that can't be told apart, in groups of at least k people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import CannotCheck
from shoal.run import LOCAL, Run
from shoal.seen.area import count_visits
from shoal.seen.arrays import spread
from shoal.seen.index import covering, holders, index_boxes, index_rarest, mark_boxes
from shoal.verifier.truth import check_some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.seen.audit import Witnesses
    from shoal.seen.findings import Findings
    from shoal.seen.index import CoverPairs
    from shoal.seen.people import Crowd
    from shoal.seen.records import Catalogue, Records

__all__ = ["check_identical"]

_USERS = 100_000  # users whose pairs are in memory at once


def check_identical(
    findings: Findings,
    people: Crowd,
    records: Catalogue,
    k: int,
    *,
    witnesses: Witnesses | None = None,
    stated: int | None = None,
    level: str = "member",
    run: Run = LOCAL,
) -> NDArray[np.int64] | None:
    """Check the claim `k-anonymity(k)`.

    Returns, without an audit, in which group everybody is (-1: in none, or in several).

    Records are identical, box by box, in groups of at least k; there are no more records than users; every
    user's samples are inside the record of a group, two-way (with an audit: of their own group); and every group
    has at least k such users, and as many as it was published for. Otherwise copies of one record could hide one person
    among themselves. `stated` is the largest number of suppressed samples that is stated, if no audit says which: see
    `_check_partly`. With the `level` of truth `group`, one-way: every box holds a sample of somebody who is inside its
    record, and at least k of these people were in its area at some time.
    """
    unique = records.unique
    small = int((unique.weights < k).sum())
    findings.fail_if(small, "identical/small-groups", k=k)
    published = int(records.weights.sum())
    findings.fail_if(published > len(people), "identical/more-records-than-users")
    findings.fail_if(not len(records), "identical/no-record")
    findings.figures["groups"] = len(unique)
    findings.figures["min_group"] = int(unique.weights.min()) if len(unique) else 0
    if level == "group" and witnesses is None:
        return _check_one_way(findings, people, unique, k, stated, run)
    if stated is not None:
        _check_partly(findings, people, unique, k, stated, run)
        return None
    homes, times = np.full(len(people), -1, dtype=np.int64), np.zeros(len(people), dtype=np.int64)
    persons = np.zeros(len(unique), dtype=np.int64)
    if witnesses is not None:
        own = witnesses.owned()
        times[witnesses.users[own]] = 1
        persons += np.bincount(records.groups[witnesses.records[own]], minlength=len(unique))
    else:
        for start, (user, record, _) in _pairs(people, unique, whole=True, run=run):
            homes[start + user] = record
            times += np.bincount(start + user, minlength=len(people))
            persons += np.bincount(record, minlength=len(unique))
    left_out = int(((times == 0) & (people.counts > 0)).sum())
    findings.fail_if(left_out, "identical/left-out")
    _check_persons(findings, persons, k, unique.weights)
    findings.figures["min_cover"] = 0 if left_out else findings.figures["min_group"]
    return np.where(times == 1, homes, -1)


def _pairs(people: Crowd, unique: Records, *, whole: bool, run: Run) -> Iterator[tuple[int, CoverPairs]]:
    """Yield the pairs of a user and a record whose boxes all hold a sample of theirs, with each block's first user."""
    index = None
    for start, part in people.parts():
        index = index or index_rarest(unique, part, run=run)
        for first in range(0, len(part), _USERS):
            users = np.arange(first, min(first + _USERS, len(part)))
            yield start, covering(part, index, users, whole=whole, run=run)


def _check_partly(findings: Findings, people: Crowd, unique: Records, k: int, stated: int, run: Run) -> None:
    """Check what must be true no matter which samples were suppressed.

    Every group has at least k users with a sample in each of its boxes; and even if everybody were in the group
    that holds most of their samples, no more than `stated` samples are outside.
    """
    persons = np.zeros(len(unique), dtype=np.int64)
    least = people.counts.copy()
    for start, (user, record, outside) in _pairs(people, unique, whole=False, run=run):
        persons += np.bincount(record, minlength=len(unique))
        np.minimum.at(least, start + user, outside)
    _check_persons(findings, persons, k, unique.weights)
    if least.sum() > stated:
        findings.fail("suppression/more-than-stated")


def _check_one_way(
    findings: Findings, people: Crowd, unique: Records, k: int, stated: int | None, run: Run
) -> NDArray[np.int64]:
    """Check without an audit what is possible, if a box may be about some members of its group only.

    Every group has at least k users all of whose samples are inside its record. Every box holds a sample of one of them
    and covers an area in which at least k of them were. Everybody is inside some record; with suppression, all but so
    many samples as were `stated`. A person who lost only some samples is inside no record: if there are too many such
    people, only the audit can decide.
    """
    index = index_boxes(unique)
    persons, marked = np.zeros(len(unique), dtype=np.int64), np.zeros(len(unique.boxes), dtype=bool)
    visits = np.zeros(len(unique.boxes), dtype=np.int64)
    homes, times = np.full(len(people), -1, dtype=np.int64), np.zeros(len(people), dtype=np.int64)
    for start, part in people.parts():
        for first in range(0, len(part), _USERS):
            last = min(first + _USERS, len(part))
            ends, record = holders(index, part.offsets[first : last + 1], part.t, part.x, part.y, run=run)
            user = first + spread(np.diff(ends))
            homes[start + user] = record
            times += np.bincount(start + user, minlength=len(people))
            persons += np.bincount(record, minlength=len(unique))
            mark_boxes(part, unique, user, record, marked)
            count_visits(part, unique, user, record, visits)
    left_out = (times == 0) & (people.counts > 0)
    if stated is not None and int(people.counts[left_out].sum()) > stated:
        raise CannotCheck(
            "samples were suppressed, so loss can't be told from suppression; give the audit file: `audit`"
        )
    if stated is None:
        findings.fail_if(int(left_out.sum()), "identical/left-out")
        findings.figures["min_cover"] = 0 if left_out.any() else findings.figures["min_group"]
    check_some(findings, marked)
    findings.fail_if(int((visits < k).sum()), "identical/area-of-few", k=k)
    _check_persons(findings, persons, k, unique.weights if stated is None else persons)
    return np.where(times == 1, homes, -1)


def _check_persons(findings: Findings, persons: NDArray[np.int64], k: int, published: NDArray[np.int64]) -> None:
    """Check that every group holds at least k people, and as many as it was `published` for."""
    lonely = int((persons < k).sum())
    findings.fail_if(lonely, "identical/too-few-users", k=k)
    swollen = int(((k <= persons) & (persons < published)).sum())
    findings.fail_if(swollen, "identical/too-many-people")
