"""The statistics behind order leaks: fair to fresh random numberings, hard on the others."""

import numpy as np

from shoal.verifier.order import _follows, _too_many


def test_random_orders_are_never_blamed():
    draw = np.random.default_rng(7)
    for n in (20, 50, 400):
        shapes = [np.arange(n), np.zeros(n, int), np.arange(n) // 7, (np.arange(n) < 3).astype(int)]
        for values in shapes:
            assert not any(_follows(draw.permutation(values)) for _ in range(300))


def test_kept_orders_are_blamed():
    for n in (20, 50, 400):
        assert _follows(np.arange(n))
        assert _follows(np.arange(n)[::-1])
    assert _follows(np.random.default_rng(1).permutation(40).repeat(5))
    assert _follows(np.arange(400) + np.random.default_rng(1).integers(0, 400, 400))


def test_more_than_chance():
    assert not _too_many(3, 1.0)
    assert not _too_many(0, 0.0)
    assert _too_many(20, 1.0)


def test_even_a_tenfold_error_blames_less_than_once_in_a_million():
    assert not _too_many(10, 0.95)  # p = 7e-8, of two tests per list
    assert _too_many(10, 0.85)  # p = 2e-8
