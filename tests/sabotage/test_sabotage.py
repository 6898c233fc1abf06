"""Releases broken on purpose: each breaks one thing, and the verifier must name it, with and without the audit."""

import random
import re

import numpy as np
import pyarrow as pa
import pytest

from shoal.seen.codes import NOTES, PROBLEMS
from shoal.verifier import verify
from tests.releases import NOON, Record, bounds, grouped, merge, ring, samples_of, shuffled, toy_people, with_derived

K = 4
PEOPLE = toy_people()
RING, GROUPS = ring(PEOPLE, K), grouped(PEOPLE, K)
FRAME = PEOPLE.frame
EVERYBODY = merge(PEOPLE, range(len(PEOPLE)))


def case(kinds, without=None, start=RING):
    """Name the failures with the audit and, if they are others, without."""

    def note(sabotage):
        seen, blind = set(kinds.split()), set((kinds if without is None else without).split())
        CASES.append(pytest.param(start, sabotage, seen, blind, id=sabotage.__name__))
        return sabotage

    return note


CASES = []


def rebuilt(table):
    return with_derived(table, FRAME.crs)


def column(table, name, values, kind=None):
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.array(values, kind or table.schema.field(name).type))


def edited(table, name, row, value):
    values = table[name].to_pylist()
    values[row] = value
    return column(table, name, values)


# Who is hidden


@case("cover")
def one_user_fewer(draft):
    record = draft.records[0]
    record.members = record.members[:-1]
    record.boxes = merge(PEOPLE, record.members)


@case("identical", start=GROUPS)
def a_group_of_k_minus_one(draft):
    small = draft.records[0].members
    large = next(r.members for r in draft.records if r.members != small)
    small, large = small[:-1], large + small[-1:]
    for record in draft.records:
        for members in (small, large):
            if record.owner in members:
                record.members, record.boxes = list(members), merge(PEOPLE, members)


@case("cover suppression truth", "cover")
def one_sample_outside(draft):
    for record in draft.records:
        for box in record.boxes:
            if box[3] > box[2]:
                box[3] -= 1
                return


@case("identical truth", "identical", start=GROUPS)
def one_sample_outside_in_a_whole_group(draft):
    group = draft.records[0].members
    box = next(n for n, box in enumerate(draft.records[0].boxes) if box[3] > box[2])
    for record in draft.records:
        if record.members == group:
            record.boxes[box][3] -= 1


@case("cover suppression truth", "cover")
def swapped_axes(draft):
    for record in draft.records:
        record.boxes = [[t0, t1, y0, y1, x0, x1] for t0, t1, x0, x1, y0, y1 in record.boxes]


@case("cover suppression truth", "cover")
def off_by_one_slot(draft):
    for record in draft.records:
        record.boxes = [[t0 + 1, t1 + 1, *rest] for t0, t1, *rest in record.boxes]


@case("cover suppression truth", "cover")
def inward_rounding(draft):
    for record in draft.records:
        record.boxes = [[t0, t1, x0, max(x0, x1 - 1), y0, max(y0, y1 - 1)] for t0, t1, x0, x1, y0, y1 in record.boxes]


@case("cover truth", "cover")
def giant_boxes_and_raw_copies(draft):
    everything = bounds([sample for user in range(len(PEOPLE)) for sample in samples_of(PEOPLE, user)])
    for number, record in enumerate(draft.records):
        if number < K:
            giant = [everything[0], NOON + 1000, *everything[2:]], [NOON + 1001, *everything[1:]]
            record.boxes, record.members = [list(box) for box in giant], list(range(len(PEOPLE)))
        else:
            record.members = [record.owner]
            record.boxes = merge(PEOPLE, record.members)


@case("cover")
def raw_data_beside_one_record_of_everybody(draft):
    together = [Record(record.owner, list(range(len(PEOPLE))), EVERYBODY) for record in draft.records[:K]]
    alone = [Record(r.owner, [r.owner], merge(PEOPLE, [r.owner])) for r in draft.records[K:]]
    draft.records = shuffled(together + alone, 5)


