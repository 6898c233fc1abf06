"""The ledger: notices people who are published again, holds no label, and is whole or refused."""

import hashlib
import json
import os
import stat
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import LedgerError, OutputError, OverlapError, SettingsError
from shoal.methods import METHODS, make_method
from shoal.pipeline import publish
from shoal.publishing.ledger import file as ledger_file
from shoal.publishing.ledger.book import open_book
from shoal.publishing.ledger.file import Entry, open_file
from shoal.publishing.ledger.fingerprints import fingerprints, groups_of, people_of
from shoal.publishing.ledger.overlap import overlap_of
from tests.draws import examples
from tests.oracle.ledger import hidden_among
from tests.people import random_people

KEY = bytes(32)


def entry(name="r.parquet", *, users=0, grouped=True, published="2026-01-02T00:00:00+00:00"):
    return Entry(
        release=name,
        sha256="0" * 64,
        method="shoal",
        claim={"name": "k-anonymity", "k": 2},
        k=2,
        period=("2026-01-01", "2026-01-14"),
        seeded=False,
        users=users,
        grouped=grouped,
        begun="2026-01-02T00:00:00+00:00",
        published=published,
    )


def as_people(release):
    """The people of a release given as {number: group}, and its entry."""
    marks = fingerprints(pa.array(list(release), pa.int64()), KEY)
    groups = list(release.values())
    grouped = None not in groups
    people = people_of(marks, np.array(groups, np.int64) if grouped else None)
    return entry(users=len(release), grouped=grouped), people


# Fingerprints


def test_a_label_is_the_same_however_it_is_read():
    one = fingerprints(pa.array([5, 12]), KEY)
    for labels in (["5", "12"], [" 5", "12 "], ["5.0", "12.00"], [5.0, 12.0]):
        assert (fingerprints(pa.array(labels), KEY) == one).all()
    accents = fingerprints(pa.array(["Zo\u00e9", "Zoe\u0301"]), KEY)
    assert accents[0] == accents[1]
    others = ["5", "05", "50", "5.05", "-5", "a5", "5a", "Ab", "ab", "5 6"]
    assert len(set(fingerprints(pa.array(others), KEY).tolist())) == len(others)


def test_without_the_key_fingerprints_say_nothing():
    labels = pa.array(np.arange(5000))
    one, other = fingerprints(labels, KEY), fingerprints(labels, b"k" * 32)
    assert not np.isin(one, other).any()
    assert abs(np.unpackbits(one.view(np.uint8)).mean() - 0.5) < 0.01


@pytest.mark.parametrize("name", ["shoal", "k-scale", "k-concealment", "kte-hide"])
def test_groups_are_those_of_the_method(name):
    people = random_people(30, mean=5)
    long = {"tau": "1d", "epsilon": "1d"} if name == "kte-hide" else {}
    release = METHODS[name](k=3, **long).anonymize(people)
    users, groups = groups_of(release)
    assert users.tolist() == list(range(30))
    if release.claim.name != "k-anonymity":
        assert groups is None
        return
    records = {tuple(release.record(r).ravel().tolist()) for r in range(len(release))}
    assert len(set(groups.tolist())) >= len(records)
    for r, owner in enumerate(release.members.owners):
        members = release.members.indices[release.members.offsets[r] : release.members.offsets[r + 1]]
        assert set(np.flatnonzero(groups == groups[owner])) == set(members)


def test_group_numbers_follow_fingerprints_only():
    marks = fingerprints(pa.array(np.arange(40)), KEY)
    groups = np.arange(40) // 4
    first = people_of(marks, groups)
    order = np.random.default_rng(1).permutation(40)
    second = people_of(marks[order], 90 - groups[order])
    assert (first.fingerprints == second.fingerprints).all()
    assert (first.groups == second.groups).all()
    assert (np.diff(first.fingerprints.astype(object)) > 0).all()


# Overlap


@examples(200)
@given(st.data())
def test_intersected_anonymity_equals_the_slow_twin(data):
    releases = []
    for _ in range(data.draw(st.integers(1, 4))):
        people = data.draw(st.sets(st.integers(0, 14), min_size=1))
        grouped = data.draw(st.booleans())
        releases.append({p: data.draw(st.integers(0, 2)) if grouped else None for p in sorted(people)})
    *earlier, (_, new) = [as_people(release) for release in releases]
    k = data.draw(st.integers(2, 5))
    found = overlap_of(new, k, earlier)
    expected = list(hidden_among(releases).values())
    assert found.shared == len(expected)
    assert found.releases == len(earlier)
    if expected:
        assert found.together.least == min(expected)
        assert found.together.mean == pytest.approx(np.mean(expected))
        assert found.together.below_k == pytest.approx(np.mean(np.array(expected) < k))
    pairs = [hidden_among([release, releases[-1]]) for release in releases[:-1]]
    met = [(release, pair) for release, pair in zip(releases, pairs, strict=False) if pair]
    assert [one.people for one in found.each] == [len(pair) for _, pair in met]
    for one, (_, pair) in zip(found.each, met, strict=True):
        assert one.hidden.least == min(pair.values())
        assert one.hidden.mean == pytest.approx(np.mean(list(pair.values())))
    assert [one.known for one in found.each] == [
        None not in {*release.values(), *releases[-1].values()} for release, _ in met
    ]


