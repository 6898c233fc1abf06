"""Releases made to be believed: raw data, loss and hidden words behind a form that is in order."""

import copy
import json
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.errors import CannotCheck, SettingsError
from shoal.seen.codes import NOT_CHECKED, PROBLEMS
from shoal.seen.file import open_release_file
from shoal.seen.original import NO_PLACE, from_trajectories
from shoal.seen.people import crowd_of
from shoal.verifier import boxes, verify
from tests.releases import Draft, Record, bounds, grouped, merge, ring, samples_of, shuffled, toy_people

K = 4
PEOPLE = toy_people()
GROUPS = grouped(PEOPLE, K)
LABELS = PEOPLE.labels.cast(pa.string()).to_pylist()
INSTANT = pa.timestamp("ms", "UTC")


def raw_with_times(claim):
    """Everybody's raw data, and an audit in which others were merged into it for a minute of 1970."""
    records = shuffled([Record(user, [user], merge(PEOPLE, [user])) for user in range(len(PEOPLE))], 5)
    rows = []
    for number, record in enumerate(records):
        others = [(record.owner + step) % len(PEOPLE) for step in range(1, K)]
        rows += [(number, LABELS[record.owner], LABELS[record.owner], None, None)]
        rows += [(number, LABELS[record.owner], LABELS[other], 0, 60_000) for other in others]
    record, owner, member, start, end = zip(*rows, strict=True)
    times = {"t_start": pa.array(start, INSTANT), "t_end": pa.array(end, INSTANT)}
    table = pa.table({"record": pa.array(record, pa.int64()), "owner": list(owner), "member": list(member), **times})
    return Draft(PEOPLE, records, claim, K), table


@pytest.mark.parametrize("name", ["cover", "k-concealment", "k-anonymity", "none"])
@pytest.mark.parametrize("tau", [None, "1h"])
def test_a_member_for_a_minute_hides_nobody(name, tau, tmp_path):
    draft, audit = raw_with_times({"name": name} if name == "none" else {"name": name, "k": K})
    verdict = verify(PEOPLE, draft.write(tmp_path)[0], audit=audit, k=K, tau=tau)
    assert set(verdict.failures) & {"truth", "cover", "identical", "windows"}


def haunted(people, level):
    """Two people's raw data, published for groups of whom all others are suppressed; others are merged."""
    records, lost = [], 0
    for group in sorted({tuple(sorted(record.members)) for record in grouped(people, K).records}):
        ghosts = group[1:] if len(records) < 2 * K else ()
        lost += sum(len(samples_of(people, ghost)) for ghost in ghosts)
        boxes = merge(people, group[:1] if ghosts else group)
        records += [Record(owner, list(group), copy.deepcopy(boxes)) for owner in group]
    draft = Draft(people, shuffled(records, 3), {"name": "k-anonymity", "k": K}, K, suppressed=lost)
    if level == "group":
        glove = {"method": "glove", "parameters": {"k": K, "merge": "two-stage"}}
        draft.edit_shoal = lambda shoal: {**shoal, **glove}
    return draft


@pytest.mark.parametrize("level", ["group", "member"])
def test_people_of_whom_nothing_is_published_hide_nobody(level, tmp_path):
    path, audit = haunted(PEOPLE, level).write(tmp_path)
    verdict = verify(PEOPLE, path, audit=audit)
    assert PROBLEMS["identical/too-few-users"].format(n=2, k=K) in verdict.problems


def raw_in_common(people, header):
    """Groups whose records are all the raw samples of their members, one box each."""
    draft = grouped(people, K)
    for record in draft.records:
        slots = {}
        for sample in sorted(sample for member in record.members for sample in samples_of(people, member)):
            slots.setdefault(sample[0], []).append(sample)
        record.boxes = [bounds(samples) for samples in slots.values()]
    draft.edit_shoal = lambda shoal: {**shoal, **header}
    return draft


@pytest.mark.parametrize("merge", ["two-stage", "k-merge"])
@pytest.mark.parametrize("name", ["k-anonymity", "k-concealment", "cover"])
def test_no_word_of_a_header_makes_raw_samples_anonymous(merge, name, tmp_path):
    draft = raw_in_common(PEOPLE, {"method": "glove", "parameters": {"k": K, "merge": merge}})
    draft.claim = {"name": name, "k": K}
    path, audit = draft.write(tmp_path)
    for shown in (audit, None):
        verdict = verify(PEOPLE, path, audit=shown)
        assert verdict.result == "DOES NOT HOLD"
        assert set(verdict.codes) & {"identical/area-of-few", "truth/member-elsewhere", "truth/member-without-sample",
                                     "identical/left-out", "cover/too-few-records"}  # fmt: skip


