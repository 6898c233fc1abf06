"""The sort of kernels against numpy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.sort import fill_order
from tests.draws import examples


@examples(150)
@given(st.lists(st.one_of(st.integers(0, 3), st.floats(allow_nan=False)), max_size=60), st.integers(0, 5))
def test_it_is_the_stable_order(values, beyond):
    keys = np.array([*values, *[-1.0] * beyond], np.float64)
    order = np.full(len(keys), -7, np.int64)
    fill_order(keys, order, len(values))
    assert order[: len(values)].tolist() == np.argsort(keys[: len(values)], kind="stable").tolist()
    assert (order[len(values) :] == -7).all()


def test_thousands():
    keys = np.random.default_rng(1).integers(0, 500, 5000).astype(np.float64)
    order = np.empty(5000, np.int64)
    fill_order(keys, order, 5000)
    assert (order == np.argsort(keys, kind="stable")).all()
