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

_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_asked: list[int] = []


def heed_signals() -> None:
    """Make Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt, so that everything is cleaned up; for programs only."""
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
    """Delay signals until the block ends, or drop them if they come `too_late`; other threads get no signals.

    >>> with undisturbed(too_late=True):
    ...     signal.raise_signal(signal.SIGTERM)
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in _STOP}
    try:
        for number in _STOP:
            signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        try:
            _handle(handlers)
        finally:
            _handle(handlers)  # again, since a signal may have come in between
        if came and not too_late:
            signal.raise_signal(came[0])


def _handle(handlers: dict[signal.Signals, _Handler]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _stop(number: int, _: FrameType | None) -> None:
    _asked.append(number)
    raise KeyboardInterrupt
