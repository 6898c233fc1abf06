"""Work on several threads: in order, and with its errors."""

import threading

import pytest

from shoal.parallel import ahead


def test_items_come_in_order_and_one_is_made_ahead():
    made = []

    def items():
        for n in range(5):
            made.append((n, threading.current_thread() is threading.main_thread()))
            yield None if n == 2 else n

    assert list(ahead(items())) == [0, 1, None, 3, 4]
    assert made == [(n, False) for n in range(5)]
    assert list(ahead([])) == []


def test_an_error_comes_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("no more")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match="no more"):
        next(found)


def test_who_stops_early_leaves_nothing_running():
    taken = []

    def items():
        for n in range(100):
            taken.append(n)
            yield n

    before = threading.active_count()
    for item in ahead(items()):
        if item == 3:
            break
    assert len(taken) <= 6
    assert threading.active_count() == before
