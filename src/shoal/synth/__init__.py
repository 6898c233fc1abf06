"""Generated people: a land, lives in it, and how a network or a receiver sees them."""

from __future__ import annotations

from shoal.synth.generate import synthesize

__all__ = ["synthesize"]
