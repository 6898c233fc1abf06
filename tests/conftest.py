"""Fixtures that many tests share."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from numba.core import event

import shoal
from shoal.cli import main
from tests import draws  # noqa: F401  names the profile of `make test`


class Untraced(event.Listener):
    """Pauses coverage while a kernel is compiled: the compiler is Python code too, and takes half as long again."""

    paused = threading.local()

    def on_start(self, _):
        self.paused.tracers = [*getattr(self.paused, "tracers", []), sys.gettrace()]
        sys.settrace(None)

    def on_end(self, _):
        sys.settrace(self.paused.tracers.pop())


event.register("numba:compile", Untraced())


def generated(tmp_path_factory, **options):
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    shoal.synthesize(path, scene="town", seed=3, **options)
    return path


@pytest.fixture(scope="session")
def events(tmp_path_factory):
    """A file of generated call records: 120 people, 4 days."""
    return generated(tmp_path_factory, users=120, days=4)


@pytest.fixture(scope="session")
def one_day(tmp_path_factory):
    """Of 120 people, one day: for tests that run often."""
    return generated(tmp_path_factory, users=120, days=1)


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)

    def expected(self, code):
        assert code in {None, self.returncode}, self.stderr + self.stdout
        return self


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run a command in this process, in an empty folder: run("verify", …, check=0) gives how it ended."""

    def _run(*arguments, check=None):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return Done(end.value.code, *capfd.readouterr()).expected(check)

    return _run


@pytest.fixture
def process(tmp_path):
    """Run a command as `run` does, in a process of its own: for what is read when a process starts, and for pipes."""

    def _process(*arguments, check=None, env=None):
        command = [sys.executable, "-m", "shoal.cli", *map(str, arguments)]
        env = {**os.environ, **(env or {})}
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=env)
        return Done(done.returncode, done.stdout, done.stderr).expected(check)

    return _process


@pytest.fixture(scope="session")
def data():
    """The folder of real data, if there is one."""
    folder = os.environ.get("SHOAL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SHOAL_DATA names no folder")
    return Path(folder)
