"""Samples: everybody's samples in the form that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from shoal.jit import Ints, Ints32

__all__ = ["Samples", "samples_of"]


class Samples(NamedTuple):
    """Samples of people: person u's are t, x, y from offsets[u] to offsets[u+1], sorted by (t, x, y)."""

    t: Ints32
    x: Ints32
    y: Ints32
    offsets: Ints


class _People(Protocol):
    @property
    def t(self) -> Ints32: ...
    @property
    def x(self) -> Ints32: ...
    @property
    def y(self) -> Ints32: ...
    @property
    def offsets(self) -> Ints: ...


def samples_of(people: _People) -> Samples:
    """Return people's samples in the form that kernels take, without a copy."""
    return Samples(people.t, people.x, people.y, people.offsets)
