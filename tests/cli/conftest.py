"""Commands that are wrong."""

import pytest


@pytest.fixture
def refused(run, events, tmp_path):
    """Run a command that is wrong, EVENTS standing for the events; gives its one line, after which nothing is left."""

    def _refused(*arguments):
        _, out, err = run(*[events if argument == "EVENTS" else argument for argument in arguments], check=2)
        assert err.startswith("shoal: ")
        assert err.count("\n") == 1
        assert "Traceback" not in out + err
        assert list(tmp_path.iterdir()) == []
        return err

    return _refused