@case("cover")
def one_persons_raw_data(draft):
    record = draft.records[0]
    others = [other for other in draft.records[1:] if record.owner not in other.members]
    for member in record.members[1:]:  # everybody stays in k records
        other = others.pop()
        other.members.append(member)
        other.boxes = merge(PEOPLE, other.members)
    record.members, record.boxes = [record.owner], merge(PEOPLE, [record.owner])


@case("identical suppression truth", "identical", start=GROUPS)
def a_raw_record_copied_k_times(draft):
    victim, *others = draft.records[0].members
    joined = others + next(r.members for r in draft.records if victim not in r.members)
    concerned = [record for record in draft.records if record.owner in [victim, *joined]]
    for number, record in enumerate(concerned):
        members = [victim] if number < K else joined
        record.members = sorted({record.owner, *members})
        record.boxes = merge(PEOPLE, members)


@case("audit cover", "cover")
def a_record_too_many(draft):
    draft.records.append(Record(draft.records[0].owner, list(draft.records[0].members), list(draft.records[0].boxes)))
    draft.edit_audit = lambda rows: [row for row in rows if row[0] != len(PEOPLE)]


# Truth


@case("cover truth", "cover")
def a_created_box(draft):
    record = next(r for r in draft.records for a, b in zip(r.boxes, r.boxes[1:], strict=False) if b[0] > a[1] + 1)
    place = next(n for n in range(len(record.boxes)) if record.boxes[n + 1][0] > record.boxes[n][1] + 1)
    before = record.boxes[place]
    record.boxes.insert(place + 1, [before[1] + 1, before[1] + 1, *before[2:]])


@case("cover suppression truth", "cover truth")
def overlapping_boxes(draft):
    record = max(draft.records, key=lambda record: len(record.boxes))
    record.boxes[0][1] = record.boxes[1][0]


@case("truth", "")
def a_person_with_two_records(draft):
    labels = PEOPLE.labels.cast(pa.string()).to_pylist()
    first, second = draft.records[0], next(r for r in draft.records[1:] if draft.records[0].owner in r.members)
    number = draft.records.index(second)
    lost = labels[second.owner]
    draft.edit_audit = lambda rows: [
        *((n, labels[first.owner] if n == number else owner, member) for n, owner, member in rows),
        (None, lost, lost),
    ]


# Numbers and order


@case("leaks")
def copied_ids(draft):
    draft.records.sort(key=lambda record: PEOPLE.labels[record.owner].as_py())


@case("leaks")
def kept_order(draft):
    draft.records.sort(key=lambda record: record.owner)


@case("leaks")
def kept_order_backwards_in_time(draft):
    draft.records.sort(key=lambda record: record.boxes[0], reverse=True)


@case("leaks", start=GROUPS)
def identical_records_side_by_side(draft):
    order = {tuple(group): n for n, group in enumerate({tuple(r.members) for r in draft.records})}
    draft.records.sort(key=lambda record: order[tuple(record.members)])


@case("leaks", start=GROUPS)
def groups_in_rounds_by_label(draft):
    label = {tuple(r.members): min(PEOPLE.labels[m].as_py() for m in r.members) for r in draft.records}
    draft.records.sort(key=lambda record: label[tuple(record.members)])
    sizes = dict.fromkeys(label, 0)
    turns = []
    for record in draft.records:
        sizes[tuple(record.members)] += 1
        turns.append(sizes[tuple(record.members)])
    draft.records = [record for _, record in sorted(zip(turns, draft.records, strict=True), key=lambda pair: pair[0])]


@case("leaks")
def an_empty_record(draft):
    draft.numbers = [*range(7), *range(8, len(draft.records) + 1)]


@case("leaks")
def unsorted_rows(draft):
    def swap(table):
        rows = np.arange(len(table))
        rows[[3, 4]] = rows[[4, 3]]
        return table.take(pa.array(rows))

    draft.edit_table = swap


# Values


