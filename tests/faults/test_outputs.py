"""Outputs belong to one run at a time, are different files, and nothing of anybody else is ever removed."""

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest

import shoal
from shoal import private
from shoal.errors import AlreadyExists, OutputError, SettingsError
from shoal.folders import claimed, drop_kept, kept_folder, private_folder, require_different
from shoal.pipeline import publish
from shoal.switch import mend
from tests.forked import COMMAND, Forked
from tests.publishing import dead_folder

DIGITS = "0123456789abcdef" * 2


def swept(folder):
    """Do what any command does with a folder that it writes to, for an output of any name."""
    mend(folder)
    with private_folder(folder):
        pass
    drop_kept(folder, "r.parquet")
    return sorted(path.name for path in folder.iterdir())


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("mode", [0o700, 0o755])
@pytest.mark.parametrize("content", [b"", b"lock", b"\0" * 5000])
@pytest.mark.parametrize("name", [".shoal-mine", ".new-shoal-mine", f".shoal-{DIGITS}", ".kept-shoal-mine", "KEPT"])
def test_a_folder_that_is_not_ours_is_never_touched(tmp_path, name, content, mode):
    """Whatever it is called, and whatever is in it, even a file called `lock`."""
    mine = tmp_path / name
    if name == "KEPT":  # the very name that a run with `resume` uses
        with pytest.raises(KeyboardInterrupt), kept_folder(tmp_path, "r.parquet", "key") as kept:
            raise KeyboardInterrupt
        mine = kept.parent
        private.remove(mine)
    mine.mkdir()
    mine.chmod(mode)
    (mine / "lock").write_bytes(content)
    (mine / "thesis.txt").write_text("all of it")
    (mine / "switch.json").write_text('[["thesis.txt", "../gone", "old-0", [9, 1], null]]')
    os.utime(mine, (1, 1))
    before = tree(tmp_path)
    swept(tmp_path)
    with claimed([tmp_path / "r.parquet"]):
        pass
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["lock", "switch.at", "switch.json"])
def test_a_pipe_in_a_folder_of_somebody_else_stops_nobody(tmp_path, name):
    """Nothing in it is opened before it is known as ours."""
    theirs = tmp_path / f".shoal-{DIGITS}"
    theirs.mkdir(mode=0o700)
    for one in ("lock", "switch.at", "switch.json"):
        os.mkfifo(theirs / one) if one == name else (theirs / one).write_text("[]")
    before = tree(tmp_path)
    swept(tmp_path)
    assert tree(tmp_path) == before


def test_a_link_with_the_name_of_a_private_folder_is_not_followed(tmp_path):
    (tmp_path / "work").mkdir()
    dead = dead_folder(tmp_path / "work")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / dead.name).symlink_to(dead)
    swept(tmp_path / "out")
    assert dead.exists()


def stopped_at(number, work):
    """Run something in a copy of this process that is killed before its n-th call that removes; return if it was."""
    child = os.fork()
    if child == 0:
        left = [number]

        def counted(call):
            def do(*arguments, **how):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*arguments, **how)

            return do

        try:
            os.unlink, os.rmdir = counted(os.unlink), counted(os.rmdir)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


@pytest.mark.parametrize("kept", [False, True])
def test_a_sweep_that_was_killed_is_finished_by_the_next(tmp_path, kept):
    """The lock goes last, so that what is left of a folder is still known as ours."""
    for number in range(1, 99):
        if kept:
            with pytest.raises(KeyboardInterrupt), kept_folder(tmp_path, "r.parquet", "key") as dead:
                raise KeyboardInterrupt
        else:
            dead = dead_folder(tmp_path)
        for name in ("a", "b", "lock2", "zzz"):
            (dead / name).write_text("raw data")
        (dead / "within").mkdir()
        (dead / "within" / "lock").write_text("raw data")
        killed = stopped_at(number, lambda: swept(tmp_path))
        assert killed == (list(tmp_path.iterdir()) != [])
        assert swept(tmp_path) == []
        if not killed:
            break
    assert 7 < number < 20


