"""The command line, as a function."""

import pytest

from shoal.cli import main


@pytest.fixture
def call(capsys):
    """Run a command in this process; gives (exit code, standard output, standard error)."""

    def _call(*arguments):
        with pytest.raises(SystemExit) as done:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return done.value.code, captured.out, captured.err

    return _call
