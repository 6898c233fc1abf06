"""Epochs and windows of k^(τ,ε)-anonymity (kte-hide, Sec. III-E): what everyone did in each epoch, and who was active.

Time is cut into epochs of length ε from a UTC midnight on. A *piece* is what a user did in an epoch; a window is
τ/ε + 1 epochs. Users may hide each other in a window only if they are active in the same epochs of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.kernels.kte import piece_bounds
from shoal.kernels.samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.trajectories import Trajectories

__all__ = ["Active", "EpochWindows", "Pieces", "active_in", "cut", "labels_in", "same", "subsets", "windows_of"]

_DAY_S = 86_400
_LARGEST = 1 << 62


class Pieces(NamedTuple):
    """What everyone did in each epoch: piece p is the samples offsets[p]:offsets[p+1] of user[p] in epoch[p].

    Pieces are sorted by user, then epoch. Epoch e spans the slots first + e·length … of the frame; `n_epochs` is how
    many there are from the first sample to the last. `order` sorts the pieces by epoch, then user, and `ordered` are
    their epochs then; `bounds` are t0, t1, x0, x1, y0, y1 of each. User u's are starts[u]:starts[u+1].
    """

    t: NDArray[np.int32]
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    offsets: NDArray[np.int64]
    user: NDArray[np.int64]
    epoch: NDArray[np.int64]
    first: int
    length: int
    n_epochs: int
    n_users: int
    order: NDArray[np.int64]
    ordered: NDArray[np.int64]
    starts: NDArray[np.int64]
    bounds: NDArray[np.int64]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many samples each piece has."""
        return np.diff(self.offsets)


class EpochWindows(NamedTuple):
    """The windows for which there are hiding sets: window m is the epochs m … m + span - 1, clipped to the data."""

    numbers: NDArray[np.int64]
    span: int


class Active(NamedTuple):
    """The users with samples in a window, ascending, and their pieces in its epochs (-1: none).

    `before` is the last piece of each before the window, `after` the first one after it; -1 if there is none.
    """

    user: NDArray[np.int64]
    piece: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


def cut(people: Trajectories, length: int) -> Pieces:
    """Cut everybody's samples into epochs of `length` slots, the first of which begins at a UTC midnight.

    If all samples are within `length` slots, there is one epoch. Cost: linear, and a sort of the pieces.
    """
    first, last = int(people.t.min()), int(people.t.max())
    if last - first >= length:
        first = min(first, _midnight(people.frame, first))
    epoch = (people.t.astype(np.int64) - first) // length
    earliest = int(epoch.min())
    owner = np.repeat(np.arange(len(people)), people.counts)
    fresh = np.ones(len(epoch), dtype=bool)
    fresh[1:] = (np.diff(epoch) != 0) | (np.diff(owner) != 0)
    starts = np.flatnonzero(fresh)
    offsets = np.append(starts, len(epoch))
    of_piece = epoch[starts] - earliest
    order = np.argsort(of_piece, kind="stable")
    bounds = np.empty((len(starts), 6), np.int64)
    piece_bounds(Samples(people.t, people.x, people.y, offsets), bounds)
    return Pieces(
        people.t,
        people.x,
        people.y,
        offsets,
        owner[starts],
        of_piece,
        first + earliest * length,
        length,
        int(of_piece.max()) + 1,
        len(people),
        order,
        of_piece[order],
        np.searchsorted(owner[starts], np.arange(len(people) + 1)),
        bounds,
    )


def _midnight(frame: Frame, slot: int) -> int:
    """Return the slot in which the UTC day of a slot begins."""
    second = int(frame.epoch_s(np.array([slot]))[0])
    return (second - second % _DAY_S) // frame.slot_s - frame.origin_slot


def windows_of(pieces: Pieces, ratio: int) -> EpochWindows:
    """Return the windows of `ratio` + 1 epochs in which somebody has samples; a single window for short data."""
    if pieces.n_epochs <= ratio + 1:
        return EpochWindows(np.zeros(1, np.int64), pieces.n_epochs)
    busy = np.unique(pieces.epoch)
    return EpochWindows(np.unique(busy[:, None] - np.arange(ratio + 1)), ratio + 1)


def active_in(pieces: Pieces, alive: NDArray[np.bool_], window: int, span: int) -> Active:
    """Return the users active in a window, with their pieces that are not suppressed. Cost: a sort of its pieces."""
    begins = np.searchsorted(pieces.ordered, np.arange(window, window + span + 1))
    found = pieces.order[begins[0] : begins[-1]]
    found = found[alive[found]]
    user, place = np.unique(pieces.user[found], return_inverse=True)
    piece = np.full((len(user), span), -1)
    piece[place, pieces.epoch[found] - window] = found
    low = np.where(piece >= 0, piece, len(alive)).min(axis=1, initial=len(alive))
    return Active(
        user,
        piece,
        _neighbour(pieces, alive, user, low, -1),
        _neighbour(pieces, alive, user, piece.max(axis=1, initial=-1), 1),
    )


def _neighbour(
    pieces: Pieces, alive: NDArray[np.bool_], user: NDArray[np.int64], piece: NDArray[np.int64], step: int
) -> NDArray[np.int64]:
    """Return the next piece of each user, in one direction, that is not suppressed; -1: none."""
    at = piece + step
    last = len(alive) - 1
    while True:
        inside = (at >= 0) & (at <= last)
        here = np.clip(at, 0, last)
        own = inside & (pieces.user[here] == user)
        skipped = own & ~alive[here]
        if not skipped.any():
            return np.where(own, here, -1)
        at = np.where(skipped, at + step, at)


def subsets(active: Active, label: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places of users who may hide each other: their pieces in the window have the same labels.

    Being inactive is a label of its own (kte-hide, Alg. 2, line 8), so that their activity is the same. In a
    fixed order.
    """
    values = labels_in(active, label) + 1
    base, key, most = int(values.max(initial=0)) + 1, np.zeros(len(values), np.int64), 1
    for column in values.T:
        if most * base > _LARGEST:  # the smallest numbers in the same order
            key = np.unique(key, return_inverse=True)[1]
            most = len(key)
        key = key * base + column
        most *= base
    return same(key)


def labels_in(active: Active, label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return everybody's labels in the epochs of a window, -1 where they are inactive."""
    return np.where(active.piece >= 0, label[active.piece], -1)


def same(key: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places of equal keys, by key.

    >>> [places.tolist() for places in same(np.array([5, 3, 5]))]
    [[1], [0, 2]]
    """
    order = np.argsort(key, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(key) else []
