"""The suite can't quietly shrink."""

import pytest

# Raise it when tests are added; lower it only for a reason that is written down.
FLOOR = 6400


def test_there_are_as_many_tests_as_ever(request):
    config = request.config
    if config.args_source is not config.ArgsSource.TESTPATHS or config.option.keyword:
        pytest.skip("only part of the suite was asked for")
    assert len(request.session.items) >= FLOOR
