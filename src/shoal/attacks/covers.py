"""The attack `intersect-covers`: intersect all records that a person is in; each of them holds the person's samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.attacks.features import box_costs
from shoal.attacks.knowledge import anyone, percent, promised
from shoal.attacks.outcome import Attack, Outcome, rate, register
from shoal.attacks.target import draw_victims
from shoal.intervals import Z95
from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks, distinct, spread
from shoal.seen.cover import cover_pairs
from shoal.streams import Stream, draw_from

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.attacks.target import Target

__all__ = ["INTERSECT_COVERS", "intersect_covers_attack", "intersections"]

_RAW_COST = 2.0  # of one granule, Δt·(Δx+Δy)


def intersect_covers_attack(target: Target, *, victims: int = 1000, seed: int = 0, run: Run = LOCAL) -> Outcome:
    """Intersect the boxes of each victim's records, sample by sample, and measure how much smaller the boxes get.

    Input: a target with its audit, how many victims to draw and the seed of the draw. Output: two rows. `merged` uses
    the records that the victim was merged into: this is what the method gives away. `covering` uses all records that
    cover the victim two-way, including those that do so by accident. It is an upper bound: only somebody who knows the
    victim's whole trajectory can find these records.
    Each row has the mean side, duration and cost (k-scale, Eq. 4) of the box that holds a sample, in the victim's own
    record and in the intersection. `left` is the ratio of the two costs, the mean over victims with its 95 % interval;
    1 means no gain.
    Guarantee: exact; identical groups have `left` = 1 in `merged`. Cost: a search of each victim's records, and a pass
    over the victim's samples for each record.
    """
    target.require_audit("intersect-covers")
    drawn = draw_victims(anyone(target), victims, draw_from(seed, Stream.COVERS))
    with run.stage("attack intersect-covers", 2) as advance:
        rows = [{"records": "merged", **_row(target, drawn, *_merged(target, drawn))}]
        advance(1)
        covering = cover_pairs(target.published, target.records.unique, drawn, run=run)
        rows.append({"records": "covering", **_row(target, drawn, *_with_own(target, drawn, *covering))})
        advance(1)
    settings = {"victims": victims, "seed": seed}
    return Outcome("intersect-covers", settings, len(drawn), rows, promised(target), _messages(rows), ())


def _own_kinds(target: Target, users: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the kind of record that each user is published as; every user must have one."""
    own = target.own if target.own is not None else np.full(len(target.people), -1)
    kinds: NDArray[np.int64] = target.records.groups[own[users]]
    return kinds


def _merged(target: Target, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a user and a kind of record that the user was merged into."""
    if target.members is None:
        return users[:0], users[:0]
    offsets, member = target.members
    wanted = np.zeros(len(target.people), dtype=bool)
    wanted[users] = True
    rows = np.flatnonzero(wanted[member])
    kind = target.records.groups[np.searchsorted(offsets, rows, side="right") - 1]
    return _with_own(target, users, member[rows], kind)


def _with_own(
    target: Target, users: NDArray[np.int64], user: NDArray[np.int64], kind: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs together with those of each user and their own record; each pair once, sorted by user."""
    n = len(target.records.unique)
    both = np.concatenate([user * n + kind, users * n + _own_kinds(target, users)])
    return tuple(np.divmod(distinct(both), n))  # type: ignore[return-value]


def intersections(
    target: Target, users: NDArray[np.int64], kinds: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the intersection of the boxes that hold each sample of each user in the pairs (sorted by user).

    Output: the number of samples of each user, and the boxes, sample after sample. A record that does not hold a
    sample does not change its intersection.
    """
    people, matcher = target.published, target.matcher
    who, records = np.unique(users, return_counts=True)
    ends, counts = offsets_of(records), people.counts[who]
    limits = np.iinfo(np.int64)
    bounds = np.empty((int(counts.sum()), 6), dtype=np.int64)
    bounds[:, 0::2], bounds[:, 1::2] = limits.min, limits.max
    place = offsets_of(counts)
    for part in blocks(counts * records):
        pairs = slice(int(ends[part.start]), int(ends[part.stop]))
        n = people.counts[users[pairs]]
        pair = spread(n)
        step = np.arange(len(pair)) - offsets_of(n)[:-1][pair]
        rows = people.offsets[users[pairs]][pair] + step
        box = matcher.find(kinds[pairs][pair], people.t[rows], people.x[rows], people.y[rows])
        held = box >= 0
        sample = (place[part.start : part.stop][spread(records[part])][pair] + step)[held]
        found = matcher.boxes(box[held])
        for low in (0, 2, 4):
            np.maximum.at(bounds[:, low], sample, found[:, low])
            np.minimum.at(bounds[:, low + 1], sample, found[:, low + 1])
    return counts, bounds


def _row(
    target: Target, drawn: NDArray[np.int64], users: NDArray[np.int64], kinds: NDArray[np.int64]
) -> dict[str, Any]:
    """Compare the intersections with the victims' own records."""
    counts, own = intersections(target, drawn, _own_kinds(target, drawn))
    _, met = intersections(target, users, kinds)
    ends = offsets_of(counts)[:-1]
    before, after = (np.add.reduceat(box_costs(boxes), ends) / counts for boxes in (own, met))
    left = after / before
    reach = Z95 * left.std() / np.sqrt(len(left))
    people = np.add.reduceat(
        target.records.unique.weights[kinds], offsets_of(np.unique(users, return_counts=True)[1])[:-1]
    )
    return {
        "victims": len(drawn),
        "records_mean": float(np.bincount(np.searchsorted(drawn, users)).mean()),
        "people_mean": float(people.mean()),
        **_sizes(target, own, "own"),
        **_sizes(target, met, "intersected"),
        "cost_own": float(before.mean()),
        "cost_intersected": float(after.mean()),
        "cost_raw": _RAW_COST,
        "left": float(left.mean()),
        "left_low": max(0.0, float(left.mean() - reach)),
        "left_high": min(1.0, float(left.mean() + reach)),
        "left_median": float(np.median(left)),
        **rate("sharper", int((left < 1).sum()), len(left)),
    }


def _sizes(target: Target, boxes: NDArray[np.int64], name: str) -> dict[str, float]:
    t0, t1, x0, x1, y0, y1 = boxes.T
    side = float((x1 - x0 + y1 - y0 + 2).mean()) / 2 * target.grid.cell_m
    return {f"side_m_{name}": side, f"duration_s_{name}": float((t1 - t0 + 1).mean()) * target.grid.slot_s}


def _messages(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    merged, covering = rows
    if merged["left"] == 1:
        said = "All records of a person are identical, so an intersection gains nothing."
    else:
        said = (
            f"The intersection of the records that a person was merged into leaves {percent(merged['left'])} of the "
            f"cost of their own record: {merged['side_m_own'] / 1000:.2f} km and "
            f"{merged['duration_s_own'] / 60:.0f} min become {merged['side_m_intersected'] / 1000:.2f} km and "
            f"{merged['duration_s_intersected'] / 60:.0f} min."
        )
    if covering["left"] == merged["left"]:
        return (said,)
    chance = (
        f"With all records that cover a person, also those that do so by chance, {percent(covering['left'])} are left."
    )
    return (said, chance + " Only somebody who knows a person's whole trajectory can find these records.")


INTERSECT_COVERS = register(
    Attack(
        "intersect-covers",
        intersect_covers_attack,
        "which records the victim is in, and intersects them",
        needs_audit=True,
        sample_bytes=24,
        box_bytes=24,
    )
)
