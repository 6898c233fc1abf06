"""Time sketches against the slow twin: what they hold, and who is nearest by them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.price import PAPERS, price_of_worth
from shoal.kernels.sketch import LANES, Sketching, fill_sketches, nearest_by_sketch
from tests.draws import examples
from tests.oracle import sketch as oracle
from tests.people import as_samples


def blocks_of(lists, users, first, width, slots, floor, left=0.0):
    blocks = np.full((-(-len(users) // LANES), slots, 4, LANES), left, np.float32)
    fill_sketches(as_samples(lists), np.array(users), Sketching(first, width, slots, 1.0, 1.0, PAPERS), floor, blocks)
    return blocks


def lane(blocks, n):
    return blocks[n // LANES, :, :, n % LANES]


sample = st.tuples(st.integers(-20, 60), st.integers(-5, 5), st.integers(-5, 5))
trajectory = st.lists(sample, min_size=1, max_size=9).map(sorted)


@examples(200)
@given(st.lists(trajectory, min_size=1, max_size=8), st.integers(1, 64), st.floats(0, 0.1), st.data())
def test_sketches_equal_the_slow_twin(lists, slots, floor, data):
    users = data.draw(st.permutations(range(len(lists))))
    times = [t for samples in lists for t, _, _ in samples]
    first, width = float(min(times)), (max(times) - min(times) + 1) / slots
    blocks = blocks_of(lists, users, first, width, slots, floor, left=7.0)
    origin = lists[users[0]][0][1:]
    for place, user in enumerate(users):
        expected = np.array(oracle.sketch(lists[user], origin, first, width, slots, floor))
        assert lane(blocks, place) == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert (blocks[-1, :, :, len(users) :] == 7.0).all()


def test_the_later_of_two_samples_as_near_is_taken():
    blocks = blocks_of([[(0, 1, 1), (4, 2, 2)], [(2, 3, 3), (2, 4, 4)]], [0, 1], 0.0, 4.0, 1, 0.0)
    assert lane(blocks, 0).tolist() == [[1.0, 1.0, 2.0, 1.0]]
    assert lane(blocks, 1).tolist() == [[3.0, 3.0, 0.0, 1.0]]


def check_nearest(blocks, users, near, soon, count, start, stop, price=PAPERS):
    nearest = np.full((stop - start, count), -9)
    nearest_by_sketch(blocks, users, Sketching(0.0, 1.0, blocks.shape[1], near, soon, price), start, nearest)
    sketches = [lane(blocks, n) for n in range(users)]
    for user in range(start, stop):
        assert nearest[user - start].tolist() == oracle.nearest(sketches, near, soon, user, count, price)


def random_blocks(users, slots, spread, seed):
    """Sketches on a small grid, so that many are as near as others."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, spread, (-(-users // LANES), slots, 4, LANES)).astype(np.float32)
    blocks[:, :, 3] /= 8
    blocks[-1, :, :, (users - 1) % LANES + 1 :] = 0.0
    return blocks


@pytest.mark.parametrize(
    ("users", "slots"), [(2, 1), (5, 3), (LANES, 7), (LANES + 1, 8), (2 * LANES - 1, 9), (3 * LANES, 17), (230, 64)]
)
@pytest.mark.parametrize("seed", range(3))
def test_nearest_equal_brute_force(users, slots, seed):
    blocks = random_blocks(users, slots, 1000, seed)
    start = seed * users // 4
    check_nearest(blocks, users, 10.0, 2.0, min(users - 1, 1 + 6 * seed), start, min(users, start + 12))


@pytest.mark.parametrize("name", ["sum", "roots"])
@pytest.mark.parametrize("worth", [(100.0, 1.0), (7.0, 9.0), (1.0, 500.0)])
@pytest.mark.parametrize("seed", range(3))
def test_nearest_follow_the_price(name, worth, seed):
    check_nearest(random_blocks(150, 16, 1000, seed), 150, 10.0, 2.0, 9, 70, 82, price_of_worth(name, *worth))


@pytest.mark.parametrize("users", [3, 40, LANES + 9, 3 * LANES + 1])
@pytest.mark.parametrize("count", [1, 2, 13, "all"])
def test_ties_go_to_the_lower_index(users, count):
    blocks = random_blocks(users, 2, 2, users)
    count = users - 1 if count == "all" else min(count, users - 1)
    for start in sorted({0, users // 2, users - 2}):
        check_nearest(blocks, users, 1.0, 1.0, count, start, start + 2)


def test_everybody_at_one_place():
    check_nearest(np.ones((3, 4, 4, LANES), np.float32), 3 * LANES - 5, 1.0, 1.0, 20, 60, 70)


def test_a_part_equals_the_whole():
    blocks = random_blocks(150, 16, 50, 3)
    whole, part = np.empty((150, 9), np.int64), np.empty((30, 9), np.int64)
    how = Sketching(0.0, 1.0, blocks.shape[1], 5.0, 5.0, PAPERS)
    nearest_by_sketch(blocks, 150, how, 0, whole)
    nearest_by_sketch(blocks, 150, how, 70, part)
    assert (whole[70:100] == part).all()