@pytest.mark.parametrize("files", [[], [b""], [b".shoal-"]])
def test_a_folder_whose_run_was_killed_while_it_was_made_is_swept(tmp_path, files):
    young = tmp_path / f".shoal-{DIGITS}"
    young.mkdir(mode=0o700)
    for content in files:
        (young / "lock").write_bytes(content)
    assert swept(tmp_path) == []


# Claims


def other_names(folder):
    """Paths that lead to the output `out/r.parquet`."""
    (folder / "out").mkdir()
    (folder / "elsewhere").symlink_to(folder / "out")
    return {
        "same": folder / "out" / "r.parquet",
        "dots": folder / "out" / ".." / "out" / "r.parquet",
        "linked folder": folder / "elsewhere" / "r.parquet",
        "relative": Path(os.path.relpath(folder / "out" / "r.parquet")),
    }


@pytest.mark.parametrize("name", ["same", "dots", "linked folder", "relative"])
def test_an_output_is_claimed_by_one_run_under_whatever_name(one_day, tmp_path, name, monkeypatch):
    """The second run fails before it reads anything, and the first is not disturbed."""
    path = other_names(tmp_path)[name]
    with claimed([tmp_path / "out" / "r.parquet"]):
        for overwrite in (False, True):
            with monkeypatch.context() as patch:
                patch.setattr(shoal.Shoal, "read", lambda *_, **__: pytest.fail("it has read"))
                with pytest.raises(OutputError, match=r"another run is using r\.parquet now"):
                    publish(one_day, path, shoal.Shoal(k=2), overwrite=overwrite)
    publish(one_day, path, shoal.Shoal(k=2))
    assert shoal.verify(one_day, tmp_path / "out" / "r.parquet").ok
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["r.parquet", "r.parquet.manifest.json"]


def test_the_output_that_a_link_leads_to_is_claimed_too(tmp_path):
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to("real")
    for one, other in (("real", "link"), ("link", "real")):
        with claimed([tmp_path / one]), pytest.raises(OutputError, match="another run"), claimed([tmp_path / other]):
            pass


@pytest.mark.parametrize("shared", ["audit", "run_record", "ledger"])
def test_private_outputs_are_claimed_too(one_day, tmp_path, shared):
    with claimed([tmp_path / "private.parquet"]), pytest.raises(OutputError, match="another run is using private"):
        publish(one_day, tmp_path / "r.parquet", shoal.Shoal(k=2), **{shared: tmp_path / "private.parquet"})
    assert list(tmp_path.iterdir()) == []


