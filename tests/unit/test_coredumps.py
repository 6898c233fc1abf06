"""Core dumps are prevented while private data is in memory; afterwards a library's process is as it was."""

import os
import resource
import sys
from threading import Thread

import pytest

import shoal
from shoal.coredumps import _dumpable, open_to_itself, without_core_dumps
from tests.forked import forked

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux")


def size():
    return resource.getrlimit(resource.RLIMIT_CORE)[0]


@pytest.fixture(autouse=True)
def allowed():
    """A process that may write core dumps, as far as the system allows it; afterwards it is as it was."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


@on_linux
def test_blocks_restore_what_was(allowed):
    before = (_dumpable(), size())
    with without_core_dumps():
        assert (_dumpable(), size()) == (0, 0)
        with without_core_dumps():
            pass
        assert (_dumpable(), size()) == (0, 0)
    assert (_dumpable(), size()) == before


@on_linux
def test_the_last_block_of_any_thread_restores(allowed):
    before, seen = (_dumpable(), size()), []
    first, second = without_core_dumps(), without_core_dumps()
    first.__enter__()
    thread = Thread(target=second.__enter__)
    thread.start()
    thread.join()
    first.__exit__(None, None, None)
    seen.append((_dumpable(), size()))
    second.__exit__(None, None, None)
    assert [*seen, (_dumpable(), size())] == [(0, 0), before]


@on_linux
def test_publishing_in_python(one_day, tmp_path, monkeypatch):
    from shoal import pipeline

    before, seen, verify = (_dumpable(), size()), [], pipeline.verify

    def looking(*arguments, **options):
        seen.append((_dumpable(), size()))
        return verify(*arguments, **options)

    monkeypatch.setattr(pipeline, "verify", looking)
    shoal.publish(one_day, tmp_path / "r.parquet", shoal.Uniform(to_cell="50km", to_slot="1440min"))
    assert (seen, (_dumpable(), size())) == ([(0, 0)], before)
    with pytest.raises(shoal.ShoalError):
        shoal.publish(one_day, tmp_path / "r.parquet", shoal.Shoal(k=2))  # it is there already
    assert (_dumpable(), size()) == before


# A command that is looked at in the middle: may its process write a core dump, and can it still read about itself?
LOOKING = """
import os, resource, sys
import shoal.cli.measure, shoal.measure.chart, shoal.measure.unicity, shoal.reading, shoal.tables
from shoal import comparison, coredumps, memory
if int(sys.argv.pop(1)):
    os.setgroups([])
    os.setresuid(12345, 12345, 12345)
def looking(*_, **__):
    found = (coredumps._dumpable(), resource.getrlimit(resource.RLIMIT_CORE)[0], memory.available_bytes() > 0)
    found = (*found, os.path.exists("/proc/self/fd/1"), comparison._forget_peak(), coredumps._dumpable())
    sys.stderr.write(repr(found))
shoal.reading.read = looking
from shoal.cli import main
main()
"""


@on_linux
@pytest.mark.parametrize("user", [0, 1])
def test_a_command(user):
    if user and os.geteuid():
        pytest.skip("only root can become another user")
    code, _, said = forked(LOOKING, user, "measure", "events.parquet", "--unicity", "--json")
    assert said.startswith("(0, 0, True, True, True, 0)")
    assert code == 2  # nothing was read


@on_linux
def test_a_process_can_open_itself_for_a_moment(allowed):
    with without_core_dumps():
        with open_to_itself():
            assert _dumpable() == 1
        assert _dumpable() == 0
