"""kte-hide: epochs, hiding sets, reuse, suppression, records, claims; against the slow twin and by brute force."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import SettingsError, TooFewUsers
from shoal.frame import Frame
from shoal.methods.kte_hide import sets as kte_sets
from shoal.methods.kte_hide.method import KteHide
from shoal.methods.kte_hide.pieces import Active, cut, subsets, windows_of
from shoal.methods.kte_hide.sets import find_sets
from shoal.run import Run
from shoal.trajectories import build
from shoal.verifier import with_measured_claim
from tests.draws import examples
from tests.oracle import kte_hide as slow
from tests.oracle import windows as slow_windows
from tests.people import people_of, random_people
from tests.publishing import written

EPOCH = 60  # slots


def callers(draw):
    """People with habits: silent at night, in bursts, alone, or all at once."""
    n = draw(st.integers(3, 14))
    epochs = draw(st.integers(1, 9))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    busy = draw(st.sampled_from([0.2, 0.6, 1.0]))
    night = draw(st.booleans())
    burst = draw(st.sampled_from([1, 1, 4]))
    lists = []
    for u in range(n):
        own = set()
        for e in range(epochs):
            if (night and e % 4 == 3) or chance.random() > busy:
                continue
            for _ in range(chance.integers(1, burst + 1)):
                own.add((int(e * EPOCH + chance.integers(EPOCH)), int(chance.integers(20)), int(chance.integers(20))))
        lists.append(sorted(own) or [(int(chance.integers(epochs * EPOCH)), u, 0)])
    return people_of(lists)


def hidden(people, k, ratio, reuse="half", length=EPOCH, clusters="none"):
    """Return what is published, the sets of a method and the windows they are for, as the slow twin wants them."""
    pieces = cut(people, length)
    windows = windows_of(pieces, ratio)
    alive, sets = find_sets(pieces, windows, KteHide(k=k, reuse=reuse, clusters=clusters)._hiding(pieces))
    gone = {(int(u), int(e)) for u, e in zip(pieces.user[~alive], pieces.epoch[~alive], strict=True)}
    everyone = slow.epochs(people, length, pieces.first)
    for_windows = slow.all_windows(everyone, ratio)
    as_dict = {(s.window, u): t for s in sets for u, t in zip(s.user.tolist(), s.target.tolist(), strict=True)}
    return slow.published(everyone, gone), as_dict, for_windows


@examples(60)
@given(st.composite(callers)(), st.integers(2, 4), st.integers(1, 3), st.sampled_from(["half", "strict"]))
def test_sets_records_and_every_window(people, k, ratio, reuse):
    """Hiding sets have no fault, boxes are the slow twin's, and brute force finds k records for every window."""
    if len(people) < k:
        return
    everyone, sets, for_windows = hidden(people, k, ratio, reuse)
    release = KteHide(k=k, tau=ratio * EPOCH * 60, epsilon=EPOCH * 60, reuse=reuse).anonymize(people)
    owners = release.members.owners.tolist()
    assert owners == [u for u, own in enumerate(everyone) if own]
    assert release.samples == sum(len(s) for own in everyone for s in own.values())
    assert release.samples + release.suppressed == people.samples
    if not owners:
        return
    most_shared = 0 if reuse == "strict" else (k - 1) // 2
    assert slow.faults(everyone, sets, for_windows, k, most_shared) == []
    expected = slow.records(everyone, sets, for_windows)
    assert [release.record(r).tolist() for r in range(len(release))] == [expected[u] for u in owners]
    users = [[s for samples in own.values() for s in samples] for own in everyone if own]
    found = slow_windows.look_through(users, [expected[u] for u in owners], ratio * EPOCH, k)
    assert min(found["counts"]) >= k
    verdict = shoal.verify(people, release, epsilon=EPOCH * 60, max_suppressed=1.0)
    assert verdict.ok, verdict.problems
    assert verdict.figures["windows"] == len(found["counts"])
    above = sum(times for reach, times in found["leaks"].items() if reach > EPOCH)
    assert verdict.figures["leakage"]["windows_above"] == above