def test_a_claim_ends_with_its_run(tmp_path):
    """Also if it is killed: nobody waits for a run that is gone."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with claimed([tmp_path / "r"]):
            os.write(write, b".")
            time.sleep(60)
    os.read(read, 1)
    with pytest.raises(OutputError), claimed([tmp_path / "r"]):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with claimed([tmp_path / "r"]):
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []


def test_other_outputs_of_one_folder_are_free(tmp_path):
    with claimed([tmp_path / "a"]), claimed([tmp_path / "b"]):
        pass


def test_several_overwrites_at_once(one_day, tmp_path):
    """Each publishes all of its files, or fails at once; what is left is all of one run."""
    files = [tmp_path / "r.parquet", "--audit", tmp_path / "a.parquet", "--ledger", tmp_path / "book"]
    publish(one_day, tmp_path / "r.parquet", shoal.Shoal(k=2))
    how = ["--allow-overlap", "--overwrite", "--quiet"]
    runs = [Forked(COMMAND, "anonymize", one_day, *files, "--k", k, *how) for k in (2, 3, 4)]
    ended = [run.end() for run in runs]
    assert 0 in {code for code, _, _ in ended}
    assert all(code == 0 or (code == 2 and "another run is using" in said) for code, _, said in ended), ended
    assert shoal.verify(one_day, tmp_path / "r.parquet", audit=tmp_path / "a.parquet").ok
    (digest,) = json.loads((tmp_path / "r.parquet.manifest.json").read_text())["files"].values()
    known = json.loads((tmp_path / "book").read_bytes().split(b"\n")[1])["releases"]
    assert known[-1]["sha256"] == digest
    assert len(known) == [code for code, _, _ in ended].count(0)
    assert json.loads((tmp_path / "r.parquet.run.json").read_text())["files"] == {"r.parquet": digest}


@pytest.mark.parametrize("mask", [0o000, 0o077, 0o777])
def test_whatever_the_umask(one_day, tmp_path, mask):
    """The owner can read and write everything, and nobody else what is private."""
    before = os.umask(mask)
    try:
        publish(one_day, tmp_path / "r.parquet", shoal.Shoal(k=2), audit=tmp_path / "a.parquet", ledger=tmp_path / "b")
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    private = {"a.parquet": 0o600, "r.parquet.run.json": 0o600, "b": 0o600}
    public = 0o644 & ~mask | 0o600
    assert modes == private | {"r.parquet": public, "r.parquet.manifest.json": public}


# One file is not another


def names_of(file, folder):
    """Other names for a file: by dots, by a link, by a hard link and through a linked folder."""
    (folder / "x").mkdir(exist_ok=True)
    (folder / "linked").unlink(missing_ok=True)
    (folder / "linked").symlink_to(folder)
    found = [file, folder / "x" / ".." / file.name, folder / "gone" / ".." / file.name, folder / "linked" / file.name]
    if file.exists():
        for name, link in (("soft", os.symlink), ("hard", os.link)):
            other = folder / f"{file.stem}-{name}.parquet"
            if not other.exists():
                link(file, other)
            found.append(other)
    return found


def test_every_pair_of_outputs_and_inputs_is_different(one_day, tmp_path):
    """`--audit x/../r.parquet` is the release, and so is a link to it; with and without `overwrite`."""
    events = tmp_path / "events.parquet"
    events.write_bytes(one_day.read_bytes())
    release = tmp_path / "r.parquet"
    publish(events, release, shoal.Shoal(k=2), audit=tmp_path / "a.parquet", ledger=tmp_path / "book")
    files = [
        release,
        tmp_path / "r.parquet.manifest.json",
        tmp_path / "a.parquet",
        tmp_path / "r.parquet.run.json",
        tmp_path / "book",
        events,
    ]
    other = {file: names_of(file, tmp_path) for file in files}
    before = tree(tmp_path)
    usual = {"audit": files[2], "run_record": files[3], "ledger": files[4], "allow_overlap": True, "overwrite": True}
    for setting, own in (("path", release), ("audit", files[2]), ("run_record", files[3]), ("ledger", files[4])):
        for file in files:
            if file == own or (setting == "path" and file in files[:2]):
                continue  # then these are outputs no more
            for name in other[file]:
                given = usual | {"path": release, setting: name}
                with pytest.raises(
                    (OutputError, SettingsError), match=r"different names|never overwritten|must end in|not exist"
                ):
                    publish(events, given.pop("path"), shoal.Shoal(k=2), **given)
                assert tree(tmp_path) == before, (setting, name)


def test_an_input_may_be_named_twice(tmp_path):
    require_different([tmp_path / "r"], [tmp_path / "a", tmp_path / "a"])


@pytest.mark.parametrize("name", ["", ".", "..", "/", "sub/.."])
@pytest.mark.parametrize("output", ["path", "audit", "run_record", "ledger"])
def test_an_output_without_a_name_is_refused(one_day, tmp_path, monkeypatch, output, name):
    """A variable of the shell that is empty, for instance."""
    monkeypatch.chdir(tmp_path)
    given = {"path": "r.parquet", "audit": "a.parquet", output: name}
    with pytest.raises(OutputError, match="no name of a file"):
        publish(one_day, given.pop("path"), shoal.Shoal(k=2), **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["pipe", "dangling", "loop"])
def test_what_is_no_ordinary_file_is_not_replaced(one_day, tmp_path, what):
    path = tmp_path / "r.parquet"
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("r.parquet" if what == "loop" else "nowhere")
    with pytest.raises(AlreadyExists):
        publish(one_day, path, shoal.Shoal(k=2))
    if what == "pipe":
        with pytest.raises(OutputError, match="no ordinary file"):
            publish(one_day, path, shoal.Shoal(k=2), overwrite=True)
    else:
        publish(one_day, path, shoal.Shoal(k=2), overwrite=True)
        assert shoal.verify(one_day, path).ok
