"""The parts of the verifier's search, cover and identical groups, on a few people and boxes made by hand."""

import random
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import CannotCheck
from shoal.lists import offsets_of
from shoal.run import Run
from shoal.seen import cover as seen_cover
from shoal.seen import index as search
from shoal.seen.arrays import blocks, distinct, fresh, narrow, spread
from shoal.seen.audit import Witnesses
from shoal.seen.codes import NOT_CHECKED
from shoal.seen.cover import complete_reach, count_cover, cover_pairs, tally_cover
from shoal.seen.findings import Findings
from shoal.seen.index import covering, hold, holders, index_boxes, index_rarest, mark_boxes
from shoal.seen.people import Crowd, crowd_of
from shoal.seen.records import catalogue
from shoal.verifier import cover, identical
from shoal.verifier.cover import check_concealment, check_cover
from shoal.verifier.identical import check_identical
from tests.oracle import cover as oracle
from tests.parts import original, records_of


def plain(kernel):
    """Return a kernel as it is written, compiled or not."""
    return getattr(kernel, "py_func", kernel)


def people_of(*lists):
    return original(lists, kind=np.int64)


def boxes_of(*lists):
    return records_of(lists, kind=np.int64)


def catalogue_of(*lists, weights=None):
    return catalogue(np.arange(len(lists)), records_of(lists, weights, kind=np.int64))


def ints(*values):
    return np.array(values, dtype=np.int64)


def at(t, x=0, y=0):
    return [t, t, x, x, y, y]


def flat(t0, t1, x0=0, x1=9):
    return [t0, t1, x0, x1, 0, 9]


# Arrays


def test_distinct_and_fresh_rows():
    assert distinct(ints()).tolist() == []
    assert distinct(ints(2, 2, 1, 7, 2)).tolist() == [1, 2, 7]
    assert fresh(ints()).tolist() == []
    assert fresh(ints(4)).tolist() == [True]
    assert fresh(ints(1, 1, 1, 2), ints(5, 5, 6, 6)).tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([], []), ([5], [(0, 1)]), ([6], [(0, 1)]), ([3, 2, 1, 4], [(0, 2), (2, 4)]), ([0, 0], [(0, 2)]),
        ([3, 3, 0, 9, 0, 5], [(0, 1), (1, 3), (3, 4), (4, 6)]),
        ([3, 0, 9, 1, 1, 1, 20], [(0, 2), (2, 3), (3, 6), (6, 7)]),
    ],
)  # fmt: skip
def test_blocks_are_as_large_as_they_may_be(sizes, parts):
    assert [(part.start, part.stop) for part in blocks(ints(*sizes), 5)] == parts


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], np.int32), ([2**31 - 1, -(2**31)], np.int32), ([2**31, 0], np.int64), ([0, -(2**31) - 1], np.int64),
        ([2**31, -(2**31) - 1], np.int64),
    ],
)  # fmt: skip
def test_the_narrowest_type_that_holds_all(values, kind):
    made = narrow(ints(*values))
    assert made.dtype == kind
    assert made.tolist() == values


@pytest.mark.parametrize("counts", [[], [0], [0, 0], [3], [0, 2, 1], [2, 0, 0, 3, 0], [1, 1, 4]])
def test_lists_one_after_the_other(counts):
    assert spread(ints(*counts)).tolist() == [n for n, count in enumerate(counts) for _ in range(count)]
    assert offsets_of(ints(*counts)).tolist() == [sum(counts[:n]) for n in range(len(counts) + 1)]


# The index of boxes


@pytest.mark.parametrize(
    ("span", "bits"), [(0, 0), (1, 2), (3, 2), (4, 4), (15, 4), (16, 6), (63, 6), (64, 8), (2**31, 32), (2**32, 34)]
)
def test_bits_of_a_span(span, bits):
    assert plain(search._bits)(np.int64(span)) == bits


def cell_of(long, wide, t, x, y, mask):
    mixed = long * 64 + wide
    for part in (t >> long, x >> wide, y >> wide):
        mixed = (mixed ^ (part & 0x7FFFFFFF)) * 0x5E3779B1
        assert mixed < 2**63
        mixed = (mixed ^ (mixed >> 29)) & 0x7FFFFFFF
    return mixed & mask


def test_cells_are_hashed_without_overflow():
    chance = random.Random(1)
    for _ in range(200):
        long, wide = chance.randrange(0, 34, 2), chance.randrange(0, 34, 2)
        t, x, y = (chance.randrange(-(2**31), 2**31) for _ in range(3))
        mask = (1 << chance.randrange(4, 31)) - 1
        assert search._cell(long, wide, t, x, y, mask) == cell_of(long, wide, t, x, y, mask)


def bits_of(span):
    return next(b for b in range(0, 64, 2) if span < 2**b)


def any_boxes(chance, n):
    lows = [[chance.randrange(-40, 40) for _ in range(3)] for _ in range(n)]
    spans = [[chance.choice([0, 0, 1, 2, 5, 30]) for _ in range(3)] for _ in range(n)]
    return [
        [edge for low, span in zip(*both, strict=True) for edge in (low, low + span)]
        for both in zip(lows, spans, strict=True)
    ]


