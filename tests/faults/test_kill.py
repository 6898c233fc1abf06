"""A signal at any moment leaves no release or a whole one; nobody has to be quick to send it."""

import os
import signal
import subprocess
import sys

import pytest

import shoal
from tests.forked import TOUCH, Forked, forked

FILES = ["audit.parquet", "release.parquet", "release.parquet.manifest.json", "release.parquet.run.json"]
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
def test_a_signal_at_any_moment(one_day, run, tmp_path, number, touch):
    """SIGKILL leaves nothing or a whole release; Ctrl-C leaves nothing, or comes too late and all is published."""
    code, _, said = forked(TOUCH, tmp_path, int(number), touch, 0, *anonymize(one_day, tmp_path))
    whole = (tmp_path / "release.parquet.manifest.json").exists()
    if whole:
        assert shoal.verify(one_day, tmp_path / "release.parquet", k=2, audit=tmp_path / "audit.parquet").ok
    if number == signal.SIGINT:
        assert code == (0 if whole else 130), said
        assert ("nothing was published" in said) == (not whole)
        assert "continues from here" not in said
        assert whole or list(tmp_path.iterdir()) == []
    else:
        assert code == -signal.SIGKILL, said
    run(*anonymize(one_day, tmp_path), "--overwrite", check=0)
    left = {path.name for path in tmp_path.rglob("*")} - {"lock"}
    assert sorted(name for name in left if not name.startswith(".new-shoal-")) == FILES  # such a one was still empty
    assert shoal.verify(one_day, tmp_path / "release.parquet", k=2).ok


@pytest.mark.parametrize("users", [100, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_long_work(tmp_path, tmp_path_factory, number, users):
    events = tmp_path_factory.mktemp("many") / "events.parquet"
    shoal.synthesize(events, users=users, seed=1)
    process = Forked(WORK, *anonymize(events, tmp_path), "--effort", "thorough")
    assert process.out.readline() == b"at work\n"
    process.send_signal(number)
    code, _, said = process.end()
    assert code == 128 + number
    assert "nothing was published" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["pipe", "full"])
def test_a_reader_that_goes_away_changes_nothing(one_day, tmp_path, where):
    """The release is published, and the exit code says so."""
    reader, writer = os.pipe() if where == "pipe" else (os.dup(0), os.open("/dev/full", os.O_WRONLY))
    os.close(reader)
    command = [sys.executable, "-m", "shoal.cli", *anonymize(one_day, tmp_path)]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=300, check=False)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    shoal.read_release(tmp_path / "release.parquet")
