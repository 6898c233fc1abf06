"""What verify promises to its callers: from files, with every kind of release, and fail-closed."""

import json
import struct
import traceback

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.claim import Claim
from shoal.errors import CannotCheck, NotVerified, SettingsError
from shoal.frame import Frame
from shoal.reading.options import ReadOptions
from shoal.seen.codes import NOT_CHECKED, NOTES
from shoal.seen.findings import Finding
from shoal.verifier import verify
from tests.releases import (
    FRAME,
    Record,
    grouped,
    in_memory,
    merge,
    people_of,
    ring,
    samples_of,
    toy_people,
    write_events,
)

K = 3
PEOPLE = toy_people(users=30, samples=8, seed=4)
LISTS = [samples_of(PEOPLE, user) for user in range(len(PEOPLE))]
STRANGER = (999, 1_700_000_000_000, 40.0, 116.0)  # an event of somebody who is not published


def holds(*given, **options):
    """Return the verdict of verify, which holds."""
    verdict = verify(*given, **options)
    assert verdict.ok, verdict.messages
    return verdict


def foreign(draft, folder):
    """Write the table of a release alone, as another tool would."""
    pq.write_table(draft.table(), folder / "other.parquet")
    return folder / "other.parquet"


def with_count(draft, counts):
    """Give a release a column of counts: those of its records."""
    draft.edit_table = lambda table: table.append_column(
        "count", pa.array([counts[uid] for uid in table["uid"].to_pylist()], pa.int32())
    )


@pytest.mark.parametrize("make", [ring, grouped])
@pytest.mark.parametrize("name", ["release.parquet", "release.csv"])
def test_from_files_to_a_verdict(make, name, tmp_path):
    path, audit = make(PEOPLE, K).write(tmp_path, name)
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    for shown in (audit, None):
        verdict = holds(events, path, audit=shown)
        assert (verdict.figures["users"], verdict.figures["samples"]) == (len(PEOPLE), PEOPLE.samples)
        json.dumps(verdict.to_dict())


