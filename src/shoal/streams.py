"""Streams of random numbers: each thing that an attack or a metric draws from a seed has a stream of its own."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

__all__ = ["Stream", "draw_from"]


class Stream(IntEnum):
    """The number of each stream. Attacks and metrics run apart: a number serves several, but one thing within each."""

    POINTS = 1
    WINDOWS = 2
    TOP_LOCATIONS = 3
    HOME_AND_WORK = 4
    COVERS = 5
    TWO_RELEASES = 5
    RANGE_QUERIES = 5
    OWNERS = 6
    KNOWN_IN_BOTH = 6
    SPATIAL_ERROR = 6


def draw_from(seed: int, stream: Stream) -> np.random.Generator:
    """Return the random numbers of one stream of a seed.

    >>> bool(draw_from(1, Stream.POINTS).random() == draw_from(1, Stream.POINTS).random())
    True
    """
    return np.random.default_rng([seed, stream.value])
