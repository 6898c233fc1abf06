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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_long_work(whole_run, tmp_path, tmp_path_factory, number):
    events = tmp_path_factory.mktemp("many") / "events.parquet"
    shoal.synthesize(events, users=20_000, seed=1)
    process = start(events, tmp_path, "--effort", "thorough")
    time.sleep(whole_run + 5)
    process.send_signal(number)
    begun = time.perf_counter()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert time.perf_counter() - begun < 30
    assert b"nothing was published" in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n", range(6))
def test_ctrl_c_at_any_moment(events, whole_run, tmp_path, n):
    """It stops and leaves nothing, or comes too late and leaves a whole release; -2 is Python's own, at its borders."""
    process = start(events, tmp_path)
    time.sleep((n + 1) / 7 * whole_run)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode in {0, 130, -2}
    if (tmp_path / "release.parquet.manifest.json").exists():
        assert b"nothing was published" not in errors
        assert shoal.verify(events, tmp_path / "release.parquet", k=2, audit=tmp_path / "audit.parquet").ok
    else:
        assert process.returncode != 0
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["pipe", "full"])
def test_a_reader_that_goes_away_changes_nothing(events, tmp_path, where):
    """The release is published, and the exit code says so."""
    if where == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    arguments = [*COMMAND, events, tmp_path / "release.parquet", "--k", "2"]
    done = subprocess.run(arguments, stdout=writer, stderr=subprocess.PIPE, timeout=120, check=False)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    shoal.read_release(tmp_path / "release.parquet")
