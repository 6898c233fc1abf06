from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.frame import Frame
from shoal.kernels.grid import day_counts, place_counts
from shoal.kernels.order import pack_rows, packed_order, packed_slots, unpack_users
from shoal.reading.rules import Rows
from shoal.reading.spread import Spread
from shoal.reading.times import LAST_MS
from shoal.run import LOCAL, Run
from shoal.trajectories import build
from tests.draws import examples
from tests.oracle import order as twin

LOW, HIGH = -(2**31), 2**31 - 1
SMALL = st.integers(-3, 3)
WIDE = st.one_of(SMALL, st.integers(LOW, HIGH), st.sampled_from([LOW, LOW + 1, -1, 0, 1, HIGH - 1, HIGH]))


def rows_of(values):
    return st.lists(st.tuples(st.integers(0, 5), values, values, values), max_size=40)


def as_columns(rows):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T.astype(np.int32)
    return [np.ascontiguousarray(column) for column in columns]


def as_groups(offsets, t, x, y):
    samples = list(zip(t.tolist(), x.tolist(), y.tolist(), strict=True))
    return [samples[a:b] for a, b in pairwise(offsets)]


def grouped(users, t, x, y, n_users, run=LOCAL):
    """The rows of all users in the order of their numbers."""
    packed = pack_rows(users, t, x, y, n_users, run_ranges=run.ranges)
    return unpack_users(packed, np.arange(n_users), run_ranges=run.ranges)


@examples(400)
@given(st.one_of(rows_of(SMALL), rows_of(WIDE)))
def test_groups_and_ranks_equal_the_slow_twin(rows):
    columns = as_columns(rows)
    packed = pack_rows(*columns, 6)
    expected = twin.group_rows(*(column.tolist() for column in columns), 6)
    assert as_groups(*grouped(*columns, 6)) == expected
    order = packed_order(packed)
    assert order.tolist() == twin.canonical_order(expected)
    assert as_groups(*unpack_users(packed, order)) == [expected[user] for user in order]
    into = unpack_users(packed, order, into=tuple(column.copy() for column in columns[1:]))
    assert as_groups(*into) == [expected[user] for user in order]
    owners, t = packed_slots(packed, np.arange(6))
    assert list(zip(owners, t, strict=True)) == [(user, s[0]) for user, part in enumerate(expected) for s in part]
    people = build(*columns, labels=pa.array(range(6)), frame=Frame(crs=None))
    present = [user for user in order.tolist() if expected[user]]
    assert people.labels.to_pylist() == present
    assert as_groups(people.offsets, people.t, people.x, people.y) == [expected[user] for user in present]


@examples(100)
@given(rows_of(WIDE), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_and_input_is_not_changed(rows, random):
    columns = as_columns(rows)
    before = [column.copy() for column in columns]
    expected = grouped(*columns, 6)
    for column, copy in zip(columns, before, strict=True):
        np.testing.assert_array_equal(column, copy)
    random.shuffle(rows)
    for a, b in zip(expected, grouped(*as_columns(rows), 6), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("spread", [50, 2**31 - 1], ids=["packed", "numbered cells"])
def test_threads_give_the_same(spread):
    rng = np.random.default_rng(1)
    n = 150_000
    users = rng.integers(0, 300, n).astype(np.int32)
    t, x, y = (rng.choice(rng.integers(-spread, spread, 40), n).astype(np.int32) for _ in range(3))
    one, two = (grouped(users, t, x, y, 300, Run(threads=threads)) for threads in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(one[1]) == len(np.unique(np.stack([users, t, x, y]), axis=1).T)


def test_identical_users_keep_their_order_and_many_ties_are_ranked():
    rng = np.random.default_rng(2)
    users = np.repeat(np.arange(2_000), 3)
    t = np.tile([1, 1, 2], 2_000)
    x = rng.integers(0, 3, len(users))
    expected = twin.group_rows(users.tolist(), t.tolist(), x.tolist(), (x * 0).tolist(), 2_000)
    assert packed_order(pack_rows(users, t, x, x * 0, 2_000)).tolist() == twin.canonical_order(expected)


def test_spread_is_that_of_batches():
    rng = np.random.default_rng(3)
    lng, lat = (rng.choice([-limit, limit, *rng.uniform(-limit, limit, 50)], 500) for limit in (180.0, 90.0))
    ms = rng.integers(0, LAST_MS, 500)
    counted = Spread()
    for part in np.array_split(np.arange(500), 7):
        counted.add(Rows(part, ms[part], lng[part], lat[part]))
    assert (place_counts(lng, lat) == counted.places).all()
    assert (day_counts(ms, len(counted.days)) == counted.days).all()
    assert (counted.first_ms, counted.last_ms) == (ms.min(), ms.max())
    assert counted.places[:, [0, 360]].sum() >= (np.abs(lng) == 180).sum() > 0
