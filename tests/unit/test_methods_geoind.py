"""Geo-indistinguishability: noise of the right size in all directions, anywhere on Earth, and never the same twice."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import lambertw

import shoal
from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.frame import transformer
from shoal.kernels.noise import laplace_radius
from shoal.run import Run
from shoal.seen.findings import Findings
from shoal.verifier.noise import compare_with_laplace
from tests.draws import examples
from tests.tracks import GEOD, records_of, table_of, traces_of, walk

EPSILON = math.log(4) / 200
N = 20_000
PLACES = {
    "equator": (10.0, 0.0),
    "35 N": (-80.0, 35.0),
    "60 N": (25.0, 60.0),
    "antimeridian": (179.9999, 52.0),
    "north pole": (40.0, 89.9995),
    "south pole": (-100.0, -89.999),
}


@examples(300)
@given(st.floats(1e-16, 1.0, exclude_max=True))
def test_the_radius_is_that_of_lamberts_w(q):
    expected = -1 - float(lambertw(-q / math.e, -1).real)
    assert laplace_radius(q) == pytest.approx(expected, rel=1e-9, abs=1e-7)


def shifts(place, epsilon=EPSILON, n=N, seed=None):
    """Angles and metres of the noise of many fixes at one place."""
    traces = traces_of({"a": [(1_700_000_000_000 + i, *place) for i in range(n)]})
    release = shoal.GeoIndistinguishability(epsilon=epsilon).anonymize(traces, seed=seed)
    angle, _, metres = GEOD.inv(np.full(n, place[0]), np.full(n, place[1]), release.points.lng, release.points.lat)
    return np.radians(angle), np.asarray(metres)


def is_right(angle, metres, epsilon=EPSILON):
    """The tests of the acceptance: mean 2/ε within five standard errors, no direction preferred."""
    n = len(metres)
    right_mean = abs(metres.mean() * epsilon / 2 - 1) < 5 / math.sqrt(2 * n)
    uneven = max(abs(wave(h * angle).mean()) for h in (1, 2) for wave in (np.cos, np.sin))
    return right_mean and uneven < 5 / math.sqrt(2 * n)


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_mean_and_isotropy(place):
    angle, metres = shifts(place)
    assert is_right(angle, metres)
    # The same tests see a tenth too much or too little, and noise that forgot that meridians meet.
    assert not is_right(angle, 1.1 * metres)
    assert not is_right(angle, 0.9 * metres)
    east, north = metres * np.sin(angle) * 0.8, metres * np.cos(angle)
    assert not is_right(np.arctan2(east, north), np.hypot(east, north))


def test_the_verifiers_test_has_the_same_power():
    def failures(angle, metres, epsilon=EPSILON):
        findings, half = Findings(), len(metres) // 2
        pair = (angle[:half], metres[:half]), (angle[half : 2 * half], metres[half : 2 * half])
        compare_with_laplace(findings, epsilon, (angle, metres), pair)
        return findings.failures

    angle, metres = shifts(PLACES["60 N"])
    assert failures(angle, metres) == set()
    assert failures(angle, 1.1 * metres) == {"noise"}
    assert failures(angle, metres, EPSILON / 1.1) == {"noise"}
    assert failures(np.abs(angle), metres) == {"noise"}
    half = len(angle) // 2
    again = np.tile(angle[:half], 2), np.tile(metres[:half], 2)  # every second draw is the one before
    assert failures(*again) == {"noise"}


def test_places_are_whole_metres_of_the_crs():
    traces = traces_of({"a": walk(3, fixes=500)})
    release = shoal.GeoIndistinguishability(epsilon=0.01).anonymize(traces)
    for metres in transformer(traces.frame.crs).transform(release.points.lng, release.points.lat):
        assert np.abs(metres - np.rint(metres)).max() < 0.02
    assert (np.round(release.points.lat, 7) == release.points.lat).all()
    assert (release.points.ms == traces.ms).all()


def test_noise_is_fresh_unless_a_seed_is_given():
    people = {n: walk(n) for n in range(4)}
    method = shoal.GeoIndistinguishability(epsilon="ln(10)/100")
    traces = traces_of(people)
    first, second = (method.anonymize(traces) for _ in range(2))
    assert (first.points.lng != second.points.lng).mean() > 0.99
    seeded = method.anonymize(traces, seed=7)
    assert (seeded.points.lng == method.anonymize(traces, seed=7, run=Run(threads=1)).points.lng).all()
    assert (seeded.points.lng != method.anonymize(traces, seed=8).points.lng).mean() > 0.99
    assert (seeded.seeded, str(seeded.claim)) == (True, "none (research)")
    renamed = shoal.read_traces(table_of({f"x{9 - n}": fixes for n, fixes in people.items()}))
    assert sorted(map(tuple, records_of(method.anonymize(renamed, seed=7)))) == sorted(map(tuple, records_of(seeded)))


def test_the_claim_says_what_a_point_and_the_longest_trace_lose():
    people = {"a": walk(1, fixes=123), "b": walk(2, fixes=40)}
    claim = shoal.GeoIndistinguishability(epsilon=0.01).anonymize(traces_of(people)).claim
    assert claim.epsilon_per_m == 0.01
    assert claim.total_per_m == pytest.approx(1.3)  # of 123 fixes, rounded up to two digits
    split = shoal.GeoIndistinguishability(epsilon=0.01).anonymize(traces_of(people, split_gap="5s"))
    assert split.claim == claim  # a person's parts are one person's


def test_it_is_written_with_its_audit_and_can_be_checked_with_it_only(tmp_path):
    people = {f"p{n}": walk(n, fixes=80) for n in range(40)}
    original = tmp_path / "in.parquet"
    import pyarrow.parquet as pq

    pq.write_table(table_of(people), original)
    traces = shoal.read_traces(original)
    method = shoal.GeoIndistinguishability(epsilon=0.02)
    method.anonymize(traces).write(tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    verdict = shoal.verify(original, tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    assert verdict.ok, verdict.messages
    assert verdict.shown == verdict.claim
    assert {"integrity", "leaks", "truth", "audit", "noise"} <= set(verdict.checked)
    with pytest.raises(CannotCheck, match="audit"):
        shoal.verify(original, tmp_path / "r.parquet")
    method.anonymize(traces).write(tmp_path / "s.parquet", seed=1)
    assert shoal.read_release(tmp_path / "s.parquet").claim == Claim("none", why="research")


def test_epsilons_that_make_no_sense():
    for wrong in ({}, {"epsilon": 0}, {"epsilon": -1}, {"epsilon": "much"}, {"epsilon": "ln(0)/200"}, {"epsilon": 2}):
        with pytest.raises(SettingsError):
            shoal.GeoIndistinguishability(**wrong)
    assert shoal.GeoIndistinguishability(epsilon="ln(4)/200").epsilon == EPSILON
