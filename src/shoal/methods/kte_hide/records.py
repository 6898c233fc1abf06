"""Turn hiding sets into records: what each piece is merged with, and who was in whose record when."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from shoal.lists import offsets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.methods.kte_hide.pieces import Pieces
    from shoal.methods.kte_hide.sets import Sets

__all__ = ["own_first", "piece_lists", "stays"]


def piece_lists(
    pieces: Pieces, alive: NDArray[np.bool_], sets: Sequence[Sets], span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (published pieces, offsets, pieces): each published piece and those it is merged with, itself first.

    In epoch e the piece of a user is merged with those of all whom their record takes in, in the windows of which e is
    part (kte-hide, Sec. III-E, remark 3). Cost: a sort of the pairs of a piece and a piece merged with it.
    """
    n = len(pieces.user)
    decided = {window.window: window for window in sets}
    edges = np.flatnonzero(np.diff(pieces.ordered, prepend=-1, append=-1))
    own_piece = np.full(pieces.n_users, -1)
    pairs = [np.empty(0, np.int64)]
    for start, stop in pairwise(edges.tolist()):
        found = pieces.order[start:stop]
        found = found[alive[found]]
        own_piece[pieces.user[found]] = found
        epoch = int(pieces.ordered[start])
        for number in range(epoch - span + 1, epoch + 1):
            if (window := decided.get(number)) is not None:
                own = own_piece[window.user]
                here = np.flatnonzero(own >= 0)
                pairs.append((own[here][:, None] * n + own_piece[window.target[here]]).ravel())
        own_piece[pieces.user[found]] = -1
    published = np.flatnonzero(alive)
    merged = np.unique(np.concatenate(pairs))
    offsets, own = own_first(np.searchsorted(published, merged // n), len(published))
    lists = np.empty(offsets[-1], np.int64)
    lists[own], lists[~own] = published, merged % n
    return published, offsets, lists


def own_first(record: NDArray[np.int64], n_records: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the offsets of lists with room for each record's own entry in front, and a mask of these places.

    >>> offsets, own = own_first(np.array([0, 2, 2]), 3)
    >>> offsets.tolist(), own.tolist()
    ([0, 2, 3, 6], [True, False, True, True, False, False])
    """
    offsets = offsets_of(1 + np.bincount(record, minlength=n_records))
    own = np.zeros(offsets[-1], dtype=bool)
    own[offsets[:-1]] = True
    return offsets, own


def stays(
    sets: Sequence[Sets], span: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (record, member, first epoch, epoch after the last): who was merged into whose record, each stay once.

    Windows that overlap or follow each other without a gap are one stay. Sorted by record, member and time.
    """
    none = np.empty(0, np.int64)
    record = np.concatenate([none, *(np.repeat(s.user, s.target.shape[1]) for s in sets)])
    member = np.concatenate([none, *(s.target.ravel() for s in sets)])
    window = np.concatenate([none, *(np.full(s.target.size, s.window) for s in sets)])
    order = np.lexsort((window, member, record))
    record, member, window = record[order], member[order], window[order]
    new = np.ones(len(record), dtype=bool)
    new[1:] = (np.diff(record) != 0) | (np.diff(member) != 0) | (np.diff(window) > span)
    starts = np.flatnonzero(new)
    ends = np.append(starts[1:], len(record))[: len(starts)] - 1
    return record[starts], member[starts], window[starts], window[ends] + span
