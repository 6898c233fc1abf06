"""Counting of cover against the slow twin, the search it rests on, and what concealment asks beyond."""

from functools import partial
from itertools import pairwise, permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.seen import cover as seen_cover
from shoal.seen import index as search
from shoal.seen.audit import Witnesses
from shoal.seen.codes import PROBLEMS
from shoal.seen.cover import complete_reach, count_cover, cover_pairs, tally_cover
from shoal.seen.findings import Findings
from shoal.seen.index import covering, hold, holders, index_boxes, index_rarest, mark_boxes
from shoal.seen.original import Original, arranged
from shoal.seen.records import catalogue
from shoal.verifier import cover, verify
from shoal.verifier.cover import check_concealment
from tests import parts
from tests.draws import examples
from tests.oracle import cover as oracle
from tests.releases import Draft, Record, merge, people_of, samples_of

records_of = partial(parts.records_of, kind=np.int64)


def original_of(people):
    columns = (column.astype(np.int64) for column in (people.t, people.x, people.y))
    return Original(people.labels, people.offsets, *columns)


def samples_in(people):
    return [samples_of(people, user) for user in range(len(people))]


small = st.integers(0, 3)
sample = st.tuples(st.integers(-5, 8), small, small)
trajectory = st.lists(sample, min_size=1, max_size=6)


@st.composite
def wild_record(draw):
    """Some disjoint boxes in time order, not made from anybody."""
    cuts = sorted(draw(st.sets(st.integers(-6, 10), min_size=2, max_size=6)))
    boxes = []
    for start, stop in zip(cuts[::2], cuts[1::2], strict=False):
        x, y = draw(small), draw(small)
        boxes.append([start, stop, x, x + draw(small), y, y + draw(small)])
    return boxes


@st.composite
def city(draw):
    """Some people, and records that merge some of them, repeat each other, or come from nowhere."""
    people = people_of(draw(st.lists(trajectory, min_size=1, max_size=6)))
    members = st.sets(st.integers(0, len(people) - 1), min_size=1, max_size=4)
    merged = [merge(people, sorted(chosen)) for chosen in draw(st.lists(members, max_size=6))]
    again = draw(st.lists(st.sampled_from(merged), max_size=3)) if merged else []
    return people, draw(st.permutations([*merged, *again, *draw(st.lists(wild_record(), max_size=3))]))


@examples(250)
@given(city(), st.integers(1, 4))
def test_counts_equal_the_slow_twin(made, k):
    people, lists = made
    original, records, users = original_of(people), records_of(lists), samples_in(people)
    everybody = np.arange(len(people))
    for rule, boxes_too in ((oracle.two_way, True), (oracle.one_way, False)):
        expected = oracle.count_cover(users, lists, rule)
        assert count_cover(original, records, everybody, boxes_too=boxes_too).tolist() == expected
        stopped = count_cover(original, records, everybody, stop_at=k, boxes_too=boxes_too)
        assert np.minimum(stopped, k).tolist() == np.minimum(expected, k).tolist()
    expected = oracle.count_members(users, lists)
    for stop_at in (k, None):
        _, reach = tally_cover(original, records, everybody, stop_at=stop_at)
        complete = complete_reach(original, records, reach)
        assert np.minimum(complete, 2).tolist() == np.minimum(expected, 2).tolist()
    assert complete.tolist() == expected


