"""The parts of the check of windows, one by one: exact figures and findings, edges, and slow twins."""

import random
from dataclasses import replace
from itertools import combinations_with_replacement, pairwise, product
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from shoal.run import Run
from shoal.seen.audit import Witnesses
from shoal.seen.findings import Findings
from shoal.seen.people import Crowd, crowd_of
from shoal.seen.records import catalogue
from shoal.verifier import windows, windows_members, windows_search
from shoal.verifier.windows import AskedWindows, check_windows, two_digits_up
from shoal.verifier.windows_holders import _mark_inside, find_holders, no_holders
from shoal.verifier.windows_members import check_merged
from shoal.verifier.windows_search import (
    _ENDS,
    _STARTS,
    WindowTally,
    _Answer,
    _begin,
    _fits,
    _has,
    _keep,
    _Kept,
    _note,
    _reach,
    _reaches,
    _recall,
    _report,
    _times,
    _User,
    _Window,
    look_through,
)
from tests.oracle import windows as twin
from tests.oracle.cover import holds
from tests.parts import is_sound, original, records_of

FOREVER = np.iinfo(np.int64).max
BOTH = _STARTS | _ENDS


def published(records, weights=None):
    return catalogue(np.arange(len(records)), records_of(records, weights))


def points(samples):
    """Return a box around each sample alone."""
    return [[t, t, x, x, y, y] for t, x, y in sorted(samples)]


