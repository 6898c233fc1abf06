"""Signals are held back where stopping half-way would hurt."""

import signal
import threading

import pytest

from shoal.interrupt import undisturbed


@pytest.fixture(autouse=True)
def handlers():
    """The usual handlers, even where the tests run in the background and Ctrl-C is ignored; back again afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    usual = {**before, signal.SIGINT: signal.default_int_handler}
    signal.signal(signal.SIGINT, usual[signal.SIGINT])
    yield usual
    for number, handler in before.items():
        signal.signal(number, handler)


def whole(done, depth):
    with undisturbed():
        if depth == 0:
            signal.raise_signal(signal.SIGINT)
        else:
            whole(done, depth - 1)
        done.append(depth)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_signal_waits_until_the_outermost_block_ends(depth):
    done = []
    with pytest.raises(KeyboardInterrupt):
        whole(done, depth)
    assert done == list(range(depth + 1))


def test_too_late(handlers):
    with undisturbed(too_late=True):
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert {number: signal.getsignal(number) for number in handlers} == handlers


def test_an_error_of_its_own_is_not_lost():
    with pytest.raises(ValueError, match="mine"), undisturbed():
        raise ValueError("mine")


def test_other_threads_have_no_handlers():
    done = []

    def work():
        with undisturbed():
            done.append("worked")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == ["worked"]