@pytest.mark.parametrize(("n", "seed"), [(0, 0), (1, 0), (3, 0), (4, 0), (8, 0), (40, 0), *((7, s) for s in range(16))])
def test_every_box_is_in_every_cell_it_touches_once(n, seed):
    boxes = any_boxes(random.Random(seed), n)
    index = index_boxes(boxes_of(*([box] for box in boxes)))
    n_cells = 1 << max(4, (4 * n).bit_length())
    expected, sizes = {}, set()
    for row, (t0, t1, x0, x1, y0, y1) in enumerate(boxes):
        long, wide = bits_of(t1 - t0), bits_of(max(x1 - x0, y1 - y0))
        sizes.add((long, wide))
        corners = {
            (t >> long, x >> wide, y >> wide): cell_of(long, wide, t, x, y, n_cells - 1)
            for t, x, y in product((t0, t1), (x0, x1), (y0, y1))
        }
        for cell in corners.values():
            expected.setdefault(cell, []).append(row)
    assert len(index.starts) == n_cells + 1
    assert len(index.entry) == sum(map(len, expected.values())) == index.starts[-1]
    for cell in range(n_cells):
        assert sorted(index.entry[index.starts[cell] : index.starts[cell + 1]].tolist()) == expected.get(cell, [])
    assert [tuple(size) for size in index.sizes.tolist()] == sorted(sizes)


OVERLAPPING = [flat(0, 5), flat(5, 9)]
AN_EMPTY_BOX = [at(1), [3, 2, 0, 0, 0, 0], [4, 4, 1, 0, 0, 0], [5, 5, 0, 0, 1, 0], at(7)]


def test_which_boxes_are_indexed():
    records = boxes_of([at(1), at(3)], OVERLAPPING, [], AN_EMPTY_BOX, [at(9)])
    index = index_boxes(records)
    assert (index.rows.tolist(), index.record.tolist()) == ([0, 1, 9], [0, 0, 4])
    index = index_boxes(records, overlapping=True)
    assert (index.rows.tolist(), index.record.tolist()) == ([0, 1, 2, 3, 4, 8, 9], [0, 0, 1, 1, 3, 3, 4])
    assert index.apart.tolist() == [True, False, False, False, True]


def test_the_crowd_is_counted_in_steps():
    t, x, y = np.random.default_rng(1).integers(-200, 200, (3, 50))
    for step in (1, 3):
        crowd = np.zeros(64, dtype=np.int32)
        plain(search._count_crowd)(t, x, y, step, crowd)
        expected = Counter(cell_of(6, 4, *place, 63) for place in list(zip(*(t, x, y), strict=True))[::step])
        assert crowd.tolist() == [expected[cell] for cell in range(64)]


@pytest.mark.parametrize(("samples", "step"), [(0, 1), (1, 1), (2, 2), (3, 2), (4, 3)])
def test_only_some_samples_are_counted_where_they_are_many(samples, step, monkeypatch):
    steps = []
    monkeypatch.setattr(search, "_COUNTED", 2)
    monkeypatch.setattr(search, "_count_crowd", lambda t, x, y, step, crowd: steps.append(step))
    index_rarest(boxes_of([at(1)]), people_of([(t, 0, 0) for t in range(samples)]))
    assert steps == [step]


def crowd_in(box, crowd):
    t0, t1, x0, x1, y0, y1 = box
    sides = (range(t0 >> 6, (t1 >> 6) + 1), range(x0 >> 4, (x1 >> 4) + 1), range(y0 >> 4, (y1 >> 4) + 1))
    counters = len(sides[0]) * len(sides[1]) * len(sides[2])
    if counters > 256:
        return 1e12 * counters
    n = sum(int(crowd[cell_of(6, 4, t << 6, x << 4, y << 4, len(crowd) - 1)]) for t, x, y in product(*sides))
    return (n + 1) * (t1 - t0 + 1) / (len(sides[0]) * 64)


@pytest.mark.parametrize(
    "box",
    [
        at(70, 20, 20), [10, 73, 3, 12, 5, 5], [0, 63, 0, 15, 0, 15], [63, 64, 15, 16, 15, 16],
        [-1, 200, -17, 30, 15, 50], [0, 255, 0, 127, 0, 127], [0, 256 * 64, 0, 0, 0, 0], [0, 256 * 64 - 1, 0, 0, 0, 0],
        [0, 0, 0, 256 * 16, 0, 0], [5, 5, 0, 0, -1, 256 * 16 - 2], [0, 2**20, 0, 2**20, 0, 2**20],
    ],
)  # fmt: skip
def test_how_many_samples_a_box_may_hold(box):
    crowd = np.random.default_rng(2).integers(0, 9, 1024).astype(np.int32)
    assert plain(search._crowd_in)(ints(*box), crowd) == pytest.approx(crowd_in(box, crowd), rel=1e-12)


def test_the_rarest_box_of_each_sound_record():
    crowded = [(t, 0, 0) for t in range(5)]
    people = people_of(crowded, [(t, 0, 0) for t in range(128, 130)])
    alone, many, few = flat(320, 340), flat(0, 20), flat(128, 148)
    records = boxes_of([few, alone], [many, few], OVERLAPPING, [], [alone], [many], [flat(0, 1), flat(2, 3)])
    for threads in (1, 2):
        index = index_rarest(records, people, run=Run(threads=threads))
        assert (index.rows.tolist(), index.record.tolist()) == ([1, 3, 6, 7, 8], [0, 1, 4, 5, 6])
    index = index_rarest(boxes_of([flat(-90, -70), few]), people)
    assert (index.rows.tolist(), index.record.tolist()) == ([0], [0])


# What boxes, and records of boxes, hold


def test_a_box_holds_its_edges():
    box = [2, 4, 12, 14, 22, 24]
    for point in product(range(1, 6), range(11, 16), range(21, 26)):
        assert bool(plain(search._holds)(ints(*box), *point)) == oracle.holds(box, point)


