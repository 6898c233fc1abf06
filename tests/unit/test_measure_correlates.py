"""Properties of movements, and what they have to do with being hard to hide."""

import statistics
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import shoal
from shoal.errors import InputError
from shoal.measure.correlates import Properties, correlations, properties
from shoal.run import Run
from tests.people import random_people


def slow_movement(samples):
    times, xs, ys = zip(*samples, strict=True)
    centre = statistics.mean(xs), statistics.mean(ys)
    radius = statistics.mean((x - centre[0]) ** 2 + (y - centre[1]) ** 2 for x, y in zip(xs, ys, strict=True)) ** 0.5
    steps = pairwise(samples)
    travelled = sum(((b[1] - a[1]) ** 2 + (b[2] - a[2]) ** 2) ** 0.5 for a, b in steps)
    gaps = [b - a for a, b in pairwise(times)]
    return centre, radius, travelled, statistics.pstdev(gaps) if gaps else 0.0


def test_properties_equal_a_slow_twin():
    people = random_people(40, side=100, slots=3000)
    chosen = np.array([0, 3, 17, 39])
    found = properties(people, chosen, run=Run(threads=2))
    slow = [slow_movement(people.user(u).tolist()) for u in range(40)]
    hours = (int(people.t.max()) - int(people.t.min()) + 1) / 60
    for row, u in enumerate(chosen.tolist()):
        (cx, cy), radius, travelled, spread = slow[u]
        assert found.gyration_km[row] == pytest.approx(radius / 10)
        assert found.travelled_km[row] == pytest.approx(travelled / 10)
        assert found.irregularity_min[row] == pytest.approx(spread)
        assert found.samples_per_hour[row] == pytest.approx(people.counts[u] / hours)
        meet = [((cx - x) ** 2 + (cy - y) ** 2) ** 0.5 <= radius + other for (x, y), other, _, _ in slow]
        assert found.neighbours[row] == sum(meet) - 1
    everybody = properties(people)
    assert (everybody.neighbours[chosen] == found.neighbours).all()


def test_correlations_equal_scipy_s():
    people = random_people(60, side=100, slots=3000, seed=3)
    of, gap = properties(people), shoal.k_gap(people, 2).gap[:, 0]
    found = correlations(of, gap)
    assert list(found) == list(Properties._fields)
    for name, column in of._asdict().items():
        assert found[name]["pearson"] == pytest.approx(stats.pearsonr(column, gap).statistic)
        assert found[name]["spearman"] == pytest.approx(stats.spearmanr(column, gap).statistic)


def test_what_does_not_vary_has_no_correlation():
    one = np.ones(4)
    found = correlations(Properties(one, one, one, one, np.arange(4.0)), np.arange(4.0))
    assert found["gyration_km"] == {"pearson": None, "spearman": None}
    assert found["samples_per_hour"] == {"pearson": 1.0, "spearman": 1.0}


@pytest.mark.parametrize("figures", [[1.0], [1.0, np.nan], [1.0, 2.0, 3.0]])
def test_figures_must_fit_the_people(figures):
    two = np.arange(2.0)
    with pytest.raises(InputError):
        correlations(Properties(two, two, two, two, two), figures)