def words(bits, n):
    """Return whether each of n samples is marked as words of 64 bits."""
    packed = [0] * -(-n // 64)
    for p in bits:
        packed[p // 64] |= 1 << p % 64
    return np.array(packed, dtype=np.uint64)


def scene(seed, *, users=3, samples=6, records=5, end=20, most_boxes=5):
    """Return people, several samples of some at one time, and records of boxes disjoint in time near them."""
    draw = random.Random(seed)
    everyone = [
        sorted({(draw.randrange(end), draw.randrange(3), draw.randrange(2)) for _ in range(samples)})
        for _ in range(users)
    ]
    made = []
    for _ in range(records):
        edges = sorted(draw.sample(range(-2, end + 3), 2 * draw.randint(1, most_boxes)))
        wide = [(0, 2), (0, 2), (1, 2), (0, 1)]
        made.append(
            [
                [t0, draw.choice([t0, t1, t1]), *draw.choice(wide), 0, draw.choice([1, 1, 0])]
                for t0, t1 in zip(edges[::2], edges[1::2], strict=True)
            ]
        )
    return everyone, made


def task_of(users, records, weights, *, length, k=2, exact=True, known=None):
    """Return what the kernel is called with."""
    seen = []

    def look(task, *_):
        seen.append(task)
        return 0

    asked = {"length": length, "k": k, "known": known, "exact": exact}
    with mock.patch.object(windows_search, "_look", look):
        look_through(original(users), records_of(records), np.array(weights), **asked)
    return seen[0]


def user_of(task, u, most_boxes):
    start, stop = task.offsets[u], task.offsets[u + 1]
    times = _times(task.t, start, stop)
    ends, begins = _reaches(task.t, times, task.length)
    return _User(times, ends, begins, np.empty(stop - start + 1, np.int64), np.empty(most_boxes, np.int64))


def same_as_the_twin(users, records, weights, *, length, k, known=None, rooms=(1, 1 << 20), sound=None):
    """Compare everything with the slow twin; records that are not `sound` hold nothing."""
    both = zip(records, weights, strict=True)
    counted = [own for n, own in enumerate(both) if sound is None or sound[n]]
    with mock.patch.object(twin, "people_of_records", return_value=counted):
        wanted = twin.look_through(users, records, length, k)
    least = [FOREVER if own is None else own for own in wanted["least"]]
    for room in rooms:
        for exact in (True, False):
            asked = {"length": length, "k": k, "known": known, "exact": exact, "room": room, "run": Run(threads=1)}
            found = look_through(original(users), records_of(records), np.array(weights, dtype=np.int64), **asked)
            assert found.windows == len(wanted["counts"])
            assert (found.short, found.ending_short) == (wanted["short"], wanted["ending_short"])
            assert found.leaks.tolist() == sorted(wanted["leaks"])
            assert dict(zip(found.leaks.tolist(), found.times.tolist(), strict=True)) == wanted["leaks"]
            assert (found.told, found.outside) == (wanted["told"], wanted["outside"])
            if exact:
                assert found.counts.tolist() == wanted["counts"]
                assert found.least.tolist() == least
            else:
                assert not len(found.counts)
                assert np.minimum(found.least, k).tolist() == [min(k, own) for own in least]
    return wanted


# The search, from end to end


@pytest.mark.parametrize("seed", range(25))
def test_windows_of_all_lengths_as_the_twin_sees_them(seed):
    users, records = scene(seed, users=2 + seed % 3, records=3 + seed % 6)
    weights = [1 + (seed + n) % 3 for n in range(len(records))]
    for length in (1, 2, 3 + seed % 5, 9):
        same_as_the_twin(users, records, weights, length=length, k=1 + seed % 3)


def test_more_records_fit_than_are_remembered_or_than_there_was_room_for():
    """A hundred and forty records that differ in one corner; each holds a part of one person's days."""
    one = [(t, 0, 0) for t in (0, 4, 8, 9, 15)]
    other = [(3, 0, 0), (8, 0, 0), (30, 0, 0)]
    records = [
        [[0, 4 + n % 5, 0, n, 0, 0], *([[9 + n % 2, 15, 0, 0, 0, 0]] if n % 3 else []), [30, 30, n % 2, 2, 0, 0]]
        for n in range(140)
    ]
    wanted = same_as_the_twin([one, [], other], records, [1 + n % 2 for n in range(140)], length=5, k=20)
    assert len(set(wanted["counts"])) > 3


@pytest.mark.parametrize("n", [63, 64, 129])
def test_people_of_more_samples_than_a_word_has_bits(n):
    one = [(2 * t, t % 2, 0) for t in range(n)]
    records = [
        [[0, 4 * n, 0, 1, 0, 0]],
        [[0, n - 20, 0, 1, 0, 0], [n - 18, 4 * n, 0, 1, 0, 0]],
        [[0, n, 0, 1, 0, 0], *points(one[n // 2 + 1 : -1])],
        points(one[5:]),
    ]
    same_as_the_twin([[(1, 0, 0)], one], records, [1, 2, 1, 1], length=7, k=3)
    same_as_the_twin([[(1, 0, 0)], one], records[:2], [1, 1], length=6, k=3)


def test_records_that_are_tried_first_count_once_and_only_if_they_may():
    """Known records: repeated, published for nobody, overlapping in time, and that do not fit."""
    users = [[(0, 0, 0), (5, 0, 0), (9, 0, 0)], [(0, 0, 0), (5, 1, 0)]]
    whole = [[0, 9, 0, 1, 0, 1]]
    records = [
        points(users[0]), points(users[1]), whole, [*whole, [5, 9, 0, 1, 0, 1]], [[0, 9, 0, 2, 0, 1]],
        [[0, 0, 0, 0, 0, 0], [4, 9, 0, 0, 0, 0]], [[5, 5, 0, 1, 0, 1]],
    ]  # fmt: skip
    sound = [True, True, True, False, True, True, True]
    known = np.array([0, 10, 16]), np.array([2, 2, 3, 4, 0, 0, 1, 5, 2, 6, 1, 1, 3, 4, 0, 6])
    for length in (1, 5, 6, 10):
        for given in (known, None):
            same_as_the_twin(users, records, [1, 2, 3, 4, 0, 1, 0], length=length, k=3, known=given, sound=sound)


def test_nobody_no_records_and_several_calls_of_the_kernel(monkeypatch):
    users, records = scene(77, users=9, records=6)
    users[4] = []
    users[8] = []
    weights = [1, 2, 1, 1, 0, 1]
    one = same_as_the_twin(users, records, weights, length=4, k=2)
    monkeypatch.setattr(windows_search, "_SAMPLES", 7)
    assert same_as_the_twin(users, records, weights, length=4, k=2) == one
    same_as_the_twin(users, [], [], length=4, k=2)
    same_as_the_twin([[], []], records, weights, length=4, k=2)
    same_as_the_twin([], records, weights, length=4, k=2)


# The search, part by part


@pytest.mark.parametrize("seed", range(30))
def test_a_record_fits_a_window_as_the_twin_says(seed):
    """All windows from a sample and to one, and all records that hold the last sample in it: no memory helps here."""
    users, records = scene(seed, users=4, samples=7, records=6, most_boxes=6)
    fitting = 0
    for length in (1, 2, 4, 7, 12):
        task = task_of(users, records, [1] * len(records), length=length)
        for u, samples in enumerate(users):
            start = int(task.offsets[u])
            for begin in sorted({t for t, _, _ in samples} | {t - length + 1 for t, _, _ in samples}):
                inside = [p for p, sample in enumerate(samples) if begin <= sample[0] < begin + length]
                window = _Window(start + inside[0], start + inside[-1] + 1, begin, begin + length - 1)
                for r, record in enumerate(records):
                    first = int(task.grid.offsets[r])
                    for b, box in enumerate(record):
                        if holds(box, samples[inside[-1]]):
                            found = _fits(task, window, first + b, first, first + len(record))
                            assert found == twin.fits(record, samples, begin, begin + length - 1)
                            fitting += found
    assert fitting


@pytest.mark.parametrize(
    ("boxes", "row", "fits"),
    [
        ([(4, 4), (6, 6)], 1, True), ([(4, 6)], 0, True), ([(0, 9)], 0, True), ([(3, 4), (6, 6)], 1, True),
        ([(4, 4), (5, 5), (6, 6)], 2, False), ([(4, 4), (6, 6), (7, 7)], 1, False),  # empty, between and after
        ([(3, 3), (4, 4), (6, 6)], 2, False),  # empty, before
        ([(4, 4), (6, 6), (7, 8)], 1, True), ([(4, 4), (6, 6), (8, 8)], 1, True),  # ends after the window
        ([(2, 3), (4, 4), (6, 6)], 2, True), ([(2, 2), (4, 5), (6, 7), (8, 8)], 2, True),  # starts before the window
        ([(5, 6)], 0, False), ([(6, 6)], 0, False), ([(3, 3), (6, 6)], 1, False),  # the first sample is missed
    ],
)  # fmt: skip
def test_boxes_around_the_edges_of_a_window(boxes, row, fits):
    """The window 3…7 with samples at 4 and 6; the records before and after in memory would change every answer."""
    users = [[(0, 0, 0)], [(4, 1, 1), (6, 1, 1)], [(9, 0, 0)]]
    record = [[t0, t1, 0, 1, 1, 1] for t0, t1 in boxes]
    records = [[[3, 5, 0, 1, 0, 1]], record, [[6, 7, 0, 1, 0, 1]]]
    task = task_of(users, records, [1, 1, 1], length=5)
    first, last = int(task.grid.offsets[1]), int(task.grid.offsets[2])
    assert _fits(task, _Window(1, 3, 3, 7), first + row, first, last) == fits
    assert twin.fits(record, users[1], 3, 7) == fits


@pytest.mark.parametrize("seed", range(12))
def test_holders_of_each_sample_and_their_runs(seed):
    draw = random.Random(seed)
    users, records = scene(seed, users=5, samples=7, records=12 + 30 * (seed % 2), most_boxes=3)
    for record in records[::2]:  # large boxes too: several cells and sizes
        for box in record:
            box[2] -= draw.randrange(20)
            box[3] += draw.randrange(20)
    weights = [n % 4 for n in range(len(records))]
    task = task_of(users, records, weights, length=5)
    samples = [sample for own in users for sample in own]
    holders = no_holders(len(records))
    runs = [0] * len(records)
    before = -2
    for p in [p for p in range(len(samples)) if p not in (4, 5, 17)]:
        runs = runs if before == p - 1 else [0] * len(records)
        find_holders(task, p, holders)
        rows = {
            r: int(task.grid.offsets[r]) + b
            for r, record in enumerate(records)
            for b, box in enumerate(record)
            if weights[r] and holds(box, samples[p])
        }
        assert holders.at.tolist() == [p + 1, len(rows)]
        found = zip(holders.record[: len(rows)].tolist(), holders.row[: len(rows)].tolist(), strict=True)
        assert dict(found) == rows
        runs = [runs[r] + 1 if r in rows else 0 for r in range(len(records))]
        assert {r: int(holders.run[r]) for r in rows} == {r: runs[r] for r in rows}
        assert all(holders.latest[r] == p for r in rows)
        before = p


def test_a_box_holds_what_is_on_its_edges():
    boxes = np.array([[2, 4, 2, 4, 2, 4], [9, 9, 9, 9, 9, 9]], dtype=np.int32)
    around, inside = np.ascontiguousarray(boxes.T), np.zeros(256, np.uint8)
    for sample in product(range(1, 6), repeat=3):
        held = holds(boxes[0].tolist(), sample)
        _mark_inside(around, 0, 2, *sample, inside)
        assert inside[:2].tolist() == [int(held), 0]
        assert windows_search._holds(boxes, 0, *sample) == held
    _mark_inside(around, 1, 2, 9, 9, 9, inside)
    assert inside[0] == 1


def test_times_and_the_windows_at_them():
    t = np.array([7, 0, 0, 3, 4, 4, 8, 8, 20], dtype=np.int32)
    times = _times(t, 1, 8)
    assert times.tolist() == [1, 3, 4, 6, 8]
    ends, begins = _reaches(t, times, 4)
    assert ends.tolist() == [4, 6, 6, 8]
    assert begins.tolist() == [1, 1, 3, 6]
    ends, begins = _reaches(t, times, 5)
    assert ends.tolist() == [6, 6, 8, 8]
    assert begins.tolist() == [1, 1, 1, 4]
    assert _times(t, 8, 9).tolist() == [8, 9]


@pytest.mark.parametrize("seed", range(30))
def test_what_is_noted_of_a_record(seed):
    users, records = scene(seed, users=3, samples=[7, 70][seed % 10 == 0], records=6, end=[20, 90][seed % 10 == 0])
    for length in (1, 3, 6, 11):
        task = task_of(users, records, [1] * len(records), length=length)
        for u, samples in enumerate(users):
            user = user_of(task, u, 8)
            times = sorted({t for t, _, _ in samples})
            n = len(samples)
            for r, record in enumerate(records):
                fits, bits = np.full((len(times), 2), 99, np.uint8), np.full((2, -(-n // 64)), 99, np.uint64)
                _note(task, user, r, fits[:, 1], bits[1])
                held = [p for p, sample in enumerate(samples) if any(holds(box, sample) for box in record)]
                np.testing.assert_array_equal(bits[1], words(held, n))
                starts = [twin.fits(record, samples, t, t + length - 1) for t in times]
                stops = [twin.fits(record, samples, t - length + 1, t) for t in times]
                wanted = [_STARTS * first + _ENDS * last for first, last in zip(starts, stops, strict=True)]
                assert fits[:, 1].tolist() == wanted


@pytest.mark.parametrize(
    ("told", "low", "high", "reach"),
    [
        ([], 3, 5, 0), ([6], 3, 5, 0), ([1, 0], 3, 5, 0), ([3, 4], 0, 7, 0),
        ([5], 3, 5, 3), ([5, 6], 3, 5, 10),  # t 26, after 23
        ([2], 3, 5, 4), ([2, 1, 0], 3, 5, 18),  # t 15, before 19
        ([2, 5], 3, 5, 4), ([2, 5, 6], 3, 5, 10), ([0, 1, 2, 5, 6], 3, 5, 18),
    ],
)  # fmt: skip
def test_how_far_a_run_reaches(told, low, high, reach):
    t = np.array([99, 99, 1, 9, 15, 19, 23, 26, 33, 99], dtype=np.int32)
    bits = words(told, 7)
    assert [_has(bits, p) for p in range(7)] == [p in told for p in range(7)]
    assert _reach(t, 2, 7, bits, low, high, 19, 23) == reach


@pytest.mark.parametrize("n", [64, 65, 128, 150])
def test_a_run_reaches_over_words(n):
    t = np.arange(1000, 1000 + 3 * n, 3, dtype=np.int32)
    everything = words(range(n), n)
    for low, high in ((0, 1), (n - 1, n), (n // 2, n // 2 + 2)):
        begin, end = int(t[low]), int(t[high - 1])
        assert _reach(t, 0, n, everything, low, high, begin, end) == max(int(t[-1]) - end, begin - 1000)
    assert [_has(words([n - 1], n), p) for p in range(n)] == [False] * (n - 1) + [True]


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 128, 140])
def test_a_window_begins_with_all_outside_told_and_is_reported(n):
    users = [[(0, 0, 0)], [(3 * p, 0, 0) for p in range(n)]]
    task = task_of(users, [[[0, 0, 0, 0, 0, 0]]], [1], length=5)
    user = user_of(task, 1, 2)
    for low, high in {(0, 1), (n // 2, n // 2 + 1), (n // 3, n), (n - 1, n)}:
        answer = _Answer(np.array([9]), np.full(-(-n // 64), 7, np.uint64), np.array([7, 7]))
        window = _Window(1 + low, 1 + high, 3 * low, 3 * (high - 1))
        _begin(user, window, answer)
        outside = [p for p in range(n) if not low <= p < high]
        np.testing.assert_array_equal(answer.told, words(outside, n))
        assert answer.persons.tolist() == [0]
        assert answer.span.tolist() == [0, len(answer.told)]
        sums = np.array([1, 2, 3, 4, 5])
        assert _report(task, user, window, answer, sums) == 0  # nobody tells it
        assert sums.tolist() == [1, 2, 3, 4 + len(outside), 5]
        answer.persons[0] = 1
        assert _report(task, user, window, answer, sums) == max(3 * low, 3 * (n - high))
        assert sums.tolist() == [1, 2, 3, 4 + 2 * len(outside), 5 + len(outside)]


def test_records_are_kept_while_there_is_room():
    users = [[(0, 0, 0), (4, 0, 0)]]
    records = [points(users[0]), points(users[0][:1]), points(users[0][1:]), [[0, 9, 0, 0, 0, 0]]]
    task = task_of(users, records, [1] * 4, length=2)
    user = user_of(task, 0, 2)
    fits, bits = np.empty((2, 2), np.uint8), np.empty((2, 1), np.uint64)
    kept = _Kept(np.full(2, 9), fits, bits, np.zeros(1, np.int64), np.full(4, -1))
    places, sizes, room = [], [], []
    for r, most in ((0, 2), (1, 2), (2, 3), (3, 3), (3, 5), (1, 5), (1, 6)):
        kept, n = _keep(task, 7, user, r, kept, most)
        places.append(n)
        sizes.append(int(kept.size[0]))
        room.append(len(kept.record))
        held = [p for p, sample in enumerate(users[0]) if any(holds(box, sample) for box in records[r])]
        assert kept.bits[n].tolist() == words(held, 2).tolist()
    assert places == [0, 1, 1, 2, 2, 3, 4]
    assert sizes == [1, 1, 2, 2, 3, 4, 5]
    assert room == [2, 2, 4, 4, 4, 8, 8]
    assert kept.record[:5].tolist() == [0, 2, 3, 1, 1]
    assert kept.keeper.tolist() == [7] * 4
    assert kept.fits[:, :4].T.tolist() == [[BOTH, BOTH], [0, BOTH], [BOTH, BOTH], [BOTH, 0]]
    assert kept.bits[:4, 0].tolist() == [3, 2, 3, 1]


@pytest.mark.parametrize(
    ("fits", "side", "enough", "people", "closed"),
    [
        ([[0, 0, 0]] * 2, _STARTS, 1, 0, False),
        ([[0, 0, 0], [1, 1, 1]], _STARTS, 7, 7, True),
        ([[0, 0, 0], [1, 1, 1]], _STARTS, 8, 7, False),
        ([[0, 0, 0], [1, 1, 1]], _ENDS, 1, 0, False),
        ([[0, 0, 0], [1, 3, 2]], _ENDS, 99, 6, False),
        ([[0, 0, 0], [3, 2, 3]], _STARTS, 99, 5, False),
        ([[0, 0, 0], [3, 3, 3]], _ENDS, 4, 4, True),  # the latest first, and no further
        ([[0, 0, 0], [3, 3, 3]], _ENDS, 5, 6, True),
    ],
)
def test_kept_records_are_recalled_the_latest_first(fits, side, enough, people, closed):
    task = task_of([[(0, 0, 0)]], [points([(0, 0, 0)])] * 5, [100, 1, 2, 4, 100], length=2)._replace(enough=enough)
    table = np.full((2, 5), BOTH, np.uint8)
    table[:, :3] = fits
    bits, keeper = np.zeros((5, 1), np.uint64), np.zeros(5, dtype=np.int64)
    kept = _Kept(np.array([1, 2, 3, 0, 4]), table, bits, np.array([3]), keeper)
    answer = _Answer(np.zeros(1, np.int64), np.array([5], np.uint64), np.array([0, 1]))
    assert _recall(task, 1, side, answer, kept) == closed
    assert answer.persons.tolist() == [people]
    assert answer.told.tolist() == [0 if people else 5]


# What is reported


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (-0.5, 0.0), (0.0, 0.0), (0.01, 0.01), (0.012, 0.012), (0.01201, 0.013), (0.0129, 0.013), (0.0999, 0.1),
        (0.1, 0.1), (0.101, 0.11), (0.55, 0.55), (0.991, 1.0), (1.0, 1.0), (1.01, 1.1), (2.0, 2.0), (1 / 3, 0.34),
        (2 / 3, 0.67), (1e-7 / 3, 3.4e-8),
    ],
)  # fmt: skip
def test_shares_are_rounded_up(share, shown):
    assert two_digits_up(share) == shown


def tally_of(**changed):
    lists = dict.fromkeys(("least", "leaks", "times", "counts"), np.empty(0, np.int64))
    numbers = dict.fromkeys(("windows", "short", "ending_short", "outside", "told"), 0)
    return WindowTally(**{**lists, **numbers, **changed})


def cover_of(tally, **options):
    """Return what is found about cover of windows if at least four records are asked for."""
    findings = Findings()
    windows._report_cover(findings, tally, AskedWindows(4, 600), **options)
    return findings


@pytest.mark.parametrize("exact", [True, False])
def test_cover_of_windows_is_reported(exact):
    some = {"least": np.array([2, 5, FOREVER, 3, 4]), "counts": np.array([2, 5, 3, 4, 5, 5])}
    findings = cover_of(tally_of(**some, windows=1234, short=1001, ending_short=7), exact=exact)
    assert findings.found == [("windows/too-few-records", {"n": 1001, "users": 2, "k": 4})]
    cover = {"min": 2, "median": 4.5, "max": 5, "histogram": {"2": 1, "3": 1, "4": 1, "5": 3}}
    counts = {"windows": 1234, "windows_short": 1001, "windows_ending_short": 7}
    wanted = {"users_short": 2, "min_cover": 2, "tau_s": 600, **counts}
    assert findings.figures == {**wanted, **({"windows_cover": cover} if exact else {})}


def test_enough_cover_is_no_failure_and_counted_only_if_asked():
    tally = tally_of(least=np.array([9, 7, FOREVER]), windows=2, ending_short=1, counts=np.array([9, 7]))
    for exact, least in ((True, 7), (False, 4)):
        findings = cover_of(tally, exact=exact)
        assert (findings.found, findings.checked, findings.figures["min_cover"]) == ([], ["windows"], least)
        findings = Findings(figures={"users_short": 77, "min_cover": 88})  # another check was there before
        windows._report_cover(findings, tally, AskedWindows(4, 600), exact=exact)
        assert (findings.figures["users_short"], findings.figures["min_cover"]) == (77, 88)


@pytest.mark.parametrize("exact", [True, False])
def test_no_window_at_all(exact):
    for least in ([], [FOREVER]):
        findings = cover_of(tally_of(least=np.array(least, np.int64)), exact=exact)
        windows._report_leakage(findings, tally_of(), AskedWindows(4, 600, 60, bounded=True, stated=(60, 0.0)), 60)
        assert findings.found == [("windows/nobody", {})]
        assert "windows_cover" not in findings.figures
        assert findings.figures["min_cover"] == findings.figures["users_short"] == 0
        nothing = dict.fromkeys([*LEAKAGE, "windows_above", "share_above"], 0)
        assert findings.figures["leakage"] == {**nothing, "epsilon_s": 60}


LEAKS = {"leaks": np.array([0, 2, 5, 30]), "times": np.array([1500, 1200, 270, 30]), "outside": 700, "told": 300}
LEAKAGE = {
    "windows": 3000, "share_leaking": 0.5, "mean_s": 93.0,  # (2 * 1200 + 5 * 270 + 30 * 30) / 3000 slots of a minute
    "p50_s": 0, "p90_s": 120, "p99_s": 300, "max_s": 1800, "share_outside_held": 0.428571,
}  # fmt: skip
MORE = ("windows/leaking-share", {})


def leaking(n, epsilon_s):
    return "windows/leakage", {"n": n, "total": 3000, "epsilon_s": epsilon_s}


@pytest.mark.parametrize(
    ("asked", "above", "found"),
    [
        ({}, None, []),
        ({"bounded": True}, None, []),  # nothing is said about a length
        ({"stated": (1800, 0.0)}, None, []),
        ({"stated": (1799, 0.0)}, None, [MORE]),
        ({"epsilon_s": 119}, (1500, 0.5), []),
        ({"epsilon_s": 120}, (300, 0.1), []),
        ({"epsilon_s": 300}, (30, 0.01), []),
        ({"epsilon_s": 1800, "bounded": True}, (0, 0.0), []),
        ({"epsilon_s": 1799, "bounded": True}, (30, 0.01), [leaking(30, 1799)]),
        ({"epsilon_s": 0, "bounded": True}, (1500, 0.5), [leaking(1500, 0)]),
        ({"epsilon_s": 120, "stated": (120, 0.1)}, (300, 0.1), []),
        ({"epsilon_s": 120, "stated": (120, 0.099)}, (300, 0.1), [MORE]),
        ({"epsilon_s": 1800, "stated": (1800, 0.0)}, (0, 0.0), []),
        (
            {"epsilon_s": 1800, "stated": (120, 0.099)},
            (0, 0.0),
            [MORE],
        ),  # a longer one changes nothing
    ],
)
def test_leakage_is_reported_and_checked_if_asked(asked, above, found):
    findings = Findings()
    question = AskedWindows(3, 600, **asked)
    windows._report_leakage(findings, tally_of(**LEAKS), question, 60)
    names = ("epsilon_s", "windows_above", "share_above")
    more = dict(zip(names, (question.epsilon_s, *above), strict=True)) if above else {}
    assert findings.figures == {"leakage": {**LEAKAGE, **more}}
    assert findings.found == found


def test_means_and_shares_are_rounded():
    tally = tally_of(leaks=np.array([0, 1]), times=np.array([2, 1]), outside=3, told=2)
    for slot_s, mean in ((1, 0.3), (10, 3.3), (20, 6.7)):
        findings = Findings()
        windows._report_leakage(findings, tally, AskedWindows(3, 600, epsilon_s=0), slot_s)
        leakage = findings.figures["leakage"]
        assert (leakage["mean_s"], leakage["share_leaking"], leakage["share_above"]) == (mean, 0.333333, 0.333333)
        assert (leakage["max_s"], leakage["share_outside_held"]) == (slot_s, 0.666667)


@pytest.mark.parametrize(
    ("times", "quantiles"),
    [
        ([50, 40, 9, 1], [0, 2, 5]), ([49, 40, 9, 2], [2, 5, 30]), ([51, 39, 8, 2], [0, 2, 30]),
        ([1, 1, 1, 1], [2, 30, 30]), ([0, 0, 0, 7], [30, 30, 30]),
    ],
)  # fmt: skip
def test_quantiles_at_their_edges(times, quantiles):
    values = LEAKS["leaks"]
    assert [windows._quantile(values, np.array(times), percent) for percent in (50, 90, 99)] == quantiles


# Who a record counts for


A, B = [(0, 0, 0), (10, 5, 5)], [(1, 1, 0), (10, 6, 5)]
PAIR = [[0, 1, 0, 1, 0, 0], [10, 10, 5, 6, 5, 5]]  # both
FAR = [[500, 500, 90, 90, 90, 90]]  # nobody


def check(users, records, asked, **options):
    findings = Findings()
    check_windows(findings, original(users), published(records), asked, **{"slot_s": 60, "exact": True, **options})
    return findings


def test_records_of_nobody_are_counted_and_a_failure():
    findings = check([A, B, A, B, A, B], [PAIR, FAR, PAIR, FAR, points(A)], AskedWindows(2, 120))
    assert findings.found == [("windows/nobodys", {"n": 2})]
    findings = check([A, B, A, B], [PAIR, PAIR, points(A)], AskedWindows(2, 120))
    assert (findings.found, findings.checked) == ([], ["windows"])
    unlike = [[[500 + n, 500 + n, 90, 90, 90, 90]] for n in range(3)]
    assert check([A, B] * 3, [PAIR, PAIR, *unlike], AskedWindows(2, 120)).found == [("windows/nobodys", {"n": 3})]


def test_records_count_for_no_more_people_than_they_cover():
    found = check([A, B, [(99, 0, 0)], []], [PAIR] * 4, AskedWindows(2, 120)).figures
    assert found["windows_cover"] == {"min": 0, "median": 2.0, "max": 2, "histogram": {"0": 1, "2": 4}}
    assert (found["windows"], found["windows_short"], found["users_short"], found["min_cover"]) == (5, 1, 1, 0)
    found = check([A, B, A, []], [PAIR] * 2, AskedWindows(2, 120)).figures
    assert found["windows_cover"]["histogram"] == {"2": 6}


def test_as_many_records_as_users_and_one_more():
    assert check([A, B], [PAIR] * 2, AskedWindows(2, 120)).found == []
    assert check([A, B], [PAIR] * 3, AskedWindows(2, 120)).found == [("windows/more-records-than-users", {})]


@pytest.mark.parametrize(("tau_s", "slots"), [(1, 1), (59, 1), (60, 1), (61, 2), (120, 2), (121, 3)])
@pytest.mark.parametrize("exact", [True, False])
def test_what_the_search_is_asked(tau_s, slots, exact):
    with mock.patch.object(windows, "look_through", wraps=look_through) as asked:
        findings = check([A, B], [PAIR] * 2, AskedWindows(2, tau_s), exact=exact, run=Run(threads=1))
    given = asked.call_args.kwargs
    assert (given["length"], given["k"], given["exact"], given["known"]) == (slots, 2, exact, None)
    assert asked.call_args.args[2].tolist() == [2]
    assert ("windows_cover" in findings.figures) == exact
    assert findings.figures["leakage"]["max_s"] in (540, 600)


def witnesses_of(pairs, own, *, good=None, records=None, first=None, last=None):
    """Return witnesses of pairs (user, record); `own` is the record of each user."""
    users, record = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    owner = np.full(records or len(own), -1)
    owner[[r for r in own if r >= 0]] = [u for u, r in enumerate(own) if r >= 0]
    good = np.ones(len(pairs), dtype=bool) if good is None else np.array(good)
    return Witnesses(users, record, owner, np.array(own, dtype=np.int64), good, first, last)


def test_with_an_audit_records_count_for_their_owners():
    users, records = [A, B, A, [(99, 0, 0)]], [points(A), PAIR, points(A), PAIR, FAR]
    pairs = [(0, 2), (0, 2), (2, 0), (1, 1), (3, 3), (0, 1), (2, 4), (1, 3)]
    book = published(records)
    assert book.groups.tolist() == [0, 1, 0, 1, 2]
    own = [2, 1, 0, 3]
    witnesses = witnesses_of(pairs, own, records=5)
    assert windows._people_of(original(users), book, witnesses, Run(threads=1)).tolist() == [2, 2, 0]
    good = [True, True, True, True, False, True, True, True]
    checked = witnesses.checked(np.array(good))
    assert windows._people_of(original(users), book, checked, Run(threads=1)).tolist() == [2, 1, 0]
    assert windows._people_of(original(users), book, None, Run(threads=1)).tolist() == [2, 3, 0]
    starts, kinds = windows._known(witnesses, book, 5)
    assert starts.tolist() == [0, 2, 3, 5, 6, 6]
    assert kinds.tolist() == [0, 1, 1, 0, 2, 1]
    with mock.patch.object(windows, "look_through", wraps=look_through) as asked:
        findings = check(users, records, AskedWindows(2, 120), witnesses=checked)
    assert asked.call_args.args[2].tolist() == [2, 1, 0]
    assert [part.tolist() for part in asked.call_args.kwargs["known"]] == [[0, 2, 3, 5, 6], [0, 1, 1, 0, 2, 1]]
    assert findings.found[:2] == [("windows/nobodys", {"n": 1}), ("windows/more-records-than-users", {})]


def test_an_audit_without_records():
    nobody = np.empty(0, np.int64)
    witnesses = Witnesses(nobody, nobody, nobody, np.array([-1, -1]), np.empty(0, dtype=bool))
    for given in (witnesses, None):
        findings = check([A, B], [], AskedWindows(1, 120), witnesses=given)
        assert findings.found == [("windows/too-few-records", {"n": 4, "users": 2, "k": 1})]
        assert findings.figures["windows_cover"]["histogram"] == {"0": 4}


# Members for a time


def merged_twin(users, records, pairs, *, suppressing):
    """Return which samples are published, how many are mixed, and for each pair whether it is whole, and true."""

    def in_time(pair):
        return [sample for sample in users[pair[0]] if pair[2] <= sample[0] <= pair[3]]

    def held(pair, sample):
        return is_sound(records[pair[1]]) and any(holds(box, sample) for box in records[pair[1]])

    kept, mixed = {}, 0
    for u, samples in enumerate(users):
        for sample in samples:
            active = [pair for pair in pairs if pair[0] == u and sample in in_time(pair)]
            got = sum(held(pair, sample) for pair in active)
            mixed += 0 < got < len(active)
            kept[u, sample] = got > 0 or not suppressing
    whole, true = [], []
    for user, record, first, last in pairs:
        boxes = records[record]
        hers = [s for s in in_time((user, record, first, last)) if kept[user, s]]
        whole.append(is_sound(boxes) and all(any(holds(box, s) for box in boxes) for s in hers))
        then = [box for box in boxes if first <= box[0] and box[1] <= last]
        true.append(is_sound(boxes) and all(any(holds(box, s) for s in users[user]) for box in then))
    counts = [sum(kept[u, sample] for sample in samples) for u, samples in enumerate(users)]
    return counts, mixed, whole, true


def crowd_in_parts(users, edges):
    """Return people part by part."""
    parts = [original(users[a:b]) for a, b in pairwise(edges)]
    return Crowd(pa.array(range(len(users))), original(users).counts, crowd_of(original(users)).first, lambda: parts)


def merged(users, records, pairs, *, declared, edges=None):
    first, last = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (2, 3))
    witnesses = witnesses_of([pair[:2] for pair in pairs], [-1] * len(users), records=len(records))
    people = crowd_in_parts(users, edges or [0, len(users)])
    return merged_by(replace(witnesses, first=first, last=last), people, records, declared=declared)


def merged_by(witnesses, people, records, *, declared=0):
    findings = Findings()
    limits = {"declared": declared, "tolerance": 0, "max_suppressed": 1.0}
    return findings, *check_merged(findings, people, published(records), witnesses, **limits, run=Run(threads=1))


def broken(mixed, outside, empty):
    """Return findings about so many samples, and members of each kind."""
    codes = ("suppression/mixed", "truth/member-outside", "truth/member-without-sample")
    return [(code, {"n": n}) for code, n in zip(codes, (mixed, outside, empty), strict=True) if n]


@pytest.mark.parametrize("seed", range(40))
def test_members_for_a_time_as_the_twin_sees_them(seed, monkeypatch):
    monkeypatch.setattr(windows_members, "_WORK", [5, 20, 200_000][seed % 3])
    draw = random.Random(seed)
    users, records = scene(seed, users=6, samples=6, records=5, most_boxes=3)
    users[2] = []
    records += [records[1], [[3, 6, 0, 2, 0, 1], [6, 9, 0, 2, 0, 1]]]
    ever = 1 << 62
    pairs = []
    for _ in range(14):
        first = draw.randrange(-1, 18)
        time = draw.choice([(first, first + draw.randrange(8)), (first, first), (-ever, ever), (first, ever)])
        pairs.append((draw.randrange(5), draw.randrange(len(records)), *time))
    for suppressing in (False, True):
        counts, mixed, whole, true = merged_twin(users, records, pairs, suppressing=suppressing)
        lost = sum(map(len, users)) - sum(counts)
        declared = lost or int(suppressing)
        edges = [[0, 6], [0, 2, 3, 6]][seed % 2]
        findings, left, checked = merged(users, records, pairs, declared=declared, edges=edges)
        nothing = [] if any(counts) else [("suppression/nothing-published", {})]
        wrong = [] if declared == lost else [("suppression/not-as-stated", {})]
        assert findings.found == [*nothing, *wrong, *broken(mixed, whole.count(False), true.count(False))]
        assert findings.figures["mixed_samples"] == mixed
        assert left.counts.tolist() == counts
        assert sum(len(part.t) for _, part in left.parts()) == sum(counts)
        assert checked.good.tolist() == [one and other for one, other in zip(whole, true, strict=True)]


@pytest.mark.parametrize(
    ("time", "whole", "true"),
    [
        ((2, 8), True, True), ((11, 11), True, True), ((4, 4), True, True), ((3, 3), True, True),
        ((1, 9), True, False), ((2, 9), True, False), ((9, 9), True, False),  # the box at 9 is hers by then, and empty
        ((1, 8), True, True), ((0, 8), True, False),  # the box from 0 to 1 is not wholly in the former
        ((2, 12), False, False), ((12, 12), False, True),
    ],
)  # fmt: skip
def test_a_members_time_at_its_edges(time, whole, true):
    """Samples at 2, 4, 8 and 12; boxes at 0-1, 2-3, 4-4, 7-8 and 9-9."""
    users = [[(2, 1, 1)], [(2, 1, 1), (4, 1, 1), (8, 1, 1), (12, 1, 1)]]
    record = [[t0, t1, 1, 1, 1, 1] for t0, t1 in ((0, 1), (2, 3), (4, 4), (7, 8), (9, 9))]
    records = [[[-5, 20, 1, 1, 1, 1]], record, [[-5, 20, 1, 1, 1, 1]]]
    findings, _, checked = merged(users, records, [(1, 1, *time)], declared=0)
    assert merged_twin(users, records, [(1, 1, *time)], suppressing=False)[2:] == ([whole], [true])
    assert findings.found == broken(0, not whole, not true)
    assert checked.good.tolist() == [whole and true]


@pytest.mark.parametrize("declared", [0, 1, 2])
def test_a_sample_that_no_record_holds_is_lost_or_suppressed(declared):
    findings, left, checked = merged([[*A, (30, 0, 0)]], [PAIR], [(0, 0, 0, 99)], declared=declared)
    assert findings.found == [broken(0, 1, 0), [], [("suppression/not-as-stated", {})]][declared]
    assert left.counts.tolist() == [2 if declared else 3]
    assert checked.good.tolist() == [bool(declared)]


def test_without_times_members_are_merged_always():
    witnesses = witnesses_of([(1, 0), (0, 0), (0, 1)], [0, 1])
    findings, _, checked = merged_by(witnesses, crowd_of(original([A, B])), [PAIR, points(B)])
    assert checked.good.tolist() == [True, True, False]
    assert findings.found == broken(2, 1, 1)


def test_the_first_place_that_is_not_below():
    values = np.array([9, 1, 3, 3, 3, 7, 0], dtype=np.int32)
    for low, high in combinations_with_replacement(range(1, 7), 2):
        for least in range(-1, 10):
            wanted = next((n for n in range(low, high) if values[n] >= least), high)
            assert windows_members._first_after(values, low, high, least) == wanted


def test_boxes_hold_members_on_their_edges():
    box, samples = [2, 4, 2, 4, 2, 4], list(product(range(1, 6), repeat=3))
    held = [holds(box, sample) for sample in samples]
    pairs = [(user, 0, 0, 9) for user in range(len(samples))]
    _, left, checked = merged([[sample] for sample in samples], [[box]], pairs, declared=held.count(False))
    assert left.counts.tolist() == held
    assert checked.good.tolist() == held
