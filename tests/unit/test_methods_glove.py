"""GLOVE: the groups of the algorithm as written, in all variants; everybody hidden; what is left out is counted."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import CannotCheck, SettingsError, TooFewUsers
from shoal.kernels.stretch import RowRange, StretchedBoxes, Weights, box_effort, box_reach
from shoal.layouts import Boxes
from shoal.measure.stretch import Stretch
from shoal.methods.glove import Glove
from shoal.pipeline import publish
from shoal.run import Run
from shoal.search import glove_groups
from tests.oracle.glove import glove
from tests.people import LAEA, ODD, groups_of, lists_of, people_of, random_people, same
from tests.publishing import written

VARIANTS = ("strict", "loose")
MERGES = ("k-merge", "two-stage")


def random_case(rng):
    n = int(rng.integers(2, 13))
    k = int(rng.integers(2, min(n, 5) + 1))
    slots, side = int(rng.choice([4, 300, 4000])), int(rng.choice([2, 60, 900]))
    return random_people(n, seed=int(rng.integers(1 << 30)), slots=slots, side=side, mean=int(rng.choice([1, 2, 5]))), k


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("block", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_equals_the_algorithm_as_written(variant, merge, block):
    """4 blocks × 15 cases × 4 variants, k = 2…5; some with so few slots and cells that most efforts are equal."""
    rng = np.random.default_rng([block, len(variant), len(merge)])
    for _ in range(15):
        people, k = random_case(rng)
        release = Glove(k=k, variant=variant, merge=merge).anonymize(people, run=Run(threads=1))
        groups, left = glove(lists_of(people), k, variant=variant, merge=merge)
        assert groups_of(release) == sorted(groups)
        assert np.setdiff1d(np.arange(len(people)), release.members.owners).tolist() == left
        assert release.suppressed == people.counts[left].sum()
        assert shoal.verify(people, release, max_suppressed=1.0).ok


def fast_effort(frame):
    """The effort by the compiled kernel, which has a twin of its own: for hundreds of real people."""
    scale = Stretch().scale(frame)

    def effort(a, b, n_a, n_b, terms):
        boxes = StretchedBoxes(np.array([*a, *b], np.int32), np.empty(len(a) + len(b), np.int32))
        rows = RowRange(0, len(a)), RowRange(len(a), len(a) + len(b))
        for own in rows:
            box_reach(boxes, *own)
        return box_effort(boxes, *rows, Weights(n_a, n_b), scale, np.inf)

    return effort


def check_against_all_pairs(people, k, variant):
    release = Glove(k=k, variant=variant).anonymize(people)
    groups, left = glove(lists_of(people), k, variant=variant, effort=fast_effort(people.frame))
    assert groups_of(release) == sorted(groups)
    assert np.setdiff1d(np.arange(len(people)), release.members.owners).tolist() == left


@pytest.mark.parametrize("variant", VARIANTS)
def test_generated_people(variant):
    people = shoal.from_arrow(shoal.synthesize(users=60, days=3, seed=4))
    check_against_all_pairs(people, 3, variant)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tdrive_cdr", "gowalla_nyc"])
@pytest.mark.parametrize(("k", "variant"), [(2, "strict"), (5, "strict"), (3, "loose")])
def test_500_real_people(data, name, k, variant):
    table = pq.read_table(data / f"{name}.parquet")
    uids = np.unique(table["uid"].to_numpy(zero_copy_only=False))
    chosen = uids[:: max(1, len(uids) // 500)][:500]
    people = shoal.from_arrow(table.filter(pa.compute.is_in(table["uid"], pa.array(chosen))), tz="UTC")
    check_against_all_pairs(people, k, variant)


# The same whatever the means


def test_shifted_people_have_shifted_groups():
    people = random_people(40, seed=5, mean=4)
    lists = [[(t + 1441, x - 300, y + 17) for t, x, y in samples] for samples in lists_of(people)]
    plain, moved = (Glove(k=3).anonymize(them) for them in (people, people_of(lists)))
    assert (moved.boxes - plain.boxes == [1441, 1441, -300, -300, 17, 17]).all()


def test_the_order_of_the_input_does_not_matter():
    people = random_people(40, seed=6, mean=4)
    lists = lists_of(people)
    turned = people_of([lists[n] for n in np.random.default_rng(1).permutation(len(lists))])
    same(Glove(k=4, variant="loose").anonymize(people), Glove(k=4, variant="loose").anonymize(turned))


def test_room_for_boxes_grows(monkeypatch):
    people = random_people(60, seed=7, mean=6)
    expected = Glove(k=5, merge="two-stage").anonymize(people)
    monkeypatch.setattr(glove_groups, "_ROOM", 1.0)
    same(expected, Glove(k=5, merge="two-stage").anonymize(people))


# Odd people

GLOVE_ODD = {
    **ODD,
    "a crowded minute": [[(3, n, x) for x in range(1500 + n)] for n in range(4)],
    "two": [[(0, 0, 0)], [(1_000_000, 50_000, 0)]],
}


@pytest.mark.parametrize("name", GLOVE_ODD)
@pytest.mark.parametrize("k", [2, 3, "U"])
@pytest.mark.parametrize("merge", MERGES)
def test_odd_people(name, k, merge):
    people = people_of(GLOVE_ODD[name])
    k = len(people) if k == "U" else k
    if k > len(people):
        pytest.skip("too few")
    for variant in VARIANTS:
        release = Glove(k=k, variant=variant, merge=merge).anonymize(people)
        sizes = [len(group) for group, _ in groups_of(release)]
        assert min(sizes) >= k
        assert len(people) - sum(sizes) < (k if variant == "strict" else 1)
        verdict = shoal.verify(people, release, max_suppressed=1.0)
        assert verdict.ok, verdict.messages


@pytest.mark.parametrize("k", [2, 3])
def test_identical_people_are_taken_in_canonical_order(k):
    release = Glove(k=k).anonymize(people_of([[(5, 5, 5), (7, 1, 1)]] * 6))
    groups = [group for group, _ in groups_of(release)]
    assert groups == ([(0, 1), (2, 3), (4, 5)] if k == 2 else [(0, 1, 2), (3, 4, 5)])


def test_too_few_people():
    with pytest.raises(TooFewUsers):
        Glove(k=3).anonymize(people_of(GLOVE_ODD["two"]))
    with pytest.raises(TooFewUsers):
        Glove(k=2).anonymize(people_of(GLOVE_ODD["two"][:1]))


@pytest.mark.parametrize("wrong", [{"k": 1}, {"variant": "stern"}, {"merge": "none"}, {"max_span": 0}])
def test_bad_settings(wrong):
    with pytest.raises(SettingsError):
        Glove(**{"k": 2, **wrong})


# What is left out


def test_thresholds_leave_out_boxes_for_the_whole_group():
    people = random_people(60, seed=8, mean=6)
    for merge in MERGES:
        whole = Glove(k=2, merge=merge).anonymize(people)
        release = Glove(k=2, merge=merge, max_span="1500m", max_duration="2h").anonymize(people)
        t0, t1, x0, x1, y0, y1 = release.boxes.T
        assert (t1 - t0 < 120).all()
        assert (np.maximum(x1 - x0, y1 - y0) < 15).all()
        kept = dict(groups_of(release))
        for group, boxes in groups_of(whole):
            assert set(kept.get(group, [])) <= set(boxes)
        inside = sum(
            any(b[0] <= t <= b[1] for b in kept.get(group, []))
            for group, _ in groups_of(whole)
            for user in group
            for t, _, _ in lists_of(people)[user]
        )
        assert release.samples == inside
        assert release.samples + release.suppressed == people.samples
        assert release.parameters["max_span_m"] == 1500
        assert shoal.verify(people, release, max_suppressed=1.0).ok


def test_one_person_too_many_is_left_out_and_told(tmp_path):
    people = random_people(21, seed=9, mean=8, crs=LAEA)
    for merge in MERGES:
        release = Glove(k=2, merge=merge).anonymize(people)
        assert len(release) == 20
        path, audit = tmp_path / f"{merge}.parquet", tmp_path / f"{merge}-audit.parquet"
        written(release, path, audit=audit)
        rows = pq.read_table(audit)
        assert rows["record"].null_count == 1
        for given in (audit, None):
            verdict = shoal.verify(people, path, k=2, audit=given)
            assert verdict.ok, verdict.messages
        assert json.loads((tmp_path / f"{merge}.parquet.manifest.json").read_text())["counts"]["samples_suppressed"] > 0


@pytest.mark.parametrize(
    ("users", "parameters", "advice"), [(30, {"max_duration": 60}, "`max_span`"), (3, {}, 'variant="loose"')]
)
def test_too_much_left_out_is_refused_with_advice(users, parameters, advice, tmp_path):
    (tmp_path / "in").mkdir()
    events = tmp_path / "in" / "events.parquet"
    shoal.synthesize(events, users=users, scene="town", days=3, seed=3)
    (tmp_path / "out").mkdir()
    with pytest.raises(SettingsError, match=advice):
        publish(events, tmp_path / "out" / "release.parquet", Glove(k=2, **parameters))
    assert not list((tmp_path / "out").iterdir())


# The promise on the file


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("name", ["r.parquet", "r.csv"])
def test_from_events_to_a_verified_file(merge, name, events, tmp_path):
    method = Glove(k=3, merge=merge, variant="loose")
    done = publish(events, tmp_path / name, method, audit=tmp_path / "a.parquet", compact=name == "r.csv")
    assert done.verdict.ok
    for audit in (None, tmp_path / "a.parquet"):
        verdict = shoal.verify(events, tmp_path / name, k=3, audit=audit)
        assert verdict.ok, verdict.messages
        assert str(verdict.claim) == "k-anonymity(3)"
        assert ("truth_level" in verdict.figures) == (merge == "two-stage")
        assert verdict.result.startswith("HOLDS FOR GROUPS ONLY") == (merge == "two-stage")
        assert ("empty_pairs_share" in verdict.figures) == (merge == "two-stage" and audit is not None)


def test_only_two_stage_has_boxes_without_some_member():
    people = shoal.from_arrow(shoal.synthesize(users=30, days=3, seed=4))
    releases = [Glove(k=2, merge=merge).anonymize(people) for merge in MERGES]
    whole, weaker = (shoal.verify(people, release) for release in releases)
    assert weaker.figures["truth_level"] == "group"
    assert 0 < weaker.figures["empty_pairs_share"] < 1
    assert any("weaker level" in message for message in weaker.messages)
    assert "truth_level" not in whole.figures
    release = releases[1]
    lie = shoal.Release(**{**vars(release), "parameters": {**release.parameters, "merge": "k-merge"}})
    assert "truth" in shoal.verify(people, lie).failures
    other = shoal.Release(**{**vars(release), "method": "shoal"})
    assert "truth" in shoal.verify(people, other).failures


def broken(release, change):
    """The same release with the records of one group, the longest, changed alike."""
    records = [release.record(r) for r in range(len(release))]
    longest = max(records, key=len).tobytes()
    records = [change(boxes) if boxes.tobytes() == longest else boxes for boxes in records]
    offsets = np.cumsum([0, *map(len, records)])
    return shoal.Release(**{**vars(release), "offsets": offsets, "layout": Boxes(np.concatenate(records))})


@pytest.mark.parametrize(
    ("change", "with_audit", "without"),
    [
        (lambda boxes: np.vstack([boxes, boxes[-1] + np.int32([5000, 5000, 0, 0, 0, 0])]), "truth", "truth"),
        (lambda boxes: boxes[1:], "truth", "identical"),
        (lambda boxes: boxes + np.int32([0, 0, 900, 900, 0, 0]), "truth", "identical"),
        (lambda boxes: boxes[::-1], "truth", "truth"),
    ],
    ids=["a box nobody was in", "a box left out", "moved away", "not sorted"],
)
def test_the_weaker_truth_is_still_checked(change, with_audit, without):
    people = random_people(40, seed=11, mean=6)
    release = Glove(k=2, merge="two-stage").anonymize(people)
    assert shoal.verify(people, release).ok
    assert with_audit in shoal.verify(people, broken(release, change)).failures
    nameless = shoal.Release(**{**vars(release), "members": None})
    assert shoal.verify(people, nameless).ok
    assert without in shoal.verify(people, broken(nameless, change)).failures


def test_suppression_without_an_audit_is_not_guessed(tmp_path):
    people = random_people(60, seed=8, mean=6, crs=LAEA)
    release = Glove(k=2, merge="two-stage", max_duration="2h").anonymize(people)
    written(release, tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    assert shoal.verify(people, tmp_path / "r.parquet", audit=tmp_path / "a.parquet", max_suppressed=1.0).ok
    with pytest.raises(CannotCheck, match="`audit`"):
        shoal.verify(people, tmp_path / "r.parquet", max_suppressed=1.0)


def test_from_the_command_line(run, events, tmp_path):
    run("anonymize", events, "r.parquet", "--method", "glove", "--k", 2, "--audit", "audit.parquet", check=0)
    run("verify", events, "r.parquet", "--k", 2, "--audit", "audit.parquet", check=0)
    run("verify", events, "r.parquet", "--k", 2, check=0)
    stated = json.loads(pq.read_schema(tmp_path / "r.parquet").metadata[b"shoal"])
    assert stated["method"] == "glove"
    assert stated["parameters"] == {"k": 2, "variant": "strict", "merge": "k-merge"}
    assert stated["claim"] == {"name": "k-anonymity", "k": 2}
    run(
        "anonymize",
        events,
        "t.parquet",
        "--k",
        2,
        "--method",
        "glove",
        "--merge",
        "two-stage",
        "--variant",
        "loose",
        check=0,
    )
    run("verify", events, "t.parquet", "--k", 2, check=0)
