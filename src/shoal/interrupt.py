"""Being told to stop. A library may swallow the KeyboardInterrupt of a signal; what was asked is remembered here."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["heed_signals", "raise_if_asked", "signal_number"]

_asked: list[int] = []


def heed_signals() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP raise KeyboardInterrupt, so that everything is cleaned up; for programs."""
    _asked.clear()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)


def raise_if_asked() -> None:
    """Raise KeyboardInterrupt if a signal came, even if somebody has swallowed its exception."""
    if _asked:
        raise KeyboardInterrupt


def signal_number() -> int | None:
    """Give the signal that came, if one did."""
    return _asked[0] if _asked else None


def _stop(number: int, _: FrameType | None) -> None:
    _asked.append(number)
    raise KeyboardInterrupt
