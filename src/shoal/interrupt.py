"""Signals to stop. They are remembered here, because a library may swallow the KeyboardInterrupt of a signal."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    _Handler = Callable[[int, FrameType | None], object] | int

__all__ = ["heed_signals", "raise_if_asked", "signal_number", "undisturbed"]

_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
_asked: list[int] = []


def heed_signals() -> None:
    """Make Ctrl-C, SIGTERM, SIGHUP and SIGXCPU raise KeyboardInterrupt, to clean everything up; for programs only."""
    _asked.clear()
    for number in _STOP:
        signal.signal(number, _stop)


def raise_if_asked() -> None:
    """Raise KeyboardInterrupt if a signal came, even if its exception was swallowed."""
    if _asked:
        raise KeyboardInterrupt


def signal_number() -> int | None:
    """Return the signal that came, if one did."""
    return _asked[0] if _asked else None


@contextmanager
def undisturbed(*, too_late: bool = False) -> Iterator[None]:
    """Delay signals until the block ends; drop those to stop if they come `too_late`. Other threads get no signals.

    Signals to stop and all that have a handler in Python are delayed: a handler may raise anything anywhere.

    >>> with undisturbed(too_late=True):
    ...     signal.raise_signal(signal.SIGTERM)
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in _delayed()}
    try:
        for number in handlers:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        try:
            _handle(handlers)
        finally:
            _handle(handlers)  # again, since a signal may have come in between
        for one in dict.fromkeys(came):
            if not (too_late and one in _STOP):
                signal.raise_signal(one)


def _delayed() -> list[signal.Signals]:
    """Return the signals to stop, and those with a handler in Python."""
    return [number for number in signal.Signals if number in _STOP or callable(signal.getsignal(number))]


def _handle(handlers: dict[signal.Signals, _Handler]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _stop(number: int, _: FrameType | None) -> None:
    _asked.append(number)
    if number == signal.SIGXCPU:  # it comes again each second
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