def test_records_hold_points_with_and_without_order():
    lists = [
        [flat(0, 2), flat(4, 4), flat(6, 20, 3, 5)],
        [flat(8, 9, 0, 4), flat(11, 11)],
        [flat(12, 13)],
        [flat(3, 9), flat(1, 4, 2, 3), flat(9, 10)],
        [flat(2, 3)],
        [flat(12, 30), flat(0, 0, 1, 3)],
        [flat(12, 12), flat(14, 14), flat(16, 17), flat(18, 30)],
        [flat(5, 7), flat(6, 9)],
    ]
    index = index_boxes(boxes_of(*lists), overlapping=True)
    assert index.apart.tolist() == [True, True, True, False, True, False, True, False]
    for record, boxes in enumerate(lists):
        for t, x in product(range(-1, 32), (0, 2, 4, 9)):
            expected = any(oracle.holds(box, (t, x, 1)) for box in boxes)
            assert bool(plain(search._record_holds)(index, record, t, x, 1)) == expected


def test_a_full_list_doubles():
    more = plain(search._grown)(ints(4, 5, 6))
    assert (len(more), more[:3].tolist()) == (6, [4, 5, 6])


def test_a_walk_equals_looking_at_every_box():
    chance = random.Random(3)
    for _ in range(400):
        cuts = sorted(chance.sample(range(20), 2 * chance.randrange(1, 5)))
        edges = [(0, 20, 0, 20), (1, 2, 1, 2), (0, 1, 1, 3)]
        boxes = [[*cuts[n : n + 2], *chance.choice(edges)] for n in range(0, len(cuts), 2)]
        own = sorted(tuple(map(chance.randrange, (21, 4, 4))) for _ in range(chance.randrange(8)))
        before, after = [(5, 1, 1)] * chance.randrange(3), [(3, 1, 1)] * chance.randrange(2)
        t, x, y = ints(*(v for s in [*before, *own, *after] for v in s)).reshape(-1, 3).T
        rows = np.array([at(1), *boxes, at(30)])
        start, stop = len(before), len(before) + len(own)
        held = [any(oracle.holds(box, s) for box in boxes) for s in own]
        full = sum(any(oracle.holds(box, s) for s in own) for box in boxes)
        tally, none = np.full(len(own), 5, dtype=np.int32), np.empty(0, dtype=np.int32)
        walk = partial(plain(search._walk), t, x, y, start, stop, rows, 1, len(boxes) + 1)
        assert walk(-1, none) == (held.count(False), full)
        if own:
            assert walk(-1, tally) == (held.count(False), full)
            assert tally.tolist() == [5 + one for one in held]
        for most in (0, 1, len(own)):
            outside, seen = walk(most, none)
            if full == len(boxes) and held.count(False) <= most:
                assert (outside, seen) == (held.count(False), full)
            elif full < len(boxes):
                assert outside == len(own) + 1
            else:
                assert outside in (held.count(False), len(own) + 1)


# Pairs of users and records


def pairs_of(people, records, *, whole):
    """Every pair in which each box holds a sample of the user, and how many samples are outside."""
    users = samples_of(people)
    lists = [records.boxes[a:b].tolist() for a, b in edges(records)]
    found = []
    for u, own in enumerate(users):
        for r, boxes in enumerate(lists):
            outside = sum(not any(oracle.holds(box, s) for box in boxes) for s in own)
            full = all(any(oracle.holds(box, s) for s in own) for box in boxes)
            if records.sound[r] and full and not (whole and outside):
                found.append((u, r, outside))
    return found


def edges(lists):
    return list(pairwise(lists.offsets.tolist()))


def samples_of(people):
    columns = people.t, people.x, people.y
    return [list(zip(*(column[a:b].tolist() for column in columns), strict=True)) for a, b in edges(people)]


def told(pairs):
    return sorted(zip(*(side.tolist() for side in pairs), strict=True))


WALKERS = people_of(
    [(90, 1, 1), (95, 1, 1)], [(20, 1, 1)], [(20, 1, 1), (30, 1, 1)], [], [(19, 1, 1), (20, 2, 2), (30, 1, 1)],
    [(20, 1, 1), (21, 7, 1), (30, 1, 1), (31, 1, 1)],
)  # fmt: skip
PATHS = boxes_of(
    [flat(18, 40)], [flat(20, 20), flat(30, 30)], [flat(19, 20), flat(30, 31)], OVERLAPPING,
    [flat(20, 21, 1, 1), flat(30, 31)], [flat(20, 30)], [flat(20, 20)], [flat(90, 95)], [flat(19, 31)],
)  # fmt: skip


@pytest.mark.parametrize("whole", [True, False])
def test_pairs_are_exact(whole, monkeypatch):
    index, everybody = index_rarest(PATHS, WALKERS), np.arange(len(WALKERS))
    expected = pairs_of(WALKERS, PATHS, whole=whole)
    assert {u for u, *_ in expected} == {0, 1, 2, 4, 5}
    assert told(covering(WALKERS, index, everybody, whole=whole)) == expected
    if whole:
        assert told(covering(WALKERS, index, everybody)) == expected
    some = ints(5, 2)
    chosen = [pair for pair in expected if pair[0] in some]
    for stop_at in (1, 2, 3, 9):
        got = covering(WALKERS, index, some, whole=whole, stop_at=stop_at)
        assert set(told(got)) <= set(chosen)
        per_user = Counter(user for user, *_ in chosen)
        assert Counter(got.user.tolist()) == {user: min(stop_at, n) for user, n in per_user.items()}
    monkeypatch.setattr(search, "_QUERIES", 1)
    for threads in (1, 2):
        got = covering(WALKERS, index, everybody, whole=whole, run=Run(threads=threads))
        assert got.user.tolist() == sorted(got.user.tolist())
        assert told(got) == expected
    nobody = covering(WALKERS, index, ints(), whole=whole)
    assert [(side.dtype, len(side)) for side in nobody] == [(np.int64, 0)] * 3