@examples(200)
@given(city())
def test_what_is_held_equals_the_slow_twin(made):
    people, lists = made
    original, records, users = original_of(people), records_of(lists), samples_in(people)
    every = [(user, record) for user in range(len(people)) for record in range(len(lists))]
    user, record = np.array(every, dtype=np.int64).reshape(-1, 2).T
    tally = np.zeros(people.samples, dtype=np.int32)
    held = hold(original, records, user, record, tally=tally)
    for n, (one, other) in enumerate(every):
        own, boxes = users[one], lists[other]
        assert held.samples[n] == sum(any(oracle.holds(box, s) for box in boxes) for s in own)
        assert held.boxes[n] == sum(any(oracle.holds(box, s) for s in own) for box in boxes)
    marked = np.zeros(sum(map(len, lists)), dtype=bool)
    mark_boxes(original, records, user[::2], record[::2], marked)
    some = [[s for one, mine in every[::2] if mine == other for s in users[one]] for other in range(len(lists))]
    full = [any(oracle.holds(box, s) for s in some[r]) for r, boxes in enumerate(lists) for box in boxes]
    assert marked.tolist() == full
    all_samples = [sample for own in users for sample in own]
    assert tally.tolist() == [sum(any(oracle.holds(box, s) for box in boxes) for boxes in lists) for s in all_samples]


@examples(200)
@given(city())
def test_groups_are_equal_records(made):
    _, lists = made
    records = records_of(lists)
    groups = records.groups.tolist()
    for one, boxes in enumerate(lists):
        assert [groups[one] == other for other in groups] == [boxes == others for others in lists]
    assert records.distinct().weights.sum() == len(lists)


def test_records_that_are_not_sound_hold_nothing():
    people = original_of(people_of([[(5, 0, 0)]]))
    overlapping = [[0, 5, 0, 0, 0, 0], [5, 9, 0, 0, 0, 0]]
    unsorted = [[8, 9, 0, 0, 0, 0], [5, 5, 0, 0, 0, 0]]
    empty_box = [[5, 5, 0, 0, 0, 0], [7, 6, 0, 0, 0, 0]]
    records = records_of([overlapping, unsorted, empty_box, [], [[5, 5, 0, 0, 0, 0]]])
    assert records.sound.tolist() == [False, False, False, False, True]
    user, record = cover_pairs(people, records, np.array([0]))
    assert (user.tolist(), record.tolist()) == ([0], [4])
    held = hold(people, records, np.zeros(5, dtype=np.int64), np.arange(5))
    assert held.samples.tolist() == held.boxes.tolist() == [0, 0, 0, 0, 1]


def test_users_without_samples_and_no_records():
    people = original_of(people_of([[(5, 0, 0)], [(6, 0, 0)]]))
    nobody = people.keep(np.array([False, True]))
    assert nobody.counts.tolist() == [0, 1]
    records = records_of([[[0, 9, 0, 0, 0, 0]]])
    assert count_cover(nobody, records, np.arange(2)).tolist() == [0, 1]
    assert count_cover(people, records_of([]), np.arange(2)).tolist() == [0, 0]
    assert count_cover(people, records_of([]), np.arange(2), boxes_too=False).tolist() == [0, 0]


@st.composite
def wide_boxes(draw):
    """Records of boxes of all sizes, anywhere, which may overlap; and points near their edges."""
    lists = []
    for _ in range(draw(st.integers(1, 5))):
        boxes = []
        for _ in range(draw(st.integers(1, 4))):
            lows = [draw(st.integers(-(2**30), 2**30)) for _ in range(3)]
            spans = [draw(st.integers(0, 2 ** draw(st.integers(0, 29)))) for _ in range(3)]
            boxes.append([edge for low, span in zip(lows, spans, strict=True) for edge in (low, low + span)])
        lists.append(boxes)
    corners = st.sampled_from([box for boxes in lists for box in boxes])
    points = []
    for _ in range(draw(st.integers(1, 6))):
        near = draw(corners)
        points.append([draw(st.sampled_from(near[at : at + 2])) + draw(st.integers(-1, 1)) for at in (0, 2, 4)])
    return lists, points


