"""Hiding sets for every window (kte-hide, Alg. 2), and the samples that must be suppressed to find them.

Windows are processed from the first to the last. If samples are suppressed in an epoch, all windows from the first one
that includes this epoch are decided again, and their marks of reuse are dropped. Earlier windows do not include the
epoch, so their sets stay valid. Each repetition removes at least one piece, so the process ends. At the end, no window
was decided before a suppression that concerns it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.interrupt import raise_if_asked
from shoal.kernels.kte import (
    Neighbours,
    PieceTable,
    Present,
    RecentTargets,
    arc_costs,
    held_pieces,
    hide_round,
    task_of,
)
from shoal.kernels.kte_marks import Marks, Subset, Turn, forget_marks, keep_free, mark
from shoal.kernels.samples import samples_of
from shoal.methods.kte_hide.pieces import active_in, labels_in, same, subsets
from shoal.run import LOCAL, Run
from shoal.store import NOTHING_KEPT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.methods.kte_hide.pieces import Active, EpochWindows, Pieces

__all__ = ["Hiding", "Sets", "find_sets", "thin_out"]

_NEAREST, _ENOUGH = 24, 8  # candidates looked at; with fewer than enough, farther ones are
_NEAR = 10.0  # cells; as far apart as makes no difference between partners
_SOON = 0.2  # of an epoch; as far apart in time
_FEW = 4  # times k: a smaller subset is put together with others
_LONG_AGO = -(1 << 40)
_KEPT_EVERY_S = 60.0  # where a run is to be resumable


class Hiding(NamedTuple):
    """The requirements: k - 1 others in each hiding set; the first `exclusive` of them in no other set of that user.

    Only users whose pieces have the same `label` in every epoch of a window may hide each other in it.
    """

    k: int
    exclusive: int
    label: NDArray[np.int64]


class Sets(NamedTuple):
    """The hiding sets of a window: the record of user[n] takes in the k - 1 others target[n]."""

    window: int
    user: NDArray[np.int64]
    target: NDArray[np.int64]


@dataclass
class _State:
    """The decisions so far. `recent` and `windows` are the targets in the last windows, by user."""

    alive: NDArray[np.bool_]
    done: list[Sets]
    marks: Marks
    recent: NDArray[np.int32]
    windows: NDArray[np.int64]


def thin_out(pieces: Pieces, windows: EpochWindows, hiding: Hiding, alive: NDArray[np.bool_]) -> None:
    """Suppress pieces until, in every window, everyone's subset has at least k users; `alive` says which are left.

    Cost: for each window a sort of its pieces, again whenever some of them are suppressed.
    """
    dirty = np.ones(len(windows.numbers), dtype=bool)
    while dirty.any():
        for at in np.flatnonzero(dirty):
            raise_if_asked()
            dirty[at] = False
            active = active_in(pieces, alive, int(windows.numbers[at]), windows.span)
            dropped = _too_few(pieces, active, subsets(active, hiding.label), hiding)
            if len(dropped):
                alive[dropped] = False
                epochs = pieces.epoch[dropped][:, None] - np.arange(windows.span)
                dirty[np.isin(windows.numbers, epochs)] = True


def find_sets(
    pieces: Pieces, windows: EpochWindows, hiding: Hiding, *, run: Run = LOCAL
) -> tuple[NDArray[np.bool_], list[Sets]]:
    """Return which pieces are published, and the hiding sets of every window; continues from the store, if it can.

    Guarantee: in every window everybody with samples in it takes in k - 1 others and is taken in by k - 1 others, all
    active in the same epochs of it; the first `exclusive` of those who take a user in do so in no epoch outside the
    window in which that user is active. Cost: about linear in the pieces.
    """
    state = _begin(pieces, windows, hiding)
    if not _go_on(state, hiding, run):
        thin_out(pieces, windows, hiding, state.alive)
    kept, reached = time.monotonic(), len(state.done)
    with run.stage("hiding sets", len(windows.numbers)) as advance:
        advance(reached)
        while len(state.done) < len(windows.numbers):
            raise_if_asked()
            window = int(windows.numbers[len(state.done)])
            active = active_in(pieces, state.alive, window, windows.span)
            together = subsets(active, hiding.label)
            dropped = _too_few(pieces, active, together, hiding)
            if not len(dropped):
                target, dropped = _decide(pieces, active, window, together, hiding, state, run)
            if len(dropped):
                state.alive[dropped] = False
                _go_back(state, windows, int(pieces.epoch[dropped].min()) - windows.span + 1)
                continue
            _keep(state, Sets(window, active.user, target), hiding)
            if len(state.done) > reached:
                reached += 1
                advance(1)
            if run.store is not NOTHING_KEPT and time.monotonic() - kept > _KEPT_EVERY_S:
                _save(state, run)
                kept = time.monotonic()
    return state.alive, state.done


def _save(state: _State, run: Run) -> None:
    """Save the decisions so far in the store."""
    run.store.save(
        "hiding-sets",
        {
            "alive": state.alive,
            "window": np.array([sets.window for sets in state.done], np.int64),
            "count": np.array([len(sets.user) for sets in state.done], np.int64),
            "user": np.concatenate([sets.user for sets in state.done]),
            "target": np.concatenate([sets.target for sets in state.done]),
        },
    )


def _go_on(state: _State, hiding: Hiding, run: Run) -> bool:
    """Load the decisions of an earlier run from the store, if there are any."""
    kept = run.store.load("hiding-sets")
    if kept is None:
        return False
    state.alive[:] = kept["alive"]
    ends = np.cumsum(kept["count"])[:-1]
    parts = zip(kept["window"].tolist(), np.split(kept["user"], ends), np.split(kept["target"], ends), strict=True)
    for window, user, target in parts:
        _keep(state, Sets(window, user, target), hiding)
    return True


def _begin(pieces: Pieces, windows: EpochWindows, hiding: Hiding) -> _State:
    n_users, n_recent, others = pieces.n_users, max(1, windows.span - 1), hiding.k - 1
    room = (n_users, 8 * others)
    marks = Marks(np.zeros(room, np.int32), np.zeros(room, np.int32), np.zeros(n_users, np.int64))
    recent = np.full((n_recent, n_users, others), -1, np.int32)
    return _State(np.ones(len(pieces.user), dtype=bool), [], marks, recent, np.full(n_recent, _LONG_AGO))


def _keep(state: _State, sets: Sets, hiding: Hiding) -> None:
    """Record the decisions for a window."""
    state.done.append(sets)
    _note_recent(state, sets)
    others = hiding.k - 1
    room = state.marks.used.shape[1]
    if len(sets.user) and state.marks.counts[sets.user].max() + others > room:
        wider = [np.pad(part, ((0, 0), (0, room))) for part in state.marks[:2]]
        state.marks = Marks(wider[0], wider[1], state.marks.counts)
    for turn in range(others):
        mark(state.marks, sets.user, np.ascontiguousarray(sets.target[:, turn]), turn < hiding.exclusive, sets.window)


def _note_recent(state: _State, sets: Sets) -> None:
    at = sets.window % len(state.windows)
    state.recent[at] = -1
    state.recent[at, sets.user] = sets.target
    state.windows[at] = sets.window


def _go_back(state: _State, windows: EpochWindows, window: int) -> None:
    """Discard the decisions for this window and all later ones."""
    at = int(np.searchsorted(windows.numbers, window))
    if at >= len(state.done):
        return
    del state.done[at:]
    forget_marks(state.marks, int(windows.numbers[at]))
    state.recent[:] = -1
    state.windows[:] = _LONG_AGO
    for sets in state.done[-len(state.windows) :]:
        _note_recent(state, sets)


def _too_few(
    pieces: Pieces, active: Active, together: Sequence[NDArray[np.int64]], hiding: Hiding
) -> NDArray[np.int64]:
    """Return the pieces to suppress where a subset has fewer than k users."""
    small = [places for places in together if len(places) < hiding.k]
    return _dropped(pieces, active, np.concatenate(small), hiding) if small else np.empty(0, np.int64)


def _dropped(pieces: Pieces, active: Active, places: NDArray[np.int64], hiding: Hiding) -> NDArray[np.int64]:
    """Return a piece to suppress for each of these users: the one with the fewest samples that leaves enough others."""
    patterns = labels_in(active, hiding.label)
    sizes: dict[bytes, int] = {}
    for pattern in patterns:
        sizes[pattern.tobytes()] = sizes.get(pattern.tobytes(), 0) + 1
    counts, dropped = pieces.counts, []
    for place in places:
        ways = []
        for s in np.flatnonzero(patterns[place] >= 0):
            rest = patterns[place].copy()
            rest[s] = -1
            alone = bool((rest >= 0).any()) and sizes.get(rest.tobytes(), 0) < hiding.k
            ways.append((alone, int(counts[active.piece[place, s]]), -int(s)))
        dropped.append(active.piece[place, -min(ways)[2]])
    return np.array(dropped, np.int64)


def _decide(
    pieces: Pieces,
    active: Active,
    window: int,
    together: Sequence[NDArray[np.int64]],
    hiding: Hiding,
    state: _State,
    run: Run,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return everybody's targets in a window, and the pieces to suppress if there are not enough for all."""
    target = np.full((len(active.user), hiding.k - 1), -1)
    place = np.full(pieces.n_users, -1, np.int32)
    place[active.user] = np.arange(len(active.user))

    def hide_all(groups: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Find targets within each group; return, for each group, those who could not be hidden."""
        short = [np.empty(0, np.int64) for _ in groups]

        def work(start: int, stop: int) -> None:
            for n in range(start, stop):
                short[n] = _hide(pieces, active, groups[n], place, window, hiding, state, target)

        run.ranges(work, [(n, n + 1) for n in range(len(groups))])
        return short

    split = [_parts(pieces, active, places, window, hiding.k) for places in together]
    parts = [(n, part) for n, own in enumerate(split) for part in own]
    short = hide_all([part for _, part in parts])
    again = sorted({n for (n, _), without in zip(parts, short, strict=True) if len(without)})
    if not again:
        return active.user[target], np.empty(0, np.int64)
    without = np.concatenate(hide_all([together[n] for n in again]))
    return active.user[target], _dropped(pieces, active, without, hiding) if len(without) else without


def _parts(
    pieces: Pieces, active: Active, places: NDArray[np.int64], window: int, k: int
) -> Sequence[NDArray[np.int64]]:
    """Split a subset by the last window in which its users have the same active epochs as in this one.

    Users who stay alike for as long can keep their hiding set, so that there is one set and not several.
    """
    span = active.piece.shape[1]
    earliest = window + int(np.argmax(active.piece[places[0]] >= 0))
    after = active.after[places]
    keys = np.where(after < 0, earliest, np.minimum(earliest, pieces.epoch[after] - span))
    parts = [places[part] for part in same(keys)]
    small = [part for part in parts if len(part) < _FEW * k]
    parts = [part for part in parts if len(part) >= _FEW * k]
    if small:
        parts.append(np.sort(np.concatenate(small)))
        if len(parts[-1]) < _FEW * k and len(parts) > 1:
            last = parts.pop()
            parts[-1] = np.sort(np.concatenate([parts[-1], last]))
    return parts


def _hide(
    pieces: Pieces,
    active: Active,
    places: NDArray[np.int64],
    place: NDArray[np.int32],
    window: int,
    hiding: Hiding,
    state: _State,
    target: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Find the targets of users among themselves; return the places of those who could not be hidden."""
    subset = Subset(active.user[places], active.piece[places], _kept(pieces, active, places, window, state))
    points, counts = _points(pieces, subset.piece), pieces.counts
    table = PieceTable(samples_of(pieces), pieces.bounds, counts)
    around = Neighbours(active.before[places], active.after[places], pieces.epoch, pieces.starts, state.alive)
    present, recent = Present(window, active.piece, place), RecentTargets(state.recent, state.windows)
    for number in range(hiding.k - 1):
        if (subset.target[:, number] >= 0).all():
            continue
        turn = Turn(subset, state.marks, number, number < hiding.exclusive)
        near = _nearest(points, turn)
        task = task_of(table, around, turn, held_pieces(subset, number, present, recent, table))
        cost = np.empty(near.shape)
        arc_costs(task, near, cost)
        if hide_round(task, near, cost, np.argsort(cost, axis=None, kind="stable")):
            return np.delete(places, subset.target[subset.target[:, number] >= 0, number])
    target[places] = places[subset.target]
    return np.empty(0, np.int64)


def _kept(pieces: Pieces, active: Active, places: NDArray[np.int64], window: int, state: _State) -> NDArray[np.int64]:
    """Return the targets, as positions in `places`, of those whose active epochs are those of the window before."""
    user = active.user[places]
    at = (window - 1) % len(state.windows)
    if state.windows[at] != window - 1:
        return np.full((len(user), state.recent.shape[2]), -1)
    last = active.before[places]
    stays = (active.piece[places, -1] < 0) & ((last < 0) | (pieces.epoch[last] != window - 1))
    before = state.recent[at, user].astype(np.int64)
    position = np.minimum(np.searchsorted(user, before), len(user) - 1)
    return np.where(stays[:, None] & (before >= 0) & (user[position] == before), position, -1)


def _points(pieces: Pieces, piece: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return points, one for each user, that are near each other where users are cheap to merge."""
    epochs = np.flatnonzero(piece[0] >= 0)
    box = pieces.bounds[piece[:, epochs]]
    middle = (box[:, :, 0::2] + box[:, :, 1::2]) / 2
    middle -= middle[:1]
    scale = np.array([max(1.0, _SOON * pieces.length), _NEAR, _NEAR])
    points: NDArray[np.float64] = (middle / scale).reshape(len(piece), -1)
    return points


def _nearest(points: NDArray[np.float64], turn: Turn) -> NDArray[np.int64]:
    """Return, for everyone without a target, the positions of the nearest free users whom they may take in.

    -1 stands for no more.
    Where most of the nearest were used before, more are looked at.
    """
    from scipy.spatial import cKDTree

    target = turn.subset.target[:, turn.number]
    seeking = np.flatnonzero(target < 0)
    left = np.delete(np.arange(len(target)), target[target >= 0])
    near = np.full((len(target), min(_NEAREST, len(left))), -1)
    tree = cKDTree(points[left], balanced_tree=False, compact_nodes=False)
    n = min(_NEAREST + 8, len(left))
    while len(seeking):
        found = left[tree.query(points[seeking], k=np.arange(1, n + 1), p=1)[1]]
        keep_free(turn, seeking, found, near)
        if n == len(left):
            break
        seeking = seeking[near[seeking, min(_ENOUGH, near.shape[1]) - 1] < 0]
        n = min(4 * n, len(left))
    return near
