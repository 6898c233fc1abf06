"""A signal at any moment leaves no release or a whole one; nobody has to be quick to send it."""

import os
import signal
import subprocess
import sys

import pytest

import shoal

FILES = ["audit.parquet", "release.parquet", "release.parquet.manifest.json"]
# Sends a signal to itself when it touches the folder of its output for the n-th time.
TOUCH = """
import os, sys
from shoal.cli import main
folder, number, left = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def touched(event, arguments):
    global left
    if event.startswith(("open", "os.", "shutil.")) and any(str(path).startswith(folder) for path in arguments[:2]):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)
sys.addaudithook(touched)
sys.argv[1:] = sys.argv[4:]
main()
"""
# Says that it works, and does not end before it is told to stop.
WORK = """
from shoal.cli import main
from shoal.interrupt import signal_number
from shoal.search import partition
search = partition.groups_in
def searched(*arguments, **settings):
    print("at work", flush=True)
    while signal_number() is None:
        found = search(*arguments, **settings)
    return found
partition.groups_in = searched
main()
"""


def anonymize(events, folder):
    files = [folder / "release.parquet", "--audit", folder / "audit.parquet"]
    return ["anonymize", str(events), *map(str, files), "--k", "2"]


def moments(number, few):
    """All touches of a run, of which a few are tried by `make test`."""
    return [pytest.param(number, n, marks=[pytest.mark.slow] * (n not in few)) for n in range(1, 45)]


@pytest.mark.parametrize(
    ("number", "touch"), [*moments(signal.SIGKILL, {12, 20, 33, 35, 37}), *moments(signal.SIGINT, {1, 21, 34, 38})]
)
def test_a_signal_at_any_moment(events, run, tmp_path, number, touch):
    """SIGKILL leaves nothing or a whole release; Ctrl-C leaves nothing, or comes too late and all is published."""
    command = [sys.executable, "-c", TOUCH, tmp_path, str(int(number)), str(touch), *anonymize(events, tmp_path)]
    done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    whole = (tmp_path / "release.parquet.manifest.json").exists()
    if whole:
        assert shoal.verify(events, tmp_path / "release.parquet", k=2, audit=tmp_path / "audit.parquet").ok
    if number == signal.SIGINT:
        assert done.returncode == (0 if whole else 130), done.stderr
        assert (b"nothing was published" in done.stderr) == (not whole)
        assert b"continues from here" not in done.stderr
        assert whole or list(tmp_path.iterdir()) == []
    else:
        assert done.returncode == -signal.SIGKILL, done.stderr
    run(*anonymize(events, tmp_path), "--overwrite", check=0)
    left = {path.name for path in tmp_path.rglob("*")} - {"lock"}
    assert sorted(name for name in left if not name.startswith(".new-shoal-")) == FILES  # such a one was still empty
    assert shoal.verify(events, tmp_path / "release.parquet", k=2).ok


@pytest.mark.parametrize("users", [100, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_long_work(tmp_path, tmp_path_factory, number, users):
    events = tmp_path_factory.mktemp("many") / "events.parquet"
    shoal.synthesize(events, users=users, seed=1)
    command = [sys.executable, "-c", WORK, *anonymize(events, tmp_path), "--effort", "thorough"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"at work\n"
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert b"nothing was published" in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["pipe", "full"])
def test_a_reader_that_goes_away_changes_nothing(events, tmp_path, where):
    """The release is published, and the exit code says so."""
    if where == "pipe":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    command = [sys.executable, "-m", "shoal.cli", *anonymize(events, tmp_path)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    shoal.read_release(tmp_path / "release.parquet")
