"""Targets for attacks, made by hand or at random, and the same as plain lists for slow twins."""

import numpy as np
import pyarrow as pa

from shoal.attacks import Target
from shoal.claim import Claim
from shoal.seen.grid import Grid
from shoal.seen.original import Original
from shoal.seen.records import Records, catalogue

GRID = Grid(None, 100, 600)


def original_of(people, labels=None):
    """People, lists of distinct samples, as the verifier keeps them."""
    flat = np.array([sample for samples in people for sample in sorted(samples)], dtype=np.int32).reshape(-1, 3)
    offsets = np.cumsum([0, *map(len, people)]).astype(np.int64)
    labels = [f"p{n}" for n in range(len(people))] if labels is None else labels
    return Original(pa.array(labels), offsets, *(np.ascontiguousarray(column) for column in flat.T))


def catalogue_of(records):
    """Records, pairs of boxes and people, as the verifier keeps them; none of them identical."""
    boxes = np.array([box for some, _ in records for box in some], dtype=np.int32).reshape(-1, 6)
    offsets = np.cumsum([0, *(len(some) for some, _ in records)]).astype(np.int64)
    weights = np.array([people for _, people in records], dtype=np.int64)
    return catalogue(np.arange(len(records)), Records(offsets, boxes, weights))


def boxes_of(records, kind):
    return records.boxes[records.offsets[kind] : records.offsets[kind + 1]].astype(int).tolist()


def target_of(people, records, *, k=None, claim=None, own=None, tz="UTC", grid=GRID, suppressed=False, labels=None):
    claim = claim or (Claim("none", why="test") if k is None else Claim("cover", k=k))
    own = None if own is None else np.array(own, dtype=np.int64)
    return Target(original_of(people, labels), catalogue_of(records), claim, k, grid, tz, suppressed, own=own)


def random_crowd(seed, *, users=8, slots=40, side=6, most=7):
    """People who meet each other often, and some of whom are alike."""
    chance = np.random.default_rng(seed)
    crowd = []
    for _ in range(users):
        n = int(chance.integers(1, most + 1))
        crowd.append(sorted({tuple(map(int, chance.integers(0, (slots, side, side)))) for _ in range(n)}))
    if users > 2:
        crowd[1] = list(crowd[0])
    return crowd


def random_records(seed, *, records=6, slots=40, side=6, most=4):
    """Records of boxes of all sizes, distinct; a few of them unsound."""
    chance = np.random.default_rng([seed, 1])
    made = {}
    for number in range(records):
        edges = np.sort(chance.choice(slots, 2 * int(chance.integers(1, most + 1)), replace=False)).reshape(-1, 2)
        if number == records - 1:
            edges[-1] = edges[0]  # overlapping, or a box of one record twice
        places = np.sort(chance.integers(0, side, (len(edges), 2, 2)), axis=2).reshape(-1, 4)
        boxes = [tuple(map(int, (*when, *where))) for when, where in zip(edges, places, strict=True)]
        made.setdefault(tuple(boxes), int(chance.integers(1, 4)))
    return [(list(boxes), people) for boxes, people in made.items()]


def covering_records(people, groups):
    """One record a group: the bounds of all samples of its members, cut in two where time allows."""
    records = []
    for group in groups:
        samples = sorted(sample for user in group for sample in people[user])
        records.append(([hull_of(samples)], len(group)))
    return records


def hull_of(samples):
    return tuple(edge for axis in zip(*samples, strict=True) for edge in (min(axis), max(axis)))