def test_more_pairs_than_a_list_begins_with():
    people, records = people_of([(5, 1, 1)], [(6, 1, 1)]), boxes_of(*([flat(0, n)] for n in range(10, 140)))
    expected = [(u, r, 0) for u in range(2) for r in range(130)]
    assert told(covering(people, index_rarest(records, people), np.arange(2))) == expected
    ends, record = holders(index_boxes(records), people.offsets, people.t, people.x, people.y)
    assert ends.tolist() == [0, 130, 260]
    assert record.tolist() == [*range(130), *range(130)]


def test_the_point_with_fewest_boxes_around_it():
    index = index_boxes(boxes_of([at(1)]))
    points = [ints(1, 1, 100), ints(0, 0, 0), ints(0, 0, 0)]
    assert plain(search._rarest_point)(index, *points, 0, 3) == 2
    assert plain(search._rarest_point)(index, *points, 0, 2) == 0
    assert plain(search._rarest_point)(index, *points, 1, 2) == 1
    index = index_boxes(boxes_of([at(1)], [at(1)], [at(2)], [flat(1, 2)], [flat(50, 99)]))
    assert plain(search._rarest_point)(index, ints(1, 2, 1), ints(0, 0, 0), ints(0, 0, 0), 0, 3) == 1


def test_holders_of_hand_made_queries(monkeypatch):
    records = boxes_of(
        [flat(0, 500)], [flat(0, 9), flat(20, 29)], [at(5, 1, 1)], OVERLAPPING, [flat(4, 6)], [flat(20, 40)]
    )
    queries = [[(5, 1, 1)], [], [(25, 1, 1), (5, 1, 1)], [(5, 2, 1), (30, 1, 1)], [(600, 1, 1)], [(40, 9, 9)], []]
    expected = [[0, 1, 2, 4], [], [0, 1], [0], [], [0, 5], []]
    rows = people_of(*queries)
    for size in (2_000, 2):
        monkeypatch.setattr(search, "_QUERIES", size)
        for stop_at in (None, 1, 2, 4):
            ends, found = holders(index_boxes(records), rows.offsets, rows.t, rows.x, rows.y, stop_at=stop_at)
            got = [found[a:b].tolist() for a, b in pairwise(ends)]
            if stop_at is None:
                assert got == expected
            assert [len(one) for one in got] == [min(len(all_of), stop_at or 9) for all_of in expected]
            assert all(
                set(one) <= set(all_of) and one == sorted(one) for one, all_of in zip(got, expected, strict=True)
            )
    ends, found = holders(index_boxes(records), rows.offsets, rows.t, rows.x, rows.y)
    both, found_too = holders(index_boxes(records, overlapping=True), rows.offsets, rows.t, rows.x, rows.y)
    assert np.diff(both).tolist() == [5, 0, 2, 1, 0, 2, 0]
    assert found_too[:5].tolist() == [0, 1, 2, 3, 4]
    ends, found = holders(index_boxes(records), ints(0), ints(), ints(), ints())
    assert (ends.tolist(), found.tolist()) == ([0], [])


def test_what_chosen_pairs_hold():
    fixes = [(1, 1, 1), (5, 1, 1), (6, 20, 1), (9, 1, 1)], [(0, 1, 1), (4, 1, 1), (5, 1, 1), (12, 1, 1)]
    people = people_of([(1, 1, 1)], fixes[0], [], fixes[1], [(12, 1, 1)])
    records = boxes_of([flat(0, 1), flat(4, 9), flat(10, 11)], OVERLAPPING, [flat(5, 6, 0, 30)], [flat(12, 12)])
    users, record = ints(1, 1, 1, 2, 3, 3, 3), ints(0, 1, 2, 0, 0, 2, 3)
    held = hold(people, records, users, record)
    assert held.samples.tolist() == [3, 0, 2, 0, 3, 1, 1]
    assert held.boxes.tolist() == [2, 0, 1, 0, 2, 1, 1]
    tally = np.zeros(8, dtype=np.int32)
    again = hold(people, records, users, record, tally=tally)
    assert [side.tolist() for side in again] == [side.tolist() for side in held]
    assert tally.tolist() == [1, 2, 1, 1, 1, 1, 2, 1]
    nothing = hold(people, records, ints(), ints())
    assert (len(nothing.samples), len(nothing.boxes)) == (0, 0)
    marked = np.zeros(7, dtype=bool)
    mark_boxes(people, records, users[:2], record[:2], marked)
    assert marked.tolist() == [True, True, False, False, False, False, False]
    mark_boxes(people, records, users, record, marked)
    assert marked.tolist() == [True, True, False, False, False, True, True]


# Cover


def witnesses_of(links, owner, *, users, bad=()):
    """Witnesses of (user, record) links; record r is that of `owner[r]`."""
    own = np.full(users, -1)
    own[owner] = np.arange(len(owner))
    user, record = ints(*(value for link in links for value in link)).reshape(-1, 2).T
    good = np.array([link not in bad for link in links], dtype=bool)
    return Witnesses(user, record, ints(*owner), own, good)


