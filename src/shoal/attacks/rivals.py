"""Features for an adversary who knows everybody's samples: who else a record covers, and the k-merge run again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.attacks.features import FEATURES, box_costs, lay_out, victim_features
from shoal.attacks.posterior import Choices, contrasts
from shoal.errors import TooLarge
from shoal.kernels.merge import OWNER, MemberLists, MergedRecords, merge_records
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import Samples
from shoal.lists import even_ranges, offsets_of, take_lists
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks, distinct
from shoal.seen.cover import cover_pairs
from shoal.units import INT32

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.attacks.features import Features
    from shoal.seen.original import Original
    from shoal.seen.records import Records

__all__ = ["rival_features"]

_SAMPLES = 2_000_000  # of pairs laid out at a time
_SAMPLES_PER_MERGE_RANGE = 200_000
_MOST_MERGED = 40  # people; a record that covers more is not merged again
# Features compared with those of the others whom a record covers: a record follows its owner more closely.
_COMPARED = ("cost_ratio", "log_cost_ratio", "savings_shrinking", "saving_shrinking", "faces_time", "tight")


def rival_features(
    people: Original, records: Records, users: NDArray[np.int64], kinds: NDArray[np.int64], *, run: Run = LOCAL
) -> Features:
    """Describe pairs of a user and a record that covers them, by all people whom the record covers.

    Input: pairs sorted by user. Output, for each pair: the number of people covered (`reach`) and the mean number of
    records that cover these people; the faces of the boxes that the user touches, shared with others who touch them,
    and those that only the user touches; how the user compares with the others (`_COMPARED`); and the regret: by how
    much more the record costs the user than the k-merge of all it covers with the user as the owner (0 where more than
    40 are covered; `merged` says which are computed). An owner's regret is exactly 0: people who are covered by
    accident do not change the optimum.
    Cost: a search of all users among these records, a pass over all pairs found, and a k-merge for each pair.
    """
    chosen = distinct(kinds)
    some = records.take(chosen)
    who, which = cover_pairs(people, some, np.arange(len(people)), run=run)
    order = np.lexsort((who, which))
    covered, ends = who[order], offsets_of(np.bincount(which, minlength=len(some)))
    here = np.searchsorted(chosen, kinds)
    width = len(people)
    by_record = np.searchsorted(which[order] * width + covered, here * width + users)
    known, _ = cover_pairs(people, records, distinct(covered), run=run)
    degree = np.bincount(known, minlength=width)[covered].astype(np.float64)
    reach = np.diff(ends)
    mean_degree = np.add.reduceat(degree, ends[:-1]) / reach if len(ends) > 1 else degree[:0]
    compared = _compared(people, some, who, which, order, ends)[by_record]
    columns = {f"rivals_{n}": compared[:, n] for n in range(compared.shape[1])}
    regret, merged = _regrets(people, some, users, here, covered, ends, run)
    faces, alone = _contested_faces(people, some, who, which, users, here)
    return {
        "reach": np.log(reach[here]),
        "degree": np.log(mean_degree[here]),
        "faces_contested": faces,
        "faces_alone": alone,
        "regret": np.log1p(regret),
        "no_regret": (merged & (regret < 1e-9)).astype(np.float64),
        "merged": merged.astype(np.float64),
        **columns,
    }


def _compared(
    people: Original,
    records: Records,
    who: NDArray[np.int64],
    which: NDArray[np.int64],
    order: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return the contrasts among the users whom each record covers, record by record."""
    all_features = victim_features(people, records, who, which)
    columns = np.stack([all_features[name] for name in FEATURES if name in _COMPARED], axis=1)
    return contrasts(columns[order], Choices(ends, np.ones(len(order), dtype=np.int64)))


def _contested_faces(
    people: Original,
    records: Records,
    who: NDArray[np.int64],
    which: NDArray[np.int64],
    users: NDArray[np.int64],
    kinds: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the user's mean share in a face (1/n if n people touch it), and the share of faces only they touch."""
    touching = np.zeros(records.boxes.shape, dtype=np.int32)
    for part in blocks(people.counts[who] + records.counts[which], _SAMPLES):
        laid = lay_out(people, records, who[part], which[part])
        np.add.at(touching, records.rows(which[part]), laid.hull == laid.boxes)
    share, alone = np.empty(len(users)), np.empty(len(users))
    for part in blocks(people.counts[users] + records.counts[kinds], _SAMPLES):
        laid = lay_out(people, records, users[part], kinds[part])
        n = touching[records.rows(kinds[part])]
        own = laid.hull == laid.boxes
        share[part] = laid.per_box((own / np.maximum(n, 1)).mean(axis=1))
        alone[part] = laid.per_box((own & (n == 1)).mean(axis=1))
    return share, alone


def _regrets(
    people: Original,
    records: Records,
    users: NDArray[np.int64],
    kinds: NDArray[np.int64],
    covered: NDArray[np.int64],
    ends: NDArray[np.int64],
    run: Run,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return how much more each record costs the user than the least cost, as a ratio; and where it was computed."""
    merged = np.diff(ends)[kinds] <= _MOST_MERGED
    regret = np.zeros(len(users))
    pairs = np.flatnonzero(merged)
    offsets, rows = take_lists(ends, kinds[pairs])
    members = covered[rows]
    pair = np.repeat(np.arange(len(pairs)), np.diff(offsets))
    is_owner = members == users[pairs][pair]
    members = members[np.lexsort((~is_owner, pair))]  # the owner comes first
    t, x, y = (_as_int32(column) for column in (people.t, people.x, people.y))
    least = np.empty(len(pairs))
    counts, none = np.empty(len(pairs), np.int64), np.empty((0, 6), np.int32)

    def work(start: int, stop: int) -> None:
        edges, part = offsets[start : stop + 1], slice(start, stop)
        merged = MergedRecords(none, edges[:-1], counts[part], least[part])
        merge_records(Samples(t, x, y, people.offsets), MemberLists(edges, members), OWNER, PAPERS, merged)

    sizes = np.add.reduceat(people.counts[members], offsets[:-1]) if len(pairs) else counts
    run.ranges(work, even_ranges(sizes, _SAMPLES_PER_MERGE_RANGE))
    for part in blocks(people.counts[users[pairs]] + records.counts[kinds[pairs]], _SAMPLES):
        laid = lay_out(people, records, users[pairs[part]], kinds[pairs[part]])
        regret[pairs[part]] = laid.per_sample(box_costs(laid.boxes)) / least[part] - 1
    return np.maximum(regret, 0.0), merged


def _as_int32(column: NDArray[Any]) -> NDArray[np.int32]:
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    if high - low > INT32:
        raise TooLarge(
            "granules span more than 32 bits, so that records can't be merged again; attack a shorter period"
        )
    return np.ascontiguousarray(column - low, dtype=np.int32)
