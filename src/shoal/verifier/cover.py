"""Cover: how many records hide each user, in both directions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import TooLarge
from shoal.verifier.arrays import spread, starts_of
from shoal.verifier.candidates import one_way_candidates, partial_candidates, two_way_candidates
from shoal.verifier.pairs import hold, two_way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from shoal.verifier.audit import Witnesses
    from shoal.verifier.original import Original
    from shoal.verifier.records import Catalogue, Records
    from shoal.verifier.verdict import Findings

__all__ = [
    "check_concealment",
    "check_cover",
    "complete_reach",
    "count_cover",
    "cover_pairs",
    "partly_inside",
    "tally_cover",
]

# One-way cover only explains a failure; it is not worth minutes when everybody fails.
_EXPLAINED_USERS = 2_000
# One-way cover compares every user with every record: beyond this, for days.
_ONE_WAY_PAIRS = 5e10
# The loosest method (nu-k-pick) merges everybody with at least one other.
_LEAST_MEMBERS = 2


def check_cover(
    findings: Findings,
    people: Original,
    records: Catalogue,
    k: int,
    *,
    witnesses: Witnesses | None = None,
    exact: bool = False,
) -> None:
    """Check that at least k records cover every user, two-way, and that there are no more records than users.

    The witnesses that an audit claims are counted first; whoever is short of k is searched among all records.
    A record that covers a single user hides nobody, however many others cover her: it is her raw data.
    """
    users, unique = np.flatnonzero(people.counts > 0), records.unique
    if exact and len(users) * len(unique) > _ONE_WAY_PAIRS:
        raise TooLarge("counting all cover of so many users would take days; leave out --exact, or take fewer users")
    counts = np.zeros(len(people), dtype=np.int64)
    if witnesses is not None and not exact:
        counts = witnesses.persons()
    short = users[counts[users] < k]
    counts[short], reach = tally_cover(people, unique, short, stop_at=None if exact else k)
    short = short[counts[short] < k]
    published = int(records.weights.sum())
    findings.fail_if(published > len(people), "cover", "There are more records than users.")
    findings.fail_if(len(short), "cover", f"{len(short):,} users are hidden by fewer than {k} records.")
    findings.fail_if(not len(users), "cover", "No user has a published sample.")
    findings.figures["users_short"] = len(short)
    if len(users):
        least = int(counts[users].min())
        findings.figures["min_cover"] = least if exact else min(k, least)
    if exact and len(users):
        findings.figures["cover"] = _distribution(counts[users])
    if witnesses is not None:
        _check_members(findings, np.bincount(witnesses.records[witnesses.good], minlength=len(records)))
    else:
        reach = complete_reach(people, unique, reach)
        _check_members(findings, reach if exact else np.minimum(reach, _LEAST_MEMBERS))
    _report_one_way(findings, people, unique, users if exact else short, k, exact=exact)


def _check_members(findings: Findings, members: NDArray[np.int64]) -> None:
    """Check that every record is about two people at least; without an audit, more are counted only if asked for."""
    raw = int((members < _LEAST_MEMBERS).sum())
    findings.fail_if(raw, "cover", f"{raw:,} records are about fewer than {_LEAST_MEMBERS} users: raw data.")
    findings.figures["min_members"] = int(members.min()) if len(members) else 0


def check_concealment(
    findings: Findings, people: Original, records: Catalogue, k: int, *, witnesses: Witnesses | None = None
) -> None:
    """Check what k-concealment asks beyond cover: k users in every record, and k records that may be anybody's own.

    Without an audit: every record covers at least k users. With one: call a record *open* to a user it covers if
    both lie in one strongly connected component of the cover graph, in which everybody points to the owners of the
    records that cover her; exactly then some full exchange of owners, all by records that cover them, gives it to
    her. Every record must be open to at least k users, at least k records to every user, and every record to all
    whom the audit merged into it. Cover that is nobody's doing (a passer-by who happens to fit) only adds links:
    one that can't be exchanged lets an adversary rule that record out for her, and those that count are left.
    """
    links = list(cover_pairs(people, records.unique, np.flatnonzero(people.counts > 0)))
    user, kind = (np.concatenate([[], *(link[side] for link in links)]).astype(np.int64) for side in (0, 1))
    thin = int((np.bincount(kind, minlength=len(records.unique))[records.groups] < k).sum())
    findings.fail_if(thin, "cover", f"{thin:,} records hide fewer than {k} users.")
    if witnesses is None:
        findings.skip("whether owners can be told apart, which needs the audit file")
        return
    user, record = _by_record(records, user, kind)
    part = _components(len(people), user, witnesses.owner[record])
    is_open = part[user] == part[witnesses.owner[record]]
    told = int((np.bincount(user[is_open], minlength=len(people))[people.counts > 0] < k).sum())
    findings.fail_if(told, "cover", f"{told:,} users may own fewer than {k} of the records that cover them.")
    told = int((np.bincount(record[is_open], minlength=len(records)) < k).sum())
    findings.fail_if(told, "cover", f"{told:,} records may be owned by fewer than {k} users.")
    owners = witnesses.owner[witnesses.records]
    telling = int((part[witnesses.users] != part[owners])[witnesses.good].sum())
    findings.fail_if(telling, "cover", f"{telling:,} links between members and records can't be exchanged with others.")


def _by_record(
    records: Catalogue, user: NDArray[np.int64], kind: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Turn links to kinds of identical records into links to each record of the kind."""
    size = np.bincount(records.groups, minlength=len(records.unique))
    of_kind = np.argsort(records.groups, kind="stable")
    link = spread(size[kind])
    place = np.arange(len(link)) - starts_of(size[kind])[link]
    return user[link], of_kind[starts_of(size)[kind[link]] + place]


