"""Point methods side by side: the same figures as one by one, and clear words for what can't be compared."""

import pytest

import shoal
from shoal.comparison_points import are_points, compare_points, point_contests
from shoal.errors import SettingsError, TooLarge
from shoal.run import Run
from tests.tracks import planted, traces_of, walk


@pytest.fixture(scope="module")
def traces():
    return traces_of({n: planted(n)[0] for n in range(6)})


def test_lines_are_those_of_evaluate_and_attack(traces):
    names = ["raw", "promesse:100m", "geo-indistinguishability:ln(10)/100"]
    raw, smooth, noisy = compare_points(traces, point_contests(names), queries=100, seed=3)
    assert (raw.fscore, raw.query_distortion, raw.compression) == (1.0, 0.0, 1.0)
    assert raw.spatial_error_m < 1e-3
    release = shoal.Promesse(step_m=100).anonymize(traces)
    alone = shoal.evaluate(traces, release, queries=100, seed=3)
    assert smooth.query_distortion == alone.query_distortion
    assert smooth.spatial_error_m == pytest.approx(alone.spatial_error_m)
    assert smooth.fscore == pytest.approx(shoal.attack(traces, release, "poi").rows[0]["fscore"])
    assert noisy.compression == 1.0
    assert 5 < noisy.spatial_error_m < 90
    assert noisy.claim.startswith("geo-indistinguishability(")


def test_names():
    assert are_points(["raw", "promesse"])
    assert not are_points(["shoal", "k-scale:full"])
    with pytest.raises(SettingsError, match="one after the other"):
        are_points(["promesse", "shoal"])
    with pytest.raises(SettingsError):
        point_contests(["promesse:fast"])
    with pytest.raises(SettingsError):
        point_contests(["geo-indistinguishability"])


def test_people_who_never_stay_have_no_score():
    (line,) = compare_points(traces_of({n: walk(n) for n in range(3)}), point_contests(["promesse:50m"]), queries=10)
    assert (line.fscore, line.precision, line.recall) == (None, None, None)


def test_too_much_is_refused_before_any_run(traces):
    with pytest.raises(TooLarge):
        compare_points(traces, point_contests(["promesse:1m"]), run=Run(memory=1000))
