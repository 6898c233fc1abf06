"""Intersecting covers: against one sample at a time, and nothing to gain from identical groups."""

import numpy as np
import pytest

import shoal
from shoal.attacks import attack, open_target, play
from shoal.attacks.covers import intersections
from shoal.claim import Claim
from shoal.errors import CannotCheck
from shoal.layouts import Boxes
from shoal.release import Members, Release
from shoal.run import Run
from shoal.seen.arrays import blocks
from shoal.seen.cover import cover_pairs
from tests.oracle import owner as oracle
from tests.people import random_people
from tests.releases import people_of
from tests.targets import boxes_of


@pytest.mark.parametrize("seed", range(3))
def test_intersections_sample_by_sample(seed, monkeypatch):
    monkeypatch.setattr("shoal.attacks.covers.blocks", lambda sizes: blocks(sizes, 100))
    people = random_people(40, seed=seed, slots=80, side=12, mean=5)
    target = open_target(people, shoal.KScale(k=3).anonymize(people))
    users, kinds = cover_pairs(target.people, target.records.unique, np.arange(len(people)))
    counts, boxes = intersections(target, users, kinds)
    assert counts.tolist() == people.counts.tolist()
    owner = np.repeat(np.arange(len(people)), counts)
    for row in range(len(boxes)):
        records = [boxes_of(target.records.unique, kind) for kind in kinds[users == owner[row]]]
        sample = (int(target.people.t[row]), int(target.people.x[row]), int(target.people.y[row]))
        assert boxes[row].tolist() == oracle.intersection(sample, records)


def by_hand(claim):
    """Two people, whose two records hold both; each is narrower somewhere."""
    people = people_of([[(10, 5, 5)], [(12, 6, 5)]])
    boxes = np.array([[10, 13, 5, 6, 0, 5], [9, 12, 5, 6, 5, 9]], dtype=np.int32)
    members = Members(np.array([0, 1]), np.array([0, 2, 4]), np.array([0, 1, 1, 0]), people)
    return people, Release(
        np.array([0, 1, 2]), Boxes(boxes), people.frame, "by-hand", {"k": 2}, claim, samples=2, members=members
    )


def test_two_records_by_hand():
    outcome = attack(*by_hand(Claim("cover", k=2)), "intersect-covers")
    for row in outcome.rows:
        assert row["cost_own"] == (4 * 8 + 4 * 7) / 2
        assert row["cost_intersected"] == 3 * 3
        assert row["left"] == pytest.approx((9 / 32 + 9 / 28) / 2)
        assert row["duration_s_own"] == 240
        assert row["duration_s_intersected"] == 180
        assert row["side_m_intersected"] == 150
        assert (row["records_mean"], row["people_mean"], row["sharper"]) == (2, 2, 1)
    assert len(outcome.messages) == 1


def test_identical_groups_gain_nothing():
    people = shoal.from_arrow(shoal.synthesize(users=150, scene="town", days=5, seed=2))
    outcome = attack(people, shoal.Shoal(k=3, effort="quick").anonymize(people), "intersect-covers")
    merged, covering = outcome.rows
    assert (merged["records"], merged["left"], merged["left_low"], merged["sharper"]) == ("merged", 1.0, 1.0, 0.0)
    assert merged["people_mean"] >= 3
    assert merged["side_m_own"] == merged["side_m_intersected"]
    assert covering["left"] <= 1
    assert "gains nothing" in outcome.messages[0]


def test_cover_gives_precision_back():
    people = shoal.from_arrow(shoal.synthesize(users=150, scene="town", days=5, seed=2))
    target = open_target(people, shoal.KScale(k=5, candidates=60).anonymize(people))
    outcome = play(target, "intersect-covers")
    merged, covering = outcome.rows
    assert merged["left_high"] < 0.9
    assert covering["left"] <= merged["left"]
    assert merged["cost_raw"] < merged["cost_intersected"] < merged["cost_own"]
    assert play(target, "intersect-covers", run=Run(threads=2)).to_dict() == outcome.to_dict()


def test_the_audit_is_needed():
    people, release = by_hand(Claim("cover", k=2))
    with pytest.raises(CannotCheck, match="audit"):
        attack(people, Release(**{**vars(release), "members": None}), "intersect-covers")