def _components(n: int, start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Give the strongly connected component of each node of a graph."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(start), dtype=np.int8), (start, end)), shape=(n, n))
    _, part = connected_components(graph, directed=True, connection="strong")
    return np.asarray(part, dtype=np.int64)


def count_cover(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    *,
    stop_at: int | None = None,
    boxes_too: bool = True,
) -> NDArray[np.int64]:
    """Count, for each of `users` (ascending), the people published as records that cover her.

    Identical records count as no more people than they cover two-way: the rest are copies and hide nobody.
    Guarantee: exact below `stop_at`, and at least `stop_at` where it is not; exact everywhere without it.
    `boxes_too=False` counts one-way cover, every record. Cost: the candidates times the samples of their users.
    """
    return tally_cover(people, records, users, stop_at=stop_at, boxes_too=boxes_too)[0]


def tally_cover(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    *,
    stop_at: int | None = None,
    boxes_too: bool = True,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give `count_cover`, and how many of `users` each distinct record was seen to cover on the way."""
    unique = records.distinct()
    if boxes_too:
        unique = _without_copies(people, unique)
    counts, reach = np.zeros(len(people), dtype=np.int64), np.zeros(len(unique), dtype=np.int64)
    for user, record in cover_pairs(people, unique, users, stop_at=stop_at, boxes_too=boxes_too):
        np.add.at(counts, user, unique.weights[record])
        np.add.at(reach, record, 1)
    return counts[users], reach


def complete_reach(people: Original, records: Records, reach: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count exactly whom the distinct records cover that were seen to cover fewer than two; the others did."""
    thin = np.flatnonzero(reach < _LEAST_MEMBERS)
    complete = reach.copy()
    complete[thin] = 0
    for _, record in cover_pairs(people, records.distinct().take(thin), np.arange(len(people))):
        np.add.at(complete, thin[record], 1)
    return complete


def _without_copies(people: Original, unique: Records) -> Records:
    """Let each record weigh at most as many people as it covers."""
    heavy = np.flatnonzero(unique.weights > 1)
    if not len(heavy):
        return unique
    reach = np.zeros(len(heavy), dtype=np.int64)
    for _, record in cover_pairs(people, unique.take(heavy), np.arange(len(people))):
        reach += np.bincount(record, minlength=len(heavy))
    weights = unique.weights.copy()
    weights[heavy] = np.minimum(weights[heavy], reach)
    return replace(unique, weights=weights)


def partly_inside(
    people: Original, records: Records
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """Give (user, record, samples of the user outside it) wherever every box of the record holds one of them.

    Only such a user can be in the record if some of her samples were suppressed.
    """
    for user, record in partial_candidates(people, records):
        held = hold(people, records, user, record)
        good = held.boxes == records.counts[record]
        yield user[good], record[good], (people.counts[user] - held.samples)[good]


def cover_pairs(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    *,
    stop_at: int | None = None,
    boxes_too: bool = True,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Give the pairs (user, record) that are cover, block by block; with `stop_at` no more rounds than needed."""
    find = two_way_candidates if boxes_too else one_way_candidates
    for user, record in find(people, records, users[people.counts[users] > 0]):
        rank = np.arange(len(user)) - np.searchsorted(user, user, side="left")
        found = np.zeros(len(people) if stop_at else 0, dtype=np.int64)
        start, width = 0, 2 * stop_at if stop_at else len(user)
        while start <= rank.max(initial=-1):
            turn = (rank >= start) & (rank < start + width)
            if stop_at:
                turn &= found[user] < stop_at
            tried_user, tried_record = user[turn], record[turn]
            good = two_way(people, records, tried_user, tried_record, boxes_too=boxes_too)
            if stop_at:
                np.add.at(found, tried_user[good], records.weights[tried_record[good]])
            yield tried_user[good], tried_record[good]
            start, width = start + width, width * 2


def _report_one_way(
    findings: Findings, people: Original, records: Records, users: NDArray[np.int64], k: int, *, exact: bool
) -> None:
    """Tell the papers' one-way cover beside ours: of everyone, or of those who are short of k."""
    if not len(users) or (not exact and len(users) > _EXPLAINED_USERS):
        return
    counts = count_cover(people, records, users, stop_at=None if exact else k, boxes_too=False)
    if exact:
        findings.figures["one_way_min"] = int(counts.min())
        findings.figures["one_way"] = _distribution(counts)
        return
    findings.figures["one_way_min"] = min(k, int(counts.min()))
    only = int((counts >= k).sum())
    if only:
        findings.say(
            f"{only:,} of them lie inside {k} records or more one-way only: boxes without any of their samples "
            "(a giant box, somebody else's raw copy) hide nobody."
        )


def _distribution(counts: NDArray[np.int64]) -> dict[str, Any]:
    values, times = np.unique(counts, return_counts=True)
    return {
        "min": int(counts.min()),
        "median": float(np.median(counts)),
        "max": int(counts.max()),
        "histogram": {str(value): int(time) for value, time in zip(values.tolist(), times.tolist(), strict=True)},
    }
