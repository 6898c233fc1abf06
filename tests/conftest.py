"""Fixtures that many tests share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import shoal

settings.register_profile("same", derandomize=True)  # make test: what passes once passes again; test-all draws anew


@pytest.fixture(scope="session")
def events(tmp_path_factory):
    """A file of generated call records: 120 people, 4 days."""
    path = tmp_path_factory.mktemp("events") / "events.parquet"
    shoal.synthesize(path, users=120, scene="town", days=4, seed=3)
    return path


@pytest.fixture
def run(tmp_path):
    """Run the command line in a process of its own: run("verify", ..., cwd=…) gives the finished process."""

    def _run(*arguments, check=None, env=None, **options):
        done = subprocess.run(
            [sys.executable, "-m", "shoal.cli", *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
            cwd=options.get("cwd", tmp_path),
            env={**os.environ, **(env or {})},
        )
        if check is not None:
            assert done.returncode == check, done.stderr + done.stdout
        return done

    return _run


@pytest.fixture(scope="session")
def data():
    """The folder of real data, if there is one."""
    folder = os.environ.get("SHOAL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("SHOAL_DATA names no folder")
    return Path(folder)
