"""The switch from an old release to a new one: no signal, error or kill splits it, and the next command mends it."""

import json
import os
import pickle
import signal

import pytest

import shoal
from shoal import folders
from shoal.errors import AlreadyExists, OutputError
from tests.forked import COMMAND, TOUCH, forked
from tests.publishing import written

STEPS = ("_write_journal", "_set_aside", "replace", "sync_folder", "_forget")
HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DEADLY = (signal.SIGKILL, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM)
FILES = ["a.parquet", "r.parquet", "r.parquet.manifest.json"]


@pytest.fixture(scope="module")
def releases():
    people = shoal.from_arrow(shoal.synthesize(users=12, scene="town", days=1, seed=1))
    return people, shoal.Shoal(k=2).anonymize(people), shoal.Shoal(k=4).anonymize(people)


@pytest.fixture
def old(releases, tmp_path):
    """A folder with a whole release of k = 2; gives its files."""
    written(releases[1], tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    return {name: (tmp_path / name).read_bytes() for name in FILES}


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def k_of(people, folder):
    """The k that the release in a folder claims; it is whole, true of its people, and nothing is left beside it."""
    assert shoal.verify(people, folder / "r.parquet", audit=folder / "a.parquet").ok
    assert sorted(path.name for path in folder.iterdir()) == FILES
    return shoal.read_release(folder / "r.parquet").claim.k


def at_every_call(monkeypatch, act, happened=None):
    """Let something happen before and after each step of a switch; gives the steps."""
    happened = [] if happened is None else happened

    def around(home, name):
        real = getattr(home, name)

        def step(*arguments, **options):
            happened.append(name)
            act(len(happened))
            result = real(*arguments, **options)
            act(len(happened))
            return result

        monkeypatch.setattr(home, name, step)

    for name in STEPS:
        around(folders.Path if name == "replace" else folders, name)
    return happened


@pytest.mark.parametrize("number", HELD)
def test_a_signal_at_any_step_comes_too_late(number, releases, old, tmp_path, monkeypatch):
    people, _, new = releases
    steps = at_every_call(monkeypatch, lambda _: os.kill(os.getpid(), number))
    written(new, tmp_path / "r.parquet", audit=tmp_path / "a.parquet", overwrite=True)
    assert set(steps) == set(STEPS)
    monkeypatch.undo()
    assert k_of(people, tmp_path) == 4


def test_an_error_at_any_step_leaves_the_old_release(releases, old, tmp_path, monkeypatch):
    """The release that was there is there again, to the byte, whichever call fails; without one, nothing is left."""
    calls = []
    with monkeypatch.context() as patch:
        at_every_call(patch, calls.append)
        written(releases[2], tmp_path / "r.parquet", audit=tmp_path / "a.parquet", overwrite=True)
    for name, data in old.items():
        (tmp_path / name).write_bytes(data)
    for failing in range(1, max(calls) + 1):
        seen, steps = [], []

        def fail(count, seen=seen, failing=failing, steps=steps):
            if count == failing and steps[-1] != "_forget" and count not in seen:
                seen.append(count)
                raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            at_every_call(patch, fail, steps)
            try:
                written(releases[2], tmp_path / "r.parquet", audit=tmp_path / "a.parquet", overwrite=True)
            except OutputError:
                assert contents(tmp_path) == old, steps
            else:
                assert steps[failing - 1] in ("_forget", "_set_aside"), steps
        for name, data in old.items():
            (tmp_path / name).write_bytes(data)


def test_an_error_says_that_the_old_release_is_as_it_was(releases, old, tmp_path, monkeypatch):
    def broken(folder):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(folders, "_write_journal", lambda *_: None)
        patch.setattr(folders, "sync_folder", broken)
        with pytest.raises(OutputError, match="the release that was there is as it was"):
            written(releases[2], tmp_path / "r.parquet", audit=tmp_path / "a.parquet", overwrite=True)
    assert contents(tmp_path) == old


def test_files_in_several_folders_are_switched_together(releases, tmp_path):
    (tmp_path / "private").mkdir()
    for release in releases[1:]:
        options = {"audit": tmp_path / "private" / "a.parquet", "run_record": tmp_path / "private" / "run.json"}
        written(release, tmp_path / "r.parquet", **options, overwrite=True)
        assert json.loads((tmp_path / "private" / "run.json").read_text())["shoal"]["claim"]["k"] == release.claim.k
    assert shoal.verify(releases[0], tmp_path / "r.parquet", audit=tmp_path / "private" / "a.parquet").ok
    assert sorted(path.name for path in tmp_path.rglob("*") if path.name.startswith(".")) == []


# Killed

SCRIPT = """
import os, pickle, sys
from pathlib import Path
from shoal import folders
from tests.publishing import written
release, folder = pickle.loads(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2])
number, at, count = int(sys.argv[3]), int(sys.argv[4]), 0
def around(home, name):
    real = getattr(home, name)
    def step(*arguments, **options):
        global count
        for after in (False, True):
            result = real(*arguments, **options) if after else None
            count += 1
            if count == at:
                os.kill(os.getpid(), number)
        return result
    setattr(home, name, step)
for name in ("_write_journal", "_set_aside", "sync_folder", "_forget"):
    around(folders, name)
around(folders.Path, "replace")
written(release, folder / "r.parquet", audit=folder / "a.parquet", overwrite=True)
print(count)
"""


@pytest.mark.parametrize(
    ("number", "at"), [*((signal.SIGKILL, at) for at in (2, 6, 8, 10, 12)), *((number, 8) for number in DEADLY[1:])]
)
def test_killed_at_a_step(number, at, releases, old, tmp_path, tmp_path_factory):
    new = tmp_path_factory.mktemp("new") / "release"
    new.write_bytes(pickle.dumps(releases[2]))
    code, _, said = forked(SCRIPT, new, tmp_path, int(number), at)
    assert code in (-number, 0), said
    release = shoal.read_release(tmp_path / "r.parquet")
    hidden = [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    if release.claim.k == 4:
        assert not hidden or code != 0
    else:
        assert {name: (tmp_path / name).read_bytes() for name in FILES} == old
    written(releases[1], tmp_path / "s.parquet")  # sweeps what is left
    for name in ("s.parquet", "s.parquet.manifest.json"):
        (tmp_path / name).unlink()
    assert k_of(releases[0], tmp_path) == release.claim.k


def test_what_was_interrupted_is_finished_and_said(releases, old, tmp_path, caplog, monkeypatch):
    """The journal is written, nothing is moved yet: reading the release finishes it, once."""
    half_way(releases[2], tmp_path, monkeypatch)
    assert shoal.read_release(tmp_path / "r.parquet").claim.k == 4
    assert [record.getMessage() for record in caplog.records] == [
        "an interrupted publication of r.parquet was finished"
    ]
    assert k_of(releases[0], tmp_path) == 4


def half_way(release, folder, monkeypatch):
    """Leave a switch that was decided and not begun, as a killed run does."""

    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(folders, "_set_aside", die)
        patch.setattr(folders.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Killed):
            written(release, folder / "r.parquet", audit=folder / "a.parquet", overwrite=True)


def test_what_was_changed_meanwhile_stays(releases, old, tmp_path, caplog, monkeypatch):
    half_way(releases[2], tmp_path, monkeypatch)
    (tmp_path / "a.parquet").write_bytes(old["a.parquet"] + b" ")
    shoal.read_release(tmp_path / "r.parquet")
    assert "was dropped: its files were changed meanwhile" in caplog.text
    assert contents(tmp_path) == old | {"a.parquet": old["a.parquet"] + b" "}


def test_a_journal_of_somebody_else_is_not_followed(tmp_path):
    """A folder that others may write to could hold a journal that moves anything anywhere."""
    folder = tmp_path / ".shoal-x"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "lock").touch()
    (folder / "new").write_text("x")
    (tmp_path / "target").write_text("mine")
    moves = [[str(folder / "new"), str(tmp_path / "target"), folders._identity(tmp_path / "target")]]
    (folder / "switch.json").write_text(json.dumps(moves))
    folders.mend(tmp_path)
    assert (tmp_path / "target").read_text() == "mine"
    folder.chmod(0o700)
    folders.mend(tmp_path)
    assert (tmp_path / "target").read_text() == "x"


def test_a_file_that_has_appeared_takes_everything_back(releases, tmp_path, monkeypatch):
    """Without --overwrite: what is there stays, what was moved before it is gone again."""
    real = folders._move_new

    def move(new, target):
        if target.name == "r.parquet.manifest.json":
            target.write_text("mine")
        real(new, target)

    monkeypatch.setattr(folders, "_move_new", move)
    with pytest.raises(AlreadyExists, match="appeared meanwhile"):
        written(releases[1], tmp_path / "r.parquet", audit=tmp_path / "a.parquet")
    assert contents(tmp_path) == {"r.parquet.manifest.json": b"mine"}


@pytest.mark.slow
def test_two_hundred_kills_of_an_overwrite(tmp_path):
    """200 SIGKILLs at random moments of `anonymize --overwrite`: always the old or the new release, whole."""
    import random

    events = tmp_path / "events.parquet"
    shoal.synthesize(events, users=60, scene="town", days=1, seed=3)
    folder = tmp_path / "out"
    folder.mkdir()
    audit, draw, ended, changed, before = folder / "a.parquet", random.Random(1), [], 0, 2
    publish = ["anonymize", events, folder / "r.parquet", "--audit", audit, "--overwrite", "--quiet", "--k"]
    assert forked(COMMAND, *publish, before)[0] == 0
    for n in range(200):
        k = draw.choice([k for k in (2, 3, 4) if k != before])
        moment = int(signal.SIGKILL), draw.randint(1, 80), draw.choice([0, draw.uniform(0, 0.02)])
        ended.append(forked(TOUCH, folder, *moment, *publish, k)[0])
        verdict = shoal.verify(events, folder / "r.parquet", audit=audit)
        assert verdict.ok, (n, moment, verdict.messages)
        assert verdict.claim.k in (before, k), (n, moment)
        changed, before = changed + (verdict.claim.k != before), verdict.claim.k
    assert set(ended) == {0, -signal.SIGKILL}
    assert ended.count(0) < changed < 200  # some were killed before the switch, some in it or after it
