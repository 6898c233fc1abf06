"""The switch from old files to new ones: no signal, error or kill splits it, and the next command mends it."""

import os
import signal
import sys
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest

import shoal
from shoal import switch as switches
from shoal.errors import AlreadyExists, OutputError
from shoal.folders import private_folder, refuse_existing
from shoal.switch import mend, switch
from tests.publishing import written

STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Calls:
    """Lets something happen before each call of the operating system that touches a folder."""

    def __init__(self):
        self.act = None
        sys.addaudithook(self._hook)

    def _hook(self, event, arguments):
        act = self.act
        if act is None or not event.startswith(("open", "os.")):
            return
        if any(str(path).startswith(str(self.folder)) for path in arguments[:2]):
            self.act = None  # nothing happens within what happens
            try:
                act(next(self.number))
            finally:
                self.act = act

    @contextmanager
    def during(self, folder, act):
        self.folder, self.number, self.act = folder, count(1), act
        try:
            yield
        finally:
            self.act = None


CALLS = Calls()


class At:
    """Something that happens at the n-th call, or from it on."""

    def __init__(self, at, act, *, on=False):
        self.at, self.act, self.on, self.happened = at, act, on, False

    def __call__(self, called):
        if called == self.at or (self.on and called > self.at):
            self.happened = True
            self.act()


def send(number):
    os.kill(os.getpid(), number)


def fail(error):
    raise error


