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


@pytest.fixture
def refused(call, events, tmp_path, monkeypatch):
    """Run a command that is wrong, EVENTS standing for the events; gives its one line, after which nothing is left."""

    def _refused(*arguments):
        monkeypatch.chdir(tmp_path)
        code, out, err = call(*[events if argument == "EVENTS" else argument for argument in arguments])
        assert code == 2
        assert err.startswith("shoal: ")
        assert err.count("\n") == 1
        assert "Traceback" not in out + err
        assert list(tmp_path.iterdir()) == []
        return err

    return _refused
