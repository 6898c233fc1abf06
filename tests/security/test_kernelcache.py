"""The cache of compiled kernels is code: nobody else can put any there, and what is damaged is compiled again."""

import os
import pwd
import shutil
import subprocess
import sys

import numba
import pytest

from shoal import jit as jit_module
from shoal import kernelcache
from shoal.kernelcache import KernelCache, cache_folders

NOBODY = pwd.getpwnam("nobody").pw_uid
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")


class Kernels:
    """Compiles and calls kernels as a fresh process would, with a cache in some folders."""

    def __init__(self, *folders):
        self.folders = [*folders]

    def __call__(self, number=21):
        def twice(number):
            return 2 * number

        compiled = numba.njit(twice)
        compiled._cache = KernelCache(twice, "kernels-1", self.folders)
        assert compiled(number) == 2 * number
        return "loaded" if sum(compiled._cache_hits.values()) else "compiled"


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    return folder


def the_file(folder):
    (file,) = folder.rglob("*.kernel")
    return file


def folders(monkeypatch, **env):
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "SHOAL_KERNELS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, str(value))
    return cache_folders()


def test_a_kernel_is_compiled_once(folder):
    kernels = Kernels(folder)
    assert [kernels(), kernels()] == ["compiled", "loaded"]
    assert [kernels(0.5), kernels(0.5), kernels()] == ["compiled", "loaded", "loaded"]