# Three people at one place, one elsewhere, one who has no sample; boxes around the three, around two, around all.
FIVE = people_of([(5, 1, 1)], [(5, 2, 1)], [(5, 3, 1)], [(5, 30, 1)], [])
THREE, TWO, ALL, ONE = [flat(5, 5, 1, 3)], [flat(5, 5, 1, 2)], [flat(5, 5, 0, 40)], [flat(5, 5, 30, 30)]
GIANT = [flat(0, 4, 0, 40), flat(5, 5, 0, 40)]
TOO_MANY = ("cover/more-records-than-users", {})


def short(n, k):
    return "cover/too-few-records", {"n": n, "k": k}


def raw(n):
    return "cover/raw-records", {"n": n, "k": 2}


def inside(n, k):
    return "one-way-only", {"n": n, "k": k}


@pytest.mark.parametrize(
    ("lists", "k", "found", "figures"),
    [
        ([THREE, TWO, ALL], 1, [], (0, 1, 2, None)),
        ([THREE, TWO, ALL], 2, [short(1, 2)], (1, 1, 2, 1)),
        ([THREE, TWO, ALL], 3, [short(2, 3)], (2, 1, 2, 1)),
        ([THREE, TWO, ALL], 4, [short(4, 4)], (4, 1, 2, 1)),
        ([THREE, THREE, ALL, ALL], 2, [], (0, 2, 2, None)),
        ([THREE, THREE, ALL, ALL], 3, [short(1, 3)], (1, 2, 2, 2)),
        ([ALL, ALL, ONE, ONE], 2, [raw(1)], (0, 2, 1, None)),
        ([ALL, ALL, ONE, ONE], 3, [short(3, 3), raw(1)], (3, 2, 1, 2)),
        ([ALL, ONE, [at(7)]], 1, [], (0, 1, 0, None)),
        ([ALL, ALL, ALL, ALL, [at(7)]], 2, [raw(1)], (0, 2, 0, None)),
        ([ALL, ALL, ALL, ALL, [at(7)], [at(8)]], 2, [TOO_MANY, raw(2)], (0, 2, 0, None)),
        ([GIANT, GIANT, THREE], 2, [short(4, 2), raw(1), inside(4, 2)], (4, 0, 0, 2)),
        ([GIANT, THREE], 2, [short(4, 2), raw(1), inside(3, 2)], (4, 0, 0, 1)),
        ([GIANT, GIANT, GIANT, THREE], 2, [short(4, 2), raw(1), inside(4, 2)], (4, 0, 0, 2)),
        ([], 2, [short(4, 2)], (4, 0, 0, 0)),
    ],
)
def test_cover_is_told_with_its_figures(lists, k, found, figures):
    findings = Findings()
    check_cover(findings, FIVE, catalogue_of(*lists), k)
    assert findings.found == found
    assert findings.checked == ["cover"]
    names = ("users_short", "min_cover", "min_members", "one_way_min")
    assert findings.figures == {name: n for name, n in zip(names, figures, strict=True) if n is not None}


def test_exact_cover_is_told_for_everybody():
    findings = Findings()
    check_cover(findings, FIVE, catalogue_of(THREE, GIANT, ALL, ALL, TWO), 3, exact=True)
    assert findings.found == [short(1, 3), raw(1)]
    spread_of = {"min": 2, "median": 3.5, "max": 4, "histogram": {"2": 1, "3": 1, "4": 2}}
    one_way = {"min": 3, "median": 4.5, "max": 5, "histogram": {"3": 1, "4": 1, "5": 2}}
    counts = {"users_short": 1, "min_cover": 2, "min_members": 0, "one_way_min": 3}
    assert findings.figures == {**counts, "cover": spread_of, "one_way": one_way}
    findings = Findings()
    check_cover(findings, FIVE, catalogue_of(ALL, ALL, ALL, ALL, THREE), 2, exact=True)
    assert not findings.failures
    assert [findings.figures[name] for name in ("min_cover", "min_members", "one_way_min")] == [4, 3, 4]


def test_cover_of_nobody():
    for exact in (False, True):
        findings = Findings()
        check_cover(findings, people_of([], []), catalogue_of(), 2, exact=exact)
        assert findings.found == [("cover/nobody", {})]
        assert findings.figures == {"users_short": 0, "min_members": 0}


def test_cover_by_witnesses_is_counted_before_it_is_searched(monkeypatch):
    """Whoever has k good witnesses is not searched for; the others are, whatever the audit says of them."""
    searched = []

    def tally(people, records, users, **options):
        if options.get("boxes_too", True):
            searched.append((users.tolist(), options["stop_at"]))
        return tally_cover(people, records, users, **options)

    monkeypatch.setattr(cover, "tally_cover", tally)
    links = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 2), (3, 2), (3, 0)]
    witnesses = witnesses_of(links, [0, 1, 2], users=5, bad=[(3, 0)])
    records = catalogue_of(THREE, TWO, ALL)
    findings = Findings()
    check_cover(findings, FIVE, records, 2, witnesses=witnesses)
    assert searched == [([3], 2)]
    assert findings.found == [short(1, 2)]
    assert findings.figures == {"users_short": 1, "min_cover": 1, "min_members": 2, "one_way_min": 1}
    findings = Findings()
    check_cover(findings, FIVE, records, 2, witnesses=witnesses, exact=True)
    assert searched[1:] == [([0, 1, 2, 3], None)]
    assert findings.figures["cover"]["histogram"] == {"1": 1, "2": 1, "3": 2}
    findings = Findings()
    few = witnesses_of([*links[:5], (2, 1)], [0, 1, 2], users=5, bad=[(0, 1), (1, 1)])
    check_cover(findings, FIVE, records, 1, witnesses=few)
    assert findings.found == []
    check_cover(findings, FIVE, records, 2, witnesses=few)
    assert findings.found == [short(1, 2), raw(2)]
    assert findings.figures["min_members"] == 0


