"""Generate people: a land, people's lives in it, and what a network or a receiver records of them."""

from __future__ import annotations

from shoal.synth.generate import synthesize

__all__ = ["synthesize"]
