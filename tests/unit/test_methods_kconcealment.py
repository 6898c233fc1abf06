"""k-concealment: exactly k records of exactly k people, boxes that favour nobody, owners by chance."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import SettingsError
from shoal.methods.kconcealment import KConcealment
from shoal.search import pair_costs
from shoal.search.constraints import regular_lists
from tests.people import LAEA, ODD, people_of, random_people
from tests.publishing import written


def check_regular(matchings, k):
    n = len(matchings)
    assert matchings.shape == (n, k)
    for matching in matchings.T:
        assert sorted(matching.tolist()) == list(range(n))
    for row in matchings:
        assert len(set(row.tolist())) == k


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_regular_and_symmetric(k, seed):
    people = random_people(30, seed=seed, mean=6)
    release = KConcealment(k=k).anonymize(people)
    matchings = release.members.matchings
    check_regular(matchings, k)
    assert (matchings[:, 0] == np.arange(30)).all()
    for record in range(30):
        boxes, _ = shoal.k_merge([people.user(u) for u in sorted(matchings[record])], "members")
        assert release.record(record).tolist() == boxes.tolist()
    assert str(release.claim) == f"k-concealment({k})"
    assert release.parameters == {"k": k, "candidates": 100 * k}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("k", [2, 3, "U-1", "U"])
def test_odd_people(name, k):
    people = people_of(ODD[name])
    k = {"U": len(people), "U-1": len(people) - 1}.get(k, k)
    release = KConcealment(k=k, candidates=1).anonymize(people)
    check_regular(release.members.matchings, k)
    verdict = shoal.verify(people, release)
    assert verdict.ok, verdict.messages


@pytest.mark.parametrize("k", [2, 3, 5])
def test_verifies_as_a_file(k, events, tmp_path):
    people = shoal.read(events)
    release = KConcealment(k=k).anonymize(people)
    published = written(release, tmp_path / "r.parquet", audit=tmp_path / "a.parquet").renumbered()
    for audit in (None, tmp_path / "a.parquet"):
        verdict = shoal.verify(people, tmp_path / "r.parquet", k=k, audit=audit)
        assert verdict.ok, verdict.messages
    assert published.members.matchings is None
    assert str(shoal.read_release(tmp_path / "r.parquet").claim) == f"k-concealment({k})"
    owned = pq.read_table(tmp_path / "a.parquet").group_by("record").aggregate([("owner", "count_distinct")])
    assert owned["owner_count_distinct"].to_pylist() == [1] * len(people)


def test_owners_are_drawn_when_written(tmp_path):
    """The records stay the same, who owns them does not, and every owner is a member of her record."""
    people = random_people(40, seed=3, crs=LAEA)
    release = KConcealment(k=3).anonymize(people)
    ways = set()
    for n in range(4):
        published = written(release, tmp_path / f"{n}.parquet").renumbered()
        m = published.members
        lists = m.indices.reshape(40, 3)
        assert (lists[:, 0] == m.owners).all()
        assert sorted(m.owners.tolist()) == list(range(40))
        sets = {tuple(sorted(row)): published.record(r).tobytes() for r, row in enumerate(lists.tolist())}
        expected = {tuple(sorted(row)): release.record(r).tobytes() for r, row in enumerate(release.members.matchings)}
        assert sets == expected
        ways.add(tuple(sorted((tuple(sorted(row)), row[0]) for row in lists.tolist())))
    assert len(ways) == 4


def test_a_seed_takes_the_claim_and_fixes_the_owners(tmp_path):
    people = random_people(40, seed=4, crs=LAEA)
    release = KConcealment(k=3).anonymize(people)
    one, two = (written(release, tmp_path / f"{n}.parquet", seed=9).release for n in "ab")
    assert (one.members.owners == two.members.owners).all()
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert str(one.claim) == "none (research)"
    assert json.loads((tmp_path / "a.parquet.manifest.json").read_text())["seeded"] is True


def test_rounds_look_at_the_whole_record():
    """From the second round on, what a record comes to cost decides: cheaper than adding up pairs."""
    people = random_people(120, seed=6, side=100)
    first, second = np.triu_indices(120, 1)
    costs = pair_costs(people, first, second)
    both = costs.own + costs.others
    by_pairs = regular_lists(costs, 4, both, both)
    whole = KConcealment(k=4, candidates=119).anonymize(people).members.matchings
    check_regular(by_pairs, 4)

    def total(lists):
        return sum(shoal.k_merge([people.user(u) for u in row], "members")[1] for row in lists)

    assert total(whole) < 0.95 * total(by_pairs)


def test_assignments_end_with_symmetric_costs():
    """Costs that are the same both ways keep an assignment in floating point busy for ever."""
    for seed in range(30):
        people = random_people(60, seed=seed, slots=2000, mean=20)
        first, second = np.triu_indices(60, 1)
        costs = pair_costs(people, first, second)
        both = costs.own + costs.others
        check_regular(regular_lists(costs, 2, both, both), 2)


@pytest.mark.parametrize("wrong", [{"k": 1}, {"k": 3, "constraint": "full"}])
def test_wrong_settings(wrong):
    with pytest.raises(SettingsError):
        KConcealment(**{"k": 2, **wrong})
