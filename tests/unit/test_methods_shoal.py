"""`shoal`: near the best groups there are, everybody hidden, the same whatever the means; and suppression."""

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import SettingsError, ShoalError
from shoal.kernels.price import price_of_worth
from shoal.measure.precision import precision
from shoal.methods.shoal import Shoal
from shoal.pipeline import publish
from shoal.run import Run
from shoal.search import partition, partners
from shoal.search.prices import usual_worth
from tests.oracle.cover import holds, two_way
from tests.oracle.groups import cheapest_partition
from tests.people import LAEA, ODD, groups_of, people_of, random_people, same
from tests.publishing import written
from tests.releases import samples_of


def check_release(people, release, k):
    """By brute force: groups of k to 2k-1, identical records, everybody inside hers, every box about everyone."""
    groups = [group for group, _ in groups_of(release)]
    assert sorted(user for group in groups for user in group) == list(range(len(people)))
    assert all(k <= len(group) <= 2 * k - 1 for group in groups)
    assert sorted(release.members.owners.tolist()) == list(range(len(people)))
    record_of = dict(zip(release.members.owners.tolist(), range(len(release)), strict=True))
    for group in groups:
        records = [release.record(record_of[user]).tolist() for user in group]
        assert all(record == records[0] for record in records)
        assert all(two_way(samples_of(people, user), records[0]) for user in group)
        assert all(before[1] < after[0] for before, after in zip(records[0], records[0][1:], strict=False))
    alike = {}
    for record in range(len(release)):
        alike.setdefault(release.record(record).tobytes(), []).append(record)
    assert min(map(len, alike.values())) >= k
    assert release.suppressed == 0
    assert release.samples == people.samples


# How good the groups are


