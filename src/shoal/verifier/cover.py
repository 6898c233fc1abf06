"""Check the claims `cover` and `k-concealment`: count the records that cover each user two-way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import spread
from shoal.seen.cover import LEAST_MEMBERS, complete_reach, count_cover, cover_pairs, tally_cover

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.audit import Witnesses
    from shoal.seen.findings import Findings
    from shoal.seen.original import Original
    from shoal.seen.records import Catalogue, Records

__all__ = ["check_concealment", "check_cover"]

# One-way cover only explains a failure; it is not worth minutes when everybody fails.
_EXPLAINED_USERS = 2_000


def check_cover(
    findings: Findings,
    people: Original,
    records: Catalogue,
    k: int,
    *,
    witnesses: Witnesses | None = None,
    exact: bool = False,
    run: Run = LOCAL,
) -> None:
    """Check that at least k records cover every user, two-way, and that there are no more records than users.

    The witnesses that an audit claims are counted first. For users with fewer than k, all records are searched.
    A record that covers a single user hides nobody, even if many other records cover this user: it is their raw data.
    """
    users, unique = np.flatnonzero(people.counts > 0), records.unique
    counts = np.zeros(len(people), dtype=np.int64)
    if witnesses is not None and not exact:
        counts = witnesses.persons()
    short = users[counts[users] < k]
    counts[short], reach = tally_cover(people, unique, short, stop_at=None if exact else k, run=run)
    short = short[counts[short] < k]
    published = int(records.weights.sum())
    findings.fail_if(published > len(people), "cover/more-records-than-users")
    findings.fail_if(len(short), "cover/too-few-records", k=k)
    findings.fail_if(not len(users), "cover/nobody")
    findings.figures["users_short"] = len(short)
    if len(users):
        least = int(counts[users].min())
        findings.figures["min_cover"] = least if exact else min(k, least)
    if exact and len(users):
        findings.figures["cover"] = _distribution(counts[users])
    if witnesses is not None:
        _check_members(findings, np.bincount(witnesses.records[witnesses.good], minlength=len(records)), k)
    else:
        reach = complete_reach(people, unique, reach, run=run)
        _check_members(findings, reach if exact else np.minimum(reach, LEAST_MEMBERS), k)
    _report_one_way(findings, people, unique, users if exact else short, k, exact=exact, run=run)


def _check_members(findings: Findings, members: NDArray[np.int64], k: int) -> None:
    """Check that every record is about at least two people; without an audit, more are counted only if asked for.

    If nobody is claimed to be hidden (k = 1), a record may be about one person.
    """
    raw = int((members < LEAST_MEMBERS).sum()) if k > 1 else 0
    findings.fail_if(raw, "cover/raw-records", k=LEAST_MEMBERS)
    findings.figures["min_members"] = int(members.min()) if len(members) else 0


def check_concealment(
    findings: Findings,
    people: Original,
    records: Catalogue,
    k: int,
    *,
    witnesses: Witnesses | None = None,
    run: Run = LOCAL,
) -> None:
    """Check what k-concealment asks beyond cover: k users in every record, and k records that may be anybody's own.

    Without an audit: every record covers at least k users. With an audit: call a record *open* to a user it covers if
    both lie in one strongly connected component of the cover graph. In this graph every user points to the owners of
    the records that cover them. A record is open to a user exactly if some full exchange of owners, in which everybody
    gets a record that covers them, assigns it to this user. Every record must be open to at least k users and to all
    whom the audit merged into it, and at least k records must be open to every user. Cover by accident (a passer-by
    who fits) only adds links. If such a link can't be exchanged, an adversary can rule out that record for the user;
    the links that count remain.
    """
    user, kind = cover_pairs(people, records.unique, np.arange(len(people)), run=run)
    thin = int((np.bincount(kind, minlength=len(records.unique))[records.groups] < k).sum())
    findings.fail_if(thin, "cover/too-few-users", k=k)
    if witnesses is None:
        findings.skip("owners-apart")
        return
    user, record = _by_record(records, user, kind)
    part = _components(len(people), user, witnesses.owner[record])
    is_open = part[user] == part[witnesses.owner[record]]
    told = int((np.bincount(user[is_open], minlength=len(people))[people.counts > 0] < k).sum())
    findings.fail_if(told, "cover/user-told", k=k)
    told = int((np.bincount(record[is_open], minlength=len(records)) < k).sum())
    findings.fail_if(told, "cover/record-told", k=k)
    owners = witnesses.owner[witnesses.records]
    telling = int((part[witnesses.users] != part[owners])[witnesses.good].sum())
    findings.fail_if(telling, "cover/fixed-links")


def _by_record(
    records: Catalogue, user: NDArray[np.int64], kind: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Turn links to kinds of identical records into links to each record of the kind."""
    size = np.bincount(records.groups, minlength=len(records.unique))
    of_kind = np.argsort(records.groups, kind="stable")
    link = spread(size[kind])
    place = np.arange(len(link)) - offsets_of(size[kind])[link]
    return user[link], of_kind[offsets_of(size)[kind[link]] + place]


def _components(n: int, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the strongly connected component of each node of a graph."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(n, n))
    _, part = connected_components(graph, directed=True, connection="strong")
    return np.asarray(part, dtype=np.int64)


def _report_one_way(
    findings: Findings, people: Original, records: Records, users: NDArray[np.int64], k: int, *, exact: bool, run: Run
) -> None:
    """Report one-way cover, as the papers define it: of everyone, or of those with fewer than k records."""
    if not len(users) or (not exact and len(users) > _EXPLAINED_USERS):
        return
    counts = count_cover(people, records, users, stop_at=None if exact else k, boxes_too=False, run=run)
    if exact:
        findings.figures["one_way_min"] = int(counts.min())
        findings.figures["one_way"] = _distribution(counts)
        return
    findings.figures["one_way_min"] = min(k, int(counts.min()))
    only = int((counts >= k).sum())
    if only:
        findings.note("one-way-only", n=only, k=k)


def _distribution(counts: NDArray[np.int64]) -> dict[str, Any]:
    values, times = np.unique(counts, return_counts=True)
    return {
        "min": int(counts.min()),
        "median": float(np.median(counts)),
        "max": int(counts.max()),
        "histogram": {str(value): int(time) for value, time in zip(values.tolist(), times.tolist(), strict=True)},
    }
