"""What verify promises to its callers: from files, with every kind of release, and fail-closed."""

import json
import struct
import traceback
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.claim import Claim
from shoal.errors import CannotCheck, NotVerified, SettingsError
from shoal.frame import Frame
from shoal.layouts import Boxes
from shoal.reading.options import ReadOptions
from shoal.release import Members, Release
from shoal.seen import polygons as geometry
from shoal.seen.findings import Findings
from shoal.seen.grid import Grid
from shoal.verifier import boxes, verify
from shoal.verifier.header import _is_plain_claim, check_header
from shoal.verifier.subject import declared_suppressed
from tests.releases import FRAME, Record, bounds, grouped, merge, people_of, ring, samples_of, toy_people

K = 3
PEOPLE = toy_people(users=30, samples=8, seed=4)


def in_memory(draft, *, members=True):
    """Return a draft as the Release that a method would make."""
    counts = [len(record.boxes) for record in draft.records]
    sizes = [len(record.members) for record in draft.records]
    inside = Members(
        np.array([record.owner for record in draft.records]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.array([member for record in draft.records for member in record.members]),
        draft.people,
    )
    return Release(
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        layout=Boxes(np.array([box for record in draft.records for box in record.boxes], dtype=np.int32)),
        frame=draft.people.frame,
        method="by-hand",
        parameters={"k": draft.k},
        claim=Claim(**draft.claim),
        suppressed=draft.suppressed,
        members=inside if members else None,
    )


def write_events(people, path, extra=()):
    """Write the middle of every granule as an event, rows shuffled, each twice."""
    frame = people.frame
    owner = np.repeat(np.arange(len(people)), people.counts)
    lng, lat = frame.degrees((people.x + 0.5) * frame.cell_m, (people.y + 0.5) * frame.cell_m)
    table = pa.table(
        {
            "uid": people.labels.take(pa.array(owner)),
            "datetime": pa.array(frame.epoch_s(people.t) * 1000 + 7_000, pa.int64()).cast(pa.timestamp("ms", "UTC")),
            "lat": lat,
            "lng": lng,
        }
    )
    if extra:
        uid, times, lats, lngs = zip(*extra, strict=True)
        more = pa.table({"uid": uid, "datetime": pa.array(times, pa.timestamp("ms", "UTC")), "lat": lats, "lng": lngs})
        table = pa.concat_tables([table, more.cast(table.schema)])
    table = pa.concat_tables([table, table])
    pq.write_table(table.take(pa.array(np.random.default_rng(1).permutation(len(table)))), path)
    return path


@pytest.mark.parametrize("make", [ring, grouped])
@pytest.mark.parametrize("name", ["release.parquet", "release.csv"])
def test_from_files_to_a_verdict(make, name, tmp_path):
    path, audit = make(PEOPLE, K).write(tmp_path, name)
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    for shown in (audit, None):
        verdict = verify(events, path, audit=shown)
        assert verdict.ok, verdict.messages
        assert verdict.figures["users"] == len(PEOPLE)
        assert verdict.figures["samples"] == PEOPLE.samples
        json.dumps(verdict.to_dict())


def test_users_outside_the_rules_are_counted(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    events = write_events(PEOPLE, tmp_path / "events.parquet", extra=[(999, 1_700_000_000_000, 40.0, 116.0)])
    assert "cover" in verify(events, path).failures
    verdict = verify(events, path, audit=audit, options=ReadOptions(min_samples=2))
    assert verdict.ok, verdict.messages
    assert verdict.figures["users_outside"] == {"min_samples": 1}
    verdict = verify(events, path, audit=audit, options=ReadOptions(min_active_days=2, tz="Asia/Shanghai"))
    assert verdict.ok, verdict.messages
    assert verdict.figures["users_outside"] == {"min_active_days": 1}


def test_rows_without_a_place_in_the_projection_are_counted(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    antipode = (999, 1_700_000_000_000, -40.0, -64.0)
    events = write_events(PEOPLE, tmp_path / "events.parquet", extra=[antipode])
    verdict = verify(events, path, audit=audit)
    assert verdict.ok, verdict.messages
    assert verdict.figures["users_outside"] == {"no place in the CRS": 1}


@pytest.mark.parametrize(
    ("claim", "plain"),
    [
        ({"name": "cover", "k": 2}, True),
        ({"name": "cover"}, False),
        ({"name": "magic", "k": 2}, False),
        ({"name": "cover", "k": 2, "by": "me"}, False),
        ({"name": "none"}, True),
        ({"name": "none", "why": "research"}, True),
        ({"name": "none", "why": "for a friend"}, False),
        ({"name": "kte-cover", "k": 2, "tau_s": 600, "epsilon_s": 600, "leakage_share": 0.013}, True),
        ({"name": "kte-cover", "k": 2, "tau_s": 600, "epsilon_s": 600, "leakage_share": 0.0131}, False),
    ],
)
def test_plain_claims(claim, plain):
    assert _is_plain_claim(claim) == plain


def test_degrees_need_a_release_with_geography():
    with pytest.raises(CannotCheck, match="--crs"):
        Grid(None, 100, 60).cells(np.zeros(1), np.zeros(1))


def test_how_much_is_said_to_be_suppressed():
    in_memory = SimpleNamespace(counts=None, suppressed=5)
    written = SimpleNamespace(counts={"samples_suppressed": 1_200}, suppressed=0)
    assert declared_suppressed(in_memory, None) == (5, 0)
    assert declared_suppressed(in_memory, 7) == (7, 0)
    assert declared_suppressed(written, None) == (1_200, 50)
    assert declared_suppressed(written, 1_234) == (1_234, 0)


def test_which_windows_are_checked():
    def asked(tau, epsilon, claim, tau_s=None):
        findings = Findings()
        header = SimpleNamespace(claim=claim, tau_s=claim.tau_s or tau_s, epsilon_s=claim.epsilon_s)
        return boxes._asked_windows(findings, 2, tau, epsilon, header), findings.messages

    cover = Claim("kte-cover", k=2, tau_s=3600)
    assert asked(None, None, Claim("cover", k=2)) == (None, [])
    assert asked("2h", None, cover)[0].tau_s == 7200
    assert asked("2h", None, cover)[1] == asked(None, None, cover)[1] == []
    found, said = asked("30min", None, cover)
    assert found.tau_s == 3600
    assert said == ["The release claims longer windows than asked for; these were checked."]
    with pytest.raises(SettingsError, match="another length"):
        asked("30min", None, Claim("kte-anonymity", k=2, tau_s=3600, epsilon_s=3600))
    with pytest.raises(SettingsError, match="about windows of a length"):
        asked(None, "30min", Claim("cover", k=2))
    with pytest.raises(SettingsError, match="at least one second"):
        asked(0, None, cover)


def test_which_k_is_checked():
    def asked(k, stated, name="cover", why=None):
        findings = Findings()
        claim = SimpleNamespace(name=name, why=why)
        return boxes._asked_k(findings, k, SimpleNamespace(k=stated, claim=claim)), findings.messages

    assert asked(None, 3) == (3, [])
    assert asked(5, 3) == (5, [])
    assert asked(5, None) == (5, [])
    assert asked(None, None, "none", "research") == (1, [])
    assert asked(2, 3) == (3, ["The release claims a larger k than asked for; the larger one was checked."])
    with pytest.raises(CannotCheck, match="give --k"):
        asked(None, None, "none", "unclaimed")
    with pytest.raises(CannotCheck, match="give --k"):
        asked(None, None)
    with pytest.raises(SettingsError, match="at least 1"):
        asked(0, None)


def test_rows_outside_the_bounding_box_are_outside_the_claim(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    events = write_events(PEOPLE, tmp_path / "events.parquet", extra=[(1, 1_700_000_000_000, 10.0, 10.0)])
    assert not verify(events, path).ok
    verdict = verify(events, path, audit=audit, options=ReadOptions(bbox=(115, 39, 117, 41)))
    assert verdict.ok, verdict.messages
    assert sum(verdict.figures["rows_outside"].values()) == 2


def test_gridded_data_without_geography(tmp_path):
    frame = Frame(crs=None, cell_m=500, slot_s=1800)
    people = toy_people(users=25, frame=frame, start=480)
    path, audit = grouped(people, K).write(tmp_path)
    assert pq.read_schema(path).names[-1] == "datetime"
    assert verify(people, path, audit=audit).ok
    owner = np.repeat(np.arange(len(people)), people.counts)
    table = pa.table({"uid": people.labels.take(pa.array(owner)), "d": people.t // 48, "t": people.t % 48})
    table = table.append_column("x", pa.array(people.x)).append_column("y", pa.array(people.y))
    verdict = verify(_parquet(table, tmp_path), path, audit=audit)
    assert verdict.ok, verdict.messages


def _parquet(table, folder):
    pq.write_table(table, folder / "events.parquet")
    return folder / "events.parquet"


@pytest.mark.parametrize("make", [ring, grouped])
def test_a_release_in_memory(make):
    draft = make(PEOPLE, K)
    for members in (True, False):
        verdict = verify(PEOPLE, in_memory(draft, members=members))
        assert verdict.ok, verdict.messages
        assert not {"integrity", "leaks"} & set(verdict.checked)
        assert any("Integrity not checked" in message for message in verdict.messages)
        assert ("audit" in verdict.checked) == members


def test_a_slot_origin_is_honoured(tmp_path):
    moved = Frame(crs=FRAME.crs, cell_m=100, slot_s=60, origin_slot=1000)
    people = people_of([samples_of(PEOPLE, u) for u in range(len(PEOPLE))], frame=moved)
    draft = ring(people, K)
    path, audit = draft.write(tmp_path)
    assert verify(people, path, audit=audit).ok
    assert verify(people, in_memory(draft)).ok
    draft.people = people_of([samples_of(PEOPLE, u) for u in range(len(PEOPLE))], frame=FRAME)
    assert "cover" in verify(people, draft.write(tmp_path)[0]).failures


def test_more_may_be_asked_for_but_not_less(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    assert verify(PEOPLE, path, k=2, audit=audit).figures["k"] == K
    verdict = verify(PEOPLE, path, k=K + 1, audit=audit)
    assert verdict.failures == ("cover",)
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
    draft = ring(PEOPLE, K)
    path = tmp_path / "other.parquet"
    pq.write_table(draft.table(), path)
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    with pytest.raises(CannotCheck, match="--crs"):
        verify(events, path, k=K)
    options = ReadOptions(cell=100, slot=60)
    with pytest.raises(CannotCheck, match="--k"):
        verify(events, path, options=options, crs=FRAME.crs)
    verdict = verify(events, path, k=K, options=options, crs=FRAME.crs)
    assert verdict.ok, verdict.messages
    assert "integrity" not in verdict.checked
    assert any("Integrity not checked" in message for message in verdict.messages)
    identical = verify(events, path, options=options, crs=FRAME.crs, claim=Claim("k-anonymity", k=K))
    assert identical.failures == ("identical",)


def test_the_grid_of_another_tools_release_may_all_be_in_the_options(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(ring(PEOPLE, K).table(), path)
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    verdict = verify(events, path, k=K, options=ReadOptions(crs=FRAME.crs, cell=100, slot=60))
    assert verdict.ok, verdict.messages
    with pytest.raises(CannotCheck, match="--cell and --slot"):
        verify(events, path, k=K, options=ReadOptions(crs=FRAME.crs, cell=100))


def test_a_claim_given_must_be_the_files_own(tmp_path):
    path, _ = ring(PEOPLE, K).write(tmp_path)
    assert verify(PEOPLE, path, claim=Claim("cover", k=K)).ok
    with pytest.raises(SettingsError):
        verify(PEOPLE, path, claim=Claim("none"))


def test_what_can_not_be_read_can_not_be_checked(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    with pytest.raises(CannotCheck):
        verify(PEOPLE, tmp_path / "nowhere.parquet")
    with pytest.raises(CannotCheck):
        verify(tmp_path / "nowhere.parquet", path)
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CannotCheck):
        verify(PEOPLE, broken)
    with pytest.raises(CannotCheck):
        verify(PEOPLE, path, audit=broken)
    other = people_of([samples_of(PEOPLE, 0)], frame=Frame(crs=FRAME.crs, cell_m=200, slot_s=60))
    with pytest.raises(CannotCheck, match="another grid"):
        verify(other, path, audit=audit)


def test_points_can_not_be_checked(tmp_path):
    path = tmp_path / "points.parquet"
    table = ring(PEOPLE, K).table().select(["uid", "datetime", "lat", "lng"])
    pq.write_table(table, path)
    with pytest.raises(CannotCheck, match="points"):
        verify(PEOPLE, path, k=K)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"shoal": {}}', "[" * 100_000], ids=range(5))
def test_a_broken_manifest_is_a_failure(text, tmp_path):
    path, _ = ring(PEOPLE, K).write(tmp_path)
    (tmp_path / "release.parquet.manifest.json").write_text(text)
    assert verify(PEOPLE, path).failures == ("integrity",)


MALFORMED = {
    "a member is missing": lambda manifest: manifest.pop("seeded"),
    "a member too many": lambda manifest: manifest.update(note=1),
    "seeded is no truth value": lambda manifest: manifest.update(seeded=0),
    "counts are a list": lambda manifest: manifest.update(counts=[1, 2, 3, 4]),
    "files are a list": lambda manifest: manifest.update(files=list(manifest["files"])),
    "the shoal object is text": lambda manifest: manifest.update(shoal="k-anonymity"),
    "a count is missing": lambda manifest: manifest["counts"].pop("samples_created"),
    "a count too many": lambda manifest: manifest["counts"].update(users=1),
    "a count is a fraction": lambda manifest: manifest["counts"].update(samples_created=0.0),
    "a count is a truth value": lambda manifest: manifest["counts"].update(samples_created=False),
    "a count is below zero": lambda manifest: manifest["counts"].update(samples_suppressed=-1),
    "a hash is no text": lambda manifest: manifest["files"].update({"release.parquet": 7}),
}


@pytest.mark.parametrize("fault", MALFORMED)
def test_a_malformed_manifest_is_told_from_a_false_one(fault, tmp_path):
    path, _ = ring(PEOPLE, K).write(tmp_path)
    file = tmp_path / "release.parquet.manifest.json"
    manifest = json.loads(file.read_text())
    MALFORMED[fault](manifest)
    file.write_text(json.dumps(manifest))
    verdict = verify(PEOPLE, path)
    assert verdict.failures == ("integrity",)
    assert "The manifest is malformed: its members are not those of the format." in verdict.messages


@pytest.mark.parametrize("stated", [None, "null"], ids=["whole", "null"])
def test_without_its_manifest_it_is_no_release(stated, tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    (tmp_path / "release.parquet.manifest.json").unlink()
    if stated is not None:
        pq.write_table(pq.read_table(path).replace_schema_metadata({"shoal": stated}), path)
    for shown in (audit, None):
        verdict = verify(PEOPLE, path, k=K, audit=shown)
        assert verdict.failures == ("integrity",)
        assert "The manifest is missing: without one it is no release." in verdict.messages


def test_where_nobody_states_suppression_there_is_none(tmp_path):
    draft = suppressing(ring)
    path = tmp_path / "other.parquet"
    pq.write_table(draft.table(), path)
    assert set(verify(draft.people, path, k=K, audit=draft.audit()).failures) == {"cover", "truth"}
    assert verify(draft.people, path, k=K, audit=draft.audit(), suppressed=1).ok
    assert verify(draft.people, path, k=K).failures == ("cover",)


def test_reading_options_are_keywords_too(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    events = write_events(PEOPLE, tmp_path / "events.parquet", extra=[(999, 1_700_000_000_000, 40.0, 116.0)])
    verdict = verify(events, path, audit=audit, min_samples=2, tz="Asia/Shanghai")
    assert verdict.ok, verdict.messages
    verdict = verify(events, path, options=ReadOptions(tz="Asia/Shanghai"), min_active_days=2)
    assert verdict.figures["users_outside"] == {"min_active_days": 1}
    with pytest.raises(SettingsError, match="min_sample"):
        verify(events, path, min_sample=2)
    other = tmp_path / "other.parquet"
    pq.write_table(ring(PEOPLE, K).table(), other)
    assert verify(events, other, k=K, crs=FRAME.crs, cell="100m", slot=60, min_samples=2).ok


@pytest.mark.parametrize("claim", ["", "[1]", '{"format": 2}', '{"format": 1, "cell_m": 0}'])
def test_a_shoal_object_that_makes_no_sense_is_a_failure(claim, tmp_path):
    path = tmp_path / "release.parquet"
    pq.write_table(ring(PEOPLE, K).table().replace_schema_metadata({"shoal": claim}), path)
    verdict = verify(PEOPLE, path)
    assert not verdict.ok
    assert verdict.failures == ("integrity",)


def suppressing(make):
    """Return people of whom one has a sample far away, and a release from which it was taken out everywhere."""
    lists = [samples_of(PEOPLE, user) for user in range(len(PEOPLE))]
    draft = make(people_of(lists), K)
    far = (lists[5][-1][0] + 1, 900, 900)
    draft.people = people_of([[*own, far] if user == 5 else own for user, own in enumerate(lists)])
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
    verdict = verify(people, path, audit=audit)
    assert verdict.ok, verdict.messages
    assert verdict.figures["suppressed_samples"] == 1
    assert verify(people, path, audit=audit, suppressed=2).failures == ("suppression",)
    assert verify(people, path, audit=audit, max_suppressed=0.001).failures == ("suppression",)
    assert verify(people, in_memory(draft)).ok
    assert verify(people, path, max_suppressed=0.001).failures[-1] == "suppression"
    for shown in (path, in_memory(draft, members=False)):
        if make is ring:
            with pytest.raises(CannotCheck, match="audit"):
                verify(people, shown)
        else:
            verdict = verify(people, shown)
            assert verdict.ok, verdict.messages
            assert "suppression" not in verdict.checked
            assert "suppression, which need the audit file" in verdict.messages[-1]


def test_cover_with_suppression_needs_the_audit_even_if_all_samples_are_covered(tmp_path):
    draft = ring(PEOPLE, K)
    draft.suppressed = 1
    with pytest.raises(CannotCheck, match="audit"):
        verify(PEOPLE, draft.write(tmp_path)[0])


def declared(draft, samples):
    draft.suppressed = samples
    return draft


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
    draft = declared(grouped(PEOPLE, K), stated)
    sabotage(draft)
    verdict = verify(PEOPLE, draft.write(tmp_path)[0])
    assert "identical" in verdict.failures
    assert not any("holds" in message for message in verdict.messages)


def test_more_is_missing_than_was_stated(tmp_path):
    draft = grouped(PEOPLE, K)
    members = draft.records[0].members
    draft.records = [record for record in draft.records if record.members != members]
    missing = int(PEOPLE.counts[members].sum())
    assert verify(PEOPLE, declared(draft, missing).write(tmp_path)[0]).ok
    verdict = verify(PEOPLE, declared(draft, 3).write(tmp_path)[0])
    assert verdict.failures == ("suppression",)


def test_what_was_skipped_is_said_with_the_result(tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    assert verify(PEOPLE, path, audit=audit).messages[-1].endswith(f"checked with k = {K}.")
    assert "except truth of members and suppression" in verify(PEOPLE, path).messages[-1]
    pq.write_table(ring(PEOPLE, K).table(), path)
    (tmp_path / "release.parquet.manifest.json").unlink()
    assert "except integrity" in verify(PEOPLE, path, k=K, audit=audit).messages[-1]
    assert "except integrity and leaks" in verify(PEOPLE, in_memory(ring(PEOPLE, K))).messages[-1]


def copies_of_one(count_column):
    """Return a release in which one person hides among copies of her own record, and the others among each other."""
    lists = [samples_of(PEOPLE, user) for user in range(len(PEOPLE))]
    lists[0] = [(t, x + 500, y) for t, x, y in lists[0]]  # nobody's box holds her but her own
    people = people_of(lists)
    victim = next(user for user in range(len(people)) if people.user(user)[0, 1] >= 500)
    others = [user for user in range(len(people)) if user != victim]
    joined = Record(others[0], others, merge(people, others))
    alone = Record(victim, [victim], merge(people, [victim]))
    draft = ring(people, K)
    if count_column:
        draft.records, counts = [joined, alone], [len(others) - K + 1, K]
        draft.edit_table = lambda table: table.append_column(
            "count", pa.array([counts[uid] for uid in table["uid"].to_pylist()], pa.int32())
        )
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
        assert verdict.figures["users_short"] == verdict.figures["min_cover"] == 1


def test_counts_belong_to_identical_groups_only(tmp_path):
    draft = ring(PEOPLE, K)
    draft.edit_table = lambda table: table.append_column("count", pa.array([K] * len(table), pa.int32()))
    assert "leaks" in verify(PEOPLE, draft.write(tmp_path)[0]).failures


@pytest.mark.parametrize("kind", ["release", "audit"])
def test_labels_do_not_come_out_through_tracebacks(kind, tmp_path):
    path, audit = ring(PEOPLE, K).write(tmp_path)
    broken = tmp_path / "broken.csv"
    broken.write_text("record,owner,member\n0,a,a\n0,canary\n")
    with pytest.raises(CannotCheck) as caught:
        verify(PEOPLE, broken if kind == "release" else path, audit=broken if kind == "audit" else audit)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_a_user_who_is_not_published_counts_as_suppressed(tmp_path):
    draft = grouped(PEOPLE, K)
    group = draft.records[0].members
    draft.records = [record for record in draft.records if record.members != group]
    draft.suppressed = int(PEOPLE.counts[group].sum())
    path, audit = draft.write(tmp_path)
    verdict = verify(PEOPLE, path, audit=audit)
    assert verdict.ok, verdict.messages
    assert verdict.figures["suppressed_samples"] == draft.suppressed


def test_nothing_published_fails(tmp_path):
    draft = grouped(PEOPLE, K)
    draft.records, draft.suppressed = [], PEOPLE.samples
    path, audit = draft.write(tmp_path)
    assert {"identical", "suppression"} <= set(verify(PEOPLE, path, audit=audit, max_suppressed=1.0).failures)
    assert "identical" in verify(PEOPLE, path).failures


def test_compact_groups(tmp_path):
    draft = grouped(PEOPLE, K)
    size = {tuple(record.members): len(record.members) for record in draft.records}
    draft.records = list({tuple(record.members): record for record in draft.records}.values())
    counts = {n: size[tuple(record.members)] for n, record in enumerate(draft.records)}
    labels = PEOPLE.labels.cast(pa.string()).to_pylist()
    draft.edit_table = lambda table: table.append_column(
        "count", pa.array([counts[uid] for uid in table["uid"].to_pylist()], pa.int32())
    )
    draft.edit_audit = lambda _: [
        (n, labels[member], labels[member]) for n, record in enumerate(draft.records) for member in record.members
    ]
    path, audit = draft.write(tmp_path)
    for shown in (audit, None):
        verdict = verify(PEOPLE, path, audit=shown)
        assert verdict.ok, verdict.messages
    counts[0] = K - 1
    path, audit = draft.write(tmp_path)
    assert set(verify(PEOPLE, path, audit=audit).failures) == {"audit", "identical", "leaks"}
    counts[0] = size[tuple(draft.records[0].members)] + 1
    assert not verify(PEOPLE, draft.write(tmp_path)[0], audit=audit).ok


def test_concealment_needs_k_users_per_record(tmp_path):
    draft = ring(PEOPLE, K)
    draft.claim = {"name": "k-concealment", "k": K}
    path, audit = draft.write(tmp_path)
    assert verify(PEOPLE, path, audit=audit).ok
    assert verify(PEOPLE, path).ok
    record = draft.records[0]
    record.members = record.members[:1]
    record.boxes = merge(PEOPLE, record.members)
    messages = verify(PEOPLE, draft.write(tmp_path)[0]).messages
    assert f"1 records hide fewer than {K} users." in messages


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
    verdict = verify(PEOPLE, draft.write(tmp_path)[0], audit=table)
    assert verdict.ok, verdict.messages


def test_nothing_of_the_data_is_in_the_verdict(tmp_path):
    names = [f"canary-{n:03d}" for n in range(len(PEOPLE))]
    people = people_of([samples_of(PEOPLE, u) for u in range(len(PEOPLE))], labels=names)
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


def with_geometry(draft, *, spoil=lambda corners: corners, geo=None):
    """Add the boxes as polygons, as GeoParquet has them."""

    def edit(table):
        rings = []
        for row in table.to_pylist():
            x0, y0, x1, y1 = (float(row[name]) for name in ("x_min", "y_min", "x_max", "y_max"))
            lng, lat = draft.people.frame.degrees(np.array([x0, x1, x1, x0, x0]), np.array([y0, y0, y1, y1, y0]))
            points = spoil(np.stack([lng, lat], axis=1))
            rings.append(struct.pack("<BIII10d", 1, 3, 1, 5, *points.ravel()))
        column = {"encoding": "WKB", "geometry_types": ["Polygon"]}
        stated = geo or {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
        table = table.append_column("geometry", pa.array(rings, pa.binary()))
        return table.replace_schema_metadata({"geo": json.dumps(stated)})

    draft.edit_table = edit
    return draft


def test_geometry_is_the_box_and_nothing_else(tmp_path):
    assert verify(PEOPLE, with_geometry(ring(PEOPLE, K)).write(tmp_path)[0]).ok
    turned = with_geometry(ring(PEOPLE, K), spoil=lambda corners: corners[[2, 1, 0, 3, 2]])
    assert verify(PEOPLE, turned.write(tmp_path)[0]).ok
    nudged = with_geometry(ring(PEOPLE, K), spoil=lambda corners: corners + 1e-9)
    assert verify(PEOPLE, nudged.write(tmp_path)[0]).failures == ("leaks",)
    told = with_geometry(
        ring(PEOPLE, K), geo={"version": "1.1.0", "primary_column": "geometry", "columns": {}, "by": "x"}
    )
    assert verify(PEOPLE, told.write(tmp_path)[0]).failures == ("leaks",)
    bare = ring(PEOPLE, K)
    bare.edit_table = lambda table: table.append_column("geometry", pa.array([b"here"] * len(table), pa.binary()))
    assert verify(PEOPLE, bare.write(tmp_path)[0]).failures == ("leaks",)
    missing = with_geometry(ring(PEOPLE, K))
    whole = missing.edit_table
    missing.edit_table = lambda table: without_first(whole(table))
    assert "leaks" in verify(PEOPLE, missing.write(tmp_path)[0]).failures


def without_first(table):
    values = table["geometry"].to_pylist()
    return table.set_column(
        table.column_names.index("geometry"), "geometry", pa.array([None, *values[1:]], pa.binary())
    )


@pytest.mark.parametrize("bbox", [None, [0, 0, 1, 1]])
def test_a_release_of_no_rows_with_geometry_does_not_hold(bbox, tmp_path):
    column = {"encoding": "WKB", "geometry_types": ["Polygon"], **({"bbox": bbox} if bbox else {})}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    draft = with_geometry(ring(PEOPLE, K), geo=geo)
    draft.records = []
    assert verify(PEOPLE, draft.write(tmp_path)[0]).failures == (("cover", "leaks") if bbox else ("cover",))


def test_polygons_are_read_from_slices():
    rows = [struct.pack("<BIII10d", 1, 3, 1, 5, *range(n, n + 10)) for n in range(6)]
    column = pa.array([b"x", *rows]).slice(1)
    assert geometry._parse(column)[:, 0, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert len(geometry._parse(column[:0])) == 0
    assert geometry._parse(pa.array([rows[0], rows[1] + b"!", rows[2][:-1]])) is None


def test_a_whole_centre_of_the_projection_may_have_a_point(tmp_path):
    frame = Frame(crs=FRAME.crs.replace("lat_0=40", "lat_0=40.0"), cell_m=100, slot_s=60)
    people = toy_people(users=30, samples=8, frame=frame)
    assert verify(people, ring(people, K).write(tmp_path)[0]).ok


@pytest.mark.parametrize(
    ("crs", "plain"),
    [
        (None, True),
        ("EPSG:32650", True),
        ("ESRI:102028", True),
        ("+proj=utm +zone=50 +south +datum=WGS84 +units=m +no_defs +type=crs", True),
        ("+proj=lcc +lat_0=46.5 +lon_0=3 +lat_1=49 +lat_2=44 +x_0=700000 +ellps=GRS80 +towgs84=0,0,-1.5", True),
        ("+proj=laea +lat_0=-14.0 +lon_0=0 +datum=WGS84", True),
        ("+proj=laea +lat_0=14.5 +lon_0=0 +datum=WGS84", False),
        ("+proj=laea +lat_0=14d30 +lon_0=0 +datum=WGS84", False),
        ("+proj=laea +lat_0=1e1 +lon_0=0 +datum=WGS84", False),
        ("+proj=laea +lat_0=14 +title=victim", False),
        ("+proj=laea +lat_0=14 +lat_0=15", False),
        ("+proj=laea  +lat_0=14", False),
        ("+proj=laea +no_defs=5", False),
        ("+proj=laea +units=km", False),
        ("EPSG:32650 ", False),
        ("victim:13800138000", False),
        ('PROJCRS["x",REMARK["victim"]]', False),
        ("", False),
    ],
)
def test_a_crs_says_nothing_but_the_projection(crs, plain):
    findings = Findings()
    check_header(findings, {**ring(PEOPLE, K).shoal(), "crs": crs})
    assert findings.failures == (set() if plain else {"leaks"})


@pytest.mark.parametrize(
    ("change", "plain"),
    [
        ({"method": "k-scale", "parameters": {"k": K, "constraint": "k-pick", "candidates": 300}}, True),
        ({"method": "k-scale", "parameters": {"k": K, "constraint": "victim"}}, False),
        ({"method": "k-scale", "parameters": {"k": K, "candidates": 40.7}}, False),
        ({"parameters": {"k": K, "candidates": 300}}, False),
        ({"parameters": {"k": K, "victim": 13800138000, "lat": 40.7}}, False),
        ({"parameters": {"k": K + 1}}, False),
        ({"parameters": {"k": None}}, False),
        ({"parameters": []}, False),
        ({"parameters": {}}, True),
        ({"method": ["x"]}, False),
        ({"method": "Mr-X"}, False),
        ({"claim": {"name": "cover", "k": K, "why": "research"}}, False),
        ({"claim": {"name": "none", "why": "research"}}, True),
        ({"claim": {"name": "none", "why": "victim"}}, False),
    ],
)
def test_a_header_says_nothing_but_public_settings(change, plain):
    findings = Findings()
    check_header(findings, {**ring(PEOPLE, K).shoal(), **change})
    assert findings.failures == (set() if plain else {"leaks"})


@pytest.mark.parametrize(("before", "after"), [("lat_0=40", "lat_0=39.9042"), ("+type", "+title=victim +type")])
def test_an_exact_centre_or_a_title_of_the_projection_is_a_leak(before, after, tmp_path):
    frame = Frame(crs=FRAME.crs.replace(before, after), cell_m=100, slot_s=60)
    people = toy_people(users=30, samples=8, frame=frame)
    assert verify(people, ring(people, K).write(tmp_path)[0]).failures == ("leaks",)


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
        minutes = {}
        for member in record.members:
            for sample in samples_of(people, member):
                minutes.setdefault(sample[0], []).append(sample)
        record.boxes = [bounds(samples) for _, samples in sorted(minutes.items())]
    parameters = {"k": k, "merge": "two-stage"}
    draft.edit_shoal = lambda shoal: {**shoal, "method": "glove", "parameters": parameters}
    return draft


def test_pieces_of_a_group_hold_one_way_only(tmp_path):
    draft = in_pieces(PEOPLE, K)
    path, audit = draft.write(tmp_path)
    for shown in (None, audit):
        verdict = verify(PEOPLE, path, audit=shown)
        assert verdict.ok, verdict.messages
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
    assert f"{len(left_out):,} users are not inside the record of a group." in verdict.messages
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
    assert "truth" in verify(PEOPLE, path).failures
