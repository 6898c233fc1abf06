"""Audits, truth, the order of numbers and the arrays of records: exact outcomes, and slow twins in plain Python."""

from collections import Counter
from itertools import pairwise, permutations
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from shoal.errors import CannotCheck
from shoal.run import Run
from shoal.seen import audit
from shoal.seen import records as records_module
from shoal.seen.arrays import blocks
from shoal.seen.audit import Witnesses, read_audit, read_owners
from shoal.seen.findings import Findings
from shoal.seen.people import Crowd, crowd_of
from shoal.seen.records import Catalogue, catalogue
from shoal.verifier import order, truth
from tests.draws import examples
from tests.parts import is_sound, original, records_of, starts

EVER = 2**62


def whole_numbers(values):
    return np.array(values, dtype=np.int64)


def in_parts(lists, sizes, labels=None):
    """Return the same as a crowd in parts of so many people."""
    edges = np.cumsum([0, *sizes])
    parts = [original(lists[a:b]) for a, b in pairwise(edges)]
    return Crowd(
        pa.array(labels or [f"p{n}" for n in range(len(lists))]),
        whole_numbers([len(own) for own in lists]),
        whole_numbers([min(own, default=(0, 0, 0)) for own in lists]).reshape(-1, 3),
        lambda: parts,
    )


def inside(box, sample):
    return all(low <= value <= high for low, high, value in zip(box[::2], box[1::2], sample, strict=True))


def held_by(boxes, sample):
    return is_sound(boxes) and any(inside(box, sample) for box in boxes)


def full_boxes(boxes, samples):
    return [is_sound(boxes) and any(inside(box, sample) for sample in samples) for box in boxes]


@pytest.fixture
def in_twos(monkeypatch):
    """Blocks of two rows: several are needed for almost anything."""
    monkeypatch.setattr(truth, "ROWS", 4)
    monkeypatch.setattr(blocks, "__defaults__", (2,))


# Truth

FEW = st.integers(0, 3)
SAMPLES = st.lists(st.tuples(FEW, st.integers(0, 1), st.just(0)), max_size=4).map(lambda own: sorted(set(own)))


@st.composite
def some_boxes(draw, most=3):
    """Return boxes that are mostly sound: sorted cuts of time; seldom one that is empty, or the last one first."""
    times = sorted(draw(st.lists(FEW, min_size=0, max_size=2 * most, unique=True)))
    wide = st.sampled_from([(0, 1, 0, 0), (0, 1, 0, 0), (0, 1, 0, 0), (0, 0, 0, 0), (1, 0, 0, 0)])
    boxes = [(times[n], times[n + 1], *draw(wide)) for n in range(0, len(times) - 1, 2)]
    return boxes[::-1] if draw(st.integers(0, 9)) == 0 else boxes


def visited(own, box):
    """Return whether somebody was in the area of a box at some time."""
    return any(box[2] <= x <= box[3] and box[4] <= y <= box[5] for _, x, y in own)


def twin_of_truth(lists, kinds, claims, *, group, declared, tolerance, limit):
    """Say what `check_members` must find: problems, figures, published samples of each, the good pairs."""
    problems, pairs = [], sorted(set(claims))
    mine = {user: [kinds[kind] for other, kind in pairs if other == user] for user in range(len(lists))}
    holders = [[sum(held_by(boxes, s) for boxes in mine[user]) for s in own] for user, own in enumerate(lists)]
    mixed = sum(0 < n < len(mine[user]) for user, own in enumerate(holders) for n in own)
    published = [sum(n > 0 or not declared for n in own) for own in holders]
    samples = sum(map(len, lists))
    lost = samples - sum(published)
    share = lost / samples if samples else 1.0
    if share > limit:
        problems.append(("suppression/too-many", {"share": share, "limit": limit}))
    if lost == samples:
        problems.append(("suppression/nothing-published", {}))
    if abs(lost - declared) > tolerance:
        problems.append(("suppression/not-as-stated", {}))
    if mixed:
        problems.append(("suppression/mixed", {"n": mixed}))
    figures = {"suppressed_samples": lost, "suppressed_share": round(share, 6), "mixed_samples": mixed}
    good = [sum(held_by(kinds[kind], s) for s in lists[user]) == published[user] for user, kind in claims]
    if not all(good):
        problems.append(("truth/member-outside", {"n": good.count(False)}))
    full = {(user, kind): full_boxes(kinds[kind], lists[user]) for user, kind in pairs}
    if group:
        boxes = [(kind, n) for kind, own in enumerate(kinds) for n in range(len(own))]
        empty = [not any(full[u, k][n] for u, k in pairs if k == kind) for kind, n in boxes]
        if any(empty):
            problems.append(("truth/box-without-sample", {"n": sum(empty)}))
        each = [is_full for own in full.values() for is_full in own]
        elsewhere = [not all(visited(lists[u], box) for box in kinds[k]) for u, k in claims]
        if any(elsewhere):
            problems.append(("truth/member-elsewhere", {"n": sum(elsewhere)}))
        share = each.count(False) / len(each) if each else 0.0
        figures |= {"empty_pairs_share": round(share, 6)}
        good = [one and published[user] > 0 for one, (user, _) in zip(good, claims, strict=True)]
    else:
        true = [all(full[claim]) for claim in claims]
        if not all(true):
            problems.append(("truth/member-without-sample", {"n": true.count(False)}))
        good = [one and other for one, other in zip(good, true, strict=True)]
    return problems, figures, published, good


