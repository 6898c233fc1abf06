"""The cache of compiled kernels: used only if nobody else can write to it, and never a reason to fail."""

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shoal import jit as module
from shoal.jit import _BASE, _Announced, _base_directory, watch_compiling

# A module with one kernel, as those of the package. It prints how often the compiler ran, and what the kernel says.
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


@pytest.fixture
def kernel(tmp_path):
    """Run the kernel in a process with a cache in a folder; gives its result, how often it was compiled, and where."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)

    def _kernel(folder, **env):
        env = {**os.environ, "NUMBA_CACHE_DIR": str(folder), **env}
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, env=env, check=False)
        assert done.stderr == ""
        result, compiled, base = done.stdout.split()
        return int(result), int(compiled), base

    return _kernel


def test_a_kernel_is_compiled_once(kernel, tmp_path):
    folder = tmp_path / "cache"
    assert kernel(folder) == (42, 1, str(folder))
    assert kernel(folder) == (42, 0, str(folder))
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_damaged_cache_means_compiling(kernel, tmp_path):
    """The index or the code is empty, half written, or something else; the next run mends it."""
    folder = tmp_path / "cache"
    kernel(folder)
    for kind, damage in (("nbi", b""), ("nbi", b"nothing that numba wrote"), ("nbi", None), ("nbc", None)):
        (file,) = folder.rglob(f"*.{kind}")
        file.write_bytes(file.read_bytes()[:-20] if damage is None else damage)
        assert kernel(folder) == (42, 1, str(folder))
    assert kernel(folder) == (42, 0, str(folder))


def test_a_cache_that_others_can_write_to_is_not_used(kernel, tmp_path):
    folder = tmp_path / "cache"
    kernel(folder)
    for mode in (0o775, 0o757):
        folder.chmod(mode)
        result, compiled, base = kernel(folder)
        assert (result, compiled) == (42, 1)
        assert base != str(folder)
        assert not Path(base).exists()  # it was temporary


def test_what_is_no_folder_is_not_used(monkeypatch, tmp_path):
    link = tmp_path / "link"
    (tmp_path / "real").mkdir(mode=0o700)
    link.symlink_to(tmp_path / "real")
    for wrong in (link, "/dev/null", "/proc/none"):
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(wrong))
        assert _base_directory() != str(wrong)


def test_the_folder_of_another_user_is_not_used(monkeypatch, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    about = os.stat_result((0o40700, 0, 0, 2, 777, 777, 0, 0, 0, 0))
    monkeypatch.setattr(module.Path, "lstat", lambda _: about)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder))
    assert _base_directory() != str(folder)


def test_shipped_kernels_are_taken_into_a_new_cache(kernel, tmp_path):
    shipped, folder = tmp_path / "shipped", tmp_path / "cache"
    kernel(shipped)
    shipped.chmod(0o755)
    assert kernel(folder, SHOAL_KERNELS=str(shipped)) == (42, 0, str(folder))
    shutil.rmtree(folder)
    shipped.chmod(0o777)  # others may have written to it
    assert kernel(folder, SHOAL_KERNELS=str(shipped)) == (42, 1, str(folder))


def test_no_room_for_a_cache_means_compiling(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)

    @module.jit
    def thrice(number):
        return 3 * number

    assert thrice(14) == 42

    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", full)

    @module.jit
    def four_times(number):
        return 4 * number

    assert four_times(10) == 40


def test_python_hears_of_long_compiling_once(monkeypatch, caplog):
    times = iter([0, 1, 10, 10, 12, 13, 20, 30])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(times))
    listener = _Announced()
    with caplog.at_level(logging.WARNING, logger="shoal"):
        listener.on_start(None)
        listener.on_end(None)
        assert caplog.messages == []
        for _ in range(2):  # the second is called by the first
            listener.on_start(None)
        for _ in range(2):
            listener.on_end(None)
        assert caplog.messages == []
        listener.on_start(None)
        listener.on_end(None)
    assert len(caplog.messages) == 1
    assert _BASE in caplog.messages[0]


def test_kernels_that_call_others_end_after_them(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_cache_directory", lambda _: str(tmp_path))  # nothing is compiled yet
    heard = []

    @module.jit
    def inner(number):
        return number + 1

    @module.jit
    def outer(number):
        return inner(number) * 2

    with watch_compiling(heard.append):
        assert outer(1.5) == 5
    assert heard[0] == 1
    assert sum(heard) == 0
    outer(2)
    assert len(heard) == 4