@case("leaks")
def swapped_degrees(draft):
    draft.edit_table = lambda table: table.rename_columns([*table.column_names[:8], "lng", "lat"]).select(
        table.column_names
    )


@case("leaks")
def a_true_time(draft):
    draft.edit_table = lambda table: column(
        table, "datetime", table["datetime"].cast(pa.int64()).to_numpy() + 60_000, pa.int64()
    ).cast(table.schema)


@case("leaks")
def a_time_off_the_grid(draft):
    def edit(table):
        start = table["t_start"].cast(pa.int64()).to_numpy().copy()
        start[0] -= 1500
        return rebuilt(column(table, "t_start", start, pa.int64()).cast(table.schema))

    draft.edit_table = edit


@case("cover leaks suppression truth", "cover leaks truth")
def an_empty_box(draft):
    def edit(table):
        last = table.slice(len(table) - 1)
        stop = last["t_end"].cast(pa.int64()).to_numpy() + 60_000
        empty = pa.table({**{name: last[name] for name in last.column_names}, "t_start": pa.array(stop, pa.int64())})
        empty = empty.set_column(2, "t_end", pa.array(stop, pa.int64())).select(table.column_names).cast(table.schema)
        return rebuilt(pa.concat_tables([table, empty]))

    draft.edit_table = edit


# A value that is missing takes cover away too: what matters is that it is named.
for name, row_value in (("lng", float("nan")), ("x_min", None), ("uid", None)):

    def no_value(draft, name=name, value=row_value):
        draft.edit_table = lambda table: edited(table, name, 5, value)

    CASES.append(pytest.param(RING, no_value, {"leaks"}, None, id=f"no_value_of_{name}"))


# Columns, types, metadata


TABLES = {
    "an_extra_column": lambda table: table.append_column("home", pa.array(["x"] * len(table))),
    "other_order_of_columns": lambda table: table.select([*table.column_names[1:], "uid"]),
    "a_missing_column": lambda table: table.drop_columns(["t_end"]),
    "a_wrong_type": lambda table: table.set_column(0, "uid", table["uid"].cast(pa.int32())),
    "a_finer_type_of_time": lambda table: table.set_column(
        1, "t_start", table["t_start"].cast(pa.timestamp("us", "UTC"))
    ),
    "stray_metadata": lambda table: table.replace_schema_metadata({"pandas": "{}"}),
    "a_stray_raw_coordinate": lambda table: edited(table, "lat", 5, table["lat"][5].as_py() + 1e-4),
    "an_edge_off_the_grid": lambda table: rebuilt(edited(table, "x_max", 5, table["x_max"][5].as_py() + 37)),
}
for what, edit in TABLES.items():

    def other_table(draft, edit=edit):
        draft.edit_table = edit

    CASES.append(pytest.param(RING, other_table, {"leaks"}, {"leaks"}, id=what))


@case("leaks")
def metadata_of_a_column(draft):
    def edit(table):
        return table.cast(pa.schema([table.schema.field(0).with_metadata({"from": "x"}), *list(table.schema)[1:]]))

    draft.edit_table = edit


PARAMETERS = {
    "a_seed": {"k": K, "seed": 7},
    "a_path": {"k": K, "from": "/home/x.csv"},
    "numbers": {"k": K, "victim": 13800138000, "lat": 40.7},
    "another_k": {"k": K + 7},
}
for what, parameters in PARAMETERS.items():

    def other_parameters(draft, parameters=parameters):
        draft.edit_shoal = lambda shoal: {**shoal, "parameters": parameters}

    CASES.append(pytest.param(RING, other_parameters, {"leaks"}, {"leaks"}, id=f"{what}_among_the_parameters"))


CLAIMS = {
    "a_claim_that_says_why": ("leaks", {**RING.claim, "why": "research"}),
    "a_claim_of_nothing_that_says_something": ("leaks", {"name": "none", "why": "victim"}),
    "a_claim_nobody_knows": ("integrity", {"name": "perfect", "k": K}),
}
for what, (kind, claim) in CLAIMS.items():

    def other_claim(draft, claim=claim):
        draft.claim = claim

    CASES.append(pytest.param(RING, other_claim, {kind}, {kind}, id=what))


