"""The figures of a release, against a slow twin and against what k-merge says."""

from dataclasses import asdict, replace

import numpy as np
import pytest

import shoal
from shoal.errors import SettingsError
from shoal.kernels.held import held_samples
from shoal.kernels.samples import Samples
from shoal.layouts import Boxes
from shoal.measure import precision
from shoal.measure.precision import samples_in_boxes
from tests.oracle.precision import slow_precision
from tests.people import LAEA, random_people

METHODS = {
    "shoal": shoal.Shoal(k=3),
    "k-scale": shoal.KScale(k=3),
    "k-scale:full": shoal.KScale(k=3, constraint="full"),
    "k-concealment": shoal.KConcealment(k=3),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_like_the_slow_twin(method, seed):
    people = random_people(31, seed=seed)
    release = METHODS[method].anonymize(people)
    assert asdict(precision(release)) == pytest.approx(slow_precision(release))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_out_counts_as_suppressed(seed):
    """Half of the boxes are too long: samples of published people, and perhaps all of some."""
    people = random_people(31, seed=seed)
    _, duration_s = shoal.Shoal(k=3).anonymize(people).spans()
    release = shoal.Shoal(k=3, max_duration=int(np.median(duration_s))).anonymize(people)
    assert 0 < release.suppressed < people.samples
    of = precision(release)
    assert of.suppressed == pytest.approx(release.suppressed / people.samples)
    assert asdict(of) == pytest.approx(slow_precision(release))


def test_who_is_not_published_counts_as_suppressed():
    people = random_people(31, seed=4)
    whole = shoal.KScale(k=2).anonymize(people)
    kept = np.arange(20)
    members = replace(whole.members, owners=whole.members.owners[kept], offsets=whole.members.offsets[:21])
    release = replace(
        whole, offsets=whole.offsets[:21], layout=Boxes(whole.boxes[: whole.offsets[20]]), members=members
    )
    of = precision(release)
    assert of.suppressed == pytest.approx(1 - people.counts[:20].sum() / people.samples)
    assert asdict(of) == pytest.approx(slow_precision(release))


def test_the_owner_cost_is_what_k_merge_minimises():
    people = random_people(25, seed=5)
    release = shoal.KScale(k=3).anonymize(people)
    members = release.members
    _, costs = samples_in_boxes(release)
    for record in range(25):
        inside = members.indices[members.offsets[record] : members.offsets[record + 1]]
        assert costs[record] == pytest.approx(shoal.k_merge([people.user(u) for u in inside], "owner")[1])


def test_every_sample_is_held_once():
    people = random_people(40, seed=6)
    held, _ = samples_in_boxes(shoal.Shoal(k=4).anonymize(people))
    assert held.sum() == people.samples
    assert (held > 0).all()


def test_samples_beside_between_and_after_the_boxes():
    """Time alone does not put a sample into a box."""
    t = np.array([0, 1, 3, 5, 9], np.int32)
    x = np.array([0, 7, 0, 2, 0], np.int32)
    boxes = np.array([[0, 1, 0, 2, 0, 0], [4, 6, 2, 2, 0, 0]], np.int32)
    ends = np.array([0, 1])
    samples = Samples(t, x, np.zeros_like(t), np.array([0, 5]))
    held, costs = held_samples(samples, ends, np.array([0]), np.array([0, 2]), boxes)
    assert held.tolist() == [1, 1]
    assert costs.tolist() == [(2 * (3 + 1) + 3 * (1 + 1)) / 2]


def test_nobody_published():
    people = random_people(12, seed=7)
    release = replace(
        shoal.Shoal(k=2).anonymize(people), offsets=np.zeros(13, np.int64), layout=Boxes(np.empty((0, 6), np.int32))
    )
    of = precision(release)
    assert of.suppressed == 1
    assert np.isnan([of.owner_cost, of.span_km_mean, of.span_km_median, of.duration_min_mean]).all()


def test_a_release_from_a_file_can_not_be_measured(tmp_path):
    people = random_people(20, seed=8, crs=LAEA)
    shoal.Shoal(k=2).anonymize(people).write(tmp_path / "r.parquet")
    with pytest.raises(SettingsError, match="must be known"):
        precision(shoal.read_release(tmp_path / "r.parquet"))