@pytest.mark.parametrize(("span", "labels"), [(2, 1), (3, 50), (70, 1), (130, 1000)])
def test_subsets_are_those_with_equal_labels(span, labels):
    """In the order of their labels, and however many there are: numbers that would not fit are made smaller."""
    rng = np.random.default_rng(span)
    rows = rng.integers(-1, labels, (8, span))[rng.integers(0, 8, 100)]
    piece = np.where(rows >= 0, np.arange(rows.size).reshape(rows.shape), -1)
    found = subsets(Active(np.arange(100), piece, None, None), np.maximum(rows, 0).ravel())
    patterns, which = np.unique(rows, axis=0, return_inverse=True)
    assert [rows[places[0]].tolist() for places in found] == patterns.tolist()
    assert [places.tolist() for places in found] == [np.flatnonzero(which == n).tolist() for n in range(len(patterns))]
    nobody = Active(np.empty(0, np.int64), np.empty((0, span), np.int64), None, None)
    assert subsets(nobody, np.zeros(1, np.int64)) == []


def calls(times, x=0):
    return [(t, x, 0) for t in times]


ODD = {
    "all in one epoch": [calls([n, n + 3], n) for n in range(6)],
    "a user alone in an epoch": [calls([5, 70, 200]), *(calls([4 + n, 80 + n]) for n in range(6))],
    "fewer than k in an epoch": [*(calls([5 + n, 300]) for n in range(2)), *(calls([5 + n]) for n in range(6))],
    "silent at night": [calls([day * 1440 + 600 + n for day in range(3)], n) for n in range(8)],
    "bursts": [calls([*range(n, 60, 3), 130 + n], n) for n in range(8)],
    "more epochs than the reuse rule allows": [calls(range(n, 12 * 60, 60), n) for n in range(5)],
    "everybody the same": [calls([1, 90, 200])] * 6,
    "two": [calls([1, 90]), calls([2, 91])],
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("k", [2, 3])
def test_odd_people(name, k):
    people = people_of(ODD[name])
    if len(people) < k:
        with pytest.raises(TooFewUsers):
            KteHide(k=k, tau="60min", epsilon="60min").anonymize(people)
        return
    release = KteHide(k=k, tau="60min", epsilon="60min").anonymize(people)
    everyone, sets, for_windows = hidden(people, k, 1)
    assert slow.faults(everyone, sets, for_windows, k, (k - 1) // 2) == []
    if len(release):
        verdict = shoal.verify(people, release, max_suppressed=1.0)
        assert verdict.ok, verdict.problems


def test_what_is_suppressed_and_what_is_not():
    everybody = KteHide(k=2, tau="60min", epsilon="60min").anonymize(people_of(ODD["all in one epoch"]))
    assert everybody.suppressed == 0
    alone = KteHide(k=2, tau="60min", epsilon="60min").anonymize(people_of(ODD["a user alone in an epoch"]))
    assert alone.suppressed == 1  # her third call, and nothing else
    few = KteHide(k=3, tau="60min", epsilon="60min").anonymize(people_of(ODD["fewer than k in an epoch"]))
    assert few.suppressed == 2
    # Five people can hide each other in four different ways: twelve epochs in a row need thirteen.
    worn = KteHide(k=2, tau="60min", epsilon="60min").anonymize(
        people_of(ODD["more epochs than the reuse rule allows"])
    )
    assert 0 < worn.suppressed < 60


def test_isolated_calls_need_one_hiding_set():
    """Whoever calls once in hours keeps a hiding set in both windows of the call."""
    people = people_of([calls(range(n, 40 * 60, 240), n) for n in range(11)])
    _, sets, _ = hidden(people, 2, 1)
    for user in range(11):
        own = {(m, *t) for (m, u), t in sets.items() if u == user}
        assert len(own) == 20
        assert len({t for _, t in own}) == 10


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("duration", ["5h", "1d"])
def test_long_epochs_give_cover_of_whole_trajectories(k, duration):
    """With ε as long as the data it is k-pick on whole trajectories (Sec. II-C3)."""
    people = random_people(40, seed=2)
    release = KteHide(k=k, tau=duration, epsilon=duration).anonymize(people)
    assert release.suppressed == 0
    assert (np.diff(release.members.offsets) == k).all()
    claimed = shoal.Release(**{**vars(release), "claim": shoal.Claim("cover", k=k), "parameters": {"k": k}})
    verdict = shoal.verify(people, claimed, exact=True)
    assert verdict.ok, verdict.problems
    assert verdict.figures["cover"]["min"] >= k


def test_epochs_begin_at_midnight():
    frame = Frame(crs=None, origin_slot=1440 * 20_000 + 90)  # 01:30
    people = people_of([calls([0, 40, 2000]), calls([29, 31, 2001])], frame)
    pieces = cut(people, 60)
    assert pieces.first == -30
    assert pieces.epoch.tolist() == [0, 1, 33, 0, 1, 33]
    whole = cut(people, 3000)
    assert whole.first == 0
    assert whole.n_epochs == 1


def test_the_audit_says_from_when_to_when(tmp_path):
    people = random_people(60, seed=3, slots=600)
    release = KteHide(k=3, tau="2h", epsilon="60min").anonymize(people)
    written(with_measured_claim(release), tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["record", "owner", "member", "t_start", "t_end"]
    assert str(table.schema.field("t_start").type) == "timestamp[ms, tz=UTC]"
    rows = table.to_pandas()
    own = rows.owner == rows.member
    assert rows[own].t_start.isna().all()
    assert rows[~own].t_start.notna().all()
    lengths = (rows[~own].t_end - rows[~own].t_start).dt.total_seconds()
    assert lengths.min() >= 3600
    verdict = shoal.verify(people, tmp_path / "r.parquet", audit=tmp_path / "a.parquet", max_suppressed=1.0)
    assert verdict.ok, verdict.problems
    written(with_measured_claim(release), tmp_path / "r.csv", audit=tmp_path / "a.csv")
    verdict = shoal.verify(people, tmp_path / "r.csv", audit=tmp_path / "a.csv", max_suppressed=1.0)
    assert verdict.ok, verdict.problems


def test_an_audit_with_wrong_times_is_noticed(tmp_path):
    people = random_people(60, seed=3, slots=600)
    release = with_measured_claim(KteHide(k=2, tau="60min", epsilon="60min").anonymize(people))
    written(release, tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    rows = pq.read_table(tmp_path / "a.parquet").to_pandas()
    rows["t_end"] += np.timedelta64(3, "h")
    longer = pa.Table.from_pandas(rows, preserve_index=False)
    verdict = shoal.verify(people, tmp_path / "r.parquet", audit=longer, max_suppressed=1.0)
    assert "truth" in verdict.failures or "suppression" in verdict.failures


def test_the_claim_is_what_was_measured(tmp_path):
    """Cover of windows with the share that leaks; anonymity only where none does."""
    people = random_people(60, seed=4, slots=600)
    release = KteHide(k=2, tau="60min", epsilon="60min").anonymize(people)
    assert release.claim == shoal.Claim("kte-cover", k=2, tau_s=3600)
    published = written(with_measured_claim(release), tmp_path / "r.parquet").release
    figures = shoal.verify(people, release, max_suppressed=1.0).figures["leakage"]
    assert figures["windows_above"] > 0
    assert published.claim.name == "kte-cover"
    share = published.claim.leakage_share
    assert figures["share_above"] <= share <= figures["share_above"] * 1.1
    assert json.loads((tmp_path / "r.parquet.manifest.json").read_text())["shoal"]["claim"]["leakage_share"] == share
    whole = KteHide(k=2, tau="1d", epsilon="1d").anonymize(people).write(tmp_path / "w.parquet")
    assert whole.claim == shoal.Claim("kte-anonymity", k=2, tau_s=86400, epsilon_s=86400)
    assert shoal.verify(people, tmp_path / "w.parquet").ok
    seeded = written(with_measured_claim(release), tmp_path / "s.parquet", seed=1).release
    assert str(seeded.claim) == "none (research)"


def test_threads_labels_and_order_do_not_matter():
    people = random_people(80, seed=5, slots=600)
    method = KteHide(k=3, tau="60min", epsilon="30min")
    one, two = (method.anonymize(people, run=Run(threads=n)) for n in (1, 2))
    assert (one.boxes == two.boxes).all()
    assert (one.offsets == two.offsets).all()
    rng = np.random.default_rng(1)
    rename = rng.permutation(80)
    rows = rng.permutation(people.samples)
    users = rename[np.repeat(np.arange(80), people.counts)][rows]
    again = build(
        users, people.t[rows], people.x[rows], people.y[rows], labels=pa.array(np.arange(80)), frame=people.frame
    )
    other = method.anonymize(again)
    assert (other.boxes == one.boxes).all()
    assert other.parameters == one.parameters == {"k": 3, "tau_s": 3600, "epsilon_s": 1800}


class Shelf(dict):
    def load(self, name):
        return self.get(name)

    def save(self, name, arrays):
        self[name] = {key: array.copy() for key, array in arrays.items()}


def test_goes_on_where_it_was_interrupted(monkeypatch):
    people = random_people(50, seed=6, slots=900)
    method, shelf, decided = KteHide(k=2, tau="60min", epsilon="60min"), Shelf(), []
    decide = kte_sets._decide
    monkeypatch.setattr(kte_sets, "_KEPT_EVERY_S", -1.0)

    def until(last):
        def work(pieces, active, window, *rest):
            decided.append(window)
            if window == last:
                raise KeyboardInterrupt
            return decide(pieces, active, window, *rest)

        monkeypatch.setattr(kte_sets, "_decide", work)

    until(8)
    with pytest.raises(KeyboardInterrupt):
        method.anonymize(people, run=Run(store=shelf))
    assert decided[0] == -1
    decided.clear()
    until(None)
    resumed = method.anonymize(people, run=Run(store=shelf))
    assert decided[0] == 8
    whole = method.anonymize(people)
    assert (resumed.boxes == whole.boxes).all()
    assert (resumed.members.indices == whole.members.indices).all()


def test_clusters_of_the_paper():
    """Spectral clusters split subsets further, so more is left out; what is published is hidden all the same."""
    people = random_people(400, seed=7, slots=240, mean=10)
    pieces = cut(people, EPOCH)
    label = KteHide(k=2, clusters="spectral")._hiding(pieces).label
    assert label.max() > 1
    assert label.tolist() == KteHide(k=2, clusters="spectral")._hiding(pieces, Run(threads=2)).label.tolist()
    for epoch in range(4):  # neighbours are together more often than chance would have it
        here = np.flatnonzero(pieces.epoch == epoch)
        x = pieces.bounds[here, 2]
        within = np.mean([np.ptp(x[label[here] == c]) for c in np.unique(label[here])])
        assert within < 0.9 * np.ptp(x)
    method = KteHide(k=2, tau="60min", epsilon="60min", clusters="spectral")
    release = method.anonymize(people)
    assert release.parameters["clusters"] == "spectral"
    everyone, sets, for_windows = hidden(people, 2, 1, clusters="spectral")
    assert slow.faults(everyone, sets, for_windows, 2, 0) == []
    verdict = shoal.verify(people, release, max_suppressed=1.0)
    assert verdict.ok, verdict.problems
    assert release.suppressed >= KteHide(k=2, tau="60min", epsilon="60min").anonymize(people).suppressed


@pytest.mark.parametrize(
    "wrong",
    [
        {"tau": "45min", "epsilon": "30min"},
        {"tau": "30min", "epsilon": "60min"},
        {"tau": 0},
        {"epsilon": "0min"},
        {"reuse": "never"},
        {"tau": "soon"},
        {"k": 1},
    ],
)
def test_wrong_settings(wrong):
    with pytest.raises(SettingsError):
        KteHide(**{"k": 2, **wrong})


def test_epochs_are_whole_slots():
    people = people_of([calls([1]), calls([2])], Frame(crs=None, slot_s=1800))
    with pytest.raises(SettingsError, match="whole number of slots"):
        KteHide(k=2, tau="45min", epsilon="45min").anonymize(people)
    with pytest.raises(TooFewUsers):
        KteHide(k=3).anonymize(people)


def test_exclusive_hiding():
    pieces = cut(people_of([calls([1]), calls([2])]), 60)
    assert [KteHide(k=k)._hiding(pieces).exclusive for k in (2, 3, 4, 5)] == [1, 1, 2, 2]
    assert KteHide(k=5, reuse="strict")._hiding(pieces).exclusive == 4