def test_one_way_cover_explains_only_so_many_users(monkeypatch):
    records = catalogue_of(GIANT, GIANT, THREE)
    for limit, told_of in ((3, False), (4, True)):
        monkeypatch.setattr(cover, "_EXPLAINED_USERS", limit)
        findings = Findings()
        check_cover(findings, FIVE, records, 2)
        assert (inside(4, 2) in findings.found) == told_of == ("one_way_min" in findings.figures)
        findings = Findings()
        check_cover(findings, FIVE, records, 2, exact=True)
        assert findings.figures["one_way"]["histogram"] == {"2": 1, "3": 3}


def test_copies_count_as_no_more_people_than_they_cover(monkeypatch):
    records = catalogue_of(ONE, ONE, ONE, ALL, TWO, TWO, TWO).unique
    everybody = np.arange(5)
    for size in (100_000, 2, 1):
        monkeypatch.setattr(seen_cover, "_USERS", size)
        assert count_cover(FIVE, records, everybody).tolist() == [3, 3, 1, 2, 0]
        assert count_cover(FIVE, records, everybody, boxes_too=False).tolist() == [4, 4, 1, 4, 0]
        assert count_cover(FIVE, records, ints(1, 3)).tolist() == [3, 2]
        counts, reach = tally_cover(FIVE, records, ints(1, 2))
        assert (counts.tolist(), reach.tolist()) == ([3, 1], [0, 2, 1])
    copies = boxes_of(ONE, TWO, ONE, TWO, ONE, ALL, TWO)
    assert count_cover(FIVE, copies, everybody).tolist() == [3, 3, 1, 2, 0]
    assert [side.tolist() for side in cover_pairs(FIVE, records, ints(3, 1))] == [[3, 3, 1, 1], [0, 1, 2, 1]]
    one_way = cover_pairs(FIVE, boxes_of(GIANT, ONE), ints(4, 3, 0), boxes_too=False)
    assert [side.tolist() for side in one_way] == [[3, 3, 0], [0, 1, 0]]
    assert [len(side) for side in cover_pairs(FIVE, records, ints(0, 3), stop_at=1)] == [2, 2]
    assert [len(side) for side in cover_pairs(FIVE, records, ints(0, 3), stop_at=1, boxes_too=False)] == [2, 2]


def test_records_are_weighed_only_where_there_are_copies(monkeypatch):
    single = boxes_of(ONE, TWO)
    assert seen_cover._without_copies(FIVE, single, Run()) is single
    weighed = replace(boxes_of(ONE, TWO, [at(7)], ALL), weights=ints(2, 2, 3, 1), unlike=True)
    assert seen_cover._without_copies(FIVE, weighed, Run()).weights.tolist() == [1, 2, 0, 1]
    assert weighed.weights.tolist() == [2, 2, 3, 1]


def test_only_records_seen_to_cover_fewer_than_two_are_counted_again():
    records, reach = boxes_of(THREE, TWO, ALL, ONE, [at(7)]), ints(0, 1, 2, 1, 1)
    assert complete_reach(FIVE, records, reach).tolist() == [3, 2, 2, 1, 0]
    assert reach.tolist() == [0, 1, 2, 1, 1]


def test_links_to_kinds_are_links_to_each_record():
    records = catalogue_of(ONE, TWO, ONE, ALL, TWO, ONE)
    user, record = cover._by_record(records, ints(7, 8, 9, 7), ints(1, 0, 2, 2))
    assert (user.tolist(), record.tolist()) == ([7, 7, 8, 8, 8, 9, 7], [1, 4, 0, 2, 5, 3, 3])


def test_parts_of_a_graph_are_strongly_connected():
    part = cover._components(6, ints(0, 1, 1, 2, 3, 3, 4), ints(1, 0, 2, 3, 2, 3, 3)).tolist()
    assert part[0] == part[1]
    assert part[2] == part[3]
    assert len({part[0], part[2], part[4], part[5]}) == 4


def told_apart(k, **counts):
    """Return findings about those of whom, or of which, fewer than k can't be told apart."""
    codes = {"hide": "cover/too-few-users", "own": "cover/user-told", "owned": "cover/record-told"}
    return [(codes[what], {"n": n, "k": k}) for what, n in counts.items()]


def fixed(n):
    return [("cover/fixed-links", {"n": n})]


@pytest.mark.parametrize(
    ("lists", "k", "found"),
    [
        ([ALL, TWO, TWO, THREE], 2, []),
        ([ALL, TWO, TWO, THREE], 3, told_apart(3, hide=2)),
        ([ALL, TWO, TWO, THREE], 4, told_apart(4, hide=3)),
        ([ALL, TWO, TWO, THREE, [at(7)]], 1, told_apart(1, hide=1)),
    ],
)
def test_concealment_without_an_audit(lists, k, found):
    findings = Findings()
    check_concealment(findings, FIVE, catalogue_of(*lists), k)
    assert findings.found == found
    assert findings.checked == ["cover"]
    assert findings.skipped == [NOT_CHECKED["owners-apart"]]