def in_child(work):
    """Do something in a copy of this process; return its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


class Place:
    """Targets of a switch, in one folder or two, and what they hold."""

    def __init__(self, folder, *, apart, old):
        self.folder, self.old = folder, old
        self.out, private = folder / "out", folder / ("private" if apart else "out")
        for place in (self.out, private):
            place.mkdir(parents=True, exist_ok=True)
        self.names = [f"{private.name}/a", "out/r", "out/r.manifest.json"]
        for target in self.targets if old else []:
            target.write_text("old")
            os.utime(target, (10**9, 10**9))

    @property
    def targets(self):
        return [self.folder / name for name in self.names]

    @property
    def holds(self):
        return [target.read_text() if target.exists() else None for target in self.targets]

    @property
    def hidden(self):
        return sorted(path.name for path in self.folder.rglob(".*"))

    def publish(self, act=None, *, content="new", overwrite=None):
        with ExitStack() as folders:
            parents = dict.fromkeys(target.parent for target in self.targets)
            private = {parent: folders.enter_context(private_folder(parent)) for parent in parents}
            files = [(private[target.parent] / target.name, target) for target in self.targets]
            for new, _ in files:
                new.write_text(content)
            with CALLS.during(self.folder, act):
                switch(files, overwrite=self.old if overwrite is None else overwrite)

    def sweep(self):
        for parent in dict.fromkeys(target.parent for target in self.targets):
            with private_folder(parent):
                pass

    def kill(self, at):
        """Publish in another process, which is killed before its n-th call; return whether it was."""
        child = in_child(lambda: self.publish(At(at, partial(send, signal.SIGKILL))))
        end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert end in (0, -signal.SIGKILL)
        return end != 0


@pytest.fixture(params=[(apart, old) for apart in (False, True) for old in (False, True)], ids=str)
def places(request, tmp_path):
    """Places as they are before a switch, as many as are wanted."""
    apart, old = request.param
    return (Place(tmp_path / str(n), apart=apart, old=old) for n in count())


def killed(places):
    """Places at which a switch was killed, at each of its calls; with the number of the call."""
    for at in count(1):
        place = next(places)
        if not place.kill(at):
            assert at > 12
            return
        yield at, place


WHOLE = (["new"] * 3, ["old"] * 3, [None] * 3)


def test_killed_at_any_call(places):
    """Whatever comes next mends it: a look at the outputs, a private folder, another publication; also elsewhere."""
    ends = set()
    for at, place in killed(places):
        if at % 2:
            place.folder = place.folder.rename(place.folder.with_name(f"moved-{at}"))
        if at % 3 == 0:
            place.publish(content="newer", overwrite=True)
            assert place.holds == ["newer"] * 3, at
        elif at % 3 == 1:
            refuse_existing(place.targets, overwrite=True)
        place.sweep()
        assert place.holds in (*WHOLE, ["newer"] * 3), at
        assert place.hidden == [], at
        ends.add(place.holds[0])
    assert len(ends) == 3


def test_killed_and_only_a_part_was_moved_elsewhere(tmp_path, caplog):
    """The release is whole again; what is left of the audit stays, and is said."""
    for at, place in killed(Place(tmp_path / str(n), apart=True, old=True) for n in count()):
        moved = place.out.rename(tmp_path / f"moved-{at}")
        mend(moved)
        assert (moved / "r").read_text() == (moved / "r.manifest.json").read_text(), at
        with private_folder(place.folder / "private"):
            pass
        assert place.holds[0] in ("old", "new")
    assert "its other folder is missing" in caplog.text


@pytest.mark.parametrize("mine", [0, 1, 2])
def test_a_file_that_was_changed_meanwhile_stays(mine, tmp_path, caplog):
    for at, place in killed(Place(tmp_path / str(n), apart=True, old=True) for n in count()):
        place.targets[mine].unlink()
        place.targets[mine].write_text("mine")
        place.sweep()
        rest = [held for n, held in enumerate(place.holds) if n != mine]
        assert place.holds[mine] == "mine", at
        assert rest in (["old"] * 2, ["new"] * 2), at
        assert place.hidden == []
    assert "was dropped: its files were changed meanwhile" in caplog.text


def test_an_error_at_any_call(places):
    """If it raises, what was there is there again; else everything is new."""
    for at in count(1):
        place, full = next(places), At(at, partial(fail, OSError(28, "No space left on device")))
        before, said = place.holds, ""
        try:
            place.publish(full)
        except OutputError as error:
            said = str(error)
        assert place.holds == (before if said else ["new"] * 3), at
        assert ("is as it was" in said) == (place.old and "moving" in said)
        place.sweep()
        assert place.hidden == [], at
        if not full.happened:
            return


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError()], ids=repr)
def test_errors_from_any_call_on(places, error):
    """Not even taking back works: the next command does it."""
    said = set()
    for at in count(1):
        place, broken = next(places), At(at, partial(fail, error), on=True)
        try:
            place.publish(broken)
        except (OutputError, MemoryError) as raised:
            said.add(str(raised))
        place.sweep()
        assert place.holds in WHOLE, at
        assert place.hidden == [], at
        if not broken.happened:
            break
    assert isinstance(error, MemoryError) or any("the next command finishes it" in text for text in said)


class Alarm(Exception):
    """A handler may raise anything."""


@pytest.mark.parametrize("number", [*STOP, signal.SIGALRM, signal.SIGUSR1])
def test_a_signal_at_any_call_waits(number, places):
    def alarm(*_):
        raise Alarm

    before = signal.signal(number, alarm)
    try:
        for at in count(1):
            place, sent = next(places), At(at, partial(send, number))
            try:
                place.publish(sent)
            except Alarm:
                assert number not in STOP
            assert place.holds == ["new"] * 3, at
            assert place.hidden == []
            if not sent.happened:
                return
    finally:
        signal.signal(number, before)


def test_two_runs_switch_one_after_the_other(tmp_path, monkeypatch):
    """While one is stopped in the middle, the other waits, and then gives up."""
    monkeypatch.setattr(switches, "_TURN_S", 1)
    place = Place(tmp_path / "place", apart=False, old=True)
    child = in_child(lambda: place.publish(At(10, partial(send, signal.SIGSTOP))))
    assert os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1])
    with pytest.raises(OutputError, match="another run is publishing"):
        place.publish(content="newer")
    os.kill(child, signal.SIGCONT)
    os.waitpid(child, 0)
    assert place.holds == ["new"] * 3
    place.publish(content="newer")
    assert place.holds == ["newer"] * 3


def test_without_links(places, monkeypatch):
    """On a file system without links, old files are copied."""

    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", unsupported)
    for at, place in killed(places):
        place.sweep()
        assert place.holds in WHOLE, at
        assert place.hidden == []


def test_a_journal_of_somebody_else_is_not_followed(tmp_path, caplog):
    """A folder that others may write to could hold a journal that moves anything anywhere."""
    place = Place(tmp_path / "place", apart=False, old=True)
    for at in count(1):
        assert place.kill(at)
        if any(place.out.glob(".shoal-*/switch.json")):
            break
        place.sweep()
    (folder,) = place.out.glob(".shoal-*")
    folder.chmod(0o777)
    place.sweep()
    assert place.holds == ["old"] * 3
    assert "is open to others" in caplog.text
    folder.chmod(0o700)
    (folder / "switch.json").write_text("[[")
    place.sweep()
    assert "can't be finished (JSONDecodeError)" in caplog.text
    assert place.holds == ["old"] * 3
    assert place.hidden == [folder.name]


def test_a_file_that_has_appeared_takes_everything_back(tmp_path):
    """Without `overwrite`, what is there stays, and what was moved before it is gone again."""
    place = Place(tmp_path / "place", apart=False, old=False)
    place.targets[-1].write_text("mine")
    with pytest.raises(AlreadyExists, match="appeared meanwhile"):
        place.publish()
    assert place.holds == [None, None, "mine"]
    assert place.hidden == []


# Releases


@pytest.fixture(scope="module")
def releases():
    people = shoal.from_arrow(shoal.synthesize(users=12, scene="town", days=1, seed=1))
    return people, shoal.Shoal(k=2).anonymize(people), shoal.Shoal(k=4).anonymize(people)


def test_files_in_several_folders_are_switched_together(releases, tmp_path):
    people, *both = releases
    (tmp_path / "private").mkdir()
    options = {"audit": tmp_path / "private" / "a.parquet", "run_record": tmp_path / "private" / "run.json"}
    for release in both:
        written(release, tmp_path / "r.parquet", **options, overwrite=True)
        assert shoal.verify(people, tmp_path / "r.parquet", audit=options["audit"]).ok
        assert shoal.read_release(tmp_path / "r.parquet").claim == release.claim
        assert f'"k": {release.claim.k}' in options["run_record"].read_text()
    assert [path.name for path in tmp_path.rglob(".*")] == []


def test_reading_a_release_finishes_what_was_interrupted_and_says_so(releases, tmp_path, caplog, monkeypatch):
    people, old, new = releases
    written(old, tmp_path / "r.parquet", audit=tmp_path / "a.parquet")

    with monkeypatch.context() as patch:
        patch.setattr(switches._Move, "do", lambda *_, **__: os._exit(1))
        publish = partial(written, new, tmp_path / "r.parquet", audit=tmp_path / "a.parquet", overwrite=True)
        os.waitpid(in_child(publish), 0)
    assert shoal.read_release(tmp_path / "r.parquet").claim.k == 4
    assert [record.getMessage() for record in caplog.records] == [
        "an interrupted publication of r.parquet was finished"
    ]
    assert shoal.verify(people, tmp_path / "r.parquet", audit=tmp_path / "a.parquet").ok
    files = ["a.parquet", "r.parquet", "r.parquet.manifest.json", "r.parquet.run.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == files