@examples(300)
@given(wide_boxes(), st.integers(1, 3), st.booleans(), st.integers(0, 3))
def test_holders_of_points(made, per_query, overlapping, stop_at):
    """Boxes of every size and place, found by the points they hold."""
    lists, points = made
    records = records_of(lists)
    offsets = np.minimum(np.arange(0, len(points) + per_query, per_query), len(points))
    t, x, y = np.array(points, dtype=np.int64).T
    ends, found = holders(index_boxes(records, overlapping=overlapping), offsets, t, x, y, stop_at=stop_at or None)
    for query, (start, stop) in enumerate(pairwise(offsets)):
        expected = [
            r
            for r, boxes in enumerate(lists)
            if (overlapping or records.sound[r])
            and all(any(oracle.holds(box, point) for box in boxes) for point in points[start:stop])
        ]
        got = found[ends[query] : ends[query + 1]].tolist()
        if stop_at:
            assert set(got) <= set(expected)
            assert len(got) == min(stop_at, len(expected))
        else:
            assert got == expected


@examples(200)
@given(wide_boxes())
def test_the_rarest_box_finds_who_is_in_all(made):
    lists, points = made
    people = people_of([[tuple(point) for point in points], [tuple(points[0])]])
    original, records = original_of(people), records_of(lists)
    expected = [
        (u, r)
        for u, own in enumerate(samples_in(people))
        for r, boxes in enumerate(lists)
        if records.sound[r] and all(any(oracle.holds(box, s) for s in own) for box in boxes)
    ]
    pairs = covering(original, index_rarest(records, original), np.arange(len(people)), whole=False)
    assert sorted(zip(pairs.user.tolist(), pairs.record.tolist(), strict=True)) == expected


def test_counts_do_not_depend_on_the_size_of_blocks(monkeypatch):
    people = people_of([[(t, u % 3, u % 2) for t in range(u % 4 + 1)] for u in range(20)])
    records = records_of([merge(people, [u, (u + 1) % 20]) for u in range(20)])
    whole = count_cover(original_of(people), records, np.arange(20))
    monkeypatch.setattr(seen_cover, "_USERS", 3)
    monkeypatch.setattr(search, "_QUERIES", 2)
    assert count_cover(original_of(people), records, np.arange(20)).tolist() == whole.tolist()
    assert whole.max() > 1


@examples(200)
@given(city())
def test_who_has_a_sample_in_every_box(made):
    people, lists = made
    original, records, users = original_of(people), records_of(lists), samples_in(people)
    index = index_rarest(records, original)
    pairs = covering(original, index, np.arange(len(people)), whole=False)
    found = list(zip(*(side.tolist() for side in pairs), strict=True))
    held = [
        (u, r, sum(not any(oracle.holds(box, s) for box in boxes) for s in own))
        for u, own in enumerate(users)
        for r, boxes in enumerate(lists)
        if boxes and all(any(oracle.holds(box, s) for s in own) for box in boxes)
    ]
    assert sorted(found) == held


@examples(200)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), max_size=30), st.sampled_from([1, 2**20]))
def test_distinct_samples_however_far_apart(rows, far):
    """Near ones are packed into one number, far ones are not."""
    users, t, x, y = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    made = arranged(users.astype(np.int32), t * far - 5, x * far, y * far - 7, pa.array(list("abcd")))
    expected = sorted(set(rows))
    assert list(zip(made.t, made.x, made.y, strict=True)) == [
        (b * far - 5, c * far, d * far - 7) for _, b, c, d in expected
    ]
    owners = made.labels.take(pa.array(np.repeat(np.arange(len(made)), made.counts))).to_pylist()
    assert owners == ["abcd"[a] for a, *_ in expected]


def concealed(lists, members, k=2):
    """A release of k-concealment: record r is owned by user r and merges members[r]."""
    people = people_of(lists)
    place = {tuple(samples_of(people, user)): user for user in range(len(people))}
    at = [place[tuple(samples)] for samples in lists]
    records = [
        Record(at[owner], [at[owner], *(at[m] for m in others if m != owner)], [])
        for owner, others in enumerate(members)
    ]
    for record in records:
        record.boxes = merge(people, record.members)
    return Draft(people, records, {"name": "k-concealment", "k": k}, k)


