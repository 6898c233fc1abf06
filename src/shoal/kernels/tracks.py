"""Tracks: traces of fixes and published points in the form that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints

__all__ = ["SpaceTracks", "Tracks", "tracks_of"]


class Tracks(NamedTuple):
    """Tracks in time order: track r is ms (UTC milliseconds), lng, lat (degrees) from offsets[r] to offsets[r+1]."""

    offsets: Ints
    ms: Ints
    lng: Floats
    lat: Floats


class SpaceTracks(NamedTuple):
    """Points in space, in metres: those of track r are x, y, z from offsets[r] to offsets[r+1].

    Geocentric, unless a kernel says that they may lie on a plane with z = 0.
    """

    offsets: Ints
    x: Floats
    y: Floats
    z: Floats


class _Traces(Protocol):
    @property
    def offsets(self) -> Ints: ...
    @property
    def ms(self) -> Ints: ...
    @property
    def lng(self) -> Floats: ...
    @property
    def lat(self) -> Floats: ...


def tracks_of(traces: _Traces) -> Tracks:
    """Return traces, or published points, in the form that kernels take, without a copy."""
    return Tracks(traces.offsets, traces.ms, traces.lng, traces.lat)