@examples(80)
@given(st.data())
def test_truth_is_what_plain_loops_say(data):
    lists = data.draw(st.lists(SAMPLES, min_size=1, max_size=5))
    kinds = data.draw(st.lists(some_boxes(), min_size=1, max_size=3, unique_by=tuple))
    groups = [*range(len(kinds)), *data.draw(st.lists(st.integers(0, len(kinds) - 1), max_size=2))]
    everything = [(user, record) for user in range(len(lists)) for record in range(len(groups))]
    claims = data.draw(st.lists(st.sampled_from(everything), max_size=8, unique=True))
    cut = data.draw(st.integers(0, len(lists)))
    asked = {"declared": data.draw(st.integers(0, 3)), "tolerance": data.draw(st.sampled_from([0.0, 1.0]))}
    limit = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    users, numbers = (whole_numbers([claim[n] for claim in claims]) for n in (0, 1))
    witnesses = Witnesses(users, numbers, None, None, np.ones(len(claims), bool))
    published = Catalogue(np.arange(len(groups)), whole_numbers(groups), whole_numbers(groups), records_of(kinds))
    for level in ("member", "group"):
        findings = Findings()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(truth, "ROWS", 4)
            if level == "member":
                patch.setattr(truth, "mark_boxes", None)
            kept, checked = truth.check_members(
                findings, in_parts(lists, (cut, len(lists) - cut)), published, witnesses,
                level=level, max_suppressed=limit, run=Run(threads=2), **asked,
            )  # fmt: skip
        problems, figures, counts, good = twin_of_truth(
            lists, kinds, [(u, groups[r]) for u, r in claims], group=level == "group", limit=limit, **asked
        )
        assert [finding for finding in findings.found if finding.is_problem] == problems
        assert findings.figures == figures
        assert set(findings.checked) == {"truth", "suppression"}
        assert kept.counts.tolist() == counts == [n for _, part in kept.parts() for n in part.counts.tolist()]
        assert checked.good.tolist() == good
        assert checked.users is users


def test_of_two_members_one_is_in_one_of_three_boxes():
    """The share of pairs without a sample, to six digits and as it is."""
    boxes = [[(0, 0, 0, 9, 0, 9), (1, 1, 0, 9, 0, 9), (2, 2, 0, 9, 0, 9)]]
    people = crowd_of(original([[(0, 1, 1), (1, 1, 1), (2, 1, 1)], [(0, 1, 1)]]))
    findings, made = Findings(), catalogue(np.array([7]), records_of(boxes))
    witnesses = Witnesses(np.array([0, 1]), np.array([0, 0]), np.array([0]), np.array([0, -1]), np.ones(2, bool))
    truth.check_members(
        findings, people, made, witnesses, declared=0, tolerance=0, max_suppressed=0, level="group", run=Run(threads=1)
    )
    none_lost = {"suppressed_samples": 0, "suppressed_share": 0.0, "mixed_samples": 0}
    assert findings.figures == {**none_lost, "empty_pairs_share": 0.333333}
    assert findings.found == [("group-truth", {"share": pytest.approx(1 / 3)})]


@pytest.mark.parametrize(
    ("counts", "lost", "declared", "tolerance", "limit", "found"),
    [
        ((7, 0), 1, 1, 0.0, 1 / 7, []),
        ((7, 0), 1, 1, 0.0, 0.142, [("suppression/too-many", {"share": 1 / 7, "limit": 0.142})]),
        ((7, 0), 3, 1, 2.0, 1.0, []),
        ((7, 0), 1, 3, 2.0, 1.0, []),
        ((7, 0), 3, 1, 1.9, 1.0, [("suppression/not-as-stated", {})]),
        ((7, 0), 0, 2, 1.9, 1.0, [("suppression/not-as-stated", {})]),
        ((3, 4), 7, 7, 0.0, 1.0, [("suppression/nothing-published", {})]),
        ((0, 0), 0, 0, 0.0, 0.5,
         [("suppression/too-many", {"share": 1.0, "limit": 0.5}), ("suppression/nothing-published", {})]),
    ],
)  # fmt: skip
def test_how_much_may_be_suppressed(counts, lost, declared, tolerance, limit, found):
    people = in_parts([[(t, 0, 0) for t in range(count)] for count in counts], (1, 1))
    gone = (min(lost, counts[0]), max(0, lost - counts[0]))

    def check(start, part):
        return 0, np.arange(len(part.t)) >= gone[start]

    findings = Findings()
    kept = truth.check_suppressed(findings, people, check, declared=declared, tolerance=tolerance, max_suppressed=limit)
    assert findings.found == found
    assert findings.figures["suppressed_samples"] == lost
    assert findings.figures["suppressed_share"] == round(lost / sum(counts) if sum(counts) else 1.0, 6)
    assert findings.checked == ["suppression"]
    assert kept.counts.tolist() == [counts[0] - gone[0], counts[1] - gone[1]]


def test_records_without_sound_boxes_are_counted_one_by_one():
    lists = [[(0, 1, 0, 0, 0, 0)], [], [(0, 1, 0, 0, 0, 0), (1, 2, 0, 0, 0, 0)]]
    for groups, broken in (([0, 1, 2, 1], 3), ([0, 0, 1], 1), ([0, 0], 0)):
        findings, n = Findings(), len(groups)
        truth.check_boxes(findings, Catalogue(np.arange(n), whole_numbers(groups), np.ones(n, int), records_of(lists)))
        assert findings.found == ([("truth/boxes", {"n": broken})] if broken else [])
        assert findings.checked == ["truth"]


# Audits

LABELS = ["a", "b", "c", "d"]
PEOPLE = crowd_of(original([[(0, 0, 0)]] * 4, LABELS))
RELEASE = Catalogue(whole_numbers([10, 20, 30]), np.arange(3), np.ones(3, np.int64), records_of([[]] * 3))
ROWS = [(10, "a", "a"), (10, "a", "b"), (20, "b", "a"), (20, "b", "b"), (30, "c", "c"), (None, "d", "d")]


def table_of(rows):
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    kinds = (pa.int64(), pa.string(), pa.string())
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], ["record", "owner", "member"]
    )


def read(table, people=PEOPLE, release=RELEASE, **options):
    """Return what an audit says, and what is found about it."""
    findings = Findings()
    return read_audit(findings, table, people, release, **options), findings


def test_an_audit_names_who_was_merged_and_who_owns_what():
    made, findings = read(table_of([ROWS[n] for n in (4, 1, 0, 5, 3, 2)]))
    assert findings.found == []
    assert findings.checked == ["audit", "truth"]
    assert (made.users.tolist(), made.records.tolist()) == ([2, 1, 0, 1, 0], [2, 0, 0, 1, 1])
    assert (made.owner.tolist(), made.own.tolist()) == ([0, 1, 2], [0, 1, 2, -1])
    assert made.good.tolist() == [True] * 5
    assert made.first is None
    assert made.last is None