# 0 and 1 share their records; 2 is in these and in her own; 3 shares hers with 2, who can't be one of the others.
@pytest.mark.parametrize(
    ("lists", "owner", "links", "bad", "k", "found"),
    [
        ([ALL, ALL, ALL, ALL], [0, 1, 2, 3], [(0, 1), (1, 2), (3, 3)], [], 4, []),
        ([ALL, ALL, ALL, ALL], [0, 1, 2, 3], [], [], 5, told_apart(5, hide=4, own=4, owned=4)),
        ([TWO, TWO, THREE, ONE], [0, 1, 2, 3], [(0, 0), (1, 0), (0, 2), (1, 2)], [], 1, fixed(2)),
        ([TWO, TWO, THREE, ONE], [0, 1, 2, 3], [(0, 0), (0, 2), (1, 2)], [(1, 2)], 1, fixed(1)),
        ([TWO, TWO, THREE, ONE], [0, 1, 2, 3], [], [], 2, told_apart(2, hide=1, own=2, owned=2)),
        ([THREE, TWO, TWO, ONE], [2, 0, 1, 3], [(2, 0)], [], 2, told_apart(2, hide=1, own=2, owned=2)),
    ],
)
def test_concealment_with_an_audit(lists, owner, links, bad, k, found):
    findings = Findings()
    witnesses = witnesses_of(links, owner, users=5, bad=bad)
    check_concealment(findings, FIVE, catalogue_of(*lists), k, witnesses=witnesses)
    assert findings.found == found
    assert findings.checked == ["cover"]
    assert findings.skipped == []


# Identical groups


def crowd_in_parts(*parts):
    """Return people who come part after part."""
    counts = np.concatenate([part.counts for part in parts])
    return Crowd(pa.array([str(n) for n in range(len(counts))]), counts, np.zeros((len(counts), 3)), lambda: parts)


def some_of(people, *users):
    return people_of(*(samples_of(people)[user] for user in users))


def small(n, k):
    return "identical/small-groups", {"n": n, "k": k}


def few_users(n, k):
    return "identical/too-few-users", {"n": n, "k": k}


def left_out(n):
    return "identical/left-out", {"n": n}


def swollen(n):
    return "identical/too-many-people", {"n": n}


def area_of_few(n, k):
    return "identical/area-of-few", {"n": n, "k": k}


def empty(n):
    return "truth/box-without-sample", {"n": n}


NONE = ("identical/no-record", {})
# Two groups of three and of two; the last has no sample.
SIX = people_of([(5, 1, 1), (8, 1, 1)], [(5, 2, 1), (9, 1, 1)], [(4, 3, 1), (8, 2, 1)], [(5, 30, 1)], [(6, 31, 1)], [])
NEAR, FAR = [flat(4, 5, 1, 3), flat(8, 9, 1, 2)], [flat(5, 6, 30, 31)]
# Pieces: each box is about some of the group only. Three people were in the areas of the first three, two in the last.
PIECES = [flat(4, 4, 1, 3), flat(5, 5, 1, 2), flat(8, 8, 1, 2), flat(9, 9, 1, 1)]


def ways(people):
    """Return the same people at once and in parts, and with few of them in memory at a time."""
    both = crowd_in_parts(some_of(people, 0, 1, 2), some_of(people, 3, 4, 5))
    return [(crowd_of(people), 100_000), (both, 100_000), (both, 2), (crowd_of(people), 1), (crowd_of(people), 6)]


def in_all_ways(monkeypatch, people, *asked, **options):
    """Yield what is found about identical groups, in each of these ways."""
    for crowd, size in ways(people):
        monkeypatch.setattr(identical, "_USERS", size)
        findings = Findings()
        check_identical(findings, crowd, *asked, **options)
        yield findings


WHOLE = [
    ([NEAR, FAR], [3, 2], 2, [], (2, 2, 2)),
    ([NEAR, FAR, NEAR, FAR, NEAR], None, 2, [], (2, 2, 2)),
    ([NEAR, FAR], [3, 3], 2, [swollen(1)], (2, 3, 3)),
    ([NEAR, FAR], [4, 3], 2, [("identical/more-records-than-users", {}), swollen(2)], (2, 3, 3)),
    ([NEAR, FAR], [3, 2], 3, [small(1, 3), few_users(1, 3)], (2, 2, 2)),
    ([NEAR, FAR], [3, 3], 3, [few_users(1, 3)], (2, 3, 3)),
    ([NEAR, FAR], [1, 1], 2, [small(2, 2)], (2, 1, 1)),
    ([NEAR], [3], 3, [left_out(2)], (1, 3, 0)),
    ([NEAR, FAR[:1], [at(7)]], [2, 2, 2], 2, [few_users(1, 2)], (3, 2, 2)),
    ([[flat(4, 9, 1, 3)], [flat(5, 5, 30, 30)]], [3, 2], 2, [left_out(1), few_users(1, 2)], (2, 2, 0)),
    ([], None, 2, [NONE, left_out(5)], (0, 0, 0)),
]
IN_PIECES = [
    ([PIECES, FAR], [3, 2], 2, [], (2, 2, 2)),
    ([PIECES, FAR], [3, 2], 3, [small(1, 3), area_of_few(2, 3), few_users(1, 3)], (2, 2, 2)),
    ([PIECES, FAR], [3, 3], 3, [area_of_few(2, 3), few_users(1, 3)], (2, 3, 3)),
    ([[flat(4, 4, 3, 3), *PIECES[1:]], FAR], [3, 2], 2, [area_of_few(1, 2)], (2, 2, 2)),
    ([[flat(4, 4, 2, 3), *PIECES[1:]], FAR], [3, 2], 2, [], (2, 2, 2)),
    ([PIECES[1:], FAR], [3, 2], 2, [left_out(1), swollen(1)], (2, 2, 0)),
    ([PIECES[1:], FAR], [2, 2], 2, [left_out(1)], (2, 2, 0)),
    ([PIECES[2:], FAR], [3, 2], 2, [left_out(3), empty(2), area_of_few(2, 2), few_users(1, 2)], (2, 2, 0)),
    ([[*PIECES, at(15), at(17)], FAR], [3, 2], 2, [empty(2), area_of_few(2, 2)], (2, 2, 2)),
    ([], None, 2, [NONE, left_out(5)], (0, 0, 0)),
]


