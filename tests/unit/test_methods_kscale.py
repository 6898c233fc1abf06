"""k-scale against its slow twin, and the promises of its three constraints."""

import numpy as np
import pytest

import shoal
from shoal.errors import SettingsError, TooFewUsers
from shoal.search import pair_costs, proxy_candidates, signatures
from shoal.search.constraints import clusters, k_pick, nu_k_pick
from tests.oracle import kscale as slow
from tests.people import people_of, random_people


def sets(release):
    m = release.members
    return [set(m.indices[a:b].tolist()) - {o} for o, a, b in zip(m.owners, m.offsets, m.offsets[1:], strict=False)]


def test_signatures():
    people = random_people(40, seed=1)
    fast = np.stack(signatures(people), axis=1)
    assert fast == pytest.approx(np.array([slow.square(people.user(u).tolist()) for u in range(40)]))


@pytest.mark.parametrize("n", [1, 5, 39])
def test_candidates(n):
    people = random_people(40, seed=2)
    first, second = proxy_candidates(signatures(people), n)
    got = [set() for _ in range(40)]
    for i, j in zip(first, second, strict=True):
        assert i < j
        got[i].add(int(j))
        got[j].add(int(i))
    assert got == slow.candidates(people, n)


@pytest.mark.parametrize(("k", "candidates"), [(2, 3), (3, 6), (5, 100)])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_slow_twin(k, candidates, seed):
    people = random_people(30, seed=seed, mean=6)
    release = shoal.KScale(k=k, candidates=candidates).anonymize(people)
    assert sets(release) == slow.nu_k_pick(people, k, max(candidates, k - 1))
    for record, members in enumerate(sets(release)):
        boxes, _ = shoal.k_merge([people.user(u) for u in [record, *sorted(members)]], "owner")
        assert release.record(record).tolist() == boxes.tolist()


@pytest.mark.parametrize("constraint", ["nu-k-pick", "k-pick"])
@pytest.mark.parametrize("k", [2, 4])
def test_everyone_is_in_k_records(constraint, k):
    release = shoal.KScale(k=k, constraint=constraint, candidates=20).anonymize(random_people(60, seed=5))
    times = np.bincount(release.members.indices, minlength=60)
    assert times.min() >= k
    assert min(map(len, sets(release))) >= 1
    if constraint == "k-pick":
        assert set(times.tolist()) == {k}
        assert {len(members) for members in sets(release)} == {k - 1}
    assert str(release.claim) == f"cover({k})"


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("seed", range(8))
def test_full_gives_identical_groups(k, seed):
    release = shoal.KScale(k=k, constraint="full", candidates=10).anonymize(random_people(61, seed=seed, mean=3))
    groups = {}
    for record, members in enumerate(sets(release)):
        groups.setdefault(frozenset(members | {record}), []).append(release.record(record).tolist())
    assert sum(map(len, groups)) == 61
    for group, records in groups.items():
        assert len(group) == len(records) >= k
        assert all(record == records[0] for record in records)
    assert str(release.claim) == f"k-anonymity({k})"


def test_k_pick_widens_its_candidates():
    """Two far crowds of odd sizes around one who is everybody's candidate: too few arcs at first."""
    people = random_people(25, seed=8)
    first, second = proxy_candidates(signatures(people), 1)
    assert k_pick(pair_costs(people, first, second), 4) is None
    release = shoal.KScale(k=4, constraint="k-pick", candidates=1).anonymize(people)
    assert np.bincount(release.members.indices).tolist() == [4] * 25


def test_a_user_who_is_nobodys_neighbour_is_hidden_too():
    """A far user is among nobody's nearest; the symmetric support lets its column be filled all the same."""
    near = random_people(20, seed=9)
    far = [(t, 100_000 + t, 100_000) for t in range(3)]
    people = people_of([*(near.user(u) for u in range(20)), far])
    (lonely,) = [u for u in range(21) if people.user(u)[0, 1] >= 100_000]
    squares = signatures(people)
    by_rank = [
        sorted(range(21), key=lambda v, u=u: slow.proxy([s[u] for s in squares], [s[v] for s in squares]))
        for u in range(21)
    ]
    assert all(lonely not in ranked[:4] for u, ranked in enumerate(by_rank) if u != lonely)
    release = shoal.KScale(k=3, candidates=3).anonymize(people)
    assert sum(lonely in members for members in sets(release)) >= 2


def test_ties_go_to_the_lower_index():
    """All users identical: every cost ties."""
    people = people_of([[(t, t, t) for t in range(4)]] * 6)
    first, second = np.triu_indices(6, 1)
    plan = nu_k_pick(pair_costs(people, first, second), 3)
    holding = [set(np.repeat(np.arange(6), np.diff(plan.offsets))[plan.members == user].tolist()) for user in range(6)]
    assert holding[0] >= {0, 1, 2}
    assert holding[5] >= {5, 0, 1}


def test_clusters_join_leftovers():
    """A path of neighbours that can't be cut into threes: the rest joins somebody's cluster."""
    people = random_people(10, seed=11)
    first, second = np.arange(9), np.arange(1, 10)
    plan = clusters(pair_costs(people, first, second), 2)
    assert sorted(plan.members.tolist()) == list(range(10))
    assert np.diff(plan.offsets).min() >= 2


def test_too_few_users():
    with pytest.raises(TooFewUsers, match="3 users are left"):
        shoal.KScale(k=4).anonymize(random_people(3))


@pytest.mark.parametrize(
    "wrong",
    [
        *({"k": 1}, {"k": 0}, {"k": "many"}, {"constraint": "none"}, {"candidates": 0}, {"q": 1}),
        *({"picking": "best"}, {"max_members": 0}, {"k": 5, "max_members": 3}),
        {"max_members": 9, "constraint": "full"},
        *({"picking": "marginal", "constraint": constraint} for constraint in ("full", "k-pick")),
    ],
)
def test_wrong_parameters(wrong):
    with pytest.raises(SettingsError):
        shoal.KScale(**{"k": 2, **wrong})


def test_frozen():
    with pytest.raises(Exception, match="frozen"):
        shoal.KScale(k=3).k = 2


# Four two-sample trajectories (t, x) on which the constraints choose the sets of k-scale, Fig. 4, at k = 3.
FIG_4 = [[(1, 5), (10, 4)], [(2, 0), (8, 2)], [(2, 9), (9, 10)], [(3, 6), (10, 6)]]


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("full", [{2, 3, 4}, {1, 3, 4}, {1, 2, 4}, {1, 2, 3}]),
        ("k-pick", [{2, 4}, {1, 3}, {2, 4}, {1, 3}]),
        ("nu-k-pick", [{2, 3, 4}, {1}, {2, 4}, {1, 3}]),
    ],
)
def test_figure_4(constraint, expected):
    people = people_of([[(t, x, 0) for t, x in samples] for samples in FIG_4])
    assert people.labels.to_pylist() == ["p0", "p1", "p2", "p3"]
    release = shoal.KScale(k=3, constraint=constraint).anonymize(people)
    assert [{user + 1 for user in members} for members in sets(release)] == expected