def counted(*codes):
    """Return findings about the audit: codes and their counts, if they have one."""
    return [(f"audit/{code}", {} if n is None else {"n": n}) for code, n in codes]


@pytest.mark.parametrize(
    ("left_out", "added", "weights", "said"),
    [
        ((), [], (1, 1, 1), []),
        ((), [(30, "c", "zz")], (1, 1, 1), [("unknown-person", 1)]),
        ((), [(30, "yy", "b"), (None, "zz", "zz")], (1, 1, 1), [("unknown-person", 2)]),
        ((), [(30, "c", "d"), (10, "a", "d"), (20, "b", "zz")], (1, 1, 1), [("unknown-person", 1)]),
        ((), [(30, "c", "zz"), (30, "c", "yy")], (1, 1, 1), [("unknown-person", 2), ("repeated-member", 1)]),
        ((), [(5, "a", "a"), (15, "a", "b"), (31, "a", "c"), (-1, "a", "d")], (1, 1, 1), [("unknown-record", 4)]),
        ((), [(5, "a", "d"), (10, "a", "zz")], (1, 1, 1), [("unknown-person", 1), ("unknown-record", 1)]),
        ((), [ROWS[1], ROWS[4], ROWS[4]], (1, 1, 1), [("repeated-member", 3)]),
        ((), [(None, "d", "a")], (1, 1, 1), [("no-record", 1)]),
        ((0,), [], (1, 1, 1), [("owner-not-member", 1)]),
        ((0, 4), [(30, "c", "d")], (1, 1, 1), [("owner-not-member", 2)]),
        ((4,), [], (1, 1, 1), [("no-owner", 1), ("missing-person", 1)]),
        ((0, 1, 4), [], (1, 1, 1), [("no-owner", 2), ("missing-person", 2)]),
        ((5,), [(10, "d", "d")], (1, 1, 1), [("too-many-owners", 1)]),
        ((5,), [(10, "d", "d")], (2, 1, 1), []),
        ((5,), [(10, "d", "d")], (3, 1, 2), [("too-few-owners", 2)]),
        ((4,), [], (1, 1, 2), [("no-owner", 1), ("missing-person", 1)]),
        ((5,), [], (1, 1, 1), [("missing-person", 1)]),
        ((2, 3, 5), [(20, "d", "d")], (1, 1, 1), [("missing-person", 1)]),
        ((), [(None, "d", "d")], (1, 1, 1), [("both-or-twice", 1)]),
        ((), [(None, "a", "a"), (None, "d", "d")], (1, 1, 1), [("both-or-twice", 2)]),
    ],
)  # fmt: skip
def test_an_audit_makes_sense(left_out, added, weights, said):
    rows = [row for n, row in enumerate(ROWS) if n not in left_out] + added
    release = Catalogue(RELEASE.uids, RELEASE.groups, whole_numbers(weights), RELEASE.unique)
    made, findings = read(table_of(rows), release=release)
    assert findings.found == counted(*said)
    assert (made is None) == bool(said)


def test_who_owns_two_records_is_a_matter_of_truth():
    twice = [("truth/several-records", {"n": 1})]
    for added, found in (([], [*counted(("missing-person", 1)), *twice]), ([(None, "c", "c")], twice)):
        made, findings = read(table_of([*ROWS[:4], (30, "a", "a"), *added, ROWS[5]]))
        assert findings.found == found
        assert (made is None) == (not added)
    assert made.owner.tolist() == [0, 1, 0]


def test_an_audit_of_nobody():
    nobody = crowd_of(original([]))
    empty = Catalogue(whole_numbers([]), whole_numbers([]), whole_numbers([]), records_of([]))
    made, findings = read(table_of([]), nobody, empty)
    assert (findings.found, len(made.users)) == ([], 0)
    _, findings = read(table_of([(3, "a", "a"), (3, "a", "b")]), nobody, empty)
    assert findings.found == counted(("unknown-person", 2), ("unknown-record", 2), ("repeated-member", 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.rename_columns(["record", "owner", "user"]),
        lambda table: table.select(["owner", "record", "member"]),
        lambda table: table.select(["record", "owner"]),
        lambda table: table.set_column(0, "record", table["record"].cast(pa.string())),
        lambda table: table.set_column(0, "record", table["record"].cast(pa.float64())),
    ],
)
def test_an_audit_has_its_columns(change):
    for reader, about in ((read_audit, (PEOPLE, RELEASE)), (read_owners, (PEOPLE.labels, RELEASE.uids))):
        findings = Findings()
        assert reader(findings, change(table_of(ROWS)), *about) is None
        assert findings.codes == ["audit/columns"]


def test_numbers_and_labels_are_found_where_they_are():
    numbers = pa.chunked_array([[20, None, 10], [15, -1, 30, 40, 5]], pa.int32())
    assert audit._positions(numbers, RELEASE.uids).tolist() == [1, -1, 0, -1, -1, 2, -1, -1]
    assert audit._positions(numbers, whole_numbers([])).tolist() == [-1] * 8
    labels = pa.chunked_array([["7", None, "07"], ["70"]])
    assert audit._users(labels, pa.array([70, 7])).tolist() == [1, -1, -1, 0]


def timed(rows, times, unit="ms", zone="UTC"):
    """Return a table with times in milliseconds."""
    table = table_of(rows)
    for n, name in enumerate(("t_start", "t_end")):
        column = pa.array([time[n] for time in times], pa.int64()).cast(pa.timestamp("ms", zone))
        table = table.append_column(name, column.cast(pa.timestamp(unit, zone)))
    return table


