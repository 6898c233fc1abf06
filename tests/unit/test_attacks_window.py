"""The attack window: candidates and what is learned beyond it, equal to plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.attacks import play
from shoal.claim import Claim
from shoal.errors import SettingsError
from tests.draws import examples
from tests.oracle import attacks as slow
from tests.releases import grouped, ring, toy_people
from tests.targets import random_crowd, random_records, target_of

HOUR = 3600
SLOTS = 6  # of an hour, in slots of ten minutes


def drawn_windows(people, seed, n, slots):
    """What the attack drew: (victim, first slot, last slot)."""
    chance = np.random.default_rng([seed, 2])
    victims = np.sort(chance.permutation(len(people))[:n])
    chosen = chance.random(len(victims))
    for victim, part in zip(victims.tolist(), chosen, strict=True):
        first = people[victim][int(part * len(people[victim]))][0]
        yield victim, first, first + slots - 1


@examples(40)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_rows_are_those_of_plain_loops(seed, hours):
    people, records = random_crowd(seed, users=10), random_records(seed, records=9)
    outcome = play(target_of(people, records), "window", victims=7, seed=seed, tau=hours * HOUR, epsilon=HOUR)
    counts, control, learned, runs, sides, slots = [], [], [], [], [], []
    raw_learned = []
    for victim, first, last in drawn_windows(people, seed, 7, hours * SLOTS):
        known = slow.in_window(people[victim], first, last)
        found = slow.window_candidates(records, known, first, last)
        raw = slow.raw_window_candidates(people, known, first, last)
        counts.append(slow.count(records, found))
        control.append(len(raw))
        outside = [sample for sample in people[victim] if sample not in known]
        boxes = {s: [b for n in found for b in records[n][0] if slow.holds(b, s)] for s in outside}
        if found and outside:
            share, run = slow.beyond(people[victim], first, last, lambda s, b=boxes, f=found: len(b[s]) == len(f))
            learned.append(share)
            runs.append(run / 6)
            hulls = [slow.hull(boxes[s]) for s in outside if len(boxes[s]) == len(found)]
            sides += [((h[3] - h[2] + 1) + (h[5] - h[4] + 1)) / 2 * 0.1 for h in hulls]
            slots += [(h[1] - h[0] + 1) * 10 for h in hulls]
        if outside:
            raw_learned.append(np.mean([all(s in people[u] for u in raw) for s in outside]))
    row = outcome.rows[0]
    assert row["success"] == counts.count(1) / len(counts)
    assert row["not_found"] == counts.count(0) / len(counts)
    assert row["candidates_mean"] == (np.mean([n for n in counts if n]) if any(counts) else None)
    assert row["control"] == control.count(1) / len(control)
    assert row["learned"] == (pytest.approx(np.mean(learned)) if learned else None)
    assert row["run_h_mean"] == (pytest.approx(np.mean(runs)) if runs else None)
    assert row["above_epsilon"] == (pytest.approx(np.mean([run > 1 for run in runs])) if runs else None)
    assert row["side_km_median"] == (pytest.approx(np.median(sides)) if sides else None)
    assert row["duration_min_median"] == (pytest.approx(np.median(slots)) if slots else None)
    assert row["control_learned"] == (pytest.approx(np.mean(raw_learned)) if raw_learned else None)


@pytest.mark.parametrize("make", [grouped, ring])
def test_never_fewer_than_k_in_a_release_that_holds(make, tmp_path):
    people = toy_people(users=40)
    path, _ = make(people, 4).write(tmp_path)
    outcome = shoal.attack(people, path, "window", victims=40)
    assert [row["tau_s"] for row in outcome.rows] == [HOUR, 6 * HOUR, 24 * HOUR]
    assert outcome.ok
    assert min(row["candidates_min"] for row in outcome.rows) >= 4
    assert all(row["success"] == 0 for row in outcome.rows)
    assert all(row["control"] > 0.5 for row in outcome.rows)


def test_an_empty_box_inside_the_window_rules_a_record_out():
    tight = [(10, 10, 1, 1, 1, 1), (30, 30, 1, 1, 1, 1)]
    other = [(10, 10, 1, 1, 1, 1), (12, 12, 5, 5, 5, 5), (30, 30, 1, 1, 1, 1)]
    target = target_of([[(10, 1, 1), (30, 1, 1)]], [(tight, 1), (other, 1)])
    rows = [play(target, "window", tau=HOUR, seed=seed).rows[0] for seed in range(20)]
    # Only if the window starts at the first sample does it hold the box at slot 12.
    assert {(row["candidates_mean"], row["success"]) for row in rows} == {(1.0, 1.0), (2.0, 0.0)}


def test_what_all_members_share_is_learned():
    people = [[(10, 1, 1), (30, 1, 1), (60, 4, 4)], [(11, 2, 1), (31, 1, 1), (59, 3, 4)]]
    record = [(10, 11, 1, 2, 1, 1), (30, 31, 1, 1, 1, 1), (59, 60, 3, 4, 4, 4)]
    row = play(target_of(people, [(record, 2)], k=2), "window", tau=600).rows[0]
    assert (row["candidates_min"], row["learned"], row["control_learned"]) == (2, 1.0, 1.0)
    assert row["side_km_median"] <= 0.15
    assert row["control_side_km_median"] == 0.1


def test_a_broken_release_is_said_to_be_broken(tmp_path):
    draft = grouped(toy_people(users=12), 3)
    draft.records.pop()
    path, _ = draft.write(tmp_path)
    outcome = shoal.attack(draft.people, path, "window", tau="3d", victims=12)
    assert not outcome.ok


def test_a_claim_about_windows_is_held_to_windows_no_longer():
    people = [[(1, 1, 1), (40, 1, 1)], [(2, 2, 2), (41, 1, 1)]]
    records = [([(1, 1, 1, 1, 1, 1), (40, 40, 1, 1, 1, 1)], 1), ([(2, 2, 2, 2, 2, 2), (41, 41, 1, 1, 1, 1)], 1)]
    target = target_of(people, records, k=2, claim=Claim("kte-cover", k=2, tau_s=2 * HOUR))
    assert not play(target, "window", tau=2 * HOUR).ok
    assert play(target, "window", tau=3 * HOUR).ok


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"tau": 0}, "tau: must be at least"), ({"epsilon": -1}, "epsilon: must be at least"), ({"tau": "6x"}, "6h")],
)
def test_what_makes_no_sense(wrong, said):
    with pytest.raises(SettingsError, match=said):
        play(target_of([[(1, 1, 1)]], [([(1, 1, 1, 1, 1, 1)], 1)]), "window", **wrong)
