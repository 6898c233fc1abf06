"""Windows and leakage: against a slow twin, on releases made for it by hand, and on broken ones."""

import json
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.run import Run
from shoal.verifier import verify
from shoal.verifier.windows import two_digits_up
from shoal.verifier.windows_search import _add, _Answer, look_through
from tests.draws import examples
from tests.kte import EPOCH, hide, hiding, walkers
from tests.oracle import windows as twin
from tests.parts import original, records_of
from tests.releases import NOON, bounds, grouped, people_of, ring, samples_of, toy_people

K = 3
PEOPLE = walkers()
TAU_S = EPSILON_S = EPOCH * 60
COVER = {"name": "kte-cover", "k": K, "tau_s": TAU_S}
SAMPLES = [samples_of(PEOPLE, user) for user in range(len(PEOPLE))]


@cache
def hidden():
    return hide(PEOPLE, K)  # not while tests are collected: it compiles kernels


def changed(draft=None, **members):
    """Return a copy of a draft that claims cover of windows, or what is given."""
    return replace((draft or hidden()).copy(), **{"claim": COVER, **members})


def twin_of(draft):
    """Return what the slow twin sees in a draft."""
    return twin.look_through(SAMPLES, [record.boxes for record in draft.records], EPOCH, K)


def search_in(users, records, weights=None, **asked):
    """Return what the search finds in records, of which copies count for no more people than they cover."""
    if weights is None:
        weights = np.array([people for _, people in twin.people_of_records(users, records)])
    return look_through(original(users), records_of(records).distinct(), weights, **{"run": Run(threads=1), **asked})


def leaks_of(found):
    return dict(zip(found.leaks.tolist(), found.times.tolist(), strict=True))


@st.composite
def crowds(draw):
    """Return a few people and records made of their samples, with boxes too many, too large or missing."""
    sample = st.tuples(st.integers(0, 23), st.integers(0, 2), st.integers(0, 1))
    users = [sorted(own) for own in draw(st.lists(st.sets(sample, min_size=1, max_size=8), min_size=1, max_size=4))]
    records = []
    for own in users * draw(st.integers(1, 2)):
        rows = sorted(set(own) | set(draw(st.sets(st.sampled_from([s for user in users for s in user]), max_size=6))))
        boxes = []
        while rows:
            size = draw(st.integers(1, 4))
            while size < len(rows) and rows[size][0] == rows[size - 1][0]:
                size += 1
            box = bounds(rows[:size])
            box[3] += draw(st.sampled_from([0, 0, 1]))
            if draw(st.integers(0, 9)):
                boxes.append(box)
            rows = rows[size:]
        if boxes:
            records.append(boxes)
    return users, records


@examples(300)
@given(crowds(), st.integers(1, 14), st.integers(1, 4), st.data())
def test_windows_as_the_slow_twin_sees_them(crowd, length, k, data):
    users, records = crowd
    if not records:
        return
    wanted = twin.look_through(users, records, length, k)
    known, last = None, len(records_of(records).distinct()) - 1
    if data.draw(st.booleans()):
        tried = [data.draw(st.lists(st.integers(0, last), max_size=4)) for _ in users]
        starts = np.cumsum([0, *(len(own) for own in tried)])
        known = starts, np.array([record for own in tried for record in own], dtype=np.int64)
    for exact in (False, True):
        room = data.draw(st.sampled_from([1, 1 << 20]))  # the former forgets all but a few records
        found = search_in(users, records, length=length, k=k, known=known, exact=exact, room=room)
        assert found.windows == len(wanted["counts"])
        assert (found.short, found.ending_short) == (wanted["short"], wanted["ending_short"])
        assert leaks_of(found) == wanted["leaks"]
        assert (found.told, found.outside) == (wanted["told"], wanted["outside"])
        assert np.minimum(found.least, k).tolist() == [min(k, least) for least in wanted["least"]]
    assert found.counts.tolist() == wanted["counts"]
    assert found.least.tolist() == wanted["least"]


@pytest.mark.parametrize("extra", [extra for n in range(5) for extra in combinations((3, 9, 15, 21), n)])
def test_a_box_too_many_before_between_or_after(extra):
    """One who is seen three times, and another who is at the same places then, and at more times."""
    one = [(6, 0, 0), (12, 1, 0), (18, 0, 1)]
    other = sorted([*one, *((t, 0, 0) for t in extra)])
    users = [one, other]
    records = [[[t, t, x, x, y, y] for t, x, y in own] for own in users]
    for length in range(1, 20):
        wanted = twin.look_through(users, records, length, 2)
        found = search_in(users, records, length=length, k=2, exact=True)
        assert found.counts.tolist() == wanted["counts"]
        assert (found.short, found.ending_short) == (wanted["short"], wanted["ending_short"])
        assert leaks_of(found) == wanted["leaks"]


