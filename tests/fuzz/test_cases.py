"""The same cases each time, some of each kind, and everything that once broke."""

from functools import partial

import pytest

from tests.fuzz.case import FIXED, case_of, load, outcome, seeds_of
from tests.fuzz.configurations import answer
from tests.fuzz.kinds import KINDS
from tests.fuzz.shortcuts import shortcut

# How many of each kind: fewer of those that cost more.
EACH = {"csv": 160, "parquet": 160, "arrow": 120, "json": 160, "packed": 120, "frame": 140, "toml": 100}
EACH |= {"manifest": 220, "release": 300, "audit": 200, "ledger": 200, "record": 120}
_STEP = 10
FIRSTS = [(kind, first) for kind in KINDS for first in range(0, EACH[kind], _STEP)]
SEEDS = [(kind, seed) for kind in KINDS.values() for seed in seeds_of(kind)]


def test_there_are_as_many_cases_as_ever():
    assert EACH.keys() == KINDS.keys()
    assert sum(EACH.values()) == FIXED


@pytest.mark.parametrize(("kind", "first"), FIRSTS)
def test_cases_end_well(kind, first):
    for number in range(first, first + _STEP):
        case = case_of(KINDS[kind], number)
        try:
            outcome(KINDS[kind], case)
        except BaseException as error:
            error.add_note(f"python -m tests.fuzz {kind} {number}")
            raise


@pytest.mark.parametrize(("kind", "seed"), SEEDS, ids=[f"{kind.name}-{seed.name}" for kind, seed in SEEDS])
def test_what_once_broke_ends_well(kind, seed):
    outcome(kind, load(seed))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_shortcuts_change_no_answer(first, tmp_path, monkeypatch):
    """They once lost the settings of methods and of reading, which were then never tried."""
    monkeypatch.setattr("shoal.cli.app.require_room", lambda _: None)  # starts and ends many threads
    answers = set()
    for number in range(first, first + 20):
        case, folder = case_of(KINDS["toml"], number), tmp_path / str(number)
        folder.mkdir()
        (folder / case.first).write_bytes(case.files[case.first])
        plain = answer(case, folder)
        assert [shortcut(turn, partial(answer, case, folder)) for turn in range(2)] == [plain, plain]
        answers.add(plain)
    assert len(answers) > 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_is_always_the_same_case(kind):
    numbers = range(FIXED, FIXED + 40)
    once = [case_of(KINDS[kind], number) for number in numbers]
    assert [case_of(KINDS[kind], number) for number in reversed(numbers)] == once[::-1]
