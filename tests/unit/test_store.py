"""What a run keeps for the next: whole or not at all, private, one run at a time."""

import hashlib
import os
import stat
from contextlib import nullcontext, suppress

import numpy as np
import pytest

from shoal.errors import OutputError
from shoal.folders import drop_kept, kept_folder, private_folder
from shoal.store import NOTHING_KEPT, Folder
from tests.forked import forked

ARRAYS = {"sizes": np.array([2, 3]), "cost": np.array([0.5, np.inf]), "other": np.array([[1, -1]], np.int32)}


def alike(found):
    return list(found) == list(ARRAYS) and all(
        found[name].dtype == array.dtype and np.array_equal(found[name], array) for name, array in ARRAYS.items()
    )


def test_what_is_saved_is_there(tmp_path):
    store = Folder(tmp_path)
    assert store.load("groups 1 of 3-0") is None
    store.save("groups 1 of 3-0", ARRAYS)
    assert alike(store.load("groups 1 of 3-0"))
    assert [path.name for path in tmp_path.iterdir()] == ["groups 1 of 3-0.part"]
    store.save("groups 1 of 3-0", {"sizes": np.zeros(0)})
    assert list(store.load("groups 1 of 3-0")) == ["sizes"]


def test_nothing_is_kept_unless_asked_for():
    NOTHING_KEPT.save("one", ARRAYS)
    assert NOTHING_KEPT.load("one") is None


OTHER = [b"", b"PK", b"not an archive", b"\x93NUMPY\x01\x00", b"\0" * 1000]
OBJECTS, TOO_SHORT = b'[["a", "|O", [1]]]\n' + bytes(8), b'[["a", "<i8", [2]]]\n' + bytes(8)
SOUND = [b"", b'{"a": 1}\n', b"[1]\n", OBJECTS, TOO_SHORT, b"[]\nmore"]


@pytest.mark.parametrize("content", [*OTHER, *(hashlib.sha256(payload).digest() + payload for payload in SOUND)])
def test_something_else_is_ignored(tmp_path, content):
    (tmp_path / "one.part").write_bytes(content)
    assert Folder(tmp_path).load("one") is None


def test_only_numbers_are_kept(tmp_path):
    with pytest.raises(TypeError):
        Folder(tmp_path).save("one", {"a": np.array([print], dtype=object)})
    assert not list(tmp_path.iterdir())


def test_what_is_loaded_can_be_written_to(tmp_path):
    Folder(tmp_path).save("one", ARRAYS)
    Folder(tmp_path).load("one")["sizes"][0] = 7


def test_a_cut_or_damaged_file_is_ignored(tmp_path):
    store = Folder(tmp_path)
    store.save("one", ARRAYS)
    whole = (tmp_path / "one.part").read_bytes()
    cut = [whole[:length] for length in range(0, len(whole), 7)]
    damaged = [whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :] for at in range(len(whole))]
    for content in cut + damaged:
        (tmp_path / "one.part").write_bytes(content)
        assert store.load("one") is None


def test_half_a_save_is_no_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="`work_dir`"):
        Folder(tmp_path).save("one", ARRAYS)
    assert Folder(tmp_path).load("one") is None
    assert not (tmp_path / "one.part").exists()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# The folder of an output


def kept_by(parent, name="r.parquet", key="a" * 32):
    """Let a run keep something and die."""
    with suppress(KeyboardInterrupt), kept_folder(parent, name, key) as folder:
        Folder(folder).save("one", ARRAYS)
        raise KeyboardInterrupt


def test_it_is_gone_after_success(tmp_path):
    with kept_folder(tmp_path, "r.parquet", "key") as folder:
        Folder(folder).save("one", ARRAYS)
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("meanwhile", [nullcontext, private_folder])
def test_it_stays_after_failure_and_is_found_again(tmp_path, meanwhile):
    """A run of another kind does not sweep it."""
    kept_by(tmp_path)
    with meanwhile(tmp_path):
        pass
    with kept_folder(tmp_path, "r.parquet", "a" * 32) as folder:
        assert alike(Folder(folder).load("one"))
    assert list(tmp_path.iterdir()) == []


def test_it_is_private(tmp_path):
    old = os.umask(0)
    try:
        kept_by(tmp_path)
    finally:
        os.umask(old)
    paths = list(tmp_path.rglob("*"))
    assert len(paths) == 4  # the folder, its lock, the folder of its key, a file
    for path in paths:
        assert mode(path) == (0o700 if path.is_dir() else 0o600), path.name


def test_a_folder_that_others_may_enter_is_not_trusted(tmp_path):
    """Its name can be guessed: somebody may have made it before us, in a shared --work-dir."""
    kept_by(tmp_path)
    (folder,) = tmp_path.iterdir()
    folder.chmod(0o777)
    try:
        with kept_folder(tmp_path, "r.parquet", "a" * 32):
            assert mode(folder) == 0o700
    except OutputError:
        pass


def test_a_link_to_somewhere_else_is_not_followed(tmp_path):
    kept_by(tmp_path)
    (folder,) = tmp_path.iterdir()
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    (elsewhere / "precious").mkdir()
    folder.symlink_to(elsewhere)
    try:
        with kept_folder(tmp_path, "r.parquet", "b" * 32):
            pass
    except OutputError:
        pass
    assert (elsewhere / "precious").is_dir()


def test_what_another_input_or_setting_kept_is_thrown_away(tmp_path):
    kept_by(tmp_path)
    with kept_folder(tmp_path, "r.parquet", "b" * 32) as folder:
        assert list(folder.iterdir()) == []
        assert sorted(path.name for path in folder.parent.iterdir()) == ["b" * 32, "lock"]


def test_another_output_has_a_folder_of_its_own(tmp_path):
    kept_by(tmp_path)
    with kept_folder(tmp_path, "s.parquet", "a" * 32) as folder:
        assert Folder(folder).load("one") is None
    with kept_folder(tmp_path, "r.parquet", "a" * 32) as folder:
        assert alike(Folder(folder).load("one"))


def test_two_runs_at_a_time_are_refused(tmp_path):
    with kept_folder(tmp_path, "r.parquet", "key") as folder:
        Folder(folder).save("one", ARRAYS)
        with pytest.raises(OutputError, match="another run"), kept_folder(tmp_path, "r.parquet", "key"):
            pass
        with pytest.raises(OutputError, match="another run"), kept_folder(tmp_path, "r.parquet", "other"):
            pass
        drop_kept(tmp_path, "r.parquet")
        assert alike(Folder(folder).load("one"))


def test_another_process_is_refused_too(tmp_path):
    code = (
        "import sys; from pathlib import Path; from shoal.folders import kept_folder\n"
        "with kept_folder(Path(sys.argv[1]), 'r.parquet', 'key'):\n    print('mine')\n"
    )
    with kept_folder(tmp_path, "r.parquet", "key"):
        _, out, err = forked(code, tmp_path)
    assert "mine" not in out
    assert "another run is using this output" in err


def test_a_run_without_resume_throws_it_away(tmp_path):
    kept_by(tmp_path)
    drop_kept(tmp_path, "s.parquet")
    assert len(list(tmp_path.iterdir())) == 1
    drop_kept(tmp_path, "r.parquet")
    assert list(tmp_path.iterdir()) == []
    drop_kept(tmp_path, "r.parquet")


def test_no_place_for_it(tmp_path):
    with pytest.raises(OutputError), kept_folder(tmp_path / "nowhere", "r.parquet", "key"):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError), kept_folder(tmp_path / "file", "r.parquet", "key"):
        pass