@pytest.mark.parametrize("compact", [True, False])
def test_groups_are_as_large_as_they_say(compact, tmp_path):
    groups = [*(list(range(start, start + 4)) for start in range(0, 52, 4)), list(range(52, 60))]

    def made(sizes):
        copies = [1 if compact else size for size in sizes]
        records = [Record(g[0], g, merge(PEOPLE, g)) for g, n in zip(groups, copies, strict=True) for _ in range(n)]
        order = shuffled(range(len(records)), 4)
        draft = Draft(PEOPLE, [records[n] for n in order], {"name": "k-anonymity", "k": K}, K)
        counts = [sizes[n] for n in order] if compact else []
        if compact:
            draft.edit_table = lambda table: table.append_column(
                "count", pa.array([counts[uid] for uid in table["uid"].to_pylist()], pa.int32())
            )
        return verify(PEOPLE, draft.write(tmp_path)[0])

    assert made([4] * 13 + [8]).ok
    verdict = made([8] + [4] * 13)
    assert verdict.failures == ("identical",)
    assert PROBLEMS["identical/too-many-people"].format(n=1) in verdict.problems


# What a file may not carry besides its rows


@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data[:300] + data[300:].replace(b"\n", b"\r", 1),
        lambda data: data[:-1].replace(b"\n", b"\r\n", 1),
        lambda data: data.replace(b"\n", b"\r"),
        lambda data: data[:-1] + b"\r",
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data[:-1],
    ],
    ids=range(6),
)
def test_lines_of_text_end_one_way(edit, tmp_path):
    draft = GROUPS.copy()
    draft.edit_bytes = edit
    verdict = verify(PEOPLE, draft.write(tmp_path, "release.csv")[0])
    assert verdict.failures == ("leaks",)
    assert "leaks/stray-bytes" in verdict.codes


def test_a_text_as_it_is_written_passes(tmp_path):
    assert verify(PEOPLE, GROUPS.write(tmp_path, "release.csv")[0]).ok


def test_no_other_file_comes_with_a_release(tmp_path):
    draft = GROUPS.copy()
    (tmp_path / "raw.csv").write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    draft.edit_manifest = lambda manifest: {**manifest, "files": {**manifest["files"], "raw.csv": empty}}
    verdict = verify(PEOPLE, draft.write(tmp_path)[0])
    assert verdict.codes == ("integrity/file-names",)


@pytest.mark.parametrize("change", [{"format": True}, {"cell_m": 100.0}, {"claim": {"name": "k-anonymity", "k": 4.0}}])
def test_the_manifest_says_the_same_in_the_same_words(change, tmp_path):
    draft = GROUPS.copy()
    draft.edit_manifest = lambda manifest: {**manifest, "shoal": {**manifest["shoal"], **change}}
    assert verify(PEOPLE, draft.write(tmp_path)[0]).failures == ("integrity",)


def test_places_beyond_the_projection_are_no_numbers(tmp_path):
    draft = GROUPS.copy()
    for record in draft.records:
        record.boxes = [[t0, t1, x0, 20_000_000, y0, y1] for t0, t1, x0, _, y0, y1 in record.boxes]
    path, audit = draft.write(tmp_path)
    assert np.isinf(pq.read_table(path)["lat"].to_numpy()).all()
    verdict = verify(PEOPLE, path, audit=audit)
    assert verdict.failures == ("leaks",)
    assert PROBLEMS["leaks/not-numbers"].format(n=2 * pq.read_metadata(path).num_rows) in verdict.problems


def test_the_words_of_a_claim_are_not_repeated(tmp_path):
    draft = ring(PEOPLE, K)
    draft.claim = {"name": "none", "why": "Ann \x1b[2J\x1b[H HOLDS"}
    verdict = verify(PEOPLE, draft.write(tmp_path)[0])
    assert verdict.failures == ("leaks",)
    assert str(verdict.claim) == "none"
    assert "Ann" not in json.dumps(verdict.to_dict())


@pytest.mark.parametrize("published", [720, 710, 9_900_000])
def test_what_was_published_and_suppressed_is_everything(published, tmp_path):
    draft = GROUPS.copy()
    draft.suppressed = 5
    draft.edit_manifest = lambda m: {**m, "counts": {**m["counts"], "samples_published": published}}
    verdict = verify(PEOPLE, draft.write(tmp_path)[0])
    assert verdict.failures == (() if published == 720 else ("integrity",))


def test_columns_that_are_none_of_a_release_are_not_read(tmp_path):
    draft = GROUPS.copy()
    draft.edit_table = lambda table: table.append_column("note", pa.array(["x" * 1000] * len(table)))
    path, _ = draft.write(tmp_path)
    assert [batch.schema.names for batch in open_release_file(path).batches(["uid", "x_min"])] == [["uid", "x_min"]]
    assert verify(PEOPLE, path).failures == ("leaks",)


# What can't be read is said