def test_members_may_be_merged_for_some_time():
    rows = [(10, "a", "a"), (10, "a", "b"), (10, "a", "b"), (10, "a", "c"), (20, "b", "b"), (30, "c", "c"),
            (30, "c", "a"), (30, "c", "b"), (None, "d", "d")]  # fmt: skip
    times = [(0, 60_000), (60_000, 180_000), (60_001, 179_999), (None, 60_000), (None, None), (5, None),
             (-60_000, None), (-1, 0), (None, None)]  # fmt: skip
    made, findings = read(timed(rows, times), slot_s=60)
    assert findings.found == []
    assert made.users.tolist() == [0, 1, 1, 2, 1, 2, 0, 1]
    assert made.first.tolist() == [-EVER, 1, 2, -EVER, -EVER, -EVER, -1, 0]
    assert made.last.tolist() == [EVER, 2, 1, 0, EVER, EVER, EVER, -1]
    for asked in ({}, {"slot_s": None}):
        made, findings = read(timed(rows, times), **asked)
        assert made is None
        assert findings.found == counted(("repeated-member", 1))
    halves, _ = read(timed(ROWS, [(0, 7000)] * 6, "s"), slot_s=2)
    assert (halves.first[1], halves.last[1]) == (0, 2)
    for name in ("t_start", "t_end"):
        alone, _ = read(timed(ROWS, [(0, 7000)] * 6).drop_columns([name]), slot_s=60)
        assert alone.first is None


@pytest.mark.parametrize(
    ("times", "backwards"),
    [
        ([(5, 6), (6, 6), (7, 6), (None, 6), (7, None), (None, None)], [("reversed-times", 2)]),
        ([(-9, -8), (0, 1), (-1, 0), (None, -5), (7, None), (None, None)], []),
    ],
)
def test_times_of_an_audit_run_forwards(times, backwards):
    assert read(timed(ROWS, times), slot_s=60)[1].found == counted(*backwards)


@pytest.mark.parametrize("name", ["t_start", "t_end"])
def test_times_of_an_audit_are_timestamps(name):
    table = timed(ROWS, [(0, 60_000)] * 6)
    table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int64()))
    made, findings = read(table, slot_s=60)
    assert made is None
    assert findings.codes == ["audit/time-type"]


def test_the_same_member_at_the_same_time_is_a_repetition():
    rows = [*ROWS, (10, "a", "b"), (10, "a", "b"), (10, "a", "b"), (20, "b", "c")]
    times = [(0, 9)] * 6 + [(0, 9), (0, 8), (1, 9), (0, 9)]
    times = [(60_000 * start, 60_000 * end) for start, end in times]
    made, findings = read(timed(rows, times), slot_s=60)
    assert made is None
    assert findings.found == counted(("repeated-member", 1))


def test_an_audit_is_read_from_files(tmp_path):
    people = crowd_of(original([[(0, 0, 0)]] * 3, ["007", "7", "08"]))
    rows = [(10, "007", "007"), (20, "7", "7"), (30, "08", "08"), (30, "08", "7")]
    pq.write_table(table_of(rows), tmp_path / "audit.parquet")
    text = "".join(f"{record},{owner},{member},,\n" for record, owner, member in rows)
    (tmp_path / "audit.CSV").write_text("record,owner,member,t_start,t_end\n" + text)
    (tmp_path / "plain.csv").write_text("record,owner,member\n" + text.replace(",,", ""))
    for name in ("audit.parquet", "audit.CSV", "plain.csv"):
        for path in (tmp_path / name, str(tmp_path / name)):
            made, findings = read(path, people, slot_s=60)
            assert findings.found == []
            assert made.users.tolist() == [0, 1, 2, 1]
            assert (made.last is None) == (name != "audit.CSV")
    (tmp_path / "broken.parquet").write_text("record")
    (tmp_path / "broken.csv").write_text("record,owner,member\nx,y,z\n")
    for name in ("broken.parquet", "broken.csv", "missing.csv"):
        with pytest.raises(
            CannotCheck, match=r"(can't be read|there is no such audit file); give the file that `audit` wrote"
        ):
            read(tmp_path / name, people)


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.booleans()), max_size=12))
def test_persons_and_owned_pairs_are_counted_as_plain_loops_do(claims):
    owner, own = [0, 2, 2, 1, 3], [0, 3, 1, -1]
    users, numbers, good = ([claim[n] for claim in claims] for n in range(3))
    made = Witnesses(
        whole_numbers(users), whole_numbers(numbers), np.array(owner), np.array(own), np.ones(len(claims), bool)
    ).checked(np.array(good, dtype=bool))
    seen = Counter(user for user, _ in {(user, owner[record]) for user, record, is_good in claims if is_good})
    assert made.persons().tolist() == [seen[user] for user in range(4)]
    assert made.owned().tolist() == [n for n, (u, record, is_good) in enumerate(claims) if is_good and own[u] == record]


NOT_ONE = ("not-one-owner", None)
SPLIT = [(30, "a", "a"), (10, "c", "c"), (20, "a", "a"), (None, "d", "d"), (None, "b", "b")]


@pytest.mark.parametrize(
    ("left_out", "added", "said"),
    [
        ((), [], []),
        ((), [(40, "a", "a")], [("unknown-record", 1), NOT_ONE]),
        ((), [(None, "zz", "zz")], [("unknown-person", 1)]),
        ((1,), [(10, "c", "a")], [("member-not-owner", 1)]),
        ((1, 2), [(10, "c", "a"), (20, "a", "b")], [("member-not-owner", 2)]),
        ((4,), [(None, "b", "a")], [("no-record", 1), ("member-not-owner", 1)]),
        ((2,), [], [NOT_ONE]),
        ((1,), [], [NOT_ONE, ("missing-or-both", 1)]),
        ((), [(10, "a", "a")], [NOT_ONE]),
        ((), [SPLIT[0]], [("repeated-member", 1), NOT_ONE]),
        ((3, 4), [], [("missing-or-both", 2)]),
        ((), [(None, "a", "a")], [("missing-or-both", 1)]),
        ((), [(None, "d", "d")], [("missing-or-both", 1)]),
    ],
)
def test_owners_of_records_of_points(left_out, added, said):
    rows = [row for n, row in enumerate(SPLIT) if n not in left_out] + added
    findings = Findings()
    owners = read_owners(findings, table_of(rows), PEOPLE.labels, RELEASE.uids)
    assert findings.found == counted(*said)
    assert findings.checked == ["audit"]
    assert (owners is None) if said else owners.tolist() == [2, 0, 0]


# Order


