"""Single system calls of publishing fail, or the run is killed there: old or new, whole, and the message is true."""

import sys
from collections import Counter

import pytest

from shoal.methods import METHODS
from tests.faults.kills import KILLS, killed
from tests.faults.matrix import all_judged, every_case, some_cases
from tests.injected import ACTIONS, MODES, SETTINGS, Injector, compiled


@pytest.fixture(scope="module")
def injectors(tmp_path_factory):
    if not sys.platform.startswith("linux"):
        pytest.skip("faults are injected on Linux only")
    library = compiled()
    if library is None:
        pytest.skip("there is no C compiler (cc) to build what injects faults")
    one = Injector(library, tmp_path_factory.mktemp("injected"))
    yield [one]
    one.close()


def check(injectors, cases):
    ended = Counter()
    for case, told in all_judged(injectors, cases):
        assert not told["wrong"], (case, told)
        ended[told["after"]] += 1
    assert min(ended["old"], ended["new"]) > len(cases) / 10


def test_a_fault_at_some_calls(injectors):
    calls = {mode: injectors[0].calls(mode) for mode in MODES}
    assert all({"create", "write", "fsync", "rename", "link", "unlink", "close"} <= set(calls[mode]) for mode in MODES)
    check(injectors, some_cases(calls))


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_a_fault_at_every_call(injectors, action):
    calls = {mode: injectors[0].calls(mode) for mode in MODES}
    check(injectors, [case for case in every_case(calls) if case[1] == action])


@pytest.mark.parametrize(
    ("method", "kills"),
    [("shoal", 8), *(pytest.param(method, KILLS // len(SETTINGS), marks=pytest.mark.slow) for method in SETTINGS)],
)
def test_killed_at_random_moments(injectors, method, kills):
    """Afterwards there is the old release or the new one; the run that ends leaves what an undisturbed one leaves."""
    for question, told in killed(injectors[0], method, kills):
        assert not told["wrong"], (question, told)


def test_all_methods_are_killed():
    assert set(METHODS) == set(SETTINGS)