@pytest.mark.parametrize(
    ("extra", "rules", "users", "rows"),
    [
        (STRANGER, {"min_samples": 2}, {"min_samples": 1}, 0),
        (STRANGER, {"min_active_days": 2, "tz": "Asia/Shanghai"}, {"min_active_days": 1}, 0),
        ((1, 1_700_000_000_000, 10.0, 10.0), {"bbox": (115, 39, 117, 41)}, {}, 2),
        ((999, 1_700_000_000_000, -40.0, -64.0), {}, {"no place in the CRS": 1}, 2),
    ],
    ids=["few samples", "few days", "bounding box", "antipode"],
)
def test_what_is_outside_the_rules_is_counted_and_outside_the_claim(extra, rules, users, rows, tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    events = write_events(PEOPLE, tmp_path / "events.parquet", extra=[extra])
    if rules:
        assert "cover" in verify(events, path).failures
    figures = holds(events, path, audit=audit, options=ReadOptions(**rules)).figures
    assert figures["users_outside"] == users
    assert sum(figures["rows_outside"].values()) == rows


def test_gridded_data_without_geography(tmp_path):
    people = toy_people(users=25, frame=Frame(crs=None, cell_m=500, slot_s=1800), start=480)
    path, audit = grouped(people, K).write(tmp_path)
    assert pq.read_schema(path).names[-1] == "datetime"
    uids = people.labels.take(pa.array(np.repeat(np.arange(len(people)), people.counts)))
    slots = {"d": people.t // 48, "t": people.t % 48, "x": people.x, "y": people.y}
    pq.write_table(pa.table({"uid": uids, **slots}), tmp_path / "events.parquet")
    for original in (people, tmp_path / "events.parquet"):
        holds(original, path, audit=audit)


@pytest.mark.parametrize("make", [ring, grouped])
def test_a_release_in_memory(make):
    draft = make(PEOPLE, K)
    for change in ({}, {"members": None}):
        verdict = holds(PEOPLE, in_memory(draft, **change))
        assert not {"integrity", "leaks"} & set(verdict.checked)
        assert NOT_CHECKED["file"] in verdict.not_checked
        assert NOTES["in-memory"] in verdict.messages
        assert ("audit" in verdict.checked) == (not change)


def test_a_slot_origin_is_honoured(tmp_path):
    people = people_of(LISTS, frame=Frame(crs=FRAME.crs, cell_m=100, slot_s=60, origin_slot=1000))
    draft = ring(people, K)
    path, audit = draft.write(tmp_path)
    holds(people, path, audit=audit)
    holds(people, in_memory(draft))
    draft.people = people_of(LISTS)
    assert "cover" in verify(people, draft.write(tmp_path)[0]).failures


def test_more_may_be_asked_for_but_not_less(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    assert verify(PEOPLE, path, k=2, audit=audit).figures["k"] == K
    verdict = verify(PEOPLE, path, k=K + 1, audit=audit)
    assert verdict.codes == ("cover/too-few-records",)
    assert verdict.figures["min_cover"] == K
    with pytest.raises(NotVerified, match="cover"):
        verdict.raise_if_broken()
    with pytest.raises(SettingsError):
        verify(PEOPLE, path, k=0)


def test_exact_tells_the_distribution(tmp_path):
    path, _ = ring(PEOPLE, K).write(tmp_path)
    figures = verify(PEOPLE, path, exact=True).figures
    assert figures["cover"]["min"] == figures["min_cover"] == K
    assert sum(figures["cover"]["histogram"].values()) == len(PEOPLE)
    assert figures["one_way_min"] >= K


def test_another_tools_release(tmp_path):
    path = foreign(ring(PEOPLE, K), tmp_path)
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    with pytest.raises(CannotCheck, match="`crs`"):
        verify(events, path, k=K)
    with pytest.raises(CannotCheck, match="`cell` and `slot`"):
        verify(events, path, k=K, options=ReadOptions(crs=FRAME.crs, cell=100))
    options = ReadOptions(cell=100, slot=60)
    with pytest.raises(CannotCheck, match="`k`"):
        verify(events, path, options=options, crs=FRAME.crs)
    verdict = holds(events, path, k=K, options=options, crs=FRAME.crs)
    assert "integrity" not in verdict.checked
    assert {NOTES["no-manifest"], NOTES["foreign-release"]} <= set(verdict.messages)
    identical = verify(events, path, options=options, crs=FRAME.crs, claim=Claim("k-anonymity", k=K))
    assert identical.failures == ("identical",)
    holds(events, path, k=K, options=ReadOptions(crs=FRAME.crs, cell=100, slot=60))


def test_a_claim_given_must_be_the_files_own(tmp_path):
    path, _ = ring(PEOPLE, K).write(tmp_path)
    assert verify(PEOPLE, path, claim=Claim("cover", k=K)).ok
    with pytest.raises(SettingsError):
        verify(PEOPLE, path, claim=Claim("none"))


def test_what_can_not_be_read_can_not_be_checked(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    nowhere, broken = tmp_path / "nowhere.parquet", tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-20])
    for original, release, shown in (
        (PEOPLE, nowhere, None),
        (nowhere, path, None),
        (PEOPLE, broken, None),
        (PEOPLE, path, broken),
    ):
        with pytest.raises(CannotCheck):
            verify(original, release, audit=shown)
    other = people_of(LISTS[:1], frame=Frame(crs=FRAME.crs, cell_m=200, slot_s=60))
    with pytest.raises(CannotCheck, match="another grid"):
        verify(other, path, audit=audit)


def test_a_malformed_manifest_is_a_failure(tmp_path):
    path, _ = ring(PEOPLE, K).write(tmp_path)
    file = tmp_path / "release.parquet.manifest.json"
    fraction = file.read_text().replace('"samples_created": 0', '"samples_created": 0.0')
    for text in ("", "[]", "{", '{"shoal": {}}', "[" * 100_000, fraction):
        file.write_text(text)
        assert verify(PEOPLE, path).codes == ("integrity/malformed",)


@pytest.mark.parametrize("stated", [None, "null"], ids=["whole", "null"])
def test_without_its_manifest_it_is_no_release(stated, tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    (tmp_path / "release.parquet.manifest.json").unlink()
    if stated is not None:
        pq.write_table(pq.read_table(path).replace_schema_metadata({"shoal": stated}), path)
    for shown in (audit, None):
        verdict = verify(PEOPLE, path, k=K, audit=shown)
        assert verdict.failures == ("integrity",)
        assert "integrity/no-manifest" in verdict.codes


def test_where_nobody_states_suppression_there_is_none(tmp_path):
    draft = suppressing(ring)
    path = foreign(draft, tmp_path)
    assert set(verify(draft.people, path, k=K, audit=draft.audit()).failures) == {"cover", "truth"}
    assert verify(draft.people, path, k=K, audit=draft.audit(), suppressed=1).ok
    assert verify(draft.people, path, k=K).failures == ("cover",)


def test_reading_options_are_keywords_too(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    events = write_events(PEOPLE, tmp_path / "events.parquet", extra=[STRANGER])
    holds(events, path, audit=audit, min_samples=2, tz="Asia/Shanghai")
    verdict = verify(events, path, options=ReadOptions(tz="Asia/Shanghai"), min_active_days=2)
    assert verdict.figures["users_outside"] == {"min_active_days": 1}
    with pytest.raises(SettingsError, match="min_sample"):
        verify(events, path, min_sample=2)
    holds(events, foreign(ring(PEOPLE, K), tmp_path), k=K, crs=FRAME.crs, cell="100m", slot=60, min_samples=2)


@pytest.mark.parametrize("claim", ["", "[1]", '{"format": 2}', '{"format": 1, "cell_m": 0}'])
def test_a_shoal_object_that_makes_no_sense_is_a_failure(claim, tmp_path):
    path = tmp_path / "release.parquet"
    pq.write_table(ring(PEOPLE, K).table().replace_schema_metadata({"shoal": claim}), path)
    assert set(verify(PEOPLE, path).codes) == {"integrity/no-manifest", "integrity/header"}


def suppressing(make):
    """Return people of whom one has a sample far away, and a release from which it was taken out everywhere."""
    draft = make(people_of(LISTS), K)
    far = (LISTS[5][-1][0] + 1, 900, 900)
    draft.people = people_of([[*own, far] if user == 5 else own for user, own in enumerate(LISTS)])
    labels = draft.people.labels.to_pylist()  # the canonical order is another one now
    for record in draft.records:
        record.owner, record.members = labels.index(record.owner), [labels.index(m) for m in record.members]
    return draft


@pytest.mark.parametrize("make", [ring, grouped])
def test_suppressed_samples_are_counted_and_must_be_stated(make, tmp_path):
    draft = suppressing(make)
    people = draft.people
    kind = "cover" if make is ring else "identical"
    path, audit = draft.write(tmp_path)
    assert set(verify(people, path, audit=audit).failures) == {kind, "truth"}
    assert verify(people, path).failures == (kind,)
    draft.suppressed = 1
    path, audit = draft.write(tmp_path)
    assert holds(people, path, audit=audit).figures["suppressed_samples"] == 1
    assert verify(people, path, audit=audit, suppressed=2).codes == ("suppression/not-as-stated",)
    assert verify(people, path, audit=audit, max_suppressed=0.001).codes == ("suppression/too-many",)
    holds(people, in_memory(draft))
    verdict = verify(people, path, max_suppressed=0.001)
    assert "suppression/stated-too-many" in verdict.codes
    assert verdict.failures[-1] == "suppression"
    for shown in (path, in_memory(draft, members=None)):
        if make is ring:
            with pytest.raises(CannotCheck, match="audit"):
                verify(people, shown)
        else:
            verdict = holds(people, shown)
            assert "suppression" not in verdict.checked
            assert NOT_CHECKED["members"] in verdict.messages[-1]


def test_cover_with_suppression_needs_the_audit_even_if_all_samples_are_covered(tmp_path):
    draft = ring(PEOPLE, K)
    draft.suppressed = 1
    with pytest.raises(CannotCheck, match="audit"):
        verify(PEOPLE, draft.write(tmp_path)[0])


def first_group(draft):
    members = draft.records[0].members
    return [record for record in draft.records if record.members == members]


def moved_away(draft, chosen=lambda draft: draft.records):
    for record in chosen(draft):
        record.boxes = [[*box[:2], box[2] + 1000, box[3] + 1000, *box[4:]] for box in record.boxes]


def one_group_moved_away(draft):
    moved_away(draft, first_group)


def one_box_of_a_group_moved_away(draft):
    for record in first_group(draft):
        record.boxes[0][2:4] = [1000, 1040]


def a_raw_copy_instead_of_a_group(draft):
    for record in first_group(draft):
        record.boxes = merge(PEOPLE, record.members[:1])


@pytest.mark.parametrize(
    "sabotage", [moved_away, one_group_moved_away, one_box_of_a_group_moved_away, a_raw_copy_instead_of_a_group]
)
@pytest.mark.parametrize("stated", [20, 40])
def test_stating_suppression_does_not_switch_the_check_off(sabotage, stated, tmp_path):
    draft = grouped(PEOPLE, K)
    draft.suppressed = stated
    sabotage(draft)
    verdict = verify(PEOPLE, draft.write(tmp_path)[0])
    assert "identical" in verdict.failures
    assert not any("holds" in message for message in verdict.messages)


def without_a_group(suppressed=None):
    """Return a release of groups but one, and how many samples that one has: as many are said to be suppressed."""
    draft = grouped(PEOPLE, K)
    group = draft.records[0].members
    draft.records = [record for record in draft.records if record.members != group]
    missing = int(PEOPLE.counts[group].sum())
    draft.suppressed = missing if suppressed is None else suppressed
    return draft, missing


def test_a_user_who_is_not_published_counts_as_suppressed(tmp_path):
    draft, missing = without_a_group()
    path, audit = draft.write(tmp_path)
    assert holds(PEOPLE, path, audit=audit).figures["suppressed_samples"] == missing
    holds(PEOPLE, path)
    path, _ = without_a_group(suppressed=3)[0].write(tmp_path)
    assert verify(PEOPLE, path).codes == ("suppression/more-than-stated",)


def test_what_was_skipped_is_said_with_the_result(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    assert verify(PEOPLE, path, audit=audit).messages[-1].endswith(f"checked with k = {K}.")
    other, release = foreign(ring(PEOPLE, K), tmp_path), in_memory(ring(PEOPLE, K))
    for shown, given, skipped in (
        (path, {}, ["members"]),
        (other, {"k": K, "audit": audit}, ["integrity", "form"]),
        (release, {}, ["file"]),
    ):
        said = "; ".join(NOT_CHECKED[what] for what in skipped)
        assert verify(PEOPLE, shown, **given).messages[-1].endswith(f", except {said}.")


def copies_of_one(count_column):
    """Return a release in which one person hides among copies of her own record, and the others among each other."""
    lists = [[(t, x + 500, y) for t, x, y in LISTS[0]], *LISTS[1:]]  # nobody's box holds her but her own
    people = people_of(lists)
    victim = next(user for user in range(len(people)) if people.user(user)[0, 1] >= 500)
    others = [user for user in range(len(people)) if user != victim]
    joined = Record(others[0], others, merge(people, others))
    alone = Record(victim, [victim], merge(people, [victim]))
    draft = ring(people, K)
    if count_column:
        draft.records = [joined, alone]
        with_count(draft, [len(others) - K + 1, K])
    else:
        draft.records = [alone] * K + [joined] * (len(others) - K + 1)
        np.random.default_rng(3).shuffle(draft.records)
    return draft


@pytest.mark.parametrize("count_column", [False, True])
def test_copies_of_ones_own_record_hide_nobody(count_column, tmp_path):
    draft = copies_of_one(count_column)
    for claim in ({"name": "cover", "k": K}, {"name": "none", "why": "research"}):
        draft.claim = claim
        verdict = verify(draft.people, draft.write(tmp_path)[0])
        assert verdict.failures == (("cover", "leaks") if count_column else ("cover",))
        assert ("leaks/count-column" in verdict.codes) == count_column
        assert verdict.figures["users_short"] == verdict.figures["min_cover"] == 1


@pytest.mark.parametrize("kind", ["release", "audit"])
def test_labels_do_not_come_out_through_tracebacks(kind, tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    broken = tmp_path / "broken.csv"
    broken.write_text("record,owner,member\n0,a,a\n0,canary\n")
    with pytest.raises(CannotCheck) as caught:
        verify(PEOPLE, broken if kind == "release" else path, audit=broken if kind == "audit" else audit)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_nothing_published_fails(tmp_path):
    draft = grouped(PEOPLE, K)
    draft.records, draft.suppressed = [], PEOPLE.samples
    path, audit = draft.write(tmp_path)
    assert {"identical", "suppression"} <= set(verify(PEOPLE, path, audit=audit, max_suppressed=1.0).failures)
    assert "identical" in verify(PEOPLE, path).failures


def test_compact_groups(tmp_path):
    draft = grouped(PEOPLE, K)
    draft.records = list({tuple(record.members): record for record in draft.records}.values())
    counts = [len(record.members) for record in draft.records]
    labels = PEOPLE.labels.cast(pa.string()).to_pylist()
    with_count(draft, counts)
    draft.edit_audit = lambda _: [
        (n, labels[member], labels[member]) for n, record in enumerate(draft.records) for member in record.members
    ]
    path, audit = draft.write(tmp_path)
    for shown in (audit, None):
        holds(PEOPLE, path, audit=shown)
    size, counts[0] = counts[0], K - 1
    path, audit = draft.write(tmp_path)
    assert set(verify(PEOPLE, path, audit=audit).failures) == {"audit", "identical", "leaks"}
    counts[0] = size + 1
    assert not verify(PEOPLE, draft.write(tmp_path)[0], audit=audit).ok


def test_concealment_needs_k_users_per_record(tmp_path):
    draft = ring(PEOPLE, K)
    draft.claim = {"name": "k-concealment", "k": K}
    path, audit = draft.write(tmp_path)
    for shown in (audit, None):
        holds(PEOPLE, path, audit=shown)
    record = draft.records[0]
    record.members = record.members[:1]
    record.boxes = merge(PEOPLE, record.members)
    verdict = verify(PEOPLE, draft.write(tmp_path)[0])
    assert "cover/too-few-users" in verdict.codes
    assert str(Finding("cover/too-few-users", {"n": 1, "k": K})) in verdict.problems


def test_concealment_needs_links_that_can_be_exchanged(tmp_path):
    draft = grouped(PEOPLE, K)
    draft.claim = {"name": "k-concealment", "k": K}
    path, audit = draft.write(tmp_path)
    assert verify(PEOPLE, path, audit=audit).ok
    one_way_street = draft.records[0]
    one_way_street.members = [*one_way_street.members, next(u for u in range(30) if u not in one_way_street.members)]
    one_way_street.boxes = merge(PEOPLE, one_way_street.members)
    path, audit = draft.write(tmp_path)
    assert verify(PEOPLE, path, audit=audit).failures == ("cover",)
    assert verify(PEOPLE, path).ok


def test_the_audit_of_a_release_in_memory_names_everybody():
    draft = grouped(PEOPLE, K)
    lost = draft.records.pop()
    draft.suppressed = int(PEOPLE.counts[lost.owner])
    verdict = verify(PEOPLE, in_memory(draft))
    assert "audit" in verdict.checked
    assert "audit" not in verdict.failures


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_an_audit_may_hold_either_kind_of_string(kind, tmp_path):
    draft = grouped(PEOPLE, K)
    table = draft.audit()
    table = table.cast(pa.schema([("record", pa.int64()), ("owner", kind), ("member", kind)]))
    holds(PEOPLE, draft.write(tmp_path)[0], audit=table)


def test_nothing_of_the_data_is_in_the_verdict(tmp_path):
    names = [f"canary-{n:03d}" for n in range(len(PEOPLE))]
    people = people_of(LISTS, labels=names)
    draft = ring(people, K)
    draft.records[0] = Record(draft.records[0].owner, [draft.records[0].owner], draft.records[1].boxes)
    draft.edit_table = lambda table: table.append_column("canary-column", pa.array(["canary-value"] * len(table)))
    draft.edit_audit = lambda rows: [*rows, (0, "canary-stranger", "canary-stranger")]
    path, audit = draft.write(tmp_path)
    verdict = verify(people, path, audit=audit)
    assert not verdict.ok
    text = json.dumps(verdict.to_dict())
    assert "canary" not in text
    assert str(FRAME.crs) not in text


COLUMN = {"encoding": "WKB", "geometry_types": ["Polygon"]}
GEO = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": COLUMN}}


def with_geometry(draft, *, spoil=lambda corners: corners, geo=GEO, **first):
    """Add the boxes as polygons, as GeoParquet has them; `first` may be given instead of the first polygon."""

    def edit(table):
        rings = []
        for row in table.to_pylist():
            x0, y0, x1, y1 = (float(row[name]) for name in ("x_min", "y_min", "x_max", "y_max"))
            lng, lat = draft.people.frame.degrees(np.array([x0, x1, x1, x0, x0]), np.array([y0, y0, y1, y1, y0]))
            points = spoil(np.stack([lng, lat], axis=1))
            rings.append(struct.pack("<BIII10d", 1, 3, 1, 5, *points.ravel()))
        rings[: len(first)] = first.values()
        table = table.append_column("geometry", pa.array(rings, pa.binary()))
        return table.replace_schema_metadata({"geo": json.dumps(geo)})

    draft.edit_table = edit
    return draft


def test_geometry_is_the_box_and_nothing_else(tmp_path):
    def codes(**change):
        return verify(PEOPLE, with_geometry(ring(PEOPLE, K), **change).write(tmp_path)[0]).codes

    assert codes() == codes(spoil=lambda corners: corners[[2, 1, 0, 3, 2]]) == ()
    assert codes(spoil=lambda corners: corners + 1e-9) == ("leaks/geometry-corners",)
    assert codes(geo={**GEO, "columns": {}, "by": "x"}) == ("leaks/geo-metadata",)
    assert {"leaks/missing-values", "leaks/geometry-form"} <= set(codes(first=None))
    bare = ring(PEOPLE, K)
    bare.edit_table = lambda table: table.append_column("geometry", pa.array([b"here"] * len(table), pa.binary()))
    assert set(verify(PEOPLE, bare.write(tmp_path)[0]).codes) == {"leaks/geometry-alone", "leaks/geometry-form"}


@pytest.mark.parametrize("bbox", [{}, {"bbox": [0, 0, 1, 1]}], ids=str)
def test_a_release_of_no_rows_with_geometry_does_not_hold(bbox, tmp_path):
    draft = with_geometry(ring(PEOPLE, K), geo={**GEO, "columns": {"geometry": {**COLUMN, **bbox}}})
    draft.records = []
    assert verify(PEOPLE, draft.write(tmp_path)[0]).failures == (("cover", "leaks") if bbox else ("cover",))


@pytest.mark.parametrize(
    ("before", "after", "codes"),
    [
        ("lat_0=40", "lat_0=40", ()),
        ("lat_0=40", "lat_0=39.9042", ("leaks/header-crs",)),
        ("+type", "+title=victim +type", ("leaks/header-crs",)),
    ],
)
def test_the_centre_of_the_projection_is_whole_and_has_no_title(before, after, codes, tmp_path):
    frame = Frame(crs=FRAME.crs.replace(before, after), cell_m=100, slot_s=60)
    people = toy_people(users=30, samples=8, frame=frame)
    assert verify(people, ring(people, K).write(tmp_path)[0]).codes == codes


def test_a_seeded_release_claims_nothing_and_is_checked_for_cover(tmp_path):
    draft = ring(PEOPLE, K)
    draft.claim, draft.seeded = {"name": "none", "why": "research"}, True
    path, audit = draft.write(tmp_path)
    verdict = verify(PEOPLE, path, audit=audit)
    assert verdict.ok
    assert str(verdict.claim) == "none (research)"
    assert verdict.figures["min_cover"] == K
    assert verify(PEOPLE, path, k=K + 1).failures == ("cover",)


@pytest.mark.parametrize(
    ("before", "after"),
    [("Z,", ","), (".000Z", ".250Z"), (".000Z", "Z"), ("T", " of "), ("T", " "), ("uid", "user"), ("\n0,", "\n00,")],
    ids=["no zone", "fractions", "no milliseconds", "no ISO", "no T", "other name", "leading zero"],
)
def test_csv_must_be_written_to_the_letter(before, after, tmp_path):
    path, _ = ring(PEOPLE, K).write(tmp_path, "release.csv")
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))
    verdict = verify(PEOPLE, path, k=K)
    assert {"integrity", "leaks"} <= set(verdict.failures)


# Boxes about some of a group only, as two-stage merging makes them


def in_pieces(people, k):
    """Return identical groups whose records have a box for every minute in which a member has a sample."""
    draft = grouped(people, k)
    for record in draft.records:
        whole = merge(people, record.members)
        minutes = sorted({sample[0] for member in record.members for sample in samples_of(people, member)})
        record.boxes = [
            [minute, minute, *space] for minute in minutes for t0, t1, *space in whole if t0 <= minute <= t1
        ]
    parameters = {"k": k, "merge": "two-stage"}
    draft.edit_shoal = lambda shoal: {**shoal, "method": "glove", "parameters": parameters}
    return draft


def test_pieces_of_a_group_hold_one_way_only(tmp_path):
    draft = in_pieces(PEOPLE, K)
    path, audit = draft.write(tmp_path)
    for shown in (None, audit):
        verdict = holds(PEOPLE, path, audit=shown)
        assert verdict.figures["min_cover"] == verdict.figures["min_group"] == K
    draft.edit_shoal = lambda shoal: shoal
    path, _ = draft.write(tmp_path)
    assert "identical" in verify(PEOPLE, path).failures


@pytest.mark.parametrize("user", [0, 1, len(PEOPLE) - 1])
def test_whoever_loses_a_minute_is_in_no_record_of_pieces(user, tmp_path):
    draft = in_pieces(PEOPLE, K)
    gone = samples_of(PEOPLE, user)[0]
    for record in draft.records:
        if user in record.members:
            record.boxes = [box for box in record.boxes if not box[0] <= gone[0] <= box[1]]
    path, _ = draft.write(tmp_path)
    verdict = verify(PEOPLE, path)
    assert "identical" in verdict.failures
    left_out = {m for m in range(len(PEOPLE)) if not any(holds_all(record, m) for record in draft.records)}
    assert user in left_out
    assert str(Finding("identical/left-out", {"n": len(left_out)})) in verdict.problems
    assert verdict.figures["min_cover"] == 0


def holds_all(record, user):
    return all(
        any(b[0] <= t <= b[1] and b[2] <= x <= b[3] and b[4] <= y <= b[5] for b in record.boxes)
        for t, x, y in samples_of(PEOPLE, user)
    )


def test_a_piece_without_anybody_is_a_lie(tmp_path):
    draft = in_pieces(PEOPLE, K)
    _, t, x, _, y, _ = draft.records[0].boxes[-1]
    for record in draft.records:
        if record.members == draft.records[0].members:
            record.boxes.append([t + 1, t + 1, x, x, y, y])
    path, _ = draft.write(tmp_path)
    assert "truth/box-without-sample" in verify(PEOPLE, path).codes
