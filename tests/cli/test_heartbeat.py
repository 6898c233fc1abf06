"""In a pipe, a line every few seconds says what is under way; clocks are ours."""

import sys
import time
from types import SimpleNamespace

import pytest
from numba.core.event import trigger_event

from shoal.cli import heartbeat as module
from shoal.cli.console import working
from shoal.cli.heartbeat import Spoken, heartbeat


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until a test sets `now`."""
    ours = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: ours.now))
    return ours


def test_what_is_said(clock):
    spoken = Spoken(since=990.0)
    assert spoken.line(1000) == "shoal: working, 0:10 elapsed"
    with spoken.stage("read"):
        assert spoken.line(1000) == "shoal: read, 0:10 elapsed"
        with spoken.stage("partners", 100) as advance:
            assert spoken.line(1010) == "shoal: partners: 0 %, 0:20 elapsed"
            advance(42)
            assert spoken.line(1042) == "shoal: partners: 42 %, 0:52 elapsed, about 0:58 left in this step"
            advance(60)  # an estimate of the work may be too low
            assert spoken.line(1100) == "shoal: partners: 100 %, 1:50 elapsed, about 0:00 left in this step"
        assert spoken.line(4700) == "shoal: read, 1:01:50 elapsed"
    with pytest.raises(KeyboardInterrupt), spoken.stage("stopped"):
        raise KeyboardInterrupt
    assert spoken.line(1000) == "shoal: working, 0:10 elapsed"


def test_compiling_is_said_while_it_happens_and_once_after_it():
    spoken = Spoken(since=0)
    spoken.compiling(1)
    assert "compiling, once" in spoken.line(10)
    spoken.compiling(-1)
    assert "1 kernels so far; working, 0:20" in spoken.line(20)
    assert "compiling" not in spoken.line(30)


def test_a_line_for_each_wait_and_none_after_the_end():
    said, waits = [], iter([False, False, True])
    with heartbeat(lambda: "line", wait=lambda: next(waits), write=said.append):
        pass
    assert said == ["line", "line"]


def test_short_work_says_nothing_and_ends_at_once():
    said = []
    with pytest.raises(KeyboardInterrupt), heartbeat(lambda: "line", write=said.append):
        raise KeyboardInterrupt
    assert said == []


@pytest.mark.parametrize(("flags", "speaks"), [({}, True), ({"quiet": True}, False), ({"json": True}, False)])
def test_a_pipe_hears_of_stages_and_compiling_unless_it_should_not(flags, speaks, monkeypatch, capsys):
    beats = []
    monkeypatch.setattr("shoal.cli.console.heartbeat", lambda line: beats.append(line) or heartbeat(line))
    options = SimpleNamespace(threads=None, memory=None, work_dir=None, **{"quiet": False, "json": False, **flags})
    with working(options, since=time.monotonic() - 70) as run, run.stage("partners", 4) as advance:
        with trigger_event("numba:compile"):
            pass
        advance(2)
        said = [line() for line in beats]
    assert len(said) == speaks
    for line in said:
        assert line.startswith("shoal: compiling, once")
        assert "1 kernels so far; partners: 50 %, 1:10 elapsed, about 0:0" in line
    assert capsys.readouterr().err == ""


def test_a_closed_standard_error_stops_nothing(monkeypatch):
    closed = open(sys.executable, "rb")  # noqa: SIM115, PTH123
    closed.close()
    waits = iter([False, True])
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", closed)
        with heartbeat(lambda: "line", wait=lambda: next(waits)):
            pass
    assert next(waits, None) is None
