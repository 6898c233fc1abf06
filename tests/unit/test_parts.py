"""Parts: everybody in one of them, near each other, with those around them; results in order and kept."""

import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import SettingsError
from shoal.parts import even_parts, halo, space_order
from shoal.run import Run
from tests.draws import examples
from tests.progress import Heard

coordinate = st.integers(-30, 30)
points = st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=400)


def sides(rows):
    return np.array(rows, np.int64).reshape(-1, 2).T


@examples(300)
@given(st.integers(1, 5000), st.integers(1, 700))
def test_even_parts_cover_everything_once(n, most):
    parts = even_parts(n, most)
    assert [parts[0][0], parts[-1][1]] == [0, n]
    assert all(stop == start for (_, stop), (start, _) in pairwise(parts))
    sizes = [stop - start for start, stop in parts]
    assert 1 <= min(sizes) <= max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == -(-n // most)


def naive_order(rows, chosen, start=0):
    """Halve by the longer side until few are left, which stay as they stand."""
    if len(chosen) <= 64:
        return chosen
    wide, high = (max(rows[n][axis] for n in chosen) - min(rows[n][axis] for n in chosen) for axis in (0, 1))
    ordered = sorted(chosen, key=lambda n: (rows[n][0 if wide >= high else 1], n))
    middle = (2 * start + len(chosen)) // 2
    left, right = ordered[: middle - start], ordered[middle - start :]
    return naive_order(rows, left, start) + naive_order(rows, right, middle)


@examples(100)
@given(points)
def test_space_order_equals_the_slow_twin(rows):
    order = space_order(*sides(rows))
    assert sorted(order.tolist()) == list(range(len(rows)))
    assert order.tolist() == naive_order(rows, list(range(len(rows))))


def test_neighbours_in_the_order_are_neighbours_in_space():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 10_000, (2, 4096))
    order = space_order(x, y)
    for start in range(0, 4096, 512):
        part = order[start : start + 512]
        assert np.ptp(x[part]) * np.ptp(y[part]) < 10_000**2 / 8 * 1.2


@examples(200)
@given(points, st.integers(1, 60), st.data())
def test_halo_equals_brute_force(rows, most, data):
    part = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1, max_size=20)))
    low = [min(rows[n][axis] for n in part) for axis in (0, 1)]
    high = [max(rows[n][axis] for n in part) for axis in (0, 1)]

    def apart(n):
        return max(max(low[axis] - rows[n][axis], rows[n][axis] - high[axis], 0) for axis in (0, 1))

    others = [n for n in range(len(rows)) if n not in part]
    expected = sorted(sorted(others, key=lambda n: (apart(n), n))[:most])
    assert halo(*sides(rows), np.array(part), most).tolist() == expected


class Memory:
    """A store that counts."""

    def __init__(self):
        self.kept, self.saved = {}, []

    def load(self, name):
        return self.kept.get(name)

    def save(self, name, arrays):
        self.kept[name] = arrays
        self.saved.append(name)


def square(part):
    return {"a": np.array([part * part])}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order_and_are_kept(threads):
    store = Memory()
    results = Run(threads=threads, store=store).map("squares", square, range(9), sizes=[3] * 9)
    assert [int(result["a"][0]) for result in results] == [n * n for n in range(9)]
    assert sorted(store.saved) == sorted(f"squares-{n}" for n in range(9))


def test_parts_there_are_not_computed_again():
    store, done = Memory(), []
    store.kept = {"squares-1": {"a": np.array([-1])}, "cubes-0": {"a": np.array([-2])}}

    def work(part):
        done.append(part)
        return square(part)

    results = Run(threads=1, store=store).map("squares", work, range(3), sizes=[1, 1, 1])
    assert done == [0, 2]
    assert [int(result["a"][0]) for result in results] == [0, -1, 4]


def test_what_was_finished_before_an_error_is_kept():
    store = Memory()

    def work(part):
        if part == 3:
            raise KeyboardInterrupt
        return square(part)

    with pytest.raises(KeyboardInterrupt):
        Run(threads=1, store=store).map("squares", work, range(6), sizes=[1] * 6)
    assert {"squares-0", "squares-1", "squares-2"} <= set(store.kept)
    assert "squares-3" not in store.kept


def test_no_more_parts_at_a_time_than_threads():
    at_once, most, lock = 0, 0, threading.Lock()

    def work(part):
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        threading.Event().wait(0.01)
        with lock:
            at_once -= 1
        return square(part)

    Run(threads=2).map("squares", work, range(12), sizes=[1] * 12)
    assert most == 2


def test_a_run_without_threads_or_memory_is_refused():
    for wrong in ({"threads": 0}, {"memory": -1}):
        with pytest.raises(SettingsError, match="must be at least 1"):
            Run(**wrong)


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_ends_at_its_total(threads):
    progress = Heard()
    Run(threads=threads, progress=progress).map("squares", square, range(4), sizes=[5, 1, 7, 2])
    assert progress.stages == [["squares", 15, 15]]
