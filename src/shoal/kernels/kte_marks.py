"""Arcs of hiding sets that were used before: who may take in whom (kte-hide, Sec. III-E, the reuse constraint)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Ints, Ints32

__all__ = ["Marks", "Subset", "Turn", "forget_marks", "keep_free", "mark", "may_take"]


class Marks(NamedTuple):
    """The arcs used so far: used[u, :counts[u]] are 2·target, + 1 if never to be used again; `window` since when."""

    used: Ints32
    window: Ints32
    counts: Ints


class Subset(NamedTuple):
    """Users who may hide each other in a window, their pieces in its epochs, and their targets so far, by round.

    `user[a]` is the user at place a, `target[a, round]` the place of the user whom the record of `a` takes
    in, -1 if nobody yet.
    """

    user: Ints
    piece: Ints
    target: Ints


class Turn(NamedTuple):
    """One round of a subset: its number, and which arcs are closed.

    `forever`: all arcs that were used in any window are closed; else only those that were used so.
    """

    subset: Subset
    marks: Marks
    number: int
    forever: bool


@jit
def mark(marks: Marks, users: Ints, targets: Ints, forever: bool, window: int) -> None:
    """Record arcs as used. Users must be distinct, and there must be room."""
    for n in range(len(users)):
        u = users[n]
        arc = np.int32(2 * targets[n] + (1 if forever else 0))
        known = False
        for e in range(marks.counts[u]):
            known |= marks.used[u, e] == arc
        if not known:
            marks.used[u, marks.counts[u]] = arc
            marks.window[u, marks.counts[u]] = window
            marks.counts[u] += 1


@jit
def forget_marks(marks: Marks, window: int) -> None:
    """Forget all arcs that were first used in this window or a later one."""
    for u in range(len(marks.counts)):
        while marks.counts[u] > 0 and marks.window[u, marks.counts[u] - 1] >= window:
            marks.counts[u] -= 1


@jit
def may_take(turn: Turn, a: int, b: int) -> bool:
    """Return whether a's record may take in b."""
    if a == b:
        return False
    subset, marks = turn.subset, turn.marks
    for q in range(subset.target.shape[1]):
        if q != turn.number and subset.target[a, q] == b:
            return False
    u = subset.user[a]
    least = np.int32(2 * subset.user[b] + (0 if turn.forever else 1))
    most = np.int32(2 * subset.user[b] + 1)
    closed = False
    for e in range(marks.counts[u]):  # all of them: faster than stopping at the first
        closed |= (marks.used[u, e] >= least) & (marks.used[u, e] <= most)
    return not closed


@jit
def keep_free(turn: Turn, places: Ints, found: Ints, near: Ints) -> None:
    """Fill near[a] with the first of found[n] whom a = places[n] may take in; -1 if there are no more."""
    for n in range(len(places)):
        a = places[n]
        kept = 0
        for b in found[n]:
            if kept == near.shape[1]:
                break
            if may_take(turn, a, b):
                near[a, kept] = b
                kept += 1
        near[a, kept:] = -1