@case("integrity")
def a_format_that_is_only_true(draft):
    draft.edit_shoal = lambda shoal: {**shoal, "format": True}


@case("leaks")
def another_writer(draft):
    def edit(data):
        assert data.count(b"parquet-cpp-arrow") == 1
        return data.replace(b"parquet-cpp-arrow", b"parquet-by-victim")

    draft.edit_bytes = edit


@case("leaks")
def bytes_between_columns_and_footer(draft):
    def edit(data):
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        return data[:footer] + b"victim" + data[footer:]

    draft.edit_bytes = edit


@case("leaks")
def bytes_behind_the_footer(draft):
    draft.edit_bytes = lambda data: (
        data[:-8] + b"victim" + (int.from_bytes(data[-8:-4], "little") + 6).to_bytes(4, "little") + b"PAR1"
    )


@case("leaks")
def an_extra_key(draft):
    draft.edit_shoal = lambda shoal: {**shoal, "host": "x"}


# Manifest


@case("integrity")
def a_wrong_hash(draft):
    draft.stale_hash = True


MORE = {"claim": {"name": "cover", "k": 9}}
MANIFESTS = {
    "a_manifest_with_a_member_missing": lambda said: {key: said[key] for key in said if key != "seeded"},
    "a_manifest_without_the_file": lambda said: {**said, "files": {"other.parquet": "0" * 64}},
    "a_manifest_that_claims_more": lambda said: {**said, "shoal": {**said["shoal"], **MORE}},
    "a_wrong_number_of_samples": lambda said: {**said, "counts": {**said["counts"], "samples_published": 13}},
    "a_wrong_number_of_records": lambda said: {**said, "counts": {**said["counts"], "records": 90}},
}
for what, edit in MANIFESTS.items():

    def other_manifest(draft, edit=edit):
        draft.edit_manifest = edit

    CASES.append(pytest.param(RING, other_manifest, {"integrity"}, {"integrity"}, id=what))


@case("integrity")
def a_seeded_release_that_claims_cover(draft):
    draft.seeded = True


@case("integrity leaks")
def exact_counts(draft):
    exact = {"samples_published": PEOPLE.samples + 1}
    draft.edit_manifest = lambda said: {**said, "counts": {**said["counts"], **exact}}


# Audit


AUDITS = {
    "unknown_label": lambda rows: [*rows[:-1], (*rows[-1][:2], "nobody")],
    "unknown_record": lambda rows: [*rows, (len(PEOPLE), rows[0][1], rows[0][1])],
    "no_owner_row": lambda rows: [row for row in rows if row[0] != 3 or row[1] != row[2]],
    "record_left_out": lambda rows: [row for row in rows if row[0] != 3],
    "row_twice": lambda rows: [*rows, rows[0]],
    "published_and_not": lambda rows: [*rows, (None, rows[0][1], rows[0][1])],
}
for what, edit in AUDITS.items():

    def other_audit(draft, edit=edit):
        draft.edit_audit = edit

    CASES.append(pytest.param(RING, other_audit, {"audit"}, set(), id=f"audit_{what}"))


@pytest.mark.parametrize(("start", "sabotage", "kinds", "without"), CASES)
def test_sabotage_is_named(start, sabotage, kinds, without, tmp_path):
    draft = start.copy()
    sabotage(draft)
    path, audit = draft.write(tmp_path)
    seen = verify(PEOPLE, path, audit=audit)
    blind = verify(PEOPLE, path)
    assert not seen.ok
    if without is None:
        assert kinds <= set(seen.failures)
        assert kinds <= set(blind.failures)
        return
    assert set(seen.failures) == kinds
    assert set(blind.failures) == without
    assert blind.ok == (not without)