def test_more_records_than_are_remembered():
    """Sixty people at one place: each window is fitted by all, more than the eight records that are kept."""
    users = [[(t, u % 2, 0) for t in (0, 5, 9 + u % 3)] for u in range(60)]
    records = [[[0, 0, 0, 1, 0, 0], [5, 5, 0, 1, 0, u % 3], [9, 11, 0, 1, 0, 0]] for u in range(60)]
    weights = records_of(records).distinct().weights
    answers = [
        search_in(users, records, weights, length=4, k=7, exact=exact, room=room, run=Run(threads=threads))
        for room, threads in ((1, 1), (1 << 25, 2))
        for exact in (True, False)
    ]
    wanted = twin.look_through(users, records, 4, 7)
    for found in answers:
        assert leaks_of(found) == wanted["leaks"]
    assert answers[0].counts.tolist() == answers[2].counts.tolist() == wanted["counts"]


def test_more_boxes_around_a_sample_than_are_looked_at_together():
    """Six hundred records of boxes of one size, in one place; of those around a sample some hold it, some don't."""
    users = [[(1, 35, 35), (40, 41, 0), (70, 0, 0)], [(35, 1, 48), (36, 50, 2), (75, 9, 9)], [(2, 2, 2), (99, 3, 3)]]
    records = [[[0, 32 + u % 16, 0, 32 + u // 20, 0, 40 + u % 20], [70, 102, 0, 40, 0, 40]] for u in range(600)]
    wanted = twin.look_through(users, records, 30, 2)
    found = search_in(users, records, length=30, k=2, exact=True)
    assert found.counts.tolist() == wanted["counts"]
    assert len(set(wanted["counts"])) > 2
    assert (found.told, found.outside) == (wanted["told"], wanted["outside"])


@pytest.mark.parametrize("name", ["release.parquet", "release.csv"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_hidden_holds_with_and_without_the_audit(name, seed, tmp_path):
    people = walkers(seed=seed)
    draft = hide(people, K, seed=seed)
    path, audit = draft.write(tmp_path, name)
    seen, blind = verify(people, path, audit=audit), verify(people, path)
    for verdict in (seen, blind):
        assert verdict.ok, verdict.messages
        assert verdict.shown == verdict.claim == Claim(**draft.claim)
        assert verdict.figures["leakage"]["max_s"] <= EPSILON_S
        assert 0 < verdict.figures["leakage"]["share_leaking"] < 1
        json.dumps(verdict.to_dict())
    same = ("windows", "windows_short", "windows_ending_short", "min_cover", "leakage")
    assert {key: seen.figures[key] for key in same} == {key: blind.figures[key] for key in same}
    assert {"audit", "suppression", "windows"} <= set(seen.checked)


def test_the_figures_are_the_twins(tmp_path):
    path, _ = hidden().write(tmp_path)
    figures = verify(PEOPLE, path, exact=True).figures
    wanted = twin_of(hidden())
    assert figures["windows"] == len(wanted["counts"])
    assert figures["min_cover"] == min(wanted["counts"]) == figures["windows_cover"]["min"]
    assert figures["windows_cover"]["max"] == max(wanted["counts"])
    assert sum(figures["windows_cover"]["histogram"].values()) == len(wanted["counts"])
    reaches = sorted(reach for reach, times in wanted["leaks"].items() for _ in range(times))
    leakage = figures["leakage"]
    assert leakage["windows"] == len(reaches)
    assert leakage["max_s"] == 60 * reaches[-1]
    assert leakage["mean_s"] == round(60 * sum(reaches) / len(reaches), 1)
    for percent in (50, 90, 99):
        place = -(-percent * len(reaches) // 100) - 1
        assert leakage[f"p{percent}_s"] == 60 * reaches[place]
    assert leakage["share_leaking"] == round(sum(reach > 0 for reach in reaches) / len(reaches), 6)
    assert leakage["share_outside_held"] == round(wanted["told"] / wanted["outside"], 6)


def test_longer_windows_than_are_hidden_fail(tmp_path):
    path, audit = changed().write(tmp_path)
    assert verify(PEOPLE, path, audit=audit).ok
    assert verify(PEOPLE, path, tau=TAU_S // 2).ok  # less than claimed: the claim is checked
    assert verify(PEOPLE, path, tau=TAU_S // 2).figures["tau_s"] == TAU_S
    verdict = verify(PEOPLE, path, tau="30min")
    assert verdict.failures == ("windows",)
    assert verdict.figures["windows_short"] > 0
    assert verify(PEOPLE, path, k=K + 9).failures == ("windows",)


def test_windows_are_rounded_up_to_slots(tmp_path):
    claims = ({**COVER, "tau_s": TAU_S - 59}, COVER)
    one, other = (verify(PEOPLE, changed(claim=claim).write(tmp_path)[0]) for claim in claims)
    assert one.figures["leakage"] == other.figures["leakage"]


def verdicts_of(draft, folder):
    """Return the verdicts with and without the audit."""
    path, audit = draft.write(folder)
    return verify(draft.people, path, audit=audit), verify(draft.people, path)


def test_one_hider_too_few_in_one_window(tmp_path):
    sets = hiding(PEOPLE, K)
    sets[4, 7] = sets[4, 7][1:]
    draft = changed(hide(PEOPLE, K, sets=sets))
    wanted = twin_of(draft)
    assert wanted["short"] > 0
    for verdict in verdicts_of(draft, tmp_path):
        assert verdict.codes == ("windows/too-few-records",)
        assert verdict.figures["windows_short"] == wanted["short"]
        assert verdict.figures["users_short"] == 1
        assert verdict.figures["min_cover"] == K - 1


def test_the_same_hiders_everywhere_leak(tmp_path):
    draft = hide(PEOPLE, K, same=True)
    for verdict in verdicts_of(draft, tmp_path):
        assert verdict.codes == ("windows/leakage",)
        assert verdict.figures["leakage"]["max_s"] > 5 * EPSILON_S
    share = verdict.figures["leakage"]["windows_above"] / verdict.figures["leakage"]["windows"]
    for stated, ok in ((two_digits_up(share), True), (round(share - 0.02, 2), False)):
        draft.claim = {**COVER, "epsilon_s": EPSILON_S, "leakage_share": stated}
        verdict = verify(PEOPLE, draft.write(tmp_path)[0])
        assert verdict.ok == ok
        assert verdict.codes == (() if ok else ("windows/leaking-share",))
    path, _ = changed(draft).write(tmp_path)
    verdict = verify(PEOPLE, path, epsilon=EPSILON_S)
    assert verdict.ok  # leakage is counted where only cover is claimed
    assert verdict.shown == Claim(**COVER, epsilon_s=EPSILON_S, leakage_share=two_digits_up(share))
    assert verify(PEOPLE, path).shown == Claim(**COVER)


@pytest.mark.parametrize("seed", range(3))
def test_a_slot_too_few_at_the_end_of_epochs(seed, tmp_path):
    people = walkers(seed=seed)
    seen, blind = verdicts_of(changed(hide(people, K, seed=seed, cut=1)), tmp_path)
    assert seen.failures == ("truth", "windows")
    assert blind.failures == ("windows",)


def halves(box, times):
    """Cut a box where the owner has samples on both sides; everything it holds is still held."""
    inside = sorted({t for t in times if box[0] <= t <= box[1]})
    edges = [box[0], *(t + 1 for t in inside[:-1]), box[1] + 1]
    return [[start, end - 1, *box[2:]] for start, end in pairwise(edges)]


def test_a_box_without_a_sample_inside_a_window(tmp_path):
    """Boxes with samples of the owner alone: every sample is held, but whoever is hidden there is not in each box."""
    draft = changed()
    for record in draft.records[:4]:
        times = [t for t, _, _ in SAMPLES[record.owner]]
        record.boxes = [half for box in record.boxes for half in halves(box, times)]
    wanted = twin_of(draft)
    seen, blind = verdicts_of(draft, tmp_path)
    assert seen.figures["windows_short"] == blind.figures["windows_short"] == wanted["short"] > 0
    assert set(seen.failures) == {"truth", "windows"}
    assert blind.failures == ("windows",)


def test_records_of_nobody_hide_nobody(tmp_path):
    draft = changed()
    draft.records[0].boxes = [[NOON, NOON + 8 * EPOCH, 0, 2000, 0, 20], [NOON + 900, NOON + 900, 0, 0, 0, 0]]
    seen, blind = verdicts_of(draft, tmp_path)
    assert {"truth", "windows"} <= set(seen.failures)
    assert blind.failures == ("windows",)


def test_copies_of_ones_own_record_hide_nobody(tmp_path):
    draft, times = changed(), [t for t, _, _ in SAMPLES[0]]
    for record in draft.records[:K]:
        record.boxes = [[t, t, x, x, y, y] for t, x, y in SAMPLES[0] if times.count(t) == 1]
    assert verify(PEOPLE, draft.write(tmp_path)[0]).failures == ("windows",)


def test_a_record_too_many(tmp_path):
    draft = changed()
    draft.records.append(draft.records[0])
    assert "windows/more-records-than-users" in verify(PEOPLE, draft.write(tmp_path)[0]).codes


# Suppression


def suppressing():
    """Return people of whom one has a sample far away that no record holds, and the release."""
    labels = PEOPLE.labels.to_pylist()
    far = (SAMPLES[5][-1][0] + 40, 9000, 9000)
    people = people_of([[*own, far] if u == 5 else own for u, own in enumerate(SAMPLES)], labels=labels)
    place = {label: user for user, label in enumerate(people.labels.to_pylist())}
    draft = hidden().copy()
    draft.people = people
    for record in draft.records:
        record.owner = place[labels[record.owner]]
    draft.merged = {
        place[labels[owner]]: [(place[labels[member]], first, last) for member, first, last in rows]
        for owner, rows in hidden().merged.items()
    }
    return draft


def test_suppressed_samples_must_be_stated_and_need_the_audit(tmp_path):
    draft = suppressing()
    seen, blind = verdicts_of(draft, tmp_path)
    assert (seen.failures, blind.failures) == (("truth", "windows"), ("windows",))
    draft.suppressed = 1
    path, audit = draft.write(tmp_path)
    verdict = verify(draft.people, path, audit=audit)
    assert verdict.ok, verdict.messages
    assert verdict.figures["suppressed_samples"] == 1
    assert verify(draft.people, path, audit=audit, suppressed=2).codes == ("suppression/not-as-stated",)
    with pytest.raises(CannotCheck, match="`audit`"):
        verify(draft.people, path)


def test_a_sample_that_only_some_records_hold_is_mixed(tmp_path):
    draft = hidden().copy()
    draft.suppressed = 1
    draft.records[0].boxes = draft.records[0].boxes[:-1]
    path, audit = draft.write(tmp_path)
    seen = verify(PEOPLE, path, audit=audit)
    assert {"suppression", "truth"} <= set(seen.failures)
    assert seen.figures["mixed_samples"] > 0


# The audit


@pytest.mark.parametrize(
    ("edit", "kinds"),
    [
        (lambda rows: [*rows, rows[1]], {"audit"}),
        (lambda rows: [(*row[:3], row[4], row[3]) if n == 1 else row for n, row in enumerate(rows)], {"audit"}),
        (lambda rows: [row for row in rows if row[3] is not None or row[0] != 3], {"audit"}),
        (lambda rows: [(*row[:3], None, None) for row in rows[:2]] + rows[2:], {"truth", "suppression"}),
        (lambda rows: [(*row[:3], row[3] and row[3] + 1, row[4]) for row in rows], set()),
    ],
    ids=["twice", "backwards", "no owner", "always", "later"],
)
def test_an_audit_is_checked_not_believed(edit, kinds, tmp_path):
    draft = hidden().copy()
    draft.edit_audit = edit
    path, audit = draft.write(tmp_path)
    verdict = verify(PEOPLE, path, audit=audit)
    assert set(verdict.failures) <= kinds
    assert verdict.ok == (not kinds)


def test_an_audit_may_be_a_csv_file(tmp_path):
    path, _ = hidden().write(tmp_path)
    pa_csv.write_csv(hidden().audit(), tmp_path / "audit.csv")
    verdict = verify(PEOPLE, path, audit=tmp_path / "audit.csv")
    assert verdict.ok, verdict.messages


@pytest.mark.parametrize("names", [["t_start"], ["t_end"], ["t_start", "t_end"]])
def test_the_times_of_an_audit_are_timestamps(names, tmp_path):
    path, _ = hidden().write(tmp_path)
    table = hidden().audit()
    for name in names:
        table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.int64()))
    verdict = verify(PEOPLE, path, audit=table)
    assert verdict.codes == ("audit/time-type", "audit/repeated-member")


# What is asked


def test_windows_may_be_asked_of_any_claim(tmp_path):
    people = toy_people(users=30, samples=8, seed=4)
    for make, claim in ((ring, "cover"), (grouped, "k-anonymity")):
        path, audit = make(people, K).write(tmp_path)
        for shown in (audit, None):
            verdict = verify(people, path, tau="2h", audit=shown)
            assert verdict.ok, verdict.messages
            assert "windows" in verdict.checked
            assert verdict.shown == Claim(claim, k=K)  # it implies cover of windows
            assert verify(people, path, tau="2h", epsilon="1min", audit=shown).failures == ("windows",)
    assert verify(people, path, audit=audit).figures.get("windows") is None


def test_a_release_that_claims_nothing_is_checked_for_windows_if_asked(tmp_path):
    path, _ = changed(claim={"name": "none", "why": "research"}, seeded=True).write(tmp_path)
    assert verify(PEOPLE, path).failures == ("cover",)
    verdict = verify(PEOPLE, path, tau=TAU_S)
    assert verdict.ok, verdict.messages
    assert "cover" not in verdict.checked
    assert "Nothing is claimed; cover of windows holds" in verdict.messages[-1]
    assert verdict.shown == Claim(**COVER)
    assert verify(PEOPLE, path, tau=TAU_S, epsilon=EPSILON_S).ok
    assert verify(PEOPLE, path, tau=TAU_S, epsilon=60).failures == ("windows",)


def test_parameters_say_what_a_seeded_release_was_made_for(tmp_path):
    draft = changed(claim={"name": "none", "why": "research"}, seeded=True)
    parameters = {"k": K, "tau_s": TAU_S, "epsilon_s": EPSILON_S}
    draft.edit_shoal = lambda shoal: {**shoal, "method": "kte-hide", "parameters": parameters}
    verdict = verify(PEOPLE, draft.write(tmp_path)[0])
    assert verdict.ok, verdict.messages
    assert verdict.shown == Claim("kte-anonymity", **parameters)
    draft.claim = {**hidden().claim, "tau_s": 2 * TAU_S}
    assert "leaks" in verify(PEOPLE, draft.write(tmp_path)[0]).failures


@pytest.mark.parametrize(
    "asked",
    [{"epsilon": "60min"}, {"tau": 0}, {"tau": "x"}, {"tau": 3600, "epsilon": 0}, {"tau": True}],
    ids=["no tau", "none", "no time", "no epsilon", "true"],
)
def test_what_makes_no_sense_is_refused(asked, tmp_path):
    people = toy_people(users=30, samples=8, seed=4)
    path, _ = ring(people, K).write(tmp_path)
    with pytest.raises(SettingsError):
        verify(people, path, **asked)


def test_leakage_belongs_to_windows_of_one_length(tmp_path):
    path, _ = hidden().write(tmp_path)
    with pytest.raises(SettingsError, match="another length"):
        verify(PEOPLE, path, tau=2 * TAU_S)
    assert verify(PEOPLE, path, epsilon=2 * EPSILON_S).figures["leakage"]["epsilon_s"] == EPSILON_S
    assert verify(PEOPLE, path, epsilon=60).failures == ("windows",)


def test_claims_about_points_can_not_be_checked(tmp_path):
    draft = changed(claim={"name": "geo-indistinguishability", "epsilon_per_m": 0.01})
    with pytest.raises(CannotCheck, match="points"):
        verify(PEOPLE, draft.write(tmp_path)[0])


def test_results_do_not_depend_on_threads(tmp_path):
    path, audit = hidden().write(tmp_path)
    first, *others = (verify(PEOPLE, path, audit=audit, run=Run(threads=threads)).to_dict() for threads in (1, 2, 5))
    assert all(other == first for other in others)


def test_what_all_records_tell_is_kept_word_by_word():
    draw = np.random.default_rng(1)
    for _ in range(300):
        words = int(draw.integers(1, 7))
        told, bits = np.where(draw.random((2, words)) < 0.5, 0, draw.integers(1, 2**63, (2, words))).astype(np.uint64)
        answer = _Answer(np.zeros(1, np.int64), told.copy(), np.array([0, words]))
        closed = [_add(answer, 1, bits[None], 0, 2) for _ in range(2)]
        common = told & bits
        np.testing.assert_array_equal(answer.told, common)
        low, high = answer.span
        assert not common[:low].any()
        assert not common[high:].any()
        assert closed == [False, not common.any()]
        assert closed[1] == (low == high)
        assert answer.persons.tolist() == [2]