def broken(data, old, new):
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return data[:footer] + data[footer:].replace(old, new)


def test_names_that_are_no_text(tmp_path):
    draft = GROUPS.copy()
    path, audit = draft.write(tmp_path)
    data, private = path.read_bytes(), audit.read_bytes()
    for name, old, new in (("release.parquet", b"x_max", b"x_m\xff\xfe"), ("release.csv", b"uid", b"u\xff\xfe")):
        draft.edit_bytes = lambda data, old=old, new=new, name=name: (
            broken(data, old, new) if name.endswith("t") else data.replace(old, new, 1)
        )
        with pytest.raises(CannotCheck, match="the release can't be read"):
            verify(PEOPLE, draft.write(tmp_path, name)[0])
    draft.edit_bytes = lambda data: broken(data, b"parquet-cpp-arrow", b"parquet-cpp-\xff\xfe\xff\xfe\xff")
    with pytest.raises(CannotCheck, match="the release can't be read"):
        verify(PEOPLE, draft.write(tmp_path)[0])
    path.write_bytes(data)
    audit.write_bytes(broken(private, b"member", b"mem\xff\xfe\xff"))
    with pytest.raises(CannotCheck, match="the audit file can't be read"):
        verify(PEOPLE, path, audit=audit)


def renamed(table, columns, names):
    return pa.Table.from_arrays([table[name] for name in columns], names=names)


NAMES = ["record", "owner", "member"]
AUDITS = {
    "a number twice": lambda a: renamed(a, [*NAMES, "record"], [*NAMES, "record"]),
    "an owner twice": lambda a: renamed(a, [*NAMES, "owner"], [*NAMES, "owner"]),
    "a list": lambda a: a.set_column(1, "owner", pa.array([[x] for x in a["owner"].to_pylist()])),
    "a struct": lambda a: a.set_column(1, "owner", pa.array([{"a": x} for x in a["owner"].to_pylist()])),
    "bytes": lambda a: a.set_column(2, "member", pa.array([b"\xff\xfe"] * len(a), pa.binary())),
    "a number too large": lambda a: a.set_column(0, "record", pa.array([2**64 - 1] * len(a), pa.uint64())),
    "text for numbers": lambda a: a.set_column(0, "record", a["record"].cast(pa.string())),
}


@pytest.mark.parametrize("fault", AUDITS)
def test_an_audit_of_other_kinds_is_told(fault, tmp_path):
    path, audit = GROUPS.write(tmp_path)
    verdict = verify(PEOPLE, path, audit=AUDITS[fault](pq.read_table(audit)))
    assert verdict.codes == ("audit/columns",)


def test_labels_may_be_numbers(tmp_path):
    path, audit = GROUPS.write(tmp_path)
    table = pq.read_table(audit)
    for place, name in ((1, "owner"), (2, "member")):
        table = table.set_column(place, name, table[name].cast(pa.int64()))
    assert verify(PEOPLE, path, audit=table).ok


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_shares_that_make_no_sense(share, tmp_path):
    with pytest.raises(SettingsError, match="from 0 to 1"):
        verify(PEOPLE, GROUPS.write(tmp_path)[0], max_suppressed=share)


# What is stated about loss


def test_a_stated_share_of_leaking_windows_is_checked_whatever_else_is_asked(tmp_path):
    draft = GROUPS.copy()
    draft.claim = {"name": "kte-cover", "k": K, "tau_s": 3600, "epsilon_s": 60, "leakage_share": 0.001}
    parameters = {"k": K, "tau_s": 3600, "epsilon_s": 60}
    draft.edit_shoal = lambda shoal: {**shoal, "method": "kte-hide", "parameters": parameters}
    path, audit = draft.write(tmp_path)
    for epsilon in (None, "59s", "2d"):
        assert verify(PEOPLE, path, audit=audit, epsilon=epsilon).failures == ("windows",)
    verdict = verify(PEOPLE, path, audit=audit, tau="61min")
    assert verdict.ok
    assert verdict.not_checked == (NOT_CHECKED["leaking-share"],)


@pytest.mark.parametrize(
    ("lost", "limit", "fails"), [(180, 0.2, False), (181, 0.2, True), (1, 0.0, True), (0, 0.0, False)]
)
def test_a_crs_may_not_lose_more_than_may_be_suppressed(lost, limit, fails, tmp_path, monkeypatch):
    """720 samples have a place; so many rows have none in the CRS that the release states."""

    def opened(original, options, grid, **how):
        return nullcontext(replace(crowd_of(from_trajectories(original, grid, 1)), rows_outside={NO_PLACE: lost}))

    monkeypatch.setattr(boxes, "open_crowd", opened)
    path, audit = GROUPS.write(tmp_path)
    verdict = verify(PEOPLE, path, audit=audit, max_suppressed=limit)
    assert verdict.failures == (("suppression",) if fails else ())
