"""The attack points: equal to plain loops, never below k where k holds, and loud where it does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.attacks import play
from shoal.attacks.knowledge import shuffled
from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from tests.draws import examples
from tests.oracle import attacks as slow
from tests.people import lists_of, random_people
from tests.releases import grouped, ring, toy_people
from tests.targets import covering_records, random_crowd, random_records, target_of


def known_points(target, outcome, seed):
    """What the attack drew, user by user: the victims, and their samples in the order in which they become known."""
    chance = np.random.default_rng([seed, 1])
    victims = np.sort(chance.permutation(np.flatnonzero(target.published.counts > 0))[: outcome.victims])
    return victims.tolist(), lists_of(shuffled(target.published, victims, chance))


@examples(25)
@given(st.integers(0, 10_000))
def test_rows_are_those_of_plain_loops(seed):
    people, records = random_crowd(seed), random_records(seed)
    target = target_of(people, records)
    outcome = play(target, "points", victims=6, seed=seed)
    _, known = known_points(target, outcome, seed)
    for row in outcome.rows:
        counts = [slow.count(records, slow.candidates(records, one[: row["points"]])) for one in known]
        control = [len(slow.raw_candidates(people, one[: row["points"]])) for one in known]
        found = [n for n in counts if n]
        assert row["success"] == counts.count(1) / len(known)
        assert row["not_found"] == counts.count(0) / len(known)
        assert row["candidates_min"] == (min(found) if found else None)
        assert row["control"] == control.count(1) / len(known)
        assert row["control_candidates_mean"] == pytest.approx(np.mean(control))


def test_what_is_known_grows():
    people = random_crowd(5, users=30)
    outcome = play(target_of(people, covering_records(people, [range(30)])), "points", victims=20)
    assert [row["points"] for row in outcome.rows] == list(range(1, 11))
    control = [row["control_candidates_mean"] for row in outcome.rows]
    assert control == sorted(control, reverse=True)
    assert control[0] > control[-1] >= 1


def test_what_is_known_are_samples_of_the_victim():
    people = random_crowd(4, users=12)
    target = target_of(people, covering_records(people, [range(12)]))
    victims, known = known_points(target, play(target, "points", victims=12), 0)
    assert victims == list(range(12))
    assert [sorted(one) for one in known] == people


@pytest.mark.parametrize("make", [grouped, ring])
@pytest.mark.parametrize("k", [2, 5])
def test_never_fewer_than_k_in_a_release_that_holds(make, k, tmp_path):
    path, audit = make(toy_people(users=40), k).write(tmp_path)
    for given_audit in (None, audit):
        outcome = shoal.attack(toy_people(users=40), path, "points", victims=40, audit=given_audit)
        assert outcome.ok
        assert min(row["candidates_min"] for row in outcome.rows) >= k
        assert all(row["below_k"] == row["not_found"] == row["success"] == 0 for row in outcome.rows)
        assert outcome.figures["promise"] == 1 / k


@pytest.mark.parametrize("method", [shoal.Shoal(k=3), shoal.KScale(k=3), shoal.KConcealment(k=3)])
def test_never_fewer_than_k_in_what_methods_make(method):
    people = random_people(60, seed=2)
    outcome = shoal.attack(people, method.anonymize(people), "points", victims=60)
    assert outcome.ok
    assert outcome.rows[3]["control"] > 0.9
    assert min(row["candidates_min"] for row in outcome.rows) >= 3


def test_a_broken_release_is_said_to_be_broken(tmp_path):
    draft = grouped(toy_people(users=12), 3)
    draft.records.pop()  # a group of three has two records left
    path, _ = draft.write(tmp_path)
    outcome = shoal.attack(draft.people, path, "points", points=10, victims=12)
    assert not outcome.ok
    assert "3 of 12 victims have fewer than 3 candidates" in outcome.failures[0]
    assert outcome.rows[0]["below_k"] == 3 / 12


def test_somebody_who_is_not_found_breaks_the_promise_too():
    people = [[(1, 1, 1)], [(2, 2, 2)], [(9, 9, 9)]]
    records = [([(1, 2, 1, 2, 1, 2)], 2)]
    assert play(target_of(people, records, k=2), "points").failures
    assert not play(target_of(people, records, k=2, suppressed=True), "points").failures
    told = play(target_of(people, records, k=2, suppressed=True, own=[0, 0, -1]), "points")
    assert (told.victims, told.ok) == (2, True)
    wrong = play(target_of(people, records, k=3, suppressed=True, own=[0, 0, -1]), "points")
    assert not wrong.ok


def test_only_published_samples_are_known_where_the_audit_tells():
    people = [[(1, 1, 1), (7, 7, 7)], [(2, 2, 2)]]
    records = [([(1, 2, 1, 2, 1, 2)], 2)]
    target = target_of(people, records, k=2, suppressed=True, own=[0, 0])
    assert play(target, "points").rows[-1]["not_found"] == 0
    assert play(target_of(people, records, k=2, suppressed=True), "points").rows[-1]["not_found"] == 0.5


def test_claims_that_promise_less_are_not_broken_by_points():
    people = [[(1, 1, 1)], [(2, 2, 2)]]
    records = [([(1, 1, 1, 1, 1, 1)], 1), ([(2, 2, 2, 2, 2, 2)], 1)]
    assert play(target_of(people, records, k=2, claim=Claim("kte-cover", k=2, tau_s=60)), "points").ok
    assert play(target_of(people, records, claim=Claim("none", why="unclaimed")), "points").ok
    assert not play(target_of(people, records, k=2, claim=Claim("none", why="research")), "points").ok


def test_identical_records_and_compact_ones_count_alike(tmp_path):
    people = random_people(30, seed=3)
    release = shoal.Shoal(k=3).anonymize(people)
    outcomes = []
    for compact in (False, True):
        path = tmp_path / f"{compact}.parquet"
        release.write(path, compact=compact, audit=tmp_path / f"audit-{compact}.parquet")
        outcomes.append(shoal.attack(people, path, "points", audit=tmp_path / f"audit-{compact}.parquet").rows)
    assert outcomes[0] == outcomes[1]


def test_victims_are_no_more_than_there_are():
    people = random_crowd(1, users=5)
    outcome = play(target_of(people, covering_records(people, [range(5)])), "points", points=2, victims=1000)
    assert outcome.victims == outcome.rows[0]["victims"] == 5


def test_what_makes_no_sense():
    people = random_crowd(1, users=5)
    target = target_of(people, covering_records(people, [range(5)]))
    with pytest.raises(SettingsError, match="points: must be at least"):
        play(target, "points", points=0)
    with pytest.raises(SettingsError, match="`victims=1000`"):
        play(target, "points", victims=0)
    with pytest.raises(CannotCheck, match="nobody"):
        play(target_of(people, covering_records(people, [range(5)]), own=[-1] * 5), "points")


@pytest.mark.parametrize(
    ("file", "options"),
    [("tdrive_cdr", {"tz": "Asia/Shanghai"}), ("gowalla_nyc", {"tz": "America/New_York", "min_samples": 14})],
)
def test_four_points_single_out_nearly_everybody_in_raw_data(data, file, options):
    people = shoal.read(data / f"{file}.parquet", **options)
    few = people_of_first(people, 400)
    outcome = shoal.attack(few, shoal.Shoal(k=5).anonymize(few), "points", points=4, victims=400)
    assert outcome.rows[0]["control_low"] > 0.9
    assert outcome.rows[0]["candidates_min"] >= 5


def people_of_first(people, n):
    end = int(people.offsets[n])
    columns = (people.t[:end], people.x[:end], people.y[:end])
    return shoal.Trajectories(people.offsets[: n + 1], *columns, people.frame, people.labels[:n])
