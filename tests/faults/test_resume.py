"""Interrupted and resumed, a run publishes the same bytes, and does not do again what it had finished."""

import random
import signal
import stat
import threading
import time

import pytest

import shoal
from shoal.errors import OutputError, SettingsError
from shoal.methods import KScale, Shoal
from shoal.pipeline import publish
from shoal.run import Run
from shoal.search import partition, partners
from shoal.store import Folder
from tests.forked import Forked

RELEASE = ["r.parquet", "r.parquet.manifest.json"]


def kept_files(folder):
    return sorted(path.name for path in folder.glob(".kept-shoal-*/*/*.part"))


# In this process, with parts so small that a few people make many


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(partition, "_PART", 24)
    monkeypatch.setattr(partners, "_PART", 50)
    monkeypatch.setattr(partners, "_HALO", 50)


@pytest.fixture
def worked(monkeypatch):
    """Counts the parts that are computed."""
    done = []
    for room, name in ((partition, "groups_in"), (partners, "cheapest_partners")):
        true = getattr(room, name)

        def counted(*arguments, true=true, name=name, **settings):
            result = true(*arguments, **settings)
            done.append(name)
            return result

        monkeypatch.setattr(room, name, counted)
    return done


def anonymized(events, folder, *, k=2, resume=True, **more):
    run = Run(**{"threads": 1, **more})
    publish(events, folder / "r.parquet", Shoal(k=k, effort="quick"), overwrite=True, seed=7, resume=resume, run=run)
    assert sorted(path.name for path in folder.iterdir()) == RELEASE
    return [(folder / name).read_bytes() for name in RELEASE]


def interrupted(events, folder, after, **more):
    """Stop a run when so many parts are finished."""
    true, saved, lock = Folder.save, [], threading.Lock()

    def save(self, name, arrays):
        with lock:
            if len(saved) == after:
                raise KeyboardInterrupt
            true(self, name, arrays)
            saved.append(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "save", save)
        with pytest.raises(KeyboardInterrupt, match="nothing was published"):
            anonymized(events, folder, **more)
    return saved


