"""The features of a record as seen by somebody who knows one person it covers; they help to recognize its owner.

A record made for its owner follows the owner: the owner's samples lie in its cheap boxes, and moving a cut between two
boxes would not lower the owner's cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.lists import offsets_of
from shoal.seen.arrays import blocks, distinct, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.original import Original
    from shoal.seen.records import Records

__all__ = ["FEATURES", "Features", "Laid", "box_costs", "lay_out", "victim_features"]

Features = dict[str, "NDArray[np.float64]"]

_SAMPLES = 2_000_000  # of pairs laid out at a time


class Laid(NamedTuple):
    """Pairs of a user and a record that covers them, laid out: the user's samples and all boxes of the record.

    Pair p has `counts[p]` samples (columns `points`: t, x, y) and `sizes[p]` boxes. Sample s lies in box `box[s]`,
    which belongs to pair `pair[box[s]]`; `held` counts the samples in each box, `hull` are their bounds, and `first`
    is the first of them: samples and boxes are both in order of time.
    """

    counts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    points: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    box: NDArray[np.int64]
    boxes: NDArray[np.int64]
    pair: NDArray[np.int64]
    held: NDArray[np.int64]
    first: NDArray[np.int64]
    hull: NDArray[np.int64]

    def total(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Add up a value of each box, pair by pair."""
        return np.bincount(self.pair, weights=values, minlength=len(self.counts)).astype(np.float64)

    def per_box(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Average a value of each box over the boxes of each pair."""
        return self.total(values) / self.sizes

    def per_sample(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Average a value of each box over the samples of each pair."""
        return self.total(values * self.held) / self.counts


def victim_features(people: Original, records: Records, users: NDArray[np.int64], kinds: NDArray[np.int64]) -> Features:
    """Describe pairs of a user and a record that covers them two-way, by the user's samples and the release alone.

    Input: pairs sorted by user. Output: a column for each of `FEATURES`, with a number for each pair. Guarantee: the
    numbers depend on nobody else's samples. Cost: a few passes over the samples and boxes of all pairs, in blocks of
    users.
    """
    counts = np.unique(users, return_counts=True)[1]
    work = (
        np.add.reduceat(people.counts[users] + records.counts[kinds], offsets_of(counts)[:-1]) if len(users) else counts
    )
    ends = offsets_of(counts)
    parts = [
        _described(people, records, users, kinds, slice(ends[b.start], ends[b.stop])) for b in blocks(work, _SAMPLES)
    ]
    return {name: np.concatenate([np.empty(0), *(part[name] for part in parts)]) for name in FEATURES}


def _described(
    people: Original, records: Records, users: NDArray[np.int64], kinds: NDArray[np.int64], part: slice
) -> Features:
    laid = lay_out(people, records, users[part], kinds[part])
    return {
        **_cheapness(laid),
        **_counts(laid),
        **_faces(laid),
        **_tightness(laid),
        **_better_cuts(laid),
        **_shared_times(laid, users[part]),
    }


def lay_out(people: Original, records: Records, users: NDArray[np.int64], kinds: NDArray[np.int64]) -> Laid:
    """Lay out pairs of a user and a record that covers them two-way."""
    counts, sizes = people.counts[users], records.counts[kinds]
    pair = spread(counts)
    rows = np.arange(len(pair)) + (people.offsets[users] - offsets_of(counts)[:-1])[pair]
    points = (people.t[rows].astype(np.int64), people.x[rows].astype(np.int64), people.y[rows].astype(np.int64))
    boxes, of_box = records.boxes[records.rows(kinds)].astype(np.int64), spread(sizes)
    low = int(boxes[:, 0].min(initial=0))
    span = int(boxes[:, 0].max(initial=0)) - low + 1
    starts = of_box * span + boxes[:, 0] - low
    # All samples of the user are in the record: each is in the last box that starts no later.
    box = np.searchsorted(starts, pair * span + np.clip(points[0] - low, 0, span - 1), side="right") - 1
    held = np.bincount(box, minlength=len(boxes))
    first = offsets_of(held)[:-1]
    bounds = [edge.reduceat(axis, first) for axis in points for edge in (np.minimum, np.maximum)]
    return Laid(counts, sizes, points, box, boxes, of_box, held, first, np.stack(bounds, axis=1))


def box_costs(boxes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Δt·(Δx+Δy) of every box, in slots × cells.

    >>> box_costs(np.array([[0, 1, 0, 2, 5, 5]])).tolist()
    [8.0]
    """
    duration, sides = _extents(boxes)
    return duration * sides


def _extents(boxes: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    t0, t1, x0, x1, y0, y1 = boxes.T
    return (t1 - t0 + 1).astype(np.float64), (x1 - x0 + y1 - y0 + 2).astype(np.float64)


def _cheapness(laid: Laid) -> Features:
    """Return the cost of the boxes, over the user's samples (k-scale, Eq. 4) and over boxes."""
    duration, sides = _extents(laid.boxes)
    cost, logs = duration * sides, np.log(duration * sides)
    owner_cost, box_cost = np.log(laid.per_sample(cost)), np.log(laid.per_box(cost))
    log_cost, log_box_cost = laid.per_sample(logs), laid.per_box(logs)
    return {
        "owner_cost": owner_cost,
        "box_cost": box_cost,
        "cost_ratio": owner_cost - box_cost,
        "log_cost": log_cost,
        "log_box_cost": log_box_cost,
        "log_cost_ratio": log_cost - log_box_cost,
        "duration": np.log(laid.per_sample(duration)),
        "sides": np.log(laid.per_sample(sides)),
        "log_duration": laid.per_sample(np.log(duration)),
        "log_sides": laid.per_sample(np.log(sides)),
        "log_box_duration": laid.per_box(np.log(duration)),
        "log_box_sides": laid.per_box(np.log(sides)),
    }


def _counts(laid: Laid) -> Features:
    """Count the boxes, and describe how the user's samples are spread over them."""
    mean = laid.counts / laid.sizes
    spread_out = np.sqrt(np.maximum(laid.per_box(laid.held**2) - mean**2, 0)) / mean
    most = np.maximum.reduceat(laid.held, offsets_of(laid.sizes)[:-1])
    return {
        "boxes": np.log(laid.sizes),
        "single": laid.per_box(laid.held == 1),
        "most_held": np.log(most),
        "held_spread": spread_out,
    }


def _touched(laid: Laid) -> NDArray[np.bool_]:
    """Return which of the six faces of each box are touched by a sample of the user."""
    touched: NDArray[np.bool_] = laid.hull == laid.boxes
    return touched


def _faces(laid: Laid) -> Features:
    """Return the shares of the boxes' faces, in time and in space, that the user's samples touch."""
    touched = _touched(laid)
    in_time, in_space = touched[:, :2].mean(axis=1), touched[:, 2:].mean(axis=1)
    last = offsets_of(laid.sizes)[1:] - 1
    return {
        "faces_time": laid.per_box(in_time),
        "faces_space": laid.per_box(in_space),
        "faces_time_by_sample": laid.per_sample(in_time),
        "faces_space_by_sample": laid.per_sample(in_space),
        "faces_time_each": laid.per_box(in_time / laid.held),
        "faces_space_each": laid.per_box(in_space / laid.held),
        "ends": touched[offsets_of(laid.sizes)[:-1], 0] + touched[last, 1].astype(np.float64),
    }


def _tightness(laid: Laid) -> Features:
    """Return how much of each box is filled by the bounds of the user's samples in it."""
    duration, sides = _extents(laid.boxes)
    own_duration, own_sides = _extents(laid.hull)
    in_time, in_space = np.log(own_duration / duration), np.log(own_sides / sides)
    several = laid.held > 1
    filled = np.where(several, in_time + in_space, 0.0)
    return {
        "tight": laid.per_box(in_time + in_space),
        "tight_by_sample": laid.per_sample(in_time + in_space),
        "tight_time": laid.per_box(in_time),
        "tight_space": laid.per_box(in_space),
        "tight_several": laid.total(filled) / np.maximum(laid.total(several), 1),
    }


def _better_cuts(laid: Laid) -> Features:
    """Return how much the user would save if some of their samples moved to the box before or after.

    Whether a cut may move depends on the others in the record, who are not known. But in a record made for this user,
    no cut that may move would save anything. The new size of the other box is guessed in three ways: `hopeful`, it
    grows by the samples moved; `careful`, it grows to the sides of the box they come from; `shrinking`, as hopeful,
    and the box they come from ends where they begin.
    """
    saved = {name: np.zeros(len(laid.boxes)) for name in ("hopeful", "careful", "shrinking")}
    may_move = np.zeros(len(laid.boxes), dtype=bool)
    for step in (1, -1):
        samples, moved = _moves(laid, step)
        source = laid.box[samples]
        may_move[source] = True
        for name, gain in _gains(laid, samples, moved, step).items():
            best = np.zeros(len(laid.boxes))
            np.maximum.at(best, source, gain)
            saved[name] += best
    cost = laid.total(laid.held * box_costs(laid.boxes))
    movable = np.maximum(laid.total(may_move), 1)
    features = {"movable": laid.per_box(may_move)}
    for name, gain in saved.items():
        features[f"saving_{name}"] = np.log(1e-3 + laid.total(gain) / cost)
        features[f"savings_{name}"] = laid.total(gain > 0) / movable
        features[f"saving_boxes_{name}"] = laid.per_box(gain > 0)
    return features


class _Moved(NamedTuple):
    """The samples that move together with each sample: how many, and their bounds in space."""

    number: NDArray[np.int64]
    bounds: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _moves(laid: Laid, step: int) -> tuple[NDArray[np.int64], _Moved]:
    """Return the samples from which on the rest of their box could go to the next one (step 1) or the one before (-1).

    At least one sample stays, and samples of one slot stay together.
    """
    t, x, y = laid.points
    box = laid.box
    place = np.arange(len(t)) - laid.first[box]
    neighbour = box + step
    there = (neighbour >= 0) & (neighbour < len(laid.boxes))
    there &= laid.pair[np.where(there, neighbour, 0)] == laid.pair[box]
    split = np.append((t[1:] != t[:-1]) | (box[1:] != box[:-1]), np.True_)  # a cut may follow the sample
    if step == 1:
        open_ = np.append(np.True_, split[:-1]) & (t > t[laid.first[box]])
        number = laid.held[box] - place
    else:
        open_ = split & (t < t[laid.first[box] + laid.held[box] - 1])
        number = place + 1
    samples = np.flatnonzero(there & open_)
    low_x, low_y = (-_running_max(-axis, box, step)[samples] for axis in (x, y))
    high_x, high_y = (_running_max(axis, box, step)[samples] for axis in (x, y))
    return samples, _Moved(number[samples], (low_x, high_x, low_y, high_y))


def _running_max(values: NDArray[np.int64], box: NDArray[np.int64], step: int) -> NDArray[np.int64]:
    """Return the greatest value from each sample to the end of its box (step 1), or from the beginning to it (-1)."""
    if not len(values):
        return values
    width = int(values.max() - values.min()) + 1
    if step == -1:
        return _running_max(values[::-1], -box[::-1], 1)[::-1]
    shift = (box[-1] - box) * width
    greatest: NDArray[np.int64] = np.maximum.accumulate((values + shift)[::-1])[::-1] - shift
    return greatest


def _gains(laid: Laid, samples: NDArray[np.int64], moved: _Moved, step: int) -> Features:
    """Return what each move would save the user, times the user's number of samples."""
    source = laid.box[samples]
    target = source + step
    ours, theirs = laid.boxes[source], laid.boxes[target]
    when = laid.points[0][samples]
    costs = box_costs(laid.boxes)
    lasts = (theirs[:, 1] - when if step == 1 else when - theirs[:, 0]) + 1.0
    grown = lasts * _sides_of_both(theirs, np.stack(moved.bounds, axis=1))
    grown_most = lasts * _sides_of_both(theirs, ours[:, 2:])
    number, others = moved.number, laid.held[target]
    before = number * costs[source] + others * costs[target]
    hopeful, careful = (before - (others + number) * size for size in (grown, grown_most))
    cut_off = (ours[:, 1] - when if step == 1 else when - ours[:, 0]) + 1.0
    shorter = cut_off / (ours[:, 1] - ours[:, 0] + 1)
    stay = laid.held[source] - number
    return {"hopeful": hopeful, "careful": careful, "shrinking": hopeful + stay * costs[source] * shorter}


def _sides_of_both(boxes: NDArray[np.int64], sides: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return Δx+Δy of each box grown to hold also x0, x1, y0, y1."""
    high = np.maximum(boxes[:, 3], sides[:, 1]) + np.maximum(boxes[:, 5], sides[:, 3])
    low = np.minimum(boxes[:, 2], sides[:, 0]) + np.minimum(boxes[:, 4], sides[:, 2])
    sides_of_both: NDArray[np.float64] = (high - low + 2).astype(np.float64)
    return sides_of_both


def _shared_times(laid: Laid, users: NDArray[np.int64]) -> Features:
    """Measure how often a box begins or ends with a box of the user's other records, but not at a sample of the user.

    Then somebody else is in both records. People in a person's own record are often in the person's other records, too.
    """
    touched = _touched(laid)
    pair = np.concatenate([laid.pair, laid.pair])
    time = laid.boxes[:, :2].T.ravel()
    time = time - time.min(initial=0)
    foreign = ~touched[:, :2].T.ravel()
    width = int(time.max(initial=0)) + 1
    victim = np.unique(users, return_inverse=True)[1]
    once = distinct(pair * width + time)
    keys, times = np.unique(victim[once // width] * width + once % width, return_counts=True)
    elsewhere = times[np.searchsorted(keys, victim[pair] * width + time)] - 1
    n = len(users)
    strange = np.bincount(pair[foreign], minlength=n)
    shared = np.bincount(pair[foreign], weights=elsewhere[foreign], minlength=n)
    some = np.bincount(pair[foreign], weights=elsewhere[foreign] > 0, minlength=n)
    rivals = np.maximum(np.bincount(victim)[victim] - 1, 1)
    return {
        "shared": shared / np.maximum(strange, 1) / rivals,
        "shared_some": some / np.maximum(strange, 1),
        "shared_number": np.log1p(shared),
        "foreign": np.log1p(strange),
    }


FEATURES = (
    "owner_cost",
    "box_cost",
    "cost_ratio",
    "log_cost",
    "log_box_cost",
    "log_cost_ratio",
    "duration",
    "sides",
    "log_duration",
    "log_sides",
    "log_box_duration",
    "log_box_sides",
    "boxes",
    "single",
    "most_held",
    "held_spread",
    "faces_time",
    "faces_space",
    "faces_time_by_sample",
    "faces_space_by_sample",
    "faces_time_each",
    "faces_space_each",
    "ends",
    "tight",
    "tight_by_sample",
    "tight_time",
    "tight_space",
    "tight_several",
    "movable",
    *(f"{what}_{how}" for how in ("hopeful", "careful", "shrinking") for what in ("saving", "savings", "saving_boxes")),
    "shared",
    "shared_some",
    "shared_number",
    "foreign",
)