@pytest.mark.parametrize("start", [RING, GROUPS], ids=["cover", "groups"])
@pytest.mark.parametrize("name", ["release.parquet", "release.csv"])
@pytest.mark.parametrize("exact", [False, True])
def test_what_is_not_broken_passes(start, name, exact, tmp_path):
    path, audit = start.write(tmp_path, name)
    for shown in (audit, None):
        verdict = verify(PEOPLE, path, audit=shown, exact=exact)
        assert verdict.ok, verdict.messages
        assert {"integrity", "leaks", "truth"} <= set(verdict.checked)
        assert ("audit" in verdict.checked) == (shown is not None)


def test_there_are_at_least_a_dozen():
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", ["a_stray_raw_coordinate", "an_edge_off_the_grid", "one_sample_outside", "copied_ids"])
def test_sabotage_in_csv_is_named(name, tmp_path):
    start, sabotage, _, without = next(case.values for case in CASES if case.id == name)
    draft = start.copy()
    sabotage(draft)
    path, _ = draft.write(tmp_path, "release.csv")
    assert set(verify(PEOPLE, path).failures) == without


@pytest.mark.parametrize(
    ("before", "after"),
    [("\n0,", '\n"0",'), ("\n", "\r\n"), ("uid", '"uid"'), ("uid", "\ufeffuid"), (",116.", ",0116."), (",40.", ",4.0")],
    ids=["quote", "line end", "quoted name", "mark", "leading zero", "another number"],
)
def test_text_that_could_carry_something_is_named(before, after, tmp_path):
    draft = RING.copy()

    def edit(data):
        assert before.encode() in data
        return data.replace(before.encode(), after.encode(), 1)

    draft.edit_bytes = edit
    assert "leaks" in verify(PEOPLE, draft.write(tmp_path, "release.csv")[0]).failures


@pytest.mark.parametrize("tail", ["0", "000"])
def test_zeros_behind_a_number_are_named(tail, tmp_path):
    draft = RING.copy()
    draft.edit_bytes = lambda data: re.sub(rb"(,40\.\d+)(,)", rb"\g<1>" + tail.encode() + rb"\2", data, count=1)
    verdict = verify(PEOPLE, draft.write(tmp_path, "release.csv")[0])
    assert verdict.codes == ("leaks/number-form",)
    assert verdict.problems == (PROBLEMS["leaks/number-form"].format(n=1),)


@pytest.mark.parametrize("after", ['{"seeded": "victim", "shoal"', '{  "shoal"'], ids=["repeated key", "blanks"])
def test_a_manifest_of_another_form_is_named(after, tmp_path):
    path, _ = RING.write(tmp_path)
    manifest = tmp_path / "release.parquet.manifest.json"
    manifest.write_text(manifest.read_text().replace('{"shoal"', after, 1))
    assert verify(PEOPLE, path).failures == ("integrity",)


def test_the_fewest_members_are_told(tmp_path):
    path, audit = RING.write(tmp_path)
    assert verify(PEOPLE, path, audit=audit).figures["min_members"] == K
    assert verify(PEOPLE, path, exact=True).figures["min_members"] == K
    assert verify(PEOPLE, path).figures["min_members"] == 2
    draft = RING.copy()
    raw_data_beside_one_record_of_everybody(draft)
    path, audit = draft.write(tmp_path)
    for shown in (audit, None):
        verdict = verify(PEOPLE, path, audit=shown)
        assert verdict.figures["min_members"] == 1
        assert "cover/raw-records" in verdict.codes


def test_one_way_cover_is_told_beside(tmp_path):
    draft = RING.copy()
    giant_boxes_and_raw_copies(draft)
    path, _ = draft.write(tmp_path)
    verdict = verify(PEOPLE, path)
    assert verdict.figures["one_way_min"] >= K
    alone = verdict.figures["users_short"]
    assert NOTES["one-way-only"].format(n=alone, k=K) in verdict.messages


def test_fresh_random_numberings_pass(tmp_path):
    draft = GROUPS.copy()
    for seed in range(10):
        random.Random(seed).shuffle(draft.records)
        path, audit = draft.write(tmp_path)
        assert verify(PEOPLE, path, audit=audit).ok
        assert verify(PEOPLE, path).ok