@pytest.mark.parametrize(
    ("level", "checked", "lists", "weights", "k", "found", "figures"),
    [
        *(("member", ["identical"], *row) for row in WHOLE),
        *(("group", ["identical", "truth"], *row) for row in IN_PIECES),
    ],
)
def test_identical_groups_are_told_with_their_figures(level, checked, lists, weights, k, found, figures, monkeypatch):
    for findings in in_all_ways(monkeypatch, SIX, catalogue_of(*lists, weights=weights), k, level=level):
        assert findings.found == found
        assert findings.checked == checked
        assert findings.figures == dict(zip(("groups", "min_group", "min_cover"), figures, strict=True))


def test_identical_groups_by_witnesses():
    """Owners count whose own record was found to be theirs; others who are merged into it do not."""
    records = catalogue_of(NEAR, FAR, NEAR, FAR, NEAR)
    links = [(0, 0), (1, 0), (1, 2), (2, 4), (3, 1), (4, 3), (4, 1)]
    owner = [0, 3, 1, 4, 2]
    for bad, k, level, found in (
        ([], 2, "member", []),
        ([], 2, "group", []),
        ([], 3, "member", [small(1, 3), few_users(1, 3)]),
        ([(4, 3)], 2, "member", [left_out(1), few_users(1, 2)]),
        ([(4, 3), (0, 0), (1, 2)], 2, "group", [left_out(3), few_users(2, 2)]),
        ([(4, 1), (1, 0)], 2, "member", []),
    ):
        findings = Findings()
        witnesses = witnesses_of(links, owner, users=6, bad=bad)
        check_identical(findings, crowd_of(SIX), records, k, witnesses=witnesses, level=level)
        assert findings.found == found
        assert findings.figures["min_cover"] == (0 if left_out(len(bad)) in found else 2)


STATED = ("suppression/more-than-stated", {})
# Box by box each of them has a sample; 0 and 2 have one more outside NEAR, 3 two outside FAR, the last one none inside.
LOSSY = people_of(
    [(5, 1, 1), (8, 1, 1), (20, 1, 1)],
    [(5, 2, 1), (9, 1, 1)],
    [(3, 3, 1), (4, 3, 1), (8, 2, 1)],
    [(5, 30, 1), (6, 1, 1), (30, 30, 1)],
    [(6, 31, 1)],
    [(50, 1, 1), (51, 1, 1), (52, 1, 1)],
)


@pytest.mark.parametrize(
    ("lists", "k", "stated", "found"),
    [
        ([NEAR, FAR], 2, 7, []),
        ([NEAR, FAR], 2, 6, [STATED]),
        ([NEAR, FAR], 3, 7, [small(2, 3), few_users(1, 3)]),
        ([NEAR, FAR, [flat(4, 20, 1, 3)]], 2, 6, []),
        ([NEAR, FAR, [flat(4, 20, 1, 3)]], 2, 5, [STATED]),
        ([NEAR, [at(7)]], 2, 11, [few_users(1, 2)]),
        ([NEAR, FAR], 2, 0, [STATED]),
    ],
)
def test_identical_groups_where_suppression_is_stated(lists, k, stated, found, monkeypatch):
    records = catalogue_of(*lists, weights=[2] * len(lists))
    for findings in in_all_ways(monkeypatch, LOSSY, records, k, stated=stated):
        assert findings.found == found
        assert "min_cover" not in findings.figures


def test_where_nothing_is_stated_nothing_may_be_outside(monkeypatch):
    for findings in in_all_ways(monkeypatch, LOSSY, catalogue_of(NEAR, FAR, weights=[3, 2]), 2):
        assert findings.found == [left_out(4), few_users(2, 2)]


# The third and the last are in no group, with three samples and two.
LOST = people_of(
    [(5, 1, 1), (8, 1, 1)],
    [(4, 1, 1), (5, 2, 1), (9, 1, 1)],
    [(4, 3, 1), (8, 2, 1), (20, 1, 1)],
    [(5, 30, 1)],
    [(6, 31, 1)],
    [(50, 1, 1), (51, 1, 1)],
)


def test_pieces_of_groups_where_suppression_is_stated(monkeypatch):
    records = catalogue_of([*PIECES, at(15)], FAR, weights=[3, 2])
    for findings in in_all_ways(monkeypatch, LOST, records, 2, stated=5, level="group"):
        assert findings.found == [empty(1), area_of_few(1, 2)]
        assert findings.figures == {"groups": 2, "min_group": 2}
    for people, size in ways(LOST):
        monkeypatch.setattr(identical, "_USERS", size)
        with pytest.raises(CannotCheck, match="`audit`"):
            check_identical(Findings(), people, records, 2, stated=4, level="group")
