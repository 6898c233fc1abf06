"""SIGKILL at random moments leaves no release or a whole one; Ctrl-C leaves nothing at all."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

import shoal

COMMAND = [sys.executable, "-m", "shoal.cli", "anonymize"]


def start(events, folder, *more):
    return subprocess.Popen(
        [*COMMAND, events, folder / "release.parquet", "--k", "2", "--audit", folder / "audit.parquet", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process):
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors


@pytest.fixture(scope="module")
def whole_run(events, tmp_path_factory):
    """How long a whole run takes once kernels are compiled."""
    folder = tmp_path_factory.mktemp("whole")
    for more in ([], ["--overwrite"]):
        begun = time.perf_counter()
        finish(start(events, folder, *more))
    return time.perf_counter() - begun


def kill_and_look(events, folder, after):
    process = start(events, folder)
    time.sleep(after)
    process.kill()
    process.communicate()
    manifest = folder / "release.parquet.manifest.json"
    if manifest.exists():
        assert shoal.verify(events, folder / "release.parquet", k=2, audit=folder / "audit.parquet").ok
    finish(start(events, folder, "--overwrite"))
    assert sorted(path.name for path in folder.iterdir()) == ["audit.parquet", "release.parquet", manifest.name]
    assert shoal.verify(events, folder / "release.parquet", k=2).ok


@pytest.mark.parametrize("n", range(5))
def test_sigkill(events, whole_run, tmp_path, n):
    kill_and_look(events, tmp_path, random.Random(n).uniform(0.3, 1.0) * whole_run)


@pytest.mark.slow
@pytest.mark.parametrize("n", range(5, 50))
def test_sigkill_often(events, whole_run, tmp_path, n):
    kill_and_look(events, tmp_path, random.Random(n).uniform(0, 1.1) * whole_run)


def test_ctrl_c(whole_run, tmp_path, tmp_path_factory):
    events = tmp_path_factory.mktemp("many") / "events.parquet"
    shoal.synthesize(events, users=20_000, seed=1)
    process = start(events, tmp_path, "--candidates", "1000")
    time.sleep(whole_run + 5)
    os.kill(process.pid, signal.SIGINT)
    begun = time.perf_counter()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.perf_counter() - begun < 15
    assert b"nothing was published" in errors
    assert list(tmp_path.iterdir()) == []
