"""The owner attack: features against slow twins, exact shares under identical groups, planted and drawn owners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.attacks import attack, open_target, play
from shoal.attacks.features import FEATURES, victim_features
from shoal.attacks.owner import owner_attack
from shoal.attacks.posterior import Choices, contrasts, effective_sizes, expected_hits, fit, held_out_scores, posterior
from shoal.attacks.rivals import rival_features
from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.layouts import Boxes
from shoal.merge import k_merge
from shoal.publishing.owners import with_random_owners
from shoal.release import Members, Release
from shoal.run import Run
from shoal.seen.cover import cover_pairs
from tests.draws import examples
from tests.oracle import owner as oracle
from tests.people import lists_of, random_people
from tests.releases import people_of
from tests.targets import boxes_of


def pairs_of(target):
    everyone = np.arange(len(target.people))
    users, kinds = cover_pairs(target.published, target.records.unique, everyone)
    order = np.lexsort((kinds, users))
    return users[order], kinds[order]


@pytest.mark.parametrize("seed", range(4))
def test_features_are_what_they_say(seed):
    people = random_people(30, seed=seed, slots=60, side=12, mean=5)
    target = open_target(people, shoal.KScale(k=3, candidates=10).anonymize(people))
    users, kinds = pairs_of(target)
    found = victim_features(target.people, target.records.unique, users, kinds)
    assert list(found) == list(FEATURES)
    for user, samples in enumerate(lists_of(target.people)):
        mine = np.flatnonzero(users == user)
        records = [boxes_of(target.records.unique, kind) for kind in kinds[mine]]
        shared = oracle.shared_times(samples, records)
        for row, boxes, others in zip(mine, records, shared, strict=True):
            assert oracle.covers(boxes, samples)
            wanted = oracle.pair_features(samples, boxes) | others
            assert set(wanted) == set(FEATURES)
            for name in FEATURES:
                assert found[name][row] == pytest.approx(wanted[name], abs=1e-9), name


def test_features_need_nobody_else():
    people = random_people(40, seed=9, slots=60, side=12, mean=5)
    target = open_target(people, shoal.KScale(k=3).anonymize(people))
    users, kinds = pairs_of(target)
    all_of_them = victim_features(target.people, target.records.unique, users, kinds)
    mine = users == 17
    hers = victim_features(target.people, target.records.unique, users[mine], kinds[mine])
    for name in FEATURES:
        np.testing.assert_array_equal(all_of_them[name][mine], hers[name])


def test_blocks_change_nothing(monkeypatch):
    people = random_people(40, seed=8, slots=60, side=12, mean=5)
    target = open_target(people, shoal.KScale(k=3).anonymize(people))
    arguments = (target.people, target.records.unique, *pairs_of(target))
    whole, rivals = victim_features(*arguments), rival_features(*arguments)
    for module in ("features", "rivals"):
        monkeypatch.setattr(f"shoal.attacks.{module}._SAMPLES", 50)
    for before, after in ((whole, victim_features(*arguments)), (rivals, rival_features(*arguments))):
        for name, values in before.items():
            np.testing.assert_array_equal(values, after[name])


@pytest.mark.parametrize("k", [2, 4])
def test_the_owner_regrets_nothing(k):
    people = random_people(50, seed=k, slots=80, side=10, mean=6)
    target = open_target(people, shoal.KScale(k=k).anonymize(people))
    users, kinds = pairs_of(target)
    found = rival_features(target.people, target.records.unique, users, kinds)
    own = target.records.groups[target.own[users]] == kinds
    assert found["no_regret"][own].all()
    assert not found["no_regret"][~own].all()
    everyone = lists_of(target.people)
    for pair in range(0, len(users), 7):
        covered = users[kinds == kinds[pair]]
        samples = [everyone[user] for user in covered]
        mine = samples.pop(int(np.flatnonzero(covered == users[pair])[0]))
        boxes = boxes_of(target.records.unique, kinds[pair])
        paid = np.mean([oracle.cost(next(b for b in boxes if oracle.inside(b, s))) for s in mine])
        least = k_merge([mine, *samples], "owner")[1]
        assert found["regret"][pair] == pytest.approx(np.log(paid / least), abs=1e-9)
        assert found["reach"][pair] == pytest.approx(np.log(len(covered)))
        alone = [[oracle.hull([s for s in mine if oracle.inside(b, s)])[f] == b[f] for f in range(6)] for b in boxes]
        for other in samples:
            for b, box in enumerate(boxes):
                touched = oracle.hull([s for s in other if oracle.inside(box, s)])
                alone[b] = [a and touched[f] != box[f] for f, a in enumerate(alone[b])]
        assert found["faces_alone"][pair] == pytest.approx(np.mean(alone))


def test_a_record_of_many_is_not_merged_again(monkeypatch):
    people = random_people(30, seed=2, slots=40, side=5, mean=4)
    target = open_target(people, shoal.KScale(k=5).anonymize(people))
    monkeypatch.setattr("shoal.attacks.rivals._MOST_MERGED", 4)
    found = rival_features(target.people, target.records.unique, *pairs_of(target))
    np.testing.assert_array_equal(found["merged"] > 0, found["reach"] <= np.log(4) + 1e-9)
    assert not found["regret"][found["merged"] == 0].any()
    assert 0 < found["merged"].sum() < len(found["merged"])


@st.composite
def games(draw):
    counts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    n = sum(counts)
    weights = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    scores = draw(st.lists(st.sampled_from([-2.0, 0.0, 0.5, 3.0]), min_size=n, max_size=n))
    ends = np.concatenate([[0], np.cumsum(counts)])
    truth = np.zeros(n, dtype=bool)
    for start, count in zip(ends, counts, strict=False):
        truth[start + draw(st.integers(0, count - 1))] = True
    return Choices(ends, np.array(weights)), np.array(scores), truth


@examples(150)
@given(games())
def test_posterior_and_hits_against_one_victim_at_a_time(game):
    choices, scores, truth = game
    chances = posterior(scores, choices)
    hits, sizes = expected_hits(scores, truth, choices), effective_sizes(chances, choices)
    ranked = contrasts(scores[:, None], choices)
    for victim, (start, stop) in enumerate(zip(choices.ends[:-1], choices.ends[1:], strict=True)):
        records = [
            (score, true) for c in range(start, stop) for score, true in [(scores[c], truth[c])] * choices.weights[c]
        ]
        odds = np.exp([score for score, _ in records])
        p = odds / odds.sum()
        assert sizes[victim] == pytest.approx(2 ** -(p * np.log2(p)).sum())
        assert 1 - 1e-9 <= sizes[victim] <= len(records) + 1e-9
        best = [true for score, true in records if score == max(records)[0]]
        own = next(c for c in range(start, stop) if truth[c])
        assert hits[victim] == pytest.approx(any(best) / len(best) if any(best) else 0)
        assert chances[start:stop].sum() == pytest.approx(1)
        assert chances[own] == pytest.approx(sum(q for q, (s, true) in zip(p, records, strict=True) if true))
        column = scores[start:stop]
        for c in range(start, stop):
            below, same = (column < scores[c]).sum(), (column == scores[c]).sum()
            rank = (below + (same - 1) / 2) / (len(column) - 1) - 0.5 if len(column) > 1 else 0
            wanted = [scores[c] - column.mean(), rank, int(scores[c] == column.max()) - int(scores[c] == column.min())]
            assert ranked[c] == pytest.approx(wanted)


def drawn_game(n, slope, seed=0):
    """Victims with four candidates each, whose own is drawn by the softmax of slope times a feature."""
    rng = np.random.default_rng(seed)
    choices = Choices(np.arange(0, 4 * n + 1, 4), np.ones(4 * n, dtype=np.int64))
    columns = contrasts(rng.normal(size=(4 * n, 3)), choices)
    chances = posterior(slope * columns[:, 0], choices).reshape(n, 4)
    own = (chances.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    truth = np.zeros(4 * n, dtype=bool)
    truth[np.arange(n) * 4 + own] = True
    return choices, columns, truth


def test_the_model_finds_what_the_owners_were_drawn_by():
    choices, columns, truth = drawn_game(1500, 2.0)
    scores = held_out_scores(columns, truth, choices, np.arange(1500) % 4)
    best = expected_hits(columns[:, 0], truth, choices).mean()
    chances = posterior(scores, choices)
    assert expected_hits(scores, truth, choices).mean() > best - 0.02
    assert choices.best(chances).mean() == pytest.approx(expected_hits(scores, truth, choices).mean(), abs=0.04)


def test_where_there_is_nothing_to_learn_the_posterior_is_flat():
    choices, columns, truth = drawn_game(1500, 0.0)
    scores = held_out_scores(columns, truth, choices, np.arange(1500) % 4)
    assert effective_sizes(posterior(scores, choices), choices).mean() > 3.9


def test_a_fold_is_judged_by_the_others_only():
    choices, columns, truth = drawn_game(80, 2.0)
    fold = np.arange(80) % 4
    before = held_out_scores(columns, truth, choices, fold)
    mine = np.repeat(fold == 2, 4)
    changed = np.where(mine, np.roll(truth.reshape(-1, 4), 1, axis=1).ravel(), truth)
    after = held_out_scores(columns, changed, choices, fold)
    np.testing.assert_array_equal(before[mine], after[mine])
    assert (before[~mine] != after[~mine]).any()


def test_nothing_is_learned_from_too_few():
    choices, columns, truth = drawn_game(3, 2.0)
    assert not fit(columns, truth, choices).scores(columns).any()


def planted(groups, k, *, blocks=6, seed=0, secret=False):
    """Groups of k people, far apart. Everyone's own record is small where she has two samples and large elsewhere.

    With `secret` the owners within each group are drawn by chance.
    """
    rng = np.random.default_rng(seed)
    lists, records = [], []
    for g in range(groups):
        at = 1000 * g
        for m in range(k):
            times = [100 * b + 20 + rng.integers(0, 3) for b in range(blocks * k)]
            extra = [100 * b + 25 + int(rng.integers(0, 5)) for b in range(m, blocks * k, k)]
            lists.append([(int(t), at + int(rng.integers(0, 4)), 0) for t in [*times, *extra]])
            records.append(
                [
                    [100 * b + 20 - grow, 100 * b + 30 + grow, at - 10 * grow, at + 4 + 10 * grow, 0, 0]
                    for b in range(blocks * k)
                    for grow in [0 if b % k == m else 5]
                ]
            )
    people = people_of(lists)
    rank = {int(label): user for user, label in enumerate(people.labels.to_pylist())}
    owners = np.array([rank[label] for label in range(len(lists))])
    if secret:
        owners = np.concatenate([rng.permutation(owners[s : s + k]) for s in range(0, len(owners), k)])
    group = np.arange(len(lists)) // k
    members = np.concatenate(
        [[o, *(u for u in owners[group == g] if u != o)] for o, g in zip(owners, group, strict=True)]
    )
    return people, Release(
        offsets=np.arange(len(records) + 1) * blocks * k,
        layout=Boxes(np.array(records, dtype=np.int32).reshape(-1, 6)),
        frame=people.frame,
        method="planted",
        parameters={"k": k},
        claim=Claim("k-concealment", k=k) if secret else Claim("cover", k=k),
        samples=people.samples,
        members=Members(owners, np.arange(0, len(members) + 1, k), members, people),
    )


@pytest.mark.parametrize("knows", ["victim", "everybody"])
def test_an_obvious_owner_is_found(knows):
    people, release = planted(60, 4)
    outcome = attack(people, release, "owner", knows=knows)
    learned = outcome.rows[-1]
    assert learned["adversary"] == "learned"
    assert learned["success"] > 0.95
    assert learned["candidates_min"] == 4
    assert outcome.figures["effective_k_median"] < 1.5
    assert outcome.figures["effective_k_below_half"] > 0.9
    assert outcome.ok
    assert any("does not hide" in said for said in outcome.messages)


def test_an_obvious_owner_breaks_a_promise():
    people, release = planted(60, 4)
    broken = Release(**{**vars(release), "claim": Claim("k-concealment", k=4)})
    outcome = attack(people, broken, "owner")
    assert not outcome.ok
    assert "more than the 25" in outcome.failures[0]


@pytest.mark.parametrize("knows", ["victim", "everybody"])
def test_owners_drawn_by_chance_are_not_told(knows):
    people, release = planted(120, 4, secret=True)
    outcome = attack(people, release, "owner", knows=knows)
    learned = outcome.rows[-1]
    assert learned["success_low"] < 0.25 < learned["success_high"]
    assert outcome.figures["effective_k_mean"] > 3.5
    assert outcome.ok


def test_random_owners_of_k_concealment():
    people = shoal.from_arrow(shoal.synthesize(users=200, scene="town", days=3, seed=4))
    release = shoal.KConcealment(k=3, candidates=40).anonymize(people)
    drawn = with_random_owners(release.members, np.random.default_rng(1))
    release = Release(**{**vars(release), "members": drawn})
    outcome = attack(people, release, "owner", knows="everybody")
    assert outcome.ok
    assert outcome.rows[-1]["success_low"] < 1 / 3


@pytest.mark.parametrize("knows", ["victim", "everybody"])
@pytest.mark.parametrize("k", [2, 5])
def test_identical_groups_give_one_over_their_size(k, knows):
    people = shoal.from_arrow(shoal.synthesize(users=120, scene="town", days=7, seed=2))
    release = shoal.Shoal(k=k, effort="quick").anonymize(people)
    target = open_target(people, release)
    outcome = play(target, "owner", knows=knows)
    size = target.records.unique.weights[target.records.groups[target.own]]
    assert size.min() >= k
    assert len(pairs_of(target)[0]) == len(people)  # nobody is in the record of another group by accident
    assert [row["success"] for row in outcome.rows] == pytest.approx([float((1 / size).mean())] * len(outcome.rows))
    assert outcome.figures["effective_k_mean"] == pytest.approx(size.mean())
    assert outcome.figures["effective_k_below_half"] == 0
    assert outcome.rows[-1]["control"] == 1
    assert outcome.ok


def test_nu_k_pick_tells_owners():
    people = shoal.from_arrow(shoal.synthesize(users=300, scene="town", days=7, seed=5))
    target = open_target(people, shoal.KScale(k=3, candidates=60).anonymize(people))
    outcome = play(target, "owner", seed=3)
    assert outcome.rows[-1]["success_low"] > 0.5
    assert outcome.figures["effective_k_mean"] < 2.2
    assert outcome.rows[-1]["success"] >= max(row["success"] for row in outcome.rows) - 0.03


def test_a_seed_repeats_the_attack_on_any_number_of_threads():
    target = open_target(*planted(30, 4))
    outcome = play(target, "owner", seed=3)
    again = owner_attack(target, seed=3, run=Run(threads=2))
    assert again.to_dict() == outcome.to_dict()
    assert play(target, "owner", seed=4, victims=100).victims == 100


def test_those_who_are_not_covered_by_their_own_record_count_as_not_told():
    people, release = planted(30, 4)
    swapped = np.roll(release.members.owners, 4)  # everyone owns a record of the next group
    members = Members(swapped, np.arange(len(release) + 1), swapped, people)
    outcome = attack(people, Release(**{**vars(release), "members": members}), "owner")
    assert outcome.rows[-1]["success"] == 0
    assert outcome.figures["own_not_among_candidates"] == 1


def test_what_it_needs():
    people, release = planted(10, 4)
    with pytest.raises(SettingsError, match="'victim' or 'everybody'"):
        attack(people, release, "owner", knows="nobody")
    with pytest.raises(CannotCheck, match="audit"):
        attack(people, Release(**{**vars(release), "members": None}), "owner")