def test_all_that_is_written_is_private(folder, monkeypatch):
    for mask in (0o777, 0o000):
        shutil.rmtree(folder)
        before = os.umask(mask)
        try:
            assert folders(monkeypatch, NUMBA_CACHE_DIR=folder / "a" / "b") == [folder / "a" / "b"]
            assert [Kernels(folder / "a" / "b")() for _ in "ab"] == ["compiled", "loaded"]
        finally:
            os.umask(before)
        modes = {path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")] if path.is_dir()}
        assert (modes, the_file(folder).stat().st_mode & 0o777) == ({0o700}, 0o600)


def test_a_damaged_file_means_compiling(folder):
    """Each bit counts: numba would load changed code as it is, and crash or compute something else."""
    kernels = Kernels(folder)
    kernels()
    whole = the_file(folder).read_bytes()
    middle = len(whole) // 2
    flipped = bytes([whole[middle] ^ 1])
    for damage in (b"", whole[:7], whole[:middle], whole[:-1], whole + b"\0", b"\x80\x04N.", b"\0" * len(whole)):
        the_file(folder).write_bytes(damage)
        assert [kernels(), kernels()] == ["compiled", "loaded"]
    the_file(folder).write_bytes(whole[:middle] + flipped + whole[middle + 1 :])
    assert [kernels(), kernels()] == ["compiled", "loaded"]


def test_a_file_in_the_place_of_another_means_compiling(folder):
    kernels = Kernels(folder)
    kernels()
    file = the_file(folder)
    for name in (b"", b"other.kernel"):
        content = b"\x80\x04N."
        file.write_bytes(kernelcache._MAGIC + kernelcache._digest(name.decode(), content) + content)
        assert kernels() == "compiled"


@pytest.mark.parametrize("call", ["open", "mkdir", "rename", "fchmod", "fstat"])
@pytest.mark.parametrize("number", [5, 28, 30, 122])  # I/O error, no space, read-only, quota
def test_no_room_for_a_cache_means_compiling(folder, monkeypatch, call, number):
    def failing(*_, **__):
        raise OSError(number, os.strerror(number))

    kernels = Kernels(folder)
    with monkeypatch.context() as changed:
        changed.setattr(kernelcache.os, call, failing)
        assert kernels() == "compiled"
    assert not list(folder.rglob("*.kernel*")) or call == "fstat"


def test_half_written_files_are_not_left(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernelcache.os, "rename", full)
    assert Kernels(folder)() == "compiled"
    assert [path.name for path in folder.rglob("*")] == ["kernels-1"]


def test_no_folder_at_all_means_compiling():
    assert Kernels()() == "compiled"


def test_a_file_that_others_can_have_changed_is_not_read(folder, tmp_path):
    kernels = Kernels(folder)
    kernels()
    file = the_file(folder)
    file.chmod(0o620)
    assert [kernels(), kernels()] == ["compiled", "loaded"]  # written anew, closed
    os.link(file, tmp_path / "link")
    assert [kernels(), kernels()] == ["compiled", "loaded"]
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert [kernels(), kernels()] == ["compiled", "loaded"]
    file.unlink()
    os.mkfifo(file)  # which nobody writes to
    assert [kernels(), kernels()] == ["compiled", "loaded"]


def test_a_folder_that_others_could_change_since_is_not_read(folder, tmp_path):
    kernels = Kernels(folder)
    kernels()
    inner = the_file(folder).parent
    for one in (folder, inner):
        for mode in (0o770, 0o707, 0o1777):
            one.chmod(mode)
            assert [kernels(), kernels()] == ["compiled", "compiled"]
        one.chmod(0o700)
    assert kernels() == "loaded"
    inner.rename(tmp_path / "elsewhere")
    inner.symlink_to(tmp_path / "elsewhere")
    assert [kernels(), kernels()] == ["compiled", "compiled"]


@as_root
def test_what_belongs_to_somebody_else_is_not_read(folder):
    kernels = Kernels(folder)
    kernels()
    file = the_file(folder)
    for one in (folder, file.parent):
        os.chown(one, NOBODY, NOBODY)
        assert [kernels(), kernels()] == ["compiled", "compiled"]
        os.chown(one, 0, 0)
    os.chown(file, NOBODY, NOBODY)
    assert [kernels(), kernels()] == ["compiled", "loaded"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_not_used(folder, monkeypatch, mode):
    monkeypatch.setattr(kernelcache.grp, "getgrgid", {}.__getitem__)  # KeyError: a group without a name
    folder.chmod(mode)
    assert folders(monkeypatch, NUMBA_CACHE_DIR=folder) == []
    (folder / "inside").mkdir(mode=0o700)
    inside = folders(monkeypatch, NUMBA_CACHE_DIR=folder / "inside")
    new = folders(monkeypatch, NUMBA_CACHE_DIR=folder / "new" / "er")
    assert bool(inside) == bool(new) == bool(mode & 0o1000)  # as in /tmp, nobody else can move it away
    assert (folder / "new").exists() == bool(new)


def test_the_group_of_one_user_is_that_user(folder, monkeypatch):
    me = pwd.getpwuid(os.geteuid())
    group = kernelcache.grp.struct_group((me.pw_name, "x", me.pw_gid, []))
    folder.chmod(0o770)
    (folder / "inside").mkdir(mode=0o700)
    for members, used in (([], True), ([me.pw_name], True), (["another"], False)):
        changed = kernelcache.grp.struct_group((*group[:3], members))
        monkeypatch.setattr(kernelcache.grp, "getgrgid", lambda _, changed=changed: changed)
        monkeypatch.setattr(kernelcache.pwd, "getpwuid", lambda _: me)
        assert bool(folders(monkeypatch, NUMBA_CACHE_DIR=folder / "inside")) == used
        assert folders(monkeypatch, NUMBA_CACHE_DIR=folder) == []  # the folder itself must be closed


def test_what_is_no_folder_is_not_used(monkeypatch, tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "around").symlink_to(tmp_path / "around")
    (tmp_path / "file").touch()
    names = ("link", "around", "around/a", "file", "file/a")
    for wrong in (
        *(tmp_path / name for name in names),
        "/dev/null",
        "/proc/none",
        "/proc/self/fd/0",
        tmp_path / ("\udcff" * 300),
    ):
        assert folders(monkeypatch, NUMBA_CACHE_DIR=wrong) == [], wrong


@as_root
def test_the_way_to_a_folder_counts(monkeypatch, tmp_path):
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for one in (theirs, theirs / "cache", ours, ours / "cache"):
        one.mkdir(mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    (tmp_path / "link").symlink_to(ours)
    assert folders(monkeypatch, NUMBA_CACHE_DIR=tmp_path / "link" / "cache") == [tmp_path / "link" / "cache"]
    assert folders(monkeypatch, NUMBA_CACHE_DIR=theirs / "cache") == []
    assert folders(monkeypatch, NUMBA_CACHE_DIR=theirs / ".." / "ours" / "cache") == []
    os.lchown(tmp_path / "link", NOBODY, NOBODY)
    assert folders(monkeypatch, NUMBA_CACHE_DIR=tmp_path / "link" / "cache") == []


@as_root
def test_root_does_not_use_the_cache_of_the_user_whose_home_was_kept(monkeypatch, tmp_path):
    """As with `sudo -E`: the user could put code there that root runs."""
    home, mine = tmp_path / "home", tmp_path / "root"
    for one in (home, mine):
        one.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    me = pwd.struct_passwd(("root", "x", 0, 0, "", str(mine), ""))
    monkeypatch.setattr(kernelcache.pwd, "getpwuid", lambda _: me)
    own = mine / ".cache" / "shoal" / "compiled"
    assert folders(monkeypatch, HOME=home) == [own]
    assert folders(monkeypatch, XDG_CACHE_HOME=home, HOME=home) == [own]
    assert list(home.iterdir()) == []
    assert folders(monkeypatch, NUMBA_CACHE_DIR=home / "cache") == []  # what is named is used or nothing is


def test_nothing_is_made_outside_what_is_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert folders(monkeypatch, XDG_CACHE_HOME="relative", HOME=tmp_path / "home")[0].is_relative_to(tmp_path / "home")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_people_are_told_that_nothing_is_kept(monkeypatch, folder, caplog):
    folder.chmod(0o777)
    folders(monkeypatch, NUMBA_CACHE_DIR=folder)
    (message,) = caplog.messages
    assert "NUMBA_CACHE_DIR" in message
    assert str(folder) not in message


def test_shipped_kernels_are_read_and_new_ones_go_to_the_own_folder(monkeypatch, folder, tmp_path):
    own = tmp_path / "own"
    Kernels(folder)()
    both = folders(monkeypatch, NUMBA_CACHE_DIR=own, SHOAL_KERNELS=folder)
    assert both == [own, folder]
    kernels = Kernels(*both)
    assert [kernels(), kernels(0.5)] == ["loaded", "compiled"]
    assert len(list(folder.rglob("*.kernel"))) == len(list(own.rglob("*.kernel"))) == 1
    folder.chmod(0o777)  # others may have written to it
    assert folders(monkeypatch, NUMBA_CACHE_DIR=own, SHOAL_KERNELS=folder) == [own]


def test_shipped_kernels_are_used_without_a_folder_of_ones_own(monkeypatch, folder):
    Kernels(folder)()
    found = folders(monkeypatch, NUMBA_CACHE_DIR="/proc/none", SHOAL_KERNELS=folder)
    assert found == [folder]
    assert Kernels(*found)() == "loaded"


def test_the_kernels_of_the_package_use_this_cache_only(monkeypatch):
    """numba's own falls back to `__pycache__` beside the source and to ~/.cache/numba, unchecked."""

    @jit_module.jit
    def one():
        return 1

    assert isinstance(one._cache, KernelCache)
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "os.system")

    @jit_module.inlined
    def two():
        return 2

    assert isinstance(two._cache, KernelCache)


KERNEL = """
from shoal.jit import jit, kernels_folder, watch_compiling
@jit
def twice(number):
    return 2 * number
if __name__ == "__main__":
    compiled = []
    with watch_compiling(compiled.append):
        print(twice(21), compiled.count(-1), kernels_folder())
"""


def test_a_process_keeps_its_kernels_for_the_next(tmp_path):
    file, folder = tmp_path / "kernel.py", tmp_path / "cache"
    file.write_text(KERNEL)
    for compiled in (1, 0):
        env = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=env, check=True)
        assert (done.stdout.split(), done.stderr) == (["42", str(compiled), str(folder)], "")
