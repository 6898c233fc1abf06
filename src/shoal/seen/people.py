"""Read everybody in the original part by part, as much at a time as fits into memory."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.errors import CannotCheck, InputError, TooLarge
from shoal.memory import available_bytes
from shoal.seen.original import Original, from_events, from_trajectories
from shoal.seen.recorded import unreadable
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.reading.events import Events
    from shoal.reading.options import ReadOptions
    from shoal.run import Run
    from shoal.seen.grid import Grid
    from shoal.seen.witness import Witness

__all__ = ["Crowd", "crowd_of", "open_crowd"]

_SAMPLE_BYTES = 12
# Shares of the memory that may be used: for the rows of a part while they are read; for everybody's kept samples.
_READING, _KEEPING = 0.6, 0.3


@dataclass(frozen=True, eq=False)
class Crowd:
    """Everybody inside the claim, part after part.

    `labels`, `counts` (published samples), `first` (the first sample, t, x, y) and `span` (the first and the last slot)
    are about everybody. The samples
    themselves come with `parts`, as often as needed: they are `kept` (they fit into memory) or computed again.
    `outside` and `rows_outside` count the users and the rows that the reading rules removed.
    """

    labels: Any
    counts: NDArray[np.int64]
    first: NDArray[np.int64]
    read: Callable[[], Iterable[Original]]
    kept: bool = True
    outside: dict[str, int] = field(default_factory=dict)
    rows_outside: dict[str, int] = field(default_factory=dict)
    span: tuple[int, int] = (0, 0)

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def samples(self) -> int:
        """The total number of samples."""
        return int(self.counts.sum())

    def seconds(self, grid: Grid) -> tuple[int, int]:
        """Return the first and the last second of everybody's samples."""
        return self.span[0] * grid.slot_s, (self.span[1] + 1) * grid.slot_s

    def parts(self) -> Iterator[tuple[int, Original]]:
        """Yield the parts, each with the index of its first user."""
        start = 0
        for part in self.read():
            yield start, part
            start += len(part)

    def keep(self, samples: list[NDArray[np.bool_]], counts: NDArray[np.int64]) -> Crowd:
        """Return the same users with some samples only: `samples` marks them part by part, `counts` is their number."""

        def read() -> Iterator[Original]:
            return (part.keep(mask) for part, mask in zip(self.read(), samples, strict=True))

        return replace(self, counts=counts, read=read)

    def whole(self) -> Original:
        """Return everybody at once; raises TooLarge if they do not fit into memory."""
        if not self.kept:
            raise TooLarge(
                "this claim is checked with everybody at once, who do not fit into memory; allow more (`memory`), "
                "or check fewer users at a time"
            )
        parts = [part for _, part in self.parts()]
        if len(parts) == 1:
            return parts[0]
        edges = np.cumsum([0, *(len(part.t) for part in parts)])
        shifted = [part.offsets[:-1] + edge for part, edge in zip(parts, edges, strict=False)]
        t, x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in "txy")
        return Original(self.labels, np.append(np.concatenate(shifted), edges[-1]), t, x, y)


@contextmanager
def open_crowd(
    original: str | Path | Sequence[str | Path] | Trajectories,
    options: ReadOptions | None,
    grid: Grid,
    *,
    run: Run,
    witness: Witness | None = None,
) -> Iterator[Crowd]:
    """Return the people inside the claim on the grid of the release.

    Input: files (parsed by the common reader, with the reading options of the release) or Trajectories that are
    already on that grid. Guarantee: projection, cells, slots, de-duplication and screening are done here, with
    the same result for any `memory` (bytes; None: what is available) that may be used. A `witness` hears what was read.
    """
    if isinstance(original, Trajectories):
        yield crowd_of(from_trajectories(original, grid, run))
        return
    from shoal.reading.options import ReadOptions
    from shoal.reading.parts import event_parts

    chosen = options or ReadOptions()
    chosen = chosen.model_copy(update={"crs": grid.crs, "cell": grid.cell_m, "slot": grid.slot_s})
    room = available_bytes() if run.memory is None else run.memory

    def place(events: Events) -> Original:
        return from_events(events, chosen, grid, run)

    with ExitStack() as reading:
        try:
            parts = reading.enter_context(event_parts(original, chosen, run=run.within(int(room * _READING))))
            if witness is not None:
                witness.begin(chosen, parts.account)
            kept = parts.rows * _SAMPLE_BYTES <= room * _KEEPING
            crowd = _gather(parts, place, keep=kept, witness=witness)
        except InputError as error:
            raise CannotCheck(unreadable(error)) from None
        if kept:
            reading.close()  # the rows are not needed any more
        yield crowd


def crowd_of(people: Original) -> Crowd:
    """Return the crowd of people who are in memory already.

    >>> ids = np.array([4, 5])
    >>> len(crowd_of(Original(pa.array(["ann"]), np.array([0, 2]), ids, ids, ids)))
    1
    """
    return Crowd(people.labels, people.counts, _first(people), lambda: [people], span=_span(people))


def _gather(parts: Any, place: Callable[[Events], Original], *, keep: bool, witness: Witness | None = None) -> Crowd:
    """Read all parts once to find who is inside the claim, with how many samples."""
    kept: list[Original] = []
    labels, counts, first, spans = [], [], [], []
    outside, rows_outside = dict(parts.account.users_dropped), dict(parts.account.dropped)
    for events in parts if witness is None else witness.overhear(parts):
        part = place(events)
        labels.append(part.labels)
        counts.append(part.counts)
        first.append(_first(part))
        spans.append(_span(part))
        for total, more in ((outside, part.outside), (rows_outside, part.rows_outside)):
            for rule, number in more.items():
                total[rule] = total.get(rule, 0) + number
        if keep:
            kept.append(part)
    return Crowd(
        pa.concat_arrays(labels),
        np.concatenate(counts),
        np.concatenate(first),
        (lambda: kept) if keep else (lambda: map(place, parts)),
        keep,
        _positive(outside),
        _positive(rows_outside),
        (min(first for first, _ in spans), max(last for _, last in spans)),
    )


def _first(people: Original) -> NDArray[np.int64]:
    rows = people.offsets[:-1].clip(0, max(0, len(people.t) - 1))
    return np.stack([column[rows].astype(np.int64) for column in (people.t, people.x, people.y)], axis=1)


def _span(people: Original) -> tuple[int, int]:
    return (int(people.t.min()), int(people.t.max())) if len(people.t) else (2**62, -(2**62))


def _positive(counts: dict[str, int]) -> dict[str, int]:
    return {rule: int(count) for rule, count in counts.items() if count}