def small_people(n, seed, kind):
    """Few people around common homes, each for herself, or some of both."""
    rng = np.random.default_rng(seed)
    homes = rng.integers(0, 2000, (max(1, n // 3), 2))
    lists = []
    for _ in range(n):
        alone = kind == "isolated" or (kind == "mixed" and rng.random() < 0.3)
        home = rng.integers(0, 5000, 2) if alone else homes[rng.integers(len(homes))]
        count = rng.integers(1, 12)
        lists.append(np.column_stack([np.sort(rng.integers(0, 400, count)), home + rng.integers(-15, 16, (count, 2))]))
    return people_of(lists)


def excess(n, k, seed, kind, price="product"):
    people = small_people(n, seed, kind)
    worth = 30.0, 40.0
    least, _ = cheapest_partition(people, k, price_of_worth(price, *worth))
    metres, seconds = worth[0] * people.frame.cell_m, worth[1] * people.frame.slot_s
    given = {} if price == "product" else {"worth": (int(metres), int(seconds))}
    release = Shoal(k=k, price=price, **given).anonymize(people, run=Run(threads=1))
    groups = [[samples_of(people, user) for user in group] for group, _ in groups_of(release)]
    return sum(shoal.k_merge(group, "members", price=price, worth=worth)[1] for group in groups) / least


@pytest.mark.parametrize("seeds", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_groups_are_near_the_best_there_are(seeds):
    """Within 5 % of the optimum on average and never worse than 1.5 times."""
    rng = np.random.default_rng(1)
    found = [
        excess(int(rng.integers(max(4, k), 13)), k, seed, kind)
        for kind in ("clustered", "isolated", "mixed")
        for k in (2, 3, 4)
        for seed in range(seeds)
    ]
    assert min(found) > 1 - 1e-9
    assert np.mean(found) < 1.05
    assert max(found) < 1.5


@pytest.mark.parametrize("price", ["sum", "roots"])
def test_groups_are_near_the_best_at_any_price(price):
    kinds = [(kind, k, seed) for kind in ("clustered", "isolated", "mixed") for k in (2, 3) for seed in range(4)]
    found = [excess(8 + seed, k, seed, kind, price) for kind, k, seed in kinds]
    assert min(found) > 1 - 1e-9
    assert np.mean(found) < 1.05
    assert max(found) < 1.5


@pytest.mark.parametrize(("n", "seed"), [(10, 144), (9, 110), (10, 158)])
def test_two_groups_that_should_trade_half_their_members(n, seed):
    """A few towns, groups of four: no single exchange leads there."""
    assert excess(n, 4, seed, "clustered") < 1.5


def test_the_twin_tries_every_partition():
    people = small_people(7, 3, "mixed")
    least, groups = cheapest_partition(people, 3)
    everybody = set(range(7))
    costs = [
        sum(
            shoal.k_merge([samples_of(people, user) for user in group], "members")[1]
            for group in (chosen, everybody - set(chosen))
        )
        for chosen in combinations(range(7), 3)
    ]
    assert least == pytest.approx(min(costs))
    assert sorted(map(len, groups)) == [3, 4]


# Everybody is hidden


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("k", [2, 3, "U-1", "U"])
def test_odd_people(name, k):
    people = people_of(ODD[name])
    k = {"U": len(people), "U-1": len(people) - 1}.get(k, k)
    release = Shoal(k=k).anonymize(people)
    check_release(people, release, k)
    verdict = shoal.verify(people, release)
    assert verdict.ok, verdict.messages


@pytest.mark.parametrize("users", [10, 11, 12, 37])
@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_random_people(users, k):
    people = random_people(users, seed=users, mean=5)
    for effort in ("quick", "thorough"):
        release = Shoal(k=k, effort=effort).anonymize(people)
        check_release(people, release, k)
        assert shoal.verify(people, release).ok


def test_verifies_as_a_file(tmp_path):
    people = random_people(40, seed=1, crs=LAEA)
    release = Shoal(k=3).anonymize(people)
    written(release, tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    for audit in (None, tmp_path / "a.parquet"):
        verdict = shoal.verify(people, tmp_path / "r.parquet", k=3, audit=audit)
        assert verdict.ok, verdict.messages
        assert str(verdict.claim) == "k-anonymity(3)"


# Prices


@pytest.mark.parametrize("price", ["sum", "roots"])
def test_a_price_hides_everybody_and_saves_what_it_weighs(price):
    """The dearer the time, the shorter the boxes; the dearer the space, the smaller."""
    people = random_people(120, seed=4, mean=9)
    sizes = []
    for worth in ("1km=1min", "1m=7d"):
        release = Shoal(k=3, price=price, worth=worth).anonymize(people)
        check_release(people, release, 3)
        assert shoal.verify(people, release).ok
        sizes.append(precision(release))
    assert sizes[0].duration_min_mean < sizes[1].duration_min_mean
    assert sizes[0].span_km_mean > sizes[1].span_km_mean


def test_the_usual_worth_depends_on_the_data_only():
    people = random_people(300, seed=5, mean=9)
    found = usual_worth(people, 3)
    assert found == usual_worth(people, 3, run=Run(threads=1))
    larger = replace(people, x=people.x * 10, y=people.y * 10)
    assert usual_worth(larger, 3)[0] > 4 * found[0]


def test_the_price_is_not_published():
    release = Shoal(k=3, price="sum", worth="1km=30min").anonymize(random_people(20))
    assert set(release.parameters) == set(Shoal(k=3).anonymize(random_people(20)).parameters)


@pytest.mark.parametrize(
    "bad", [{"worth": "1km=30min"}, {"price": "sum", "worth": "1km"}, {"price": "sum", "worth": "0km=1h"}, {"price": 1}]
)
def test_prices_that_make_no_sense(bad):
    with pytest.raises(SettingsError):
        Shoal(k=2, **bad)


# The same whatever the means


@pytest.fixture
def small_parts(monkeypatch):
    """Parts so small that a few people make several."""
    monkeypatch.setattr(partition, "_PART", 20)
    monkeypatch.setattr(partners, "_PART", 30)
    monkeypatch.setattr(partners, "_HALO", 25)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("k", [2, 3, 5])
def test_several_parts(k):
    people = random_people(133, seed=k, mean=5)
    release = Shoal(k=k).anonymize(people, run=Run(threads=2))
    check_release(people, release, k)
    assert shoal.verify(people, release).ok
    same(release, Shoal(k=k).anonymize(people, run=Run(threads=1)))


def shuffled_and_relabelled(events):
    rng = np.random.default_rng(0)
    table = pq.read_table(events)
    _, codes = np.unique(table["uid"].to_numpy(), return_inverse=True)
    new = pa.array([f"x{n:04d}" for n in rng.permutation(codes.max() + 1)])
    return table.set_column(0, "uid", new.take(pa.array(codes))).take(pa.array(rng.permutation(len(table))))


@pytest.mark.usefixtures("small_parts")
def test_shuffled_and_relabelled_input(events):
    first = Shoal(k=3).anonymize(shoal.read(events))
    same(first, Shoal(k=3).anonymize(shoal.from_arrow(shuffled_and_relabelled(events))))


def published(events, folder, *, parameters=None, **how):
    folder.mkdir()
    method = Shoal(**{"k": 2, **(parameters or {})})
    private = {"audit": folder / "a.parquet", "run_record": folder / "run.json"}
    done = publish(events, folder / "r.parquet", method, **private, seed=5, run=Run(**how))
    assert done.verdict.ok
    assert sorted(path.name for path in folder.iterdir()) == [
        "a.parquet",
        "r.parquet",
        "r.parquet.manifest.json",
        "run.json",
    ]
    return done


def test_memory_limits_and_threads_change_no_byte(tmp_path, events):
    need = published(events, tmp_path / "free").estimate.memory_bytes
    expected = (tmp_path / "free/r.parquet").read_bytes()
    for name, how in {
        "little": {"memory": need + 1_000_000, "threads": 1},
        "more": {"memory": 4 * need, "threads": 2},
    }.items():
        published(events, tmp_path / name, **how)
        assert (tmp_path / name / "r.parquet").read_bytes() == expected


# Suppression


def left_out(people, release):
    """The samples that their user's record does not hold, by brute force."""
    record_of = dict(zip(release.members.owners.tolist(), range(len(release)), strict=True))
    boxes = {user: release.record(record).tolist() for user, record in record_of.items()}
    return sum(
        not any(holds(box, sample) for box in boxes.get(user, []))
        for user in range(len(people))
        for sample in samples_of(people, user)
    )


def check_suppressed(people, release, k, max_span=np.inf, max_duration=np.inf):
    t0, t1, x0, x1, y0, y1 = release.boxes.T.astype(np.int64)
    frame = people.frame
    assert ((x1 - x0 + 1) * frame.cell_m <= max_span).all()
    assert ((y1 - y0 + 1) * frame.cell_m <= max_span).all()
    assert ((t1 - t0 + 1) * frame.slot_s <= max_duration).all()
    assert release.suppressed == left_out(people, release)
    assert release.samples == people.samples - release.suppressed
    groups = [group for group, _ in groups_of(release)]
    assert sorted(user for group in groups for user in group) == sorted(release.members.owners.tolist())
    record_of = dict(zip(release.members.owners.tolist(), range(len(release)), strict=True))
    for group in groups:
        assert k <= len(group) <= 2 * k - 1
        assert len({release.record(record_of[user]).tobytes() for user in group}) == 1
        assert len(release.record(record_of[group[0]])) > 0


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_what_is_too_wide_or_long_is_left_out(k, share):
    people = random_people(80, seed=k, slots=3000)
    whole = Shoal(k=k).anonymize(people)
    t0, t1, x0, x1, y0, y1 = whole.boxes.T.astype(np.int64)
    span = int(np.quantile(np.maximum(x1 - x0, y1 - y0) + 1, share)) * people.frame.cell_m
    duration = int(np.quantile(t1 - t0 + 1, share)) * people.frame.slot_s
    for thresholds in ({"max_span": span}, {"max_duration": duration}, {"max_span": span, "max_duration": duration}):
        release = Shoal(k=k, **thresholds).anonymize(people)
        check_suppressed(people, release, k, **thresholds)
        assert release.suppressed > 0
        units = {"max_span": "max_span_m", "max_duration": "max_duration_s"}
        assert release.parameters == {"k": k, **{units[name]: value for name, value in thresholds.items()}}
        kept = {record.tobytes() for record in map(whole.record, range(len(whole)))}
        assert len(release) < len(whole) or not {release.record(r).tobytes() for r in range(len(release))} <= kept
        verdict = shoal.verify(people, release, max_suppressed=1.0)
        assert verdict.ok, verdict.messages
        assert verdict.figures["suppressed_samples"] == release.suppressed


def test_nothing_is_left_out_by_thresholds_that_nothing_exceeds():
    people = random_people(50, seed=2)
    release = Shoal(k=2, max_span="1000km", max_duration="100d").anonymize(people)
    same(release, Shoal(k=2).anonymize(people))
    assert release.suppressed == 0


@pytest.fixture(scope="module")
def bearable(events):
    """Thresholds that leave out some 5 %."""
    people = shoal.read(events)
    for hours in range(12, 500, 12):
        release = Shoal(k=2, max_duration=f"{hours}h", max_span="30km").anonymize(people)
        if 0 < release.suppressed < 0.15 * people.samples:
            return {"max_duration": f"{hours}h", "max_span": "30km"}
    raise AssertionError


def test_a_published_release_with_suppression_verifies(tmp_path, events, bearable):
    done = published(events, tmp_path / "out", parameters=bearable)
    folder = tmp_path / "out"
    counts = json.loads((folder / "run.json").read_text())["counts"]
    people = shoal.read(events)
    lost = Shoal(k=2, **bearable).anonymize(people).suppressed
    assert counts["samples_suppressed"] == lost == done.verdict.figures["suppressed_samples"]
    verdict = shoal.verify(events, folder / "r.parquet", audit=folder / "a.parquet", k=2, suppressed=lost)
    assert verdict.ok, verdict.messages
    assert not shoal.verify(events, folder / "r.parquet", audit=folder / "a.parquet", k=2, suppressed=lost + 1).ok
    assert shoal.verify(events, folder / "r.parquet", k=2).ok


def test_suppression_from_the_command_line(tmp_path, events, bearable, run):
    flags = ["--max-span", bearable["max_span"], "--max-duration", bearable["max_duration"]]
    files = ["--audit", tmp_path / "a.parquet"]
    run("anonymize", events, tmp_path / "r.parquet", "--k", 2, *flags, *files, check=0)
    header = json.loads(pq.read_schema(tmp_path / "r.parquet").metadata[b"shoal"])
    assert set(header["parameters"]) == {"k", "max_span_m", "max_duration_s"}
    run("verify", events, tmp_path / "r.parquet", *files, check=0)


TOO_MUCH = [{"max_span": "99m"}, {"max_duration": "30s"}, {"max_span": "1m", "max_duration": "1s"}]


@pytest.mark.parametrize("thresholds", TOO_MUCH)
def test_nothing_left_to_publish_is_said(tmp_path, events, thresholds):
    """Cells of 100 m and slots of a minute: no box is that small."""
    people = shoal.read(events)
    release = Shoal(k=2, **thresholds).anonymize(people)
    assert (len(release), release.samples, release.suppressed) == (0, 0, people.samples)
    assert not shoal.verify(people, release, max_suppressed=1.0).ok
    with pytest.raises(ShoalError):
        published(events, tmp_path / "out", parameters=thresholds)
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_left_to_publish_exits_with_2(tmp_path, events, run):
    done = run("anonymize", events, tmp_path / "r.parquet", "--k", 2, "--max-span", "50m", check=2)
    assert "Traceback" not in done.stderr
    assert "100% of the samples would be left out" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_more_left_out_than_is_accepted(tmp_path, events):
    with pytest.raises(SettingsError, match="`max_duration`"):
        published(events, tmp_path / "out", parameters={"max_duration": "1h"})
    assert list((tmp_path / "out").iterdir()) == []
