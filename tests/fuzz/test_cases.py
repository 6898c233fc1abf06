"""The same cases each time, some of each kind, and everything that once broke."""

import pytest

from tests.fuzz.case import FIXED, case_of, load, outcome, seeds_of
from tests.fuzz.kinds import KINDS

EACH = FIXED // len(KINDS)
_STEP = 10
SEEDS = [(kind, seed) for kind in KINDS.values() for seed in seeds_of(kind)]


@pytest.mark.parametrize("first", range(0, EACH, _STEP))
@pytest.mark.parametrize("kind", KINDS)
def test_cases_end_well(kind, first):
    for number in range(first, min(first + _STEP, EACH)):
        case = case_of(KINDS[kind], number)
        try:
            outcome(KINDS[kind], case)
        except BaseException as error:
            error.add_note(f"python -m tests.fuzz {kind} {number}")
            raise


@pytest.mark.parametrize(("kind", "seed"), SEEDS, ids=[f"{kind.name}-{seed.name}" for kind, seed in SEEDS])
def test_what_once_broke_ends_well(kind, seed):
    outcome(kind, load(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_is_always_the_same_case(kind):
    assert case_of(KINDS[kind], FIXED + 10) == case_of(KINDS[kind], FIXED + 10)