# 0 and 1 share their records, 2 and 3 theirs; the box around 2 and 3 holds 0, the flat one around 0 and 1 nobody else.
PASSER_BY = [[(5, 0, 0)], [(5, 10, 0)], [(5, -1, -1)], [(5, 1, 1)]]


def test_concealment_bears_cover_that_is_nobodys_doing(tmp_path):
    draft = concealed(PASSER_BY, [(0, 1), (0, 1), (2, 3), (2, 3)])
    path, audit = draft.write(tmp_path)
    for shown in (audit, None):
        verdict = verify(draft.people, path, audit=shown)
        assert verdict.ok, verdict.messages
    original, covers = original_of(draft.people), records_of([record.boxes for record in draft.records])
    assert sorted(count_cover(original, covers, np.arange(4)).tolist()) == [2, 2, 2, 4]


def test_concealment_fails_for_a_member_whose_link_is_one_way(tmp_path):
    draft = concealed(PASSER_BY, [(0, 1), (0, 1), (0, 2, 3), (0, 2, 3)])
    path, audit = draft.write(tmp_path)
    verdict = verify(draft.people, path, audit=audit)
    assert verdict.codes == ("cover/fixed-links",)
    assert verdict.problems == (PROBLEMS["cover/fixed-links"].format(n=2),)


# 4 hides in the record of 0, and 3 in hers, but nobody of 0's can be 3: whatever the rest is, record 4 is hers.
BETWEEN = [[(5, 0, 0)], [(5, 2, 0)], [(5, 0, 9)], [(5, 2, 9)], [(5, 1, 4)]]
ONE_WAY = [(0, 1, 4), (0, 1), (2, 3), (2, 3), (3, 4)]


@pytest.mark.parametrize("named", [True, False])
def test_concealment_fails_where_cover_holds_but_the_owner_is_told(tmp_path, named):
    """Whether or not the audit names everybody whom a record covers."""
    draft = concealed(BETWEEN, ONE_WAY)
    if not named:
        for record in draft.records:
            record.members = record.members[:2]
    path, audit = draft.write(tmp_path)
    verdict = verify(draft.people, path, audit=audit)
    assert verdict.failures == ("cover",)
    assert PROBLEMS["cover/user-told"].format(n=1, k=2) in verdict.problems
    draft.claim = {"name": "cover", "k": 2}
    path, audit = draft.write(tmp_path)
    assert verify(draft.people, path, audit=audit).ok
    assert verify(draft.people, path).ok


@examples(300)
@given(st.data(), st.integers(1, 6), st.integers(1, 3))
def test_concealment_equals_trying_all_owners(data, n, k):
    """A link counts exactly if some assignment of owners, everybody to a record that covers her, uses it."""
    everything = [(user, record) for user in range(n) for record in range(n)]
    more = data.draw(st.sets(st.sampled_from(everything)))
    links = sorted(more | {(user, user) for user in range(n)})
    used = {
        link
        for owners in permutations(range(n))
        if all((user, record) in links for user, record in enumerate(owners))
        for link in enumerate(owners)
    }
    members = data.draw(st.sets(st.sampled_from(links)))
    expected = (
        all(sum(user == one for user, _ in used) >= k for one in range(n))
        and all(sum(record == one for _, record in used) >= k for one in range(n))
        and members <= used
    )
    original = original_of(people_of([[(user, 0, 0)] for user in range(n)]))
    records = catalogue(np.arange(n), records_of([[[user, user, 0, 0, 0, 0]] for user in range(n)]))
    claimed = np.array(sorted(members), dtype=np.int64).reshape(-1, 2)
    witnesses = Witnesses(*claimed.T, np.arange(n), np.arange(n), np.ones(len(claimed), dtype=bool))
    findings = Findings()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cover, "cover_pairs", lambda *_, **__: tuple(np.array(links).T))
        check_concealment(findings, original, records, k, witnesses=witnesses)
    assert (not findings.failures) == expected
