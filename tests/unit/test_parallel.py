"""Work on several threads: in order, with its errors, and with Ctrl-C at any moment."""

import _weakrefset
import enum
import signal
import sys
import threading

import pytest

from shoal.errors import TooLarge
from shoal.parallel import LOCAL_ENGINE, ahead, in_order, run_ranges
from tests.forked import forked


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


def ranges():
    done = []
    run_ranges(lambda start, _: done.append(start), [(n, n + 1) for n in range(3)], threads=2)
    return sorted(done)


WAYS = {
    "ranges": ranges,
    "parts": lambda: sorted(LOCAL_ENGINE.map(abs, enumerate([0, -1, -2]), workers=2)),
    "in order": lambda: list(in_order(abs, range(3), threads=2)),
    "ahead": lambda: list(ahead(range(2))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("most", [0, 1])
def test_a_system_that_starts_few_threads(monkeypatch, way, most):
    """Those that there are do the work; without any, the error says what to do."""
    expected, started, start = WAYS[way](), [], threading.Thread.start

    def starting(thread):
        if len(started) == most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)
    before = threading.active_count()
    if most:
        assert WAYS[way]() == expected
    else:
        with pytest.raises(TooLarge, match="ulimit -u"):
            WAYS[way]()
    assert threading.active_count() == before


SKIPPED = {_weakrefset.__file__, enum.__file__, signal.__file__}  # Python swallows it in the first; the others are many


def interrupted(work, moment):
    """Send Ctrl-C at this step of the main thread's work; return what the work returned, and whether it was over."""
    left = [moment]

    def step(frame, event, argument):
        if frame.f_code.co_filename in SKIPPED:
            return None
        left[0] -= 1
        if left[0] == 0:
            signal.raise_signal(signal.SIGINT)
        return step

    sys.settrace(step)
    try:
        return work(), left[0] > 0
    except KeyboardInterrupt:
        return None, False
    finally:
        sys.settrace(None)


def interrupt_every_step(way):
    """Interrupt the work at its first step, its second step, and so on, until it is over before."""
    asked = []

    def ask(number, frame):
        asked.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, ask)
    expected, moment, over = WAYS[way](), 0, False
    while not over:
        moment += 1
        asked.clear()
        result, over = interrupted(WAYS[way], moment)
        assert result in (None, expected)
        assert over or asked
    assert moment > 50


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_at_any_step_ends_the_work(way):
    """With the locks of concurrent.futures, several of these steps waited for ever."""
    code, _, said = forked(f"from {__name__} import interrupt_every_step\ninterrupt_every_step({way!r})")
    assert code == 0, said


UNHEARD = """
import signal, threading, time
from shoal.interrupt import heed_signals, signal_number
from shoal.parallel import LOCAL_ENGINE
heed_signals()
def work(part):
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    while signal_number() is None:
        time.sleep(0.01)
    return {}
try:
    list(LOCAL_ENGINE.map(work, [(0, 0)], workers=1))
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_signal_that_does_not_wake_the_main_thread_is_heeded():
    """Here a thread gets it; a signal that comes just before the main thread begins to wait is the same."""
    code, out, said = forked(UNHEARD)
    assert (code, out) == (0, "stopped\n"), said


def test_results_come_in_order_and_an_error_in_its_turn():
    late = threading.Event()

    def work(n):
        if n == 0:
            late.wait()
        elif n == 2:
            late.set()
        elif n == 3:
            raise ValueError("three")
        return n

    found = in_order(work, range(5), threads=3)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(found)
