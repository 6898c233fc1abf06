"""Mapped: make trajectories of more rows than fit in memory, part by part, with the samples in files.

Each part is a run of users in canonical order on disk. The runs are merged like those of any external sort: the
ranks come from each user's number of samples and first sample, which are kept in memory, and from the rest of the
samples only where those are equal; then each run is read once from its beginning to its end.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrow import to_arrow_array
from shoal.folders import private_folder
from shoal.lists import offsets_of
from shoal.reading.granules import choose_crs, granules, make_frame
from shoal.reading.sanity import require_sane
from shoal.reading.screen import Lost, complete, screen
from shoal.reading.spill import SpillFile, spill_files
from shoal.run import LOCAL, Run
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.reading.events import Events
    from shoal.reading.options import ReadOptions
    from shoal.reading.parts import EventParts
    from shoal.reading.spread import Spread

__all__ = ["mapped_trajectories"]

_SAMPLES = 1 << 20  # written at a time


@dataclass(frozen=True, eq=False)
class _Run:
    """The users of a part in canonical order: each user's label number, number of samples and first sample."""

    users: NDArray[np.int64]
    counts: NDArray[np.int64]
    first: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


def mapped_trajectories(parts: EventParts, spread: Spread, options: ReadOptions, *, run: Run = LOCAL) -> Trajectories:
    """Make Trajectories from parts, with samples in mapped files; the result is the same as from all rows at once.

    Guarantee: memory for one part, and some 100 bytes a user. The files are private, unlinked before they are handed
    out, and gone with the arrays over them. Raises as `trajectories` does, and OutputError if the disk is full.
    """
    known = require_sane(parts.account, spread, options)
    frame = make_frame(choose_crs(spread, options), spread.first_ms, spread.last_ms, options)
    lost = Lost()
    with (
        private_folder(run.scratch) as folder,
        spill_files(folder, {"run-t": "i4", "run-x": "i4", "run-y": "i4"}) as parted,
        spill_files(folder, {"t": "i4", "x": "i4", "y": "i4"}) as ordered,
    ):
        with run.stage("project", parts.rows) as advance:
            runs = list(_runs(parts, frame, options, lost, parted, run, advance))
        account = complete(known, lost)
        with run.stage("sort", account.kept_rows) as advance:
            order, counts = _merge(runs, parted, ordered, advance)
        users = np.concatenate([one.users for one in runs])[order]
        t, x, y = (file.map() for file in ordered)
    offsets = offsets_of(counts)
    return Trajectories(offsets, t, x, y, frame, parts.labels.take(to_arrow_array(users)), account)


def _runs(
    parts: EventParts,
    frame: Frame,
    options: ReadOptions,
    lost: Lost,
    files: list[SpillFile],
    run: Run,
    advance: Callable[[float], None],
) -> Iterator[_Run]:
    """Write each part's samples, user after user in the part's canonical order, one part after the other."""
    first_user = end = 0
    for events in parts:
        users, offsets, *columns = _gridded(events, frame, options, lost, run, advance)
        starts = offsets[:-1]
        t, x, y = (column[starts] for column in columns)
        for file, column in zip(files, columns, strict=True):
            file.write(column, end)
        yield _Run(first_user + users, np.diff(offsets), (t, x, y))
        first, first_user = first_user == 0, first_user + len(events.labels)
        end += int(offsets[-1])
        del events, columns, column  # before the next part is loaded
        if first:
            gc.collect()  # the first use compiles kernels, which leaves cycles that hold everything around it


def _gridded(
    events: Events, frame: Frame, options: ReadOptions, lost: Lost, run: Run, advance: Callable[[float], None]
) -> tuple[NDArray[Any], ...]:
    """Return the users of a part who stay, in canonical order, and their samples: offsets, t, x, y."""
    from shoal.kernels.order import pack_rows, unpack_users

    users, t, x, y = granules(events, frame, run, advance)
    packed = pack_rows(users, t, x, y, len(events.labels), run_ranges=run.ranges)
    order = screen(packed, len(events), frame, options, lost)
    return order, *unpack_users(packed, order, run_ranges=run.ranges, into=(t, x, y))


def _merge(
    runs: list[_Run], parted: list[SpillFile], ordered: list[SpillFile], advance: Callable[[float], None]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Write the samples of all runs in canonical order; return the user at each rank and their number of samples."""
    from shoal.kernels.order import rank_users

    counts = np.concatenate([run.counts for run in runs])
    offsets = offsets_of(counts)
    first = tuple(np.concatenate([run.first[i] for run in runs]) for i in range(3))
    order = rank_users(offsets, counts, first, tuple(file.map() for file in parted))
    ranked = counts[order]
    ends = np.cumsum(ranked)
    bounds = np.cumsum([0] + [len(run.counts) for run in runs])
    start = 0
    while start < len(order):
        written = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, written + _SAMPLES, side="right")))
        rows, places = _chunk(order[start:stop], bounds, offsets, counts)
        for source, target in zip(parted, ordered, strict=True):
            samples = np.concatenate([source.read(at, count) for at, count in rows])
            target.write(samples[places], written)
        advance(int(ends[stop - 1]) - written)
        start = stop
    return order, ranked


def _chunk(
    users: NDArray[np.int64], bounds: NDArray[np.int64], offsets: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """Return the rows (start, count) that hold the samples of some users, and the position of each sample in them.

    Users of successive ranks that come from one run lie in it one after the other.
    """
    by_run = np.sort(users)
    ends = np.searchsorted(by_run, bounds)
    rows = []
    for low, high in pairwise(ends):
        if low < high:
            start = int(offsets[by_run[low]])
            rows.append((start, int(offsets[by_run[high - 1] + 1]) - start))
    before = np.cumsum(sizes[by_run]) - sizes[by_run]
    found = np.cumsum(sizes[users]) - sizes[users]
    shift = before[np.searchsorted(by_run, users)] - found
    return rows, np.repeat(shift, sizes[users]) + np.arange(int(sizes[users].sum()))
