"""The decorators of kernels: what is compiled is kept, and people hear of it if it takes long."""

import logging

from shoal import jit as module
from shoal.jit import _Announced, kernels_folder, watch_compiling


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
    assert str(kernels_folder()) in caplog.messages[0]


def test_kernels_that_call_others_end_after_them(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_FOLDERS", [tmp_path])  # nothing is compiled yet
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