def test_the_same_groups_twice_hide_as_well_as_once():
    once = as_people({p: p // 3 for p in range(12)})
    found = overlap_of(once[1], 3, [once])
    assert (found.together.least, found.together.mean, found.together.below_k) == (3, 3.0, 0.0)
    crossed = as_people({p: p % 4 for p in range(12)})
    assert overlap_of(crossed[1], 3, [once]).together.mean == 1.0


def test_plain_words():
    once = as_people({p: p // 3 for p in range(12)})
    nobody = overlap_of(as_people({50: 0, 51: 0})[1], 2, [once])
    assert "none of the 1 before it" in nobody.messages()[0]
    again = overlap_of(as_people(dict.fromkeys(range(9)))[1], 3, [once, once]).messages()
    assert "9 of 9 people" in again[0]
    assert "at least 1, 1.0 on average; 100% of them among fewer than k = 3" in again[1]
    assert "worst case" in again[2]
    assert "all of them" in again[-1]
    begun = entry(users=12, published=None)
    assert "never confirmed" in overlap_of(once[1], None, [(begun, once[1])]).messages()[1]


# The file


def filled(path, *releases):
    file = open_file(path)
    file.replace([as_people(release) for release in releases])
    return file.key


def test_what_is_written_is_read_again(tmp_path):
    path = tmp_path / "book"
    releases = [{p: p // 2 for p in range(7)}, dict.fromkeys(range(3, 5)), {}]
    key = filled(path, *releases)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file = open_file(path)
    assert file.key == key
    for (was_entry, was), (is_entry, now) in zip(map(as_people, releases), file.releases, strict=True):
        assert was_entry == is_entry
        assert (was.fingerprints == now.fingerprints).all()
        assert (was.groups is None) == (now.groups is None)
        assert was.groups is None or (was.groups == now.groups).all()
    assert [p.name for p in tmp_path.iterdir()] == ["book"]


def test_every_ledger_has_a_key_of_its_own(tmp_path):
    assert len({filled(tmp_path / name, {1: 0}) for name in "abc"}) == 3


def test_a_ledger_that_nothing_was_written_into_is_not_left(tmp_path):
    open_file(tmp_path / "book")
    open_book(tmp_path / "book").meet(random_people(3))
    assert list(tmp_path.iterdir()) == []


def test_any_damage_is_noticed(tmp_path):
    path = tmp_path / "book"
    filled(path, {p: p // 2 for p in range(4)})
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :])
        with pytest.raises(LedgerError):
            open_file(path)
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(LedgerError, match="damaged"):
            open_file(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(LedgerError, match="damaged"):
        open_file(path)
    path.write_bytes(whole)
    open_file(path)


@pytest.mark.parametrize("change", ["column", "field", "count", "key"])
def test_a_sealed_file_of_another_shape_is_no_ledger(tmp_path, change):
    path = tmp_path / "book"
    filled(path, {p: p // 2 for p in range(4)})
    first, header, rest = path.read_bytes()[:-32].split(b"\n", 2)
    content = json.loads(header)
    if change == "column":
        rest += bytes(8)
    elif change == "field":
        content["releases"][0]["colour"] = "red"
    elif change == "count":
        content["releases"][0]["users"] = 10**15
    else:
        del content["key"]
    body = b"\n".join([first, json.dumps(content).encode(), rest])
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(LedgerError, match="damaged"):
        open_file(path)


def test_another_version_is_named_and_a_public_ledger_refused(tmp_path):
    path = tmp_path / "book"
    filled(path, {1: 0})
    path.write_bytes(path.read_bytes().replace(b"shoal ledger 1\n", b"shoal ledger 2\n"))
    with pytest.raises(LedgerError, match="format 2"):
        open_file(path)
    path.chmod(0o640)
    with pytest.raises(LedgerError, match="chmod 600"):
        open_file(path)


@pytest.mark.parametrize("what", ["folder", "pipe", "no folder", "empty", "other"])
def test_what_is_no_ledger_is_refused(tmp_path, what):
    path = tmp_path / "book"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path, 0o600)
    elif what == "no folder":
        path = tmp_path / "none" / "book"
    else:
        path.write_bytes(b"" if what == "empty" else b"uid,lat,lng\n" * 99)
        path.chmod(0o600)
    with pytest.raises(LedgerError):
        open_file(path)


def test_a_link_leads_to_the_ledger(tmp_path):
    (tmp_path / "real").mkdir()
    filled(tmp_path / "real" / "book", {1: 0})
    (tmp_path / "book").symlink_to(tmp_path / "real" / "book")
    filled(tmp_path / "book", {1: 0, 2: 0})
    assert (tmp_path / "book").is_symlink()
    file = open_file(tmp_path / "real" / "book")
    assert file.releases[0][0].users == 2


# Publishing


def run(events, path, ledger, **more):
    method = make_method(more.pop("method", "shoal"), {"k": more.pop("k", 2)})
    return publish(events, path, method, ledger=ledger, **more)


def entries(ledger):
    return json.loads(ledger.read_bytes().split(b"\n")[1])["releases"]


def test_a_second_release_of_the_same_people_is_refused(events, tmp_path):
    ledger = tmp_path / "book"
    first = run(events, tmp_path / "1.parquet", ledger)
    assert first.overlap.shared == 0
    with pytest.raises(OverlapError, match=r"about 120 of 120 people .* 1\.parquet of .*`allow_overlap`"):
        run(events, tmp_path / "2.parquet", ledger, period=("2026-01-05", "2026-01-07"))
    with pytest.raises(OverlapError):
        run(events, tmp_path / "2.parquet", ledger, dry_run=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.parquet", "1.parquet.manifest.json", "book"]
    (noted,) = entries(ledger)
    manifest = json.loads((tmp_path / "1.parquet.manifest.json").read_text())
    assert noted["sha256"] == manifest["files"]["1.parquet"]
    assert noted["published"] is not None
    assert (noted["method"], noted["k"], noted["users"], noted["grouped"]) == ("shoal", 2, 120, True)
    assert noted["period"] == ["2026-01-05", "2026-01-08"]


def test_with_the_flag_it_is_said_what_is_left(events, tmp_path):
    ledger = tmp_path / "book"
    run(events, tmp_path / "1.parquet", ledger, audit=tmp_path / "1a.parquet", k=4)
    second = {"audit": tmp_path / "2a.parquet", "k": 3, "min_samples": 20}
    done = run(events, tmp_path / "2.parquet", ledger, allow_overlap=True, **second)
    groups = [groups_in(tmp_path / name) for name in ("1a.parquet", "2a.parquet")]
    expected = list(hidden_among(groups).values())
    assert done.overlap.shared == len(expected) == done.overlap.people
    assert done.overlap.together.least == min(expected)
    assert done.overlap.together.mean == pytest.approx(np.mean(expected))
    assert done.overlap.together.below_k == pytest.approx(np.mean(np.array(expected) < 3))
    assert len(entries(ledger)) == 2
    assert done.to_dict()["overlap"]["each"][0]["release"] == "1.parquet"
    third = run(events, tmp_path / "3.parquet", ledger, allow_overlap=True, method="k-scale", seed=1)
    assert [one.known for one in third.overlap.each] == [False, False]
    assert third.overlap.together.mean == 1.0
    assert entries(ledger)[2]["claim"] == {"name": "none", "why": "research"}
    assert entries(ledger)[2]["k"] == 2


def groups_in(audit):
    """Everybody's group, as an audit file tells it."""
    lists = {}
    for row in pq.read_table(audit).to_pylist():
        lists.setdefault(row["owner"], set()).add(row["member"])
    return {owner: min(members) for owner, members in lists.items()}


def test_other_people_are_welcome(events, tmp_path):
    ledger = tmp_path / "book"
    run(events, tmp_path / "1.parquet", ledger)
    other = tmp_path / "other.parquet"
    shoal.synthesize(other, users=60, scene="town", days=2, seed=99)
    assert run(other, tmp_path / "2.parquet", ledger).overlap.releases == 1
    assert len(entries(ledger)) == 2


def test_people_are_known_again_under_another_type(tmp_path):
    table = shoal.synthesize(users=40, scene="town", days=2, seed=5)
    pa_csv.write_csv(table, tmp_path / "events.csv")
    text = table.set_column(0, "uid", table["uid"].cast(pa.string()))
    pq.write_table(text, tmp_path / "events.parquet")
    run(tmp_path / "events.csv", tmp_path / "1.parquet", tmp_path / "book")
    with pytest.raises(OverlapError, match="about 40 of 40"):
        run(tmp_path / "events.parquet", tmp_path / "2.parquet", tmp_path / "book")


def test_nothing_is_noted_where_nothing_is_published(events, tmp_path, monkeypatch):
    ledger = tmp_path / "book"
    run(events, tmp_path / "1.parquet", ledger)
    before = ledger.read_bytes()

    def full(files, *, also, **_):
        ((new, place),) = also
        assert [one["published"] is None for one in entries(new)[:-1]] == [False] * (place == ledger)
        assert ledger.read_bytes() == before
        raise OutputError("the disk is full; nothing was published")

    monkeypatch.setattr("shoal.publishing.stage.switch", full)
    for path in (tmp_path / "2.parquet", tmp_path / "1.parquet"):
        with pytest.raises(OutputError):
            run(events, path, ledger, allow_overlap=True, overwrite=True)
    assert ledger.read_bytes() == before
    with pytest.raises(OutputError):
        run(events, tmp_path / "3.parquet", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def full_after(monkeypatch, times):
    """Let the disk be full when the ledger is written once more than so many times."""
    real, calls = ledger_file._fill, []

    def fill(path, parts):
        calls.append(1)
        if len(calls) > times:
            raise OSError(28, "No space left on device")
        return real(path, parts)

    monkeypatch.setattr(ledger_file, "_fill", fill)


def test_a_ledger_that_can_not_be_told_stops_the_release(events, tmp_path, monkeypatch):
    full_after(monkeypatch, 0)
    with pytest.raises(LedgerError, match=r"No space.*nothing was published"):
        run(events, tmp_path / "1.parquet", tmp_path / "book")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def elsewhere(book, **release):
    """Publish to a database or an object store, as a block."""
    with book._begun(book._file, *as_people({1: 0}), lambda: release["may_be_published"]):
        yield


@pytest.mark.parametrize("before", [False, True])
def test_a_release_that_goes_elsewhere_is_begun_and_then_confirmed(tmp_path, before):
    path = tmp_path / "book"
    known = [filled(path, {7: 0})] if before else []
    with elsewhere(open_book(path)):
        assert [one["published"] is None for one in entries(path)[len(known) :]] == [False]
    assert len(entries(path)) == len(known) + 1
    for unsure in (False, True):
        was = path.read_bytes()
        with pytest.raises(OutputError), elsewhere(open_book(path), may_be_published=unsure):
            raise OutputError("the database is gone")
        assert len(entries(path)) == len(known) + 1 + unsure
        assert unsure or path.read_bytes() == was
    with pytest.raises(KeyboardInterrupt), elsewhere(open_book(tmp_path / "new"), may_be_published=False):
        raise KeyboardInterrupt
    assert [one.name for one in tmp_path.iterdir()] == ["book"]


def test_a_ledger_that_can_not_be_told_afterwards_counts_all_the_same(tmp_path, monkeypatch):
    full_after(monkeypatch, 1)
    book = open_book(tmp_path / "book")
    entry_, people = entry(users=1, published=None), as_people({1: 0})[1]
    with book._begun(book._file, entry_, people, lambda: True):
        pass
    assert "counts" in book.notes[0]
    assert [one["published"] for one in entries(tmp_path / "book")] == [None]


@pytest.mark.parametrize("what", ["output", "manifest", "audit", "input", "link"])
def test_a_ledger_is_no_other_file(events, tmp_path, what):
    copy = tmp_path / "events.parquet"
    copy.write_bytes(events.read_bytes())
    release = tmp_path / "r.parquet"
    (tmp_path / "link").symlink_to(release)
    ledger = {
        "output": release,
        "manifest": tmp_path / "r.parquet.manifest.json",
        "audit": tmp_path / "a.parquet",
        "input": copy,
        "link": tmp_path / "link",
    }[what]
    with pytest.raises(OutputError, match=r"different names|never overwritten"):
        run(copy, release, ledger, audit=tmp_path / "a.parquet", overwrite=True)
    assert copy.read_bytes() == events.read_bytes()
    assert not release.exists()


def test_a_ledger_does_not_lie_among_inputs(events, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "events.parquet").write_bytes(events.read_bytes())
    with pytest.raises(OutputError, match="folder that is read"):
        run(tmp_path / "in", tmp_path / "r.parquet", tmp_path / "in" / "book")


def test_a_damaged_ledger_stops_before_reading(events, tmp_path, monkeypatch):
    (tmp_path / "book").write_bytes(b"shoal ledger 1\n{}")
    (tmp_path / "book").chmod(0o600)
    monkeypatch.setattr(shoal.Shoal, "read", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(LedgerError, match="damaged"):
        run(events, tmp_path / "r.parquet", tmp_path / "book")


def test_the_flag_alone_makes_no_sense(events, tmp_path):
    with pytest.raises(SettingsError, match="`ledger`"):
        run(events, tmp_path / "r.parquet", None, allow_overlap=True)