@pytest.mark.usefixtures("small_parts")
def test_finished_parts_are_not_computed_again(one_day, tmp_path, worked):
    expected = anonymized(one_day, tmp_path, resume=False)
    parts = len(worked)
    assert parts > 10
    for after in (0, 1, 2, 3, parts // 2, parts - 1):
        for name in RELEASE:
            (tmp_path / name).unlink()
        saved = interrupted(one_day, tmp_path, after)
        assert kept_files(tmp_path) == sorted(f"{name}.part" for name in saved)
        assert len(saved) == after
        worked.clear()
        assert anonymized(one_day, tmp_path) == expected
        assert len(worked) == parts - after


@pytest.mark.usefixtures("small_parts")
def test_interrupted_again_and_again(one_day, tmp_path, worked):
    """Each run goes one part further than the one before, with other threads and memory."""
    expected = anonymized(one_day, make(tmp_path, "whole"), resume=False)
    parts, folder = len(worked), make(tmp_path, "broken")
    for run in range(parts):
        interrupted(one_day, folder, min(1, run), threads=1 + run % 2, memory=2_000_000_000 + run)
    worked.clear()
    assert anonymized(one_day, folder, threads=2) == expected
    assert len(worked) == 1


def make(parent, name):
    (parent / name).mkdir()
    return parent / name


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("other", ["settings", "people"])
def test_other_settings_and_other_people_start_anew(one_day, tmp_path, worked, other):
    events, k = (tmp_path / "others.parquet", 2) if other == "people" else (one_day, 3)
    if other == "people":
        shoal.synthesize(events, users=120, scene="town", days=1, seed=4)
    expected = anonymized(events, make(tmp_path, "whole"), k=k, resume=False)
    parts, folder = len(worked), make(tmp_path, "broken")
    interrupted(one_day, folder, 5)
    worked.clear()
    assert anonymized(events, folder, k=k) == expected
    assert len(worked) == parts


@pytest.mark.usefixtures("small_parts")
def test_a_damaged_part_is_computed_again(one_day, tmp_path, worked):
    expected = anonymized(one_day, make(tmp_path, "whole"), resume=False)
    parts, folder = len(worked), make(tmp_path, "broken")
    interrupted(one_day, folder, 6)
    one, other, *_ = folder.glob(".kept-shoal-*/*/*.part")
    one.write_bytes(one.read_bytes()[:-9])
    other.write_bytes(b"")
    worked.clear()
    assert anonymized(one_day, folder) == expected
    assert len(worked) == parts - 4


@pytest.mark.usefixtures("small_parts")
def test_a_run_that_is_not_to_be_resumed_leaves_nothing(one_day, tmp_path):
    interrupted(one_day, tmp_path, 4)
    assert len(kept_files(tmp_path)) == 4
    anonymized(one_day, tmp_path, resume=False)


def test_what_is_kept_is_private(one_day, tmp_path):
    interrupted(one_day, tmp_path, 1)
    paths = list(tmp_path.rglob("*"))
    assert len(paths) == 4  # the folder, its lock, the folder of its key, a file
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path.name


def test_parts_are_kept_in_the_work_dir(one_day, tmp_path):
    folder, work = make(tmp_path, "out"), make(tmp_path, "work")
    interrupted(one_day, folder, 1, work_dir=work)
    assert list(folder.iterdir()) == []
    assert len(kept_files(work)) == 1
    anonymized(one_day, folder, work_dir=work)
    assert list(work.iterdir()) == []


def test_two_runs_for_one_output(one_day, tmp_path, monkeypatch):
    """The second is refused while the first is at it, which is not disturbed."""
    true, met = Folder.save, []

    def save(self, name, arrays):
        if not met:
            met.append(name)
            with pytest.raises(OutputError, match="another run"):
                anonymized(one_day, tmp_path)
        true(self, name, arrays)

    monkeypatch.setattr(Folder, "save", save)
    anonymized(one_day, tmp_path)
    assert met


def test_methods_without_parts_say_so(one_day, tmp_path):
    with pytest.raises(SettingsError, match="`resume`"):
        publish(one_day, tmp_path / "r.parquet", KScale(k=2), resume=True)
    assert list(tmp_path.iterdir()) == []


# In processes of their own

COMMAND = """
import os, sys
from shoal.cli import main
from shoal.search import partition, partners
from shoal.store import Folder
number, parts = int(sys.argv.pop(1)), int(sys.argv.pop(1))
partition._PART, partners._PART, partners._HALO = 128, 256, 256
save, saved = Folder.save, []
def counted(*arguments):
    save(*arguments)
    saved.append(True)
    if len(saved) == parts:
        os.kill(os.getpid(), number)
Folder.save = counted
main()
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Enough people for some parts that take their time."""
    path = tmp_path_factory.mktemp("many") / "events.parquet"
    shoal.synthesize(path, users=800, scene="town", days=1, seed=3)
    return path


def arguments(events, folder, *more):
    options = ["--method", "shoal", "--k", "2", "--effort", "quick", "--seed", "5", "--quiet", *more]
    return ["anonymize", events, folder / "r.parquet", *options]


def start(events, folder, *more, number=0, parts=-1):
    """Start a run that, if asked, sends a signal to itself when so many parts are there."""
    return Forked(COMMAND, int(number), parts, *arguments(events, folder, *more))


@pytest.fixture(scope="module")
def whole(many, tmp_path_factory):
    """The bytes of an uninterrupted run, and how long it takes once everything is compiled."""
    folder = tmp_path_factory.mktemp("whole")
    for _ in range(2):
        begun, said = time.perf_counter(), start(many, folder, "--overwrite").end()
        assert sorted(path.name for path in folder.iterdir()) == RELEASE, said
    return [(folder / name).read_bytes() for name in RELEASE], time.perf_counter() - begun


@pytest.fixture
def resumed(run, many, tmp_path, monkeypatch):
    """Resume in this process, with the same parts; gives what is published."""
    for room, name, value in ((partition, "_PART", 128), (partners, "_PART", 256), (partners, "_HALO", 256)):
        monkeypatch.setattr(room, name, value)

    def _resumed():
        run(*arguments(many, tmp_path, "--resume", "--overwrite"), check=0)
        assert sorted(path.name for path in tmp_path.iterdir()) == RELEASE
        return [(tmp_path / name).read_bytes() for name in RELEASE]

    return _resumed


@pytest.mark.parametrize(
    ("number", "parts"), [(signal.SIGKILL, 1), (signal.SIGKILL, 4), (signal.SIGINT, 3), (signal.SIGTERM, 6)]
)
def test_stopped_and_resumed(many, whole, tmp_path, resumed, number, parts):
    code, _, said = start(many, tmp_path, "--resume", number=number, parts=parts).end()
    assert code == (-9 if number == signal.SIGKILL else 128 + number), said
    assert number == signal.SIGKILL or "the same command continues from here" in said
    assert len(kept_files(tmp_path)) >= parts
    assert not (tmp_path / "r.parquet").exists()
    assert resumed() == whole[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", range(30))
def test_killed_at_random_moments(many, whole, tmp_path, resumed, n):
    """Whatever moment it is: too early, in the middle or too late."""
    expected, seconds = whole
    draw = random.Random(n)
    for _ in range(draw.randint(1, 3)):
        process = start(many, tmp_path, "--resume", "--overwrite")
        time.sleep(draw.uniform(0.2, 1.05) * seconds)
        process.send_signal(draw.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
        process.end()
    assert resumed() == expected