def twin_of_echoes(values):
    """Three random rankings of equal values; the sums of each rank times the one at a distance, or opposite."""
    n, random, found = len(values), np.random.default_rng(len(values)), []
    for _ in range(3):
        place = [0] * n
        for position, number in enumerate(random.permutation(n).tolist()):
            place[number] = position
        rank = [0] * n
        for position, number in enumerate(sorted(place, key=lambda v: values[v])):
            rank[number] = position
        middle, spread = (n - 1) / 2, ((n * n - 1) / 12) ** 0.5
        unit = [(r - middle) / spread for r in rank]
        pairs = [[(i, (i + d) % n) for i in range(n)] for d in range(1, n // 2 + 1)]
        moved = [sum(unit[i] * unit[j] for i, j in sorted({tuple(sorted(pair)) for pair in own})) for own in pairs]
        scores = [
            total / len({frozenset(pair) for pair in own}) ** 0.5 for total, own in zip(moved, pairs, strict=True)
        ]
        turned = [sum(unit[i] * unit[(s - i) % n] for i in range(n)) / (2 * n) ** 0.5 for s in range(n)]
        found.append(min(ndtr(-scores[0]), ndtr(-max(scores)) * (n // 2), ndtr(-max(turned)) * n))
    return max(found)


def test_echoes_are_correlations_with_the_list_moved_or_turned():
    draw = np.random.default_rng(5)
    for n in (20, 21, 60):
        lists = [draw.permutation(n), draw.integers(0, 3, n), np.arange(n) // 5, np.zeros(n, int), np.arange(n) * 7 % n]
        lists += [
            np.abs(np.arange(n) - n // 2),
            np.tile(draw.permutation(n // 3), 3),
            np.tile(draw.permutation(n // 2), 2),
        ]
        for values in lists:
            assert order._echoes(values) == pytest.approx(twin_of_echoes(values.tolist()), rel=1e-9)


def test_two_values_may_have_a_trend():
    assert order._follows(np.arange(60) < 30)
    assert order._trend(np.arange(60) < 30) < 1e-12
    assert order._trend(np.array([3, 3, 3])) == 1.0


def test_what_is_as_likely_as_the_limit_is_not_blamed(monkeypatch):
    limit = 5e-9
    for trend, echoes, blamed in ((limit, limit, False), (0.0, 1.0, True), (1.0, 0.0, True), (1.0, limit, False)):
        monkeypatch.setattr(order, "_trend", lambda _, p=trend: p)
        monkeypatch.setattr(order, "_echoes", lambda _, p=echoes: p)
        assert order._follows(np.arange(30)) is blamed
    for p, blamed in ((limit, False), (4.9e-9, True)):
        monkeypatch.setattr("scipy.special.gammainc", lambda *_, p=p: p)
        assert order._too_many(3, 1.0) is blamed
        monkeypatch.setattr("scipy.special.gammainc", lambda *_, p=p: p / 8)
        assert order._too_many(3, 1.0, 8) is blamed
        monkeypatch.setattr("scipy.special.bdtrc", lambda *_, p=p: p)
        made = catalogue(np.arange(2), records_of([[(0, 0, 0, 0, 0, 0)], [(1, 1, 0, 0, 0, 0)]]))
        assert order._points_at(crowd_of(original([[(0, 0, 0)]])), made, np.array([0])) is blamed


@pytest.mark.parametrize("n", [0, 1, 19, 20])
def test_order_is_judged_from_twenty_records_on(n):
    """Records that are numbered as they begin; with so few nothing else can be told."""
    draw = np.random.default_rng(1)
    lists = [[(t, 50, *(int(v) for v in np.sort(draw.integers(0, 99, (2, 2)), axis=1).ravel()))] for t in range(n)]
    findings, made = Findings(), catalogue(np.arange(n), records_of(lists))
    order.check_numbering(findings, made)
    follows, few = ("leaks/order", {"what": "when they begin"}), ("order-not-judged", {"n": 20})
    assert findings.found == [follows if n == 20 else few]
    assert order.check_quantities(Findings(), {}, n) is (n == 20)


def numbers_of_groups(groups):
    """Return the codes that are found where only the groups of records, by number, can tell something."""
    draw, kinds = np.random.default_rng(2), int(groups.max()) + 1
    unique = SimpleNamespace(ends=[draw.integers(0, 99, (kinds, 6)) for _ in range(3)], counts=np.zeros(kinds, int))
    findings, every = Findings(), np.arange(len(groups))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_follows", lambda _: False)
        order.check_numbering(findings, Catalogue(every, groups, np.ones(len(groups), int), unique))
    return findings.codes


def in_pairs(pairs, shuns):
    """Return forty kinds of two records each: some have these numbers, the others random ones that are not so related.

    `shuns` says of two numbers whether they are.
    """
    draw = np.random.default_rng(2)
    free = sorted(set(range(80)) - {number for pair in pairs for number in pair})
    while True:
        rest = draw.permutation(free).reshape(-1, 2).tolist()
        if not any(shuns(*pair) or abs(pair[0] - pair[1]) == 1 for pair in rest):
            break
    groups = np.empty(80, np.int64)
    for kind, pair in zip(draw.permutation(40), [*pairs, *rest], strict=True):
        groups[[*pair]] = kind
    return groups


# Chance puts one pair side by side; eleven have a probability of 1e-8, twelve one of 8e-10.
@pytest.mark.parametrize(("many", "blamed"), [(0, False), (11, False), (12, True), (40, True)])
def test_identical_records_are_not_side_by_side(many, blamed):
    groups = in_pairs([(2 * n, 2 * n + 1) for n in range(many)], lambda a, b: abs(a - b) == 1)
    assert numbers_of_groups(groups) == ["leaks/side-by-side"] * blamed


# Of eighty distances, thirteen pairs at one of them have a probability of 6e-9, fourteen one of 4e-10.
@pytest.mark.parametrize(("many", "blamed"), [(13, False), (14, True), (23, True)])
@pytest.mark.parametrize("begin", [0, 50])
def test_identical_records_are_not_at_one_distance(many, blamed, begin):
    """Around and around: from number 57 on, the one 23 further is one of the first."""
    pairs = [(n % 80, (n + 23) % 80) for n in range(begin, begin + 23)]
    groups = in_pairs(pairs[:many], lambda a, b: abs(a - b) in (23, 80 - 23))
    assert numbers_of_groups(groups) == ["leaks/regular"] * blamed


# Of eighty middles, ten pairs around one of them have a probability of 2e-8, eleven one of 7e-10.
@pytest.mark.parametrize(("many", "blamed"), [(10, False), (11, True), (15, True)])
@pytest.mark.parametrize("middle", [15, 55])
def test_identical_records_are_not_there_and_back(many, blamed, middle):
    pairs = [(middle - n, middle + n) for n in range(15, 0, -1)]
    groups = in_pairs(pairs[:many], lambda a, b: (a + b) % 80 == 2 * middle % 80)
    assert numbers_of_groups(groups) == ["leaks/regular"] * blamed


def test_how_many_identical_ones_chance_puts_side_by_side_or_at_one_distance():
    """Of all orders of a few records, so many are neighbours, at one distance around, or opposite, on average."""
    groups = [0, 0, 0, 1, 1, 2]
    n, orders = len(groups), list(permutations(groups))
    every = [(i, j) for j in range(n) for i in range(j)]

    def mean(related):
        pairs = [(i, j) for i, j in every if related(i, j)]
        return sum(one[i] == one[j] for one in orders for i, j in pairs) / len(orders)

    side_by_side = mean(lambda i, j: j - i == 1)
    apart = max(mean(lambda i, j, d=d: j - i in (d, n - d)) for d in range(1, n))
    opposite = max(mean(lambda i, j, s=s: (i + j) % n == s) for s in range(n))
    asked = []
    unique = SimpleNamespace(ends=[np.zeros((3, 6), int)] * 3, counts=np.zeros(3, int))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "check_quantities", lambda *_: True)
        patch.setattr(order, "_too_many", lambda *given: asked.append(given))
        order.check_numbering(Findings(), Catalogue(np.arange(n), whole_numbers(groups), np.ones(n), unique))
    expected = [(3, side_by_side), (3, apart, n), (2, opposite, n)]
    assert [given for one in asked for given in one] == pytest.approx([given for one in expected for given in one])


def test_what_numbers_are_compared_with():
    lists = [[(3, 5, 10, 14, 20, 28), (7, 9, 0, 15, 26, 29)], [(1, 2, 3, 4, 5, 6)]]
    seen = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "check_quantities", lambda _, quantities, n: seen.update(quantities, n=n))
        order.check_numbering(Findings(), catalogue(np.arange(3), records_of([*lists, lists[0]])))
    spans = seen.pop("how far they reach").tolist()
    assert (spans[0] - spans[1], spans[2]) == (24 - 2, spans[0])
    assert {name: np.asarray(values).tolist() for name, values in seen.items()} == {
        "when they begin": [3, 1, 3],
        "when they end": [9, 2, 9],
        "how many boxes they have": [2, 1, 2],
        "where they begin": [24, 7, 24],
        "where they begin (second axis)": [48, 11, 48],
        "n": 3,
    }


@pytest.mark.parametrize(
    ("labels", "numbers", "rank"),
    [
        (["10", "9", "007"], [10, 9, 7], [2, 1, 0]),
        ([10, 9, 70], [10, 9, 70], [1, 0, 2]),
        (["10", "9", "x7"], [10, 9, -1], [0, 1, 2]),
        (["1" * 18, "1" * 19, "-3"], [int("1" * 18), -1, -1], [1, 2, 0]),
        (["", "5 ", " 5"], [-1, -1, -1], [0, 2, 1]),
    ],
)
def test_labels_as_numbers_and_their_rank(labels, numbers, rank):
    assert [made.tolist() for made in order._label_numbers(pa.array(labels))] == [numbers, rank]


def test_users_are_ranked_by_their_number_of_samples_and_then_their_first_one():
    firsts = [(5, 1, 1), (5, 1, 0), (4, 9, 9), (5, 0, 9), (0, 0, 0)]
    counts = [2, 2, 2, 2, 3]
    lists = [
        [(t, *at), *((t + n, 0, 0) for n in range(1, many))] for (t, *at), many in zip(firsts, counts, strict=True)
    ]
    assert order._canonical(crowd_of(original(lists))).tolist() == [3, 2, 0, 1, 4]


def following(*quantities):
    return [("leaks/order", {"what": what}) for what in quantities]


def owned(n, change, *, users=None, uids=None):
    """Check records whose owners and labels are in random order, but for a change of one of them."""
    draw = np.random.default_rng(n)
    made = {"owner": draw.permutation(n), "labels": 1000 + draw.permutation(n), "list": draw.permutation(n)}
    change(made)
    findings = Findings()
    order.check_owned(
        findings, pa.array(made["labels"][: users or n]), {"the list": made["list"]}, made["owner"], np.arange(n)[:uids]
    )
    return findings.found


def follow(name):
    def change(made):
        made[name] = np.argsort(made["owner"])

    return change


def same_numbers(many):
    """So many records have the label of their owner as their number."""

    def change(made):
        chosen = np.arange(0, 300, 300 // many)[:many]
        made["labels"][made["owner"][chosen]] = chosen

    return change


def test_numbers_follow_neither_labels_nor_lists():
    for n in (20, 300):
        assert owned(n, lambda made: None) == []
        assert owned(n, follow("list")) == following("the list")
    assert owned(19, follow("list")) == []
    by_label = owned(300, lambda made: made.update(labels=np.argsort(made["owner"]) + 5))
    assert by_label == following("the original labels")
    assert owned(300, same_numbers(11)) == []  # p = 1e-8
    assert owned(300, same_numbers(12)) == [("leaks/labels", {})]  # p = 8e-10
    assert owned(20, follow("list"), uids=19) == []


@pytest.mark.parametrize(("users", "records", "judged"), [(20, 20, True), (19, 20, False), (20, 19, False)])
@pytest.mark.parametrize("known", [False, True])
def test_labels_are_judged_from_twenty_users_and_records_on(users, records, judged, known):
    """Everybody is alone in the record with the number that is her label."""
    n = max(users, records)
    place = np.random.default_rng(3).permutation(users)
    lists = [[(int(place[u]), 1, 1), *((100 + t, 1, 1) for t in range((u * 7) % 5))] for u in range(users)]
    mine = {int(place[u]): lists[u] for u in range(users)}
    boxes = [[(t, t, 0, 2, 0, 2) for t, _, _ in mine.get(r, [(999, 0, 0)])] for r in range(n)][:records]
    people = crowd_of(original(lists, [str(p) for p in place]))
    made = catalogue(np.arange(records), records_of(boxes))
    owner = np.argsort(place)[:records] if users >= records else np.zeros(records, int)
    witnesses = Witnesses(owner, np.arange(records), owner, owner, np.ones(records, bool)) if known else None
    findings = Findings()
    order.check_labels(findings, people, made, witnesses)
    same = [*following("the original labels"), ("leaks/labels", {})]
    alike = following("the original labels (as numbers)", "the original labels")
    assert findings.found == ((same if known else alike) if judged else [])


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("what", ["the number of samples of their users", "the order of the original"])
def test_numbers_may_follow_a_list_of_the_users(what, known):
    """Person n of the original has the more samples the larger her place is; labels tell nothing."""
    draw = np.random.default_rng(4)
    place, labels = draw.permutation(20), draw.permutation(20)
    lists = [[(p * 100 + t, 1, 1) for t in range(p + 1)] for p in place.tolist()]
    owner = np.arange(20) if what == "the order of the original" else np.argsort(place)
    boxes = [[(t, t, 0, 2, 0, 2) for t, _, _ in lists[u]] for u in owner]
    every = np.arange(20)
    witnesses = Witnesses(owner, every, owner, owner, np.ones(20, bool)) if known else None
    findings = Findings()
    people = crowd_of(original(lists, [f"x{n:02}" for n in labels]))
    order.check_labels(findings, people, catalogue(every, records_of(boxes)), witnesses)
    assert findings.found == following(what)


@pytest.mark.parametrize("way", ["in turn", "in rounds", "in strides", "as they come first", "at random"])
@pytest.mark.parametrize("what", ["the original labels", "the number of samples of their users", None])
def test_numbers_of_groups_may_follow_a_list_of_the_users(what, way):
    """Forty groups of two, of two records or more; the list, or for None nothing, decides which comes first."""
    draw = np.random.default_rng(8)
    place, labels = draw.permutation(40), draw.permutation(40)
    lists = [[(int(p) * 100 + t, 1, 1) for t in range(p + 1)] for p in place.repeat(2)]
    names = [f"x{2 * n + m:02}" for n in labels for m in (0, 1)]
    boxes = [[(t, t, 0, 2, 0, 2) for t, _, _ in own] for own in lists[::2]]
    turn = {"the original labels": labels, "the number of samples of their users": place}
    first = np.argsort(turn.get(what, draw.permutation(40)))
    mixed = draw.permutation(np.arange(40).repeat(8))
    came = np.argsort(np.argsort(np.unique(mixed, return_index=True)[1]))[mixed]
    orders = {
        "in turn": first.repeat(2),
        "in rounds": np.tile(first, 2),
        "in strides": first.repeat(2)[np.arange(80) * 31 % 80],
        "as they come first": first[came],
        "at random": draw.permutation(first.repeat(8)),
    }
    findings, homes, n = Findings(), np.arange(40).repeat(2), len(orders[way])
    records = Catalogue(np.arange(n), orders[way], np.ones(n, int), records_of(boxes))
    order.check_labels(findings, crowd_of(original(lists, names)), records, None, homes)
    assert findings.found == (following(what) if what and way != "at random" else [])


def twin_of_pointing(lists, kinds, groups, values, tried):
    """Count how many users fit the record that their value points at, and one of twenty shuffled ones."""
    random = np.random.default_rng(len(groups))
    users = [u for u, value in enumerate(values) if 0 <= value < len(groups) and lists[u]]
    if len(users) > tried:
        users = sorted(random.choice(users, tried, replace=False).tolist())
    shuffles = [random.permutation(len(groups)).tolist() for _ in range(20)]

    def fits(user, record):
        boxes = kinds[groups[record]]
        return all(held_by(boxes, sample) for sample in lists[user]) and all(full_boxes(boxes, lists[user]))

    own = sum(fits(user, values[user]) for user in users)
    chance = sum(fits(user, shuffle[values[user]]) for user in users for shuffle in shuffles)
    return own, chance


@pytest.mark.parametrize("tried", [50_000, 7, 6, 5])
@pytest.mark.parametrize("sizes", [(9,), (4, 5), (1, 0, 7, 1)])
def test_pointing_at_records_is_counted_as_plain_loops_do(tried, sizes, monkeypatch):
    """One person has no sample, and points at a record without boxes; two point at no record at all."""
    lists = [[(n % 3, 0, 0), (5, 0, 0)] for n in range(8)] + [[]]
    kinds = [[(n, n, 0, 0, 0, 0), (5, 5, 0, 1, 0, 1)] for n in range(3)]
    kinds += [[], [(0, 9, 0, 0, 0, 0), (10, 10, 0, 0, 0, 0)], kinds[0][1:]]
    groups = [0, 1, 2, 3, 0, 4, 5]
    lists[4] = lists[4][1:]
    values = whole_numbers([0, 1, 2, 4, 6, 5, 7, -1, 3])
    asked = []
    monkeypatch.setattr("scipy.special.bdtrc", lambda *given: asked.append(given) or 1.0)
    monkeypatch.setattr(order, "_TRIED", tried)
    made = Catalogue(np.arange(7), whole_numbers(groups), np.ones(7, int), records_of(kinds))
    assert not order._points_at(in_parts(lists, sizes), made, values)
    own, chance = twin_of_pointing(lists, kinds, groups, values.tolist(), tried)
    assert own > 0
    assert asked == [(own - 1, own + chance, 1 / 21)]


# Records

EDGE = st.integers(0, 3)
ANY_BOX = st.tuples(EDGE, EDGE, EDGE, EDGE, EDGE, EDGE)
TIMES = st.lists(st.integers(0, 9), max_size=6, unique=True).map(sorted)
SORTED = TIMES.map(lambda t: [(t[n], t[n + 1], 0, 1, 2, 2) for n in range(0, len(t) - 1, 2)])
LISTS = st.lists(st.one_of(st.lists(ANY_BOX, max_size=3), SORTED, st.just([])), max_size=6)


@examples(100)
@given(LISTS, st.data())
def test_records_are_what_plain_loops_say(lists, data):
    weights = data.draw(st.lists(st.integers(1, 4), min_size=len(lists), max_size=len(lists)))
    made = records_of(lists, weights)
    assert len(made) == len(lists)
    assert made.counts.tolist() == [len(own) for own in lists]
    assert made.sound.tolist() == [is_sound(own) for own in lists]
    first, last, bounds = (edges.tolist() for edges in made.ends)
    nothing = [1, 0, 1, 0, 1, 0]
    assert first == [list(own[0]) if own else nothing for own in lists]
    assert last == [list(own[-1]) if own else nothing for own in lists]
    around = [[(max if n % 2 else min)(edges) for n, edges in enumerate(zip(*own, strict=True))] for own in lists]
    assert bounds == [own or nothing for own in around]
    chosen = data.draw(st.permutations(range(len(lists))))[: data.draw(st.integers(0, len(lists)))]
    rows = [row for r in chosen for row in range(made.offsets[r], made.offsets[r + 1])]
    assert made.rows(whole_numbers(chosen)).tolist() == rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "__defaults__", (2,))
        taken = made.take(whole_numbers(chosen))
    assert taken.boxes.tolist() == made.boxes[rows].tolist()
    assert taken.offsets.tolist() == starts([lists[r] for r in chosen]).tolist()
    assert taken.weights.tolist() == [weights[r] for r in chosen]
    assert (taken.boxes.dtype, taken.unlike) == (np.int32, False)


def test_the_sizes_of_records_and_their_catalogue():
    made = records_of([[(0, 0, 0, 0, 0, 0)], [(0, 0, 0, 0, 0, 0)], []])
    assert made.nbytes == 4 * 8 + 2 * 24 + 3 * 8
    kept = catalogue(np.arange(3), made)
    assert kept.unique.nbytes == 3 * 8 + 24 + 2 * 8
    assert kept.nbytes == 3 * 3 * 8 + kept.unique.nbytes
    assert len(kept) == 3


def test_records_that_are_unlike_are_not_compared():
    alike = [[(0, 0, 0, 0, 0, 0)]] * 3
    made, said = records_of(alike, [2, 3, 4]), records_of(alike, unlike=True)
    assert made.groups.tolist() == [0, 0, 0]
    assert made.distinct().weights.tolist() == [9]
    assert made.distinct().unlike
    assert said.groups.tolist() == [0, 1, 2]
    assert said.distinct() is said
    assert said.take(np.array([1])).unlike
    single = records_of(alike[:1], [5])
    assert single.distinct().unlike
    assert single.distinct().boxes is single.boxes
    assert single.distinct().weights.tolist() == [5]


def twin_of_groups(lists):
    seen = {}
    return [seen.setdefault(tuple(own), len(seen)) for own in lists]


@examples(100)
@given(st.lists(st.sampled_from([(), (1,), (2,), (1, 2), (2, 1), (1, 1)]), max_size=9), st.data())
def test_identical_records_are_found_by_their_hash_alone(shapes, data):
    """Different records have different hashes here: none is compared byte by byte."""
    lists = [[(n, n, 0, n, 7, 7) for n in shape] for shape in shapes]
    weights = data.draw(st.lists(st.integers(1, 4), min_size=len(lists), max_size=len(lists)))
    groups = twin_of_groups(lists)
    together, firsts = Counter(), [groups.index(n) for n in sorted(set(groups))]
    for group, weight in zip(groups, weights, strict=True):
        together[group] += weight
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "__defaults__", (2,))
        patch.setattr(records_module, "_groups_by_bytes", None)
        made = catalogue(np.arange(len(lists)), records_of(lists, weights), run=Run(threads=2))
    assert made.groups.tolist() == groups
    assert made.weights.tolist() == weights
    assert made.unique.weights.tolist() == [together[n] for n in range(len(firsts))]
    assert made.unique.boxes.tolist() == [list(box) for r in firsts for box in lists[r]]
    assert made.unique.counts.tolist() == [len(lists[r]) for r in firsts]
    assert made.unique.unlike


def twin_of_hash(boxes):
    whole, mix = 2**64, 0x9E3779B97F4A7C15
    total = len(boxes)
    for place, box in enumerate(boxes):
        mixed = place
        for edge in box:
            mixed = (mixed ^ edge % whole) * mix % whole
            mixed ^= mixed >> 29
        total += mixed
    return total % whole


def test_records_are_hashed_by_their_boxes_and_their_places(in_twos):
    three = [(-1, 2, -3, 4, -5, 6), (7, 8, 9, 10, 11, 12), (7, 8, 9, 10, 11, 12)]
    lists = [[], [(1, 2, 3, 4, 5, 6)], [], three, [], []]
    for wanted in (lists, lists[1:2], lists[3:4], [[], []], []):
        made = records_module._digests(records_of(wanted), Run(threads=2))
        assert made.tolist() == [twin_of_hash(boxes) for boxes in wanted]


def test_pairs_are_alike_only_if_every_box_is(in_twos):
    lists = [[(n, n, n, n, n, n) for n in own] for own in ((1, 2), (1, 2), (1, 3), (1,), (), (), (2, 1))]
    made = records_of(lists)
    every = range(len(lists))
    for left in every:
        for right in every:
            alike = lists[left] == lists[right]
            assert records_module._alike(made, np.array([left]), np.array([right]), Run(threads=1)) is alike
            assert records_module._alike(made, np.array([0, left, 4]), np.array([1, right, 5]), Run(threads=2)) is alike
    assert records_module._groups_by_bytes(made).tolist() == twin_of_groups(lists)
    assert records_module._alike(made, whole_numbers([]), whole_numbers([]), Run(threads=1)) is True
