"""The Wilson interval, against published values and against chance."""

import numpy as np
import pytest
from scipy.stats import binomtest

from shoal.errors import SettingsError
from shoal.intervals import wilson


@pytest.mark.parametrize("trials", [1, 2, 10, 97, 1000])
def test_it_is_the_interval_of_statistics_books(trials):
    for successes in range(0, trials + 1, max(1, trials // 13)):
        expected = binomtest(successes, trials).proportion_ci(method="wilson")
        assert wilson(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_it_holds_the_truth_about_95_times_in_100():
    found = np.random.default_rng(1).binomial(400, 0.93, 2000)
    held = np.mean([low <= 0.93 <= high for low, high in (wilson(int(n), 400) for n in found)])
    assert 0.93 < held < 0.97


def test_the_ends():
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 7)[0] == 0.0
    assert wilson(7, 7)[1] == 1.0
    with pytest.raises(SettingsError):
        wilson(8, 7)
    with pytest.raises(SettingsError):
        wilson(-1, 7)
