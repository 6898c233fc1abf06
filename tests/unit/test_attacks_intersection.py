"""The attack intersection: equal to plain loops, on grids that differ, with and without audits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.attacks import open_target, play
from shoal.attacks.knowledge import shuffled
from shoal.errors import CannotCheck, SettingsError
from shoal.run import Run
from shoal.seen.grid import Grid
from tests.draws import examples
from tests.oracle import attacks as slow
from tests.people import lists_of, random_people
from tests.releases import grouped, toy_people
from tests.targets import GRID, covering_records, random_crowd, target_of


def groups_of(n, seed, size):
    order = np.random.default_rng(seed).permutation(n).tolist()
    return [order[start : start + size] for start in range(0, n, size)]


def cut(people, group, at):
    """A record of a group: the bounds of its samples before and after a time, where everybody has some in both."""
    early = [s for user in group for s in people[user] if s[0] < at]
    late = [s for user in group for s in people[user] if s[0] >= at]
    shared = all(min(people[user])[0] < at <= max(people[user])[0] for user in group)
    records = covering_records([early, late], [[0], [1]]) if shared else covering_records([early + late], [[0]])
    return [box for boxes, _ in records for box in boxes], len(group)


def two_releases(seed, n=12):
    people = random_crowd(seed, users=n, side=9, most=9)
    sides = []
    for side, size in ((0, 3), (1, 4)):
        groups = groups_of(n, [seed, side], size)
        records = [cut(people, group, 20) for group in groups]
        own = [next(number for number, group in enumerate(groups) if user in group) for user in range(n)]
        sides.append((records, own, groups))
    return people, sides


def metres(boxes, grid=GRID):
    scale = [grid.slot_s] * 2 + [grid.cell_m] * 4
    return [
        tuple((edge + place % 2) * size for place, (edge, size) in enumerate(zip(b, scale, strict=True))) for b in boxes
    ]


def known_of(target, victims, seed):
    return lists_of(shuffled(target.published, victims, np.random.default_rng([seed, 6])))


@examples(30)
@given(st.integers(0, 10_000))
def test_rows_are_those_of_plain_loops(seed):
    people, ((first, own_1, groups_1), (second, own_2, groups_2)) = two_releases(seed)
    distinct = [len({tuple(boxes) for boxes, _ in records}) == len(records) for records in (first, second)]
    if not all(distinct):
        return
    target, other = target_of(people, first, own=own_1), target_of(people, second, own=own_2)
    outcome = play(target, "intersection", other=other, victims=7, seed=seed)
    victims = np.sort(np.random.default_rng([seed, 5]).permutation(len(people))[:7])
    known = known_of(target, victims, seed)
    start = max(min(b[0] for boxes, _ in records for b in metres(boxes)) for records in (first, second))
    end = min(max(b[1] for boxes, _ in records for b in metres(boxes)) for records in (first, second))
    for row in outcome.rows:
        left, together = [], []
        for points in known:
            a, b = (slow.candidates(records, points[: row["points"]]) for records in (first, second))
            links = [
                (i, j) for i in a for j in b if slow.may_be_one(metres(first[i][0]), metres(second[j][0]), start, end)
            ]
            left.append(slow.people_left({i: first[i][1] for i in a}, {j: second[j][1] for j in b}, links))
            members = [{u for n in some for u in groups[n]} for some, groups in ((a, groups_1), (b, groups_2))]
            together.append(len(members[0] & members[1]))
        assert row["left_mean"] == pytest.approx(np.mean(left))
        assert row["together_mean"] == pytest.approx(np.mean(together))
        assert row["success"] == together.count(1) / len(together)
        assert row["left_min"] >= row["together_min"]
    assert outcome.figures["users_in_both"] == len(people)


@examples(15)
@given(st.integers(0, 10_000))
def test_precision_is_that_of_plain_loops(seed):
    people, ((first, own_1, _), (second, own_2, _)) = two_releases(seed)
    target, other = target_of(people, first, own=own_1), target_of(people, second, own=own_2)
    figures = play(target, "intersection", other=other, points=2).figures
    sides = {"first": [], "second": [], "both": []}
    for user, samples in enumerate(people):
        for sample in samples:
            a, b = (
                next(metres([box])[0] for box in records[own[user]][0] if slow.holds(box, sample))
                for records, own in ((first, own_1), (second, own_2))
            )
            met = [(max, min)[n % 2](pair) for n, pair in enumerate(zip(a, b, strict=True))]
            for name, box in (("first", a), ("second", b), ("both", met)):
                sides[name].append((((box[3] - box[2]) + (box[5] - box[4])) / 2, box[1] - box[0]))
    for name, found in sides.items():
        assert figures[f"side_km_{name}"] == pytest.approx(np.mean([side for side, _ in found]) / 1000)
        assert figures[f"duration_min_{name}"] == pytest.approx(np.mean([time for _, time in found]) / 60)


def test_without_audits_members_are_those_who_are_covered(tmp_path):
    people = toy_people(users=24)
    outcomes = []
    for audits in (False, True):
        paths = []
        for number, k in enumerate((3, 4)):
            (tmp_path / f"{audits}{number}").mkdir()
            paths.append(grouped(people, k, seed=number).write(tmp_path / f"{audits}{number}"))
        (one, audit), (two, other_audit) = paths
        more = {"audit": audit, "other_audit": other_audit} if audits else {}
        outcomes.append(shoal.attack(people, one, "intersection", other=two, points=4, **more))
    assert outcomes[0] == outcomes[1]
    row = outcomes[0].rows[0]
    assert row["candidates_min"] >= 3
    assert row["other_candidates_min"] >= 4
    assert row["together_min"] < 3


def test_a_release_with_itself_gives_nothing_more(tmp_path):
    people = random_people(40, seed=5)
    release = shoal.Shoal(k=4).anonymize(people)
    outcome = shoal.attack(people, release, "intersection", other=release, points=4)
    row = outcome.rows[0]
    assert row["together_min"] == row["left_min"] == row["candidates_min"] >= 4
    assert outcome.figures["side_km_both"] == outcome.figures["side_km_first"]


def test_two_groupings_leave_fewer_people_than_either_promises():
    people = random_people(60, seed=6)
    releases = [shoal.Shoal(k=3).anonymize(people), shoal.KScale(k=3, constraint="full").anonymize(people)]
    outcome = shoal.attack(people, releases[0], "intersection", other=releases[1], points=10)
    row = outcome.rows[0]
    assert row["together_min"] < 3 <= min(row["candidates_min"], row["other_candidates_min"])
    assert outcome.figures["side_km_both"] < outcome.figures["side_km_first"]
    assert "about both together" in outcome.messages[-1]


def test_only_those_in_both_are_attacked():
    people = random_crowd(8, users=10)
    records = covering_records(people, [range(10)])
    some = target_of(people[2:6], covering_records(people, [range(2, 6)]), labels=["p2", "p3", "p4", "p5"], own=[0] * 4)
    outcome = play(target_of(people, records, own=[0] * 10), "intersection", other=some, points=2)
    assert outcome.victims == outcome.figures["users_in_both"] == 4
    assert outcome.rows[0]["together_min"] == 4
    strangers = target_of(people[:2], covering_records(people, [range(2)]), labels=["x", "y"])
    with pytest.raises(CannotCheck, match="nobody is in both"):
        play(target_of(people, records), "intersection", other=strangers)


def test_grids_of_other_sizes_but_not_of_another_crs():
    people = [[(0, 0, 0), (40, 9, 9)], [(2, 1, 0), (41, 8, 9)]]
    fine = target_of(people, covering_records(people, [[0, 1]]), own=[0, 0])
    rough = [[(t // 2, x // 5, y // 5) for t, x, y in samples] for samples in people]
    wide = target_of(rough, covering_records(rough, [[0, 1]]), own=[0, 0], grid=Grid(None, 500, 1200))
    outcome = play(fine, "intersection", other=wide, points=2)
    assert outcome.rows[0]["left_min"] == outcome.rows[0]["together_min"] == 2
    assert outcome.figures["side_km_both"] == pytest.approx(1.0)
    far = target_of(people, covering_records(people, [[0, 1]]), grid=Grid("EPSG:32650", 100, 600))
    with pytest.raises(CannotCheck, match="different CRS"):
        play(fine, "intersection", other=far)


def test_what_suppression_may_have_taken_does_not_part_candidates():
    people = [[(1, 1, 1), (30, 5, 5), (40, 9, 9)], [(1, 2, 1), (30, 6, 5), (40, 9, 9)]]
    boxes = [(1, 1, 1, 2, 1, 1), (30, 30, 5, 6, 5, 5), (40, 40, 9, 9, 9, 9)]
    more = [*boxes[:2], (31, 31, 0, 0, 0, 0), boxes[2]]  # the box at 31 has no partner in the first release

    def left(first, second):
        targets = [
            target_of(people, [(some, 2)], own=[0, 0], suppressed=lost)
            for some, lost in ((boxes, first), (more, second))
        ]
        return play(targets[0], "intersection", other=targets[1], points=1).rows[0]["left_mean"]

    assert left(first=False, second=False) == 0
    assert left(first=False, second=True) == 0
    assert left(first=True, second=False) == 2


def test_victims_whose_records_are_not_known_are_said():
    people = [[(1, 1, 1), (30, 5, 5)], [(1, 2, 1), (30, 6, 5)]]
    loose = [([(1, 1, 1, 2, 1, 1), (20, 20, 0, 0, 0, 0), (30, 30, 5, 6, 5, 5)], 2)]  # a box without a sample
    target = target_of(people, loose)
    outcome = play(target, "intersection", other=target, points=2)
    assert outcome.figures["untold"] == 1
    assert any("`other_audit`" in message for message in outcome.messages)
    target = target_of(people, loose, own=[0, 0])
    told = play(target, "intersection", other=target, points=2)
    assert (told.figures["untold"], told.rows[0]["together_min"]) == (0, 2)
    assert not any("`other_audit`" in message for message in told.messages)


def test_the_same_seed_gives_the_same_whatever_the_threads():
    people = random_people(60, seed=4)
    target = open_target(people, shoal.Shoal(k=2).anonymize(people))
    other = open_target(people, shoal.KScale(k=3).anonymize(people))
    one = play(target, "intersection", other=other, victims=30, seed=7, run=Run(threads=1))
    assert play(target, "intersection", other=other, victims=30, seed=7, run=Run(threads=3)) == one
    assert play(target, "intersection", other=other, victims=30, seed=8).rows != one.rows


def test_what_makes_no_sense():
    target = target_of([[(1, 1, 1)]], [([(1, 1, 1, 1, 1, 1)], 1)])
    with pytest.raises(CannotCheck, match="`other`"):
        play(target, "intersection")
    with pytest.raises(SettingsError, match="points: must be at least"):
        play(target, "intersection", other=target, points=0)
