"""The verdict is the same however little memory there is; suppression in whole groups is checked as it is stated."""

import copy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import TooLarge
from shoal.frame import Frame
from shoal.reading.options import ReadOptions
from shoal.run import Run
from shoal.seen import file as published
from shoal.seen import people as crowd
from shoal.seen import records as records_module
from shoal.seen.arrays import blocks
from shoal.seen.codes import NOT_CHECKED
from shoal.seen.file import open_release_file
from shoal.seen.findings import Findings
from shoal.seen.grid import Grid
from shoal.seen.original import Original, arranged
from shoal.seen.people import crowd_of, open_crowd
from shoal.seen.records import _groups_by_bytes, catalogue
from shoal.seen.scan import scan_file
from shoal.verifier import order, truth, verify
from tests.draws import examples
from tests.parts import records_of
from tests.releases import grouped, merge, people_of, ring, samples_of, toy_people

K = 3
FRAME = Frame(crs=None, cell_m=500, slot_s=1800)
PEOPLE = toy_people(users=24, samples=3, frame=FRAME, start=480)
# Besides what the records take: one part, kept; parts, kept; parts that are made again each time.
ROOMS = (30_000, 8_000, 4_000)
READING = ReadOptions(cell=500, slot=1800)


def write_events(people, path):
    """Write every sample twice, in random order, as gridded rows."""
    owner = np.repeat(np.arange(len(people)), people.counts)
    table = pa.table({"uid": people.labels.take(pa.array(owner)), "d": people.t // 48, "t": people.t % 48})
    table = table.append_column("x", pa.array(people.x)).append_column("y", pa.array(people.y))
    table = pa.concat_tables([table, table])
    pq.write_table(table.take(pa.array(np.random.default_rng(1).permutation(len(table)))), path)
    return path


def crowd_in(room, events, folder):
    grid = Grid(None, 500, 1800)
    return open_crowd(events, READING, grid, run=Run(memory=room, threads=1, work_dir=folder))


def taken(path, audit):
    """Return the memory that a release and an audit in memory take."""
    scan = scan_file(Findings(), open_release_file(path), Grid(None, 500, 1800))
    return scan.records.nbytes + (audit.nbytes if isinstance(audit, pa.Table) else 0)


def verdicts(people, draft, folder, rooms=ROOMS, **options):
    """Return the verdicts with and without the audit, for several limits of memory."""
    events = write_events(people, folder / "events.parquet")
    path, audit = draft.write(folder)
    for shown in (pq.read_table(audit), None):
        limits = [None, *(taken(path, shown) + room for room in rooms)]
        runs = (Run(memory=limit, work_dir=folder, threads=1) for limit in limits)
        yield [verify(events, path, audit=shown, options=READING, run=run, **options).to_dict() for run in runs]


def test_little_memory_makes_parts(tmp_path):
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    seen = []
    for room in ROOMS:
        with crowd_in(room, events, tmp_path) as made:
            seen.append((len(list(made.parts())) > 1, made.kept))
            assert sum(len(part) for _, part in made.parts()) == len(PEOPLE)
    assert seen == [(False, True), (True, True), (True, False)]


def keep_as_it_is(draft):
    pass


def a_small_group(draft):
    draft.records = [record for record in draft.records if record.owner != draft.records[0].members[0]]


def a_sample_outside(draft):
    members = draft.records[0].members
    for record in draft.records:
        if record.members == members:
            record.boxes[0][3] = record.boxes[0][2] - 1


def moved_boxes(draft):
    for record in draft.records[:4]:
        record.boxes = [[*box[:2], box[2] + 90, box[3] + 90, *box[4:]] for box in record.boxes]


def unsorted_rows(draft):
    draft.edit_table = lambda table: table.take(pa.array(np.arange(len(table))[::-1]))


def kept_order(draft):
    numbers = draft.people.labels.to_pylist()
    draft.records.sort(key=lambda record: numbers[record.owner])


def an_audit_of_strangers(draft):
    draft.edit_audit = lambda rows: [*rows[:-1], (*rows[-1][:2], "nobody")]


def an_audit_with_wrong_members(draft):
    draft.edit_audit = lambda rows: [
        (record, owner, rows[(n + 5) % len(rows)][2] if owner != member else member)
        for n, (record, owner, member) in enumerate(rows)
    ]


def stated_suppression(draft):
    draft.suppressed = 7


# What each breaks, with the audit and without.
BROKEN = {
    keep_as_it_is: ("", ""),
    a_small_group: ("identical/small-groups identical/left-out identical/too-few-users", "identical/small-groups"),
    a_sample_outside: (
        (
            "truth/boxes truth/member-outside truth/member-without-sample identical/left-out "
            "identical/too-few-users leaks/empty"
        ),
        "truth/boxes identical/left-out identical/too-few-users leaks/empty",
    ),
    moved_boxes: (
        (
            "suppression/mixed truth/member-outside truth/member-without-sample "
            "identical/small-groups identical/left-out identical/too-few-users"
        ),
        "identical/small-groups identical/too-few-users",
    ),
    unsorted_rows: ("leaks/unsorted", "leaks/unsorted"),
    kept_order: ("leaks/order leaks/order leaks/labels", "leaks/order leaks/order leaks/order"),
    an_audit_of_strangers: ("audit/unknown-person", ""),
    an_audit_with_wrong_members: ("audit/repeated-member", ""),
    stated_suppression: ("suppression/not-as-stated integrity/samples", ""),
}


@pytest.mark.parametrize("sabotage", BROKEN)
def test_the_verdict_does_not_depend_on_memory(sabotage, tmp_path):
    draft = grouped(PEOPLE, K)
    sabotage(draft)
    for alike, codes in zip(verdicts(PEOPLE, draft, tmp_path), BROKEN[sabotage], strict=True):
        assert all(verdict == alike[0] for verdict in alike)
        assert alike[0]["codes"] == codes.split()


@examples(12)
@given(st.data())
def test_no_verdict_depends_on_memory(tmp_path_factory, data):
    """Any people, merged and then changed in a few places."""
    folder = tmp_path_factory.mktemp("any")
    sample = st.tuples(st.integers(0, 30), st.integers(0, 5), st.integers(0, 5))
    people = people_of(
        data.draw(st.lists(st.lists(sample, min_size=1, max_size=3), min_size=20, max_size=26)), frame=FRAME
    )
    draft = grouped(people, 2, seed=data.draw(st.integers(0, 9)))
    for _ in range(data.draw(st.integers(0, 3))):
        record = data.draw(st.sampled_from(draft.records))
        box = data.draw(st.sampled_from(record.boxes))
        box[data.draw(st.integers(0, 5))] += data.draw(st.sampled_from([-1, 1]))
    draft.suppressed = data.draw(st.sampled_from([0, 0, 1, 3]))
    for alike in verdicts(people, draft, folder, rooms=[data.draw(st.sampled_from(ROOMS))]):
        assert all(verdict == alike[0] for verdict in alike)


def test_screened_users_do_not_depend_on_memory(tmp_path):
    lists = [samples_of(PEOPLE, user) for user in range(len(PEOPLE))]
    labels = [*PEOPLE.labels.to_pylist(), 100, 101]
    people = people_of([*lists, [(500, 1, 1)], [(500, 1, 1), (501, 1, 1)]], labels=labels, frame=FRAME)
    draft = grouped(PEOPLE, K)
    for options, left in (({"min_samples": 3}, "min_samples"), ({"min_active_days": 2}, "min_active_days")):
        for alike in verdicts(people, draft, tmp_path, **options):
            assert all(verdict == alike[0] for verdict in alike)
            assert alike[0]["ok"], alike[0]["messages"]
            assert alike[0]["figures"]["users_outside"] == {left: 2}


def test_cover_needs_everybody_at_once(tmp_path):
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    path, audit = ring(PEOPLE, K).write(tmp_path)
    options, little = READING, taken(path, None) + ROOMS[-1]
    assert verify(events, path, audit=audit, options=options, run=Run(memory=200_000)).ok
    with pytest.raises(TooLarge, match="`memory`"):
        verify(events, path, audit=audit, options=options, run=Run(memory=little))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crowd, "_READING", 0.01)
        patch.setattr(crowd, "_KEEPING", 1.0)
        assert verify(events, path, audit=audit, options=options, run=Run(memory=200_000)).ok
        assert verify(events, path, options=options, run=Run(memory=200_000)).ok


def test_unsorted_trajectories_are_sorted():
    lists = [[5, 3, 3, 9], [2], [7, 1]]
    flat = np.array([t for own in lists for t in own], dtype=np.int32)
    people = toy_people(users=3, frame=FRAME)
    offsets = np.array([0, 4, 5, 7])
    mixed = type(people)(offsets, flat, flat, flat, FRAME, pa.array(["c", "a", "b"]))
    with open_crowd(mixed, None, Grid(None, 500, 1800), run=Run(threads=1)) as made:
        (_, part), *rest = made.parts()
    assert not rest
    assert (part.t.tolist(), part.offsets.tolist()) == ([3, 5, 9, 2, 1, 7], [0, 3, 4, 6])
    assert made.first[:, 0].tolist() == [3, 2, 1]


def test_large_numbers_need_more_room():
    far = np.array([2**40, 2**40 + 1, 5])
    people = arranged(np.array([1, 1, 0]), far, far, far, pa.array(["a", "b"]))
    assert people.t.tolist() == [5, 2**40, 2**40 + 1]
    whole = crowd_of(people).whole()
    assert whole.counts.tolist() == [1, 2]


# Records


def cubes(lists):
    """Return records of boxes whose edges are all the same number."""
    return records_of([[[n] * 6 for n in own] for own in lists])


@examples(100)
@given(st.lists(st.lists(st.integers(0, 1), max_size=2), max_size=12))
def test_identical_records_are_kept_once(lists):
    records = cubes(lists)
    made = catalogue(np.arange(len(lists)), records)
    assert made.groups.tolist() == _groups_by_bytes(records).tolist()
    assert made.unique.weights.tolist() == np.bincount(made.groups).tolist()
    assert made.unique.distinct() is made.unique
    for record, group in enumerate(made.groups):
        edges = made.unique.offsets[group : group + 2]
        assert made.unique.boxes[slice(*edges), 0].tolist() == lists[record]


def test_records_with_the_same_hash_are_told_apart(monkeypatch):
    lists = [[1], [2], [1], [2, 2], [2]]
    monkeypatch.setattr(records_module, "_digests", lambda *_: np.zeros(len(lists), dtype=np.uint64))
    assert catalogue(np.arange(5), cubes(lists)).groups.tolist() == [0, 1, 0, 2, 1]


def test_a_file_is_read_in_batches(tmp_path, monkeypatch):
    draft = grouped(PEOPLE, K)
    counted = grouped(PEOPLE, K)
    counted.edit_table = lambda table: table.append_column(
        "count", pa.array([K + uid % 2 for uid in table["uid"].to_pylist()], pa.int32())
    )
    backwards = grouped(PEOPLE, K)
    unsorted_rows(backwards)
    broken = grouped(PEOPLE, K)
    broken.edit_table = lambda table: table.append_column("count", pa.array(range(len(table)), pa.int32()))
    for made in (draft, counted, backwards, broken):
        for name in ("release.parquet", "release.csv"):
            path, audit = made.write(tmp_path, name)
            monkeypatch.undo()
            whole = [verify(PEOPLE, path, audit=shown).to_dict() for shown in (audit, None)]
            monkeypatch.setattr(published, "_BATCH", 3)
            monkeypatch.setattr(published, "_BLOCK", 200)
            assert [verify(PEOPLE, path, audit=shown).to_dict() for shown in (audit, None)] == whole
            assert whole[0]["ok"] == (made is draft)


def test_labels_are_tried_on_some_users_only(tmp_path, monkeypatch):
    draft = grouped(PEOPLE, K)
    kept_order(draft)
    path, _ = draft.write(tmp_path)
    monkeypatch.setattr(order, "_TRIED", 20)
    assert verify(PEOPLE, path).failures == ("leaks",)


def test_blocks_of_members_do_not_matter(tmp_path, monkeypatch):
    for make in (grouped, ring):
        path, audit = make(PEOPLE, K).write(tmp_path)
        whole = verify(PEOPLE, path, audit=audit).to_dict()
        with monkeypatch.context() as patch:
            patch.setattr(truth, "ROWS", 2)
            patch.setattr(blocks, "__defaults__", (2,))
            assert verify(PEOPLE, path, audit=audit).to_dict() == whole
        assert whole["ok"]


# Suppression in whole groups


def without_boxes(draft, chosen):
    """Drop boxes of whole groups, as a limit on their size would; suppress what was in them.

    `chosen(group, box)` says which boxes go; a group of which none is left is not published at all.
    """
    lost = 0
    kept = []
    for record in draft.records:
        boxes = [box for n, box in enumerate(record.boxes) if not chosen(tuple(record.members), n)]
        gone = [box for n, box in enumerate(record.boxes) if chosen(tuple(record.members), n)]
        lost += sum(any(t0 <= t <= t1 for t0, t1, *_ in gone) for t, _, _ in samples_of(draft.people, record.owner))
        if boxes:
            kept.append(copy.copy(record))
            kept[-1].boxes = boxes
    draft.records, draft.suppressed = kept, lost
    return draft


BIG = toy_people(users=60, samples=12, seed=5)


def some_boxes(draft):
    groups = sorted({tuple(record.members) for record in draft.records})
    return without_boxes(draft, lambda group, box: box == 0 and groups.index(group) % 4 == 0 and len(groups) > 1)


def one_group_and_some_boxes(draft):
    groups = sorted({tuple(record.members) for record in draft.records})
    return without_boxes(draft, lambda group, box: group == groups[0] or (group == groups[1] and box == 0))


@pytest.mark.parametrize("suppress", [some_boxes, one_group_and_some_boxes])
def test_boxes_dropped_for_a_whole_group_are_counted_and_hold(suppress, tmp_path):
    draft = suppress(grouped(BIG, K))
    assert 0 < draft.suppressed < 0.2 * BIG.samples
    path, audit = draft.write(tmp_path)
    verdict = verify(BIG, path, audit=audit)
    assert verdict.ok, verdict.messages
    assert verdict.figures["suppressed_samples"] == draft.suppressed
    assert verdict.figures["mixed_samples"] == 0
    assert "suppression" in verdict.checked
    assert verify(BIG, path, audit=audit, suppressed=draft.suppressed).ok
    other = verify(BIG, path, audit=audit, suppressed=draft.suppressed + 1)
    assert other.codes == ("suppression/not-as-stated",)
    assert "suppression" in verify(BIG, path, audit=audit, max_suppressed=0.01).failures
    blind = verify(BIG, path)
    assert blind.ok, blind.messages
    assert "suppression" not in blind.checked
    assert NOT_CHECKED["members"] in blind.not_checked
    assert "suppression" in verify(BIG, path, max_suppressed=0.001).failures


def test_the_stated_count_is_rounded_and_must_be_true(tmp_path):
    people = toy_people(users=120, samples=40, seed=5)
    draft = without_boxes(grouped(people, K), lambda _, box: box % 7 == 2)
    exact = draft.suppressed
    assert 100 < exact < 0.2 * people.samples
    assert exact % 10
    path, audit = draft.write(tmp_path)
    assert verify(people, path, audit=audit).ok
    draft.suppressed = exact + 40
    path, audit = draft.write(tmp_path)
    verdict = verify(people, path, audit=audit)
    assert "suppression/not-as-stated" in verdict.codes
    assert set(verdict.failures) <= {"suppression", "integrity"}


def test_suppression_must_be_the_same_for_the_whole_group(tmp_path):
    draft = grouped(BIG, K)
    record = next(record for record in draft.records if len(record.boxes) > 1)
    lost = [s for s in samples_of(BIG, record.owner) if record.boxes[0][0] <= s[0] <= record.boxes[0][1]]
    record.boxes = record.boxes[1:]
    draft.suppressed = len(lost)
    path, audit = draft.write(tmp_path)
    assert {"identical", "suppression", "truth"} <= set(verify(BIG, path, audit=audit).failures)
    assert "identical" in verify(BIG, path).failures


def test_samples_may_not_be_suppressed_for_one_member_alone(tmp_path):
    """A box that was made without one of the members, who is then not hidden in it."""
    draft = grouped(BIG, K)
    group = draft.records[0].members
    alone = next(member for member in group)
    boxes = merge(BIG, [member for member in group if member != alone])
    for record in draft.records:
        if record.members == group:
            record.boxes = boxes
    draft.suppressed = 1
    path, audit = draft.write(tmp_path)
    verdict = verify(BIG, path, audit=audit)
    assert "truth" in verdict.failures or "suppression" in verdict.failures
    assert not verdict.ok


def test_a_user_without_published_samples_has_no_record(tmp_path):
    draft = one_group_and_some_boxes(grouped(BIG, K))
    owners = {record.owner for record in draft.records}
    assert len(owners) == len(BIG) - K
    path, audit = draft.write(tmp_path)
    rows = pq.read_table(audit)
    assert rows["record"].null_count == K
    assert verify(BIG, path, audit=audit).ok
    # nobody may be left out of the audit instead
    missing = rows.filter(pa.compute.is_valid(rows["record"]))
    assert verify(BIG, path, audit=missing).failures[0] == "audit"


def test_an_empty_record_is_not_published(tmp_path):
    draft = one_group_and_some_boxes(grouped(BIG, K))
    left = {record.owner for record in draft.records}
    owner = next(user for user in range(len(BIG)) if user not in left)
    draft.edit_audit = lambda rows: [
        (len(draft.records), label, label) if record is None and label == str(BIG.labels[owner]) else (record, *labels)
        for record, *labels in rows
        for label in labels[:1]
    ]
    path, audit = draft.write(tmp_path)
    assert "audit" in verify(BIG, path, audit=audit).failures


def test_settings_of_the_methods_are_public(tmp_path):
    public = [
        ("shoal", {}),
        ("shoal", {"max_span_m": 15_000, "max_duration_s": 21_600}),
        ("k-scale", {"constraint": "full", "candidates": 300, "picking": "marginal", "max_members": 7}),
        ("k-concealment", {"candidates": 40}),
    ]
    other = [
        ("shoal", {"candidates": 3}),
        ("shoal", {"max_span_m": 1.5}),
        ("shoal", {"effort": "victim"}),
        ("k-scale", {"picking": "victim"}),
        ("k-concealment", {"max_span_m": 3}),
    ]
    draft = grouped(PEOPLE, K)
    for method, settings_of in [*public, *other]:
        said = {"method": method, "parameters": {"k": K, **settings_of}}
        draft.edit_shoal = lambda shoal, said=said: {**shoal, **said}
        path, audit = draft.write(tmp_path)
        failures = verify(PEOPLE, path, audit=audit).failures
        assert failures == (() if (method, settings_of) in public else ("leaks",))


def test_original_keeps_labels_with_samples():
    people = Original(pa.array(["a", "b"]), np.array([0, 1, 3]), *(np.array([1, 2, 3]) for _ in range(3)))
    kept = people.keep(np.array([True, False, False]))
    assert kept.counts.tolist() == [1, 0]
    assert kept.labels.to_pylist() == ["a", "b"]
