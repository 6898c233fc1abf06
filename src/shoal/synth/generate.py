"""Generate people, block after block, into a file or a table."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.errors import SettingsError, TooLarge
from shoal.kernels.synth import shuffled_ids
from shoal.lists import ranges_of
from shoal.parallel import in_order
from shoal.run import LOCAL, Run
from shoal.synth.calls import calls_block
from shoal.synth.fixes import fixes_block
from shoal.synth.places import make_places
from shoal.synth.sinks import SCHEMA, file_sink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shoal.synth.calls import Rows

__all__ = ["Kind", "Landscape", "synthesize"]

Kind = Literal["cdr", "gps"]
Landscape = Literal["town", "nation"]

SAMPLES = 144.0  # per user and 14 days, in call records
ROWS_PER_BLOCK = 500_000
MOST_ROWS_IN_MEMORY = 200_000_000


def synthesize(
    path: str | Path | None = None,
    *,
    users: int = 10_000,
    kind: Kind = "cdr",
    scene: Landscape = "nation",
    days: int = 14,
    samples: float | None = None,
    interval_s: int = 60,
    start: str = "2026-01-05",
    seed: int = 0,
    overwrite: bool = False,
    run: Run = LOCAL,
) -> pa.Table | None:
    """Generate the events of imaginary people in an imaginary land.

    Parameters
    ----------
    path
        The file to write (`.parquet`, `.csv`, `.csv.gz`); None to return a table.
    users, days, start
        The number of people, and the whole days from the date `start` on.
    kind, scene
        `cdr` (call records at antennas) or `gps` (fixes); one `town` or a `nation`.
    samples
        For `cdr`: the mean number of samples per user; by default 144 in 14 days, in proportion for other spans.
    interval_s
        For `gps`: the seconds between fixes on the way; during stays it is ten times as long.
    seed, overwrite, run
        The seed of all draws; whether to replace an existing file; threads.

    Returns
    -------
    pyarrow.Table or None
        The columns `uid` (int64), `datetime` (timestamp[ms, UTC]), `lat` and `lng`. The rows of a user are together and
        in order of time. None if a path was given; the file appears whole or not at all.

    Raises
    ------
    SettingsError, AlreadyExists, OutputError, TooLarge
        An argument makes no sense; the file exists; it can't be written; the table would be too large.

    Guarantee: the same arguments give the same rows, with any number of threads. Local time is UTC.

    Cost: about 70 µs of one core per user of 144 samples; below 1 GB of memory if a path is given.

    >>> table = synthesize(users=50, seed=1)
    >>> table.column_names
    ['uid', 'datetime', 'lat', 'lng']
    """
    _check(users=users, kind=kind, scene=scene, days=days, samples=samples, interval_s=interval_s)
    if not 0 <= seed < 2**63:
        raise SettingsError("the seed must be a whole number from 0 to 2^63 - 1")
    first_day = _date(start)
    mean = samples if samples is not None else SAMPLES * days / 14.0
    rows_per_user = mean if kind == "cdr" else days * 86_400.0 / interval_s / 6.0
    if path is None and users * rows_per_user > MOST_ROWS_IN_MEMORY:
        raise TooLarge("so many rows do not fit into a table; give a path to write them to")

    towers = make_places(scene, users, np.random.Generator(np.random.Philox(seed)))
    if kind == "cdr":
        make = calls_block(towers, seed=seed, days=days, weekday=first_day.weekday(), samples=mean)
    else:
        make = fixes_block(towers, seed=seed, days=days, weekday=first_day.weekday(), interval_s=interval_s)
    parts = ranges_of(users, max(1, int(ROWS_PER_BLOCK / rows_per_user)))
    batches = in_order(_batch_maker(make, seed, first_day), parts, threads=run.workers)

    with run.stage("generate people", total=users) as advance:
        if path is None:
            return pa.Table.from_batches(list(_told(batches, parts, advance)), SCHEMA)
        with file_sink(Path(path), overwrite=overwrite) as write:
            for batch in _told(batches, parts, advance):
                write(batch)
    return None


def _check(*, users: int, kind: str, scene: str, days: int, samples: float | None, interval_s: int) -> None:
    """Check the arguments; raises SettingsError."""
    if kind not in get_args(Kind):
        raise SettingsError("kind must be cdr or gps")
    if scene not in get_args(Landscape):
        raise SettingsError("scene must be town or nation")
    if not 1 <= users <= 10**9:
        raise SettingsError("the number of users must be between 1 and 10^9")
    if not 1 <= days <= 366:
        raise SettingsError("the number of days must be between 1 and 366")
    if samples is not None and kind == "gps":
        raise SettingsError("samples are for cdr; for gps give the seconds between fixes (interval_s)")
    if samples is not None and not (math.isfinite(samples) and 1.0 <= samples <= days * 1_440.0):
        raise SettingsError("the mean samples per user must be between 1 and one a minute")
    if not 1 <= interval_s <= 3_600:
        raise SettingsError("the seconds between fixes must be between 1 and 3600")


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise SettingsError("start must be a date such as 2026-01-05") from error


def _batch_maker(
    make: Callable[[int, int], Rows], seed: int, first_day: date
) -> Callable[[tuple[int, int]], pa.RecordBatch]:
    """Return the function from a range of user numbers to their rows."""
    epoch_s = (first_day - date(1970, 1, 1)).days * 86_400

    def batch(part: tuple[int, int]) -> pa.RecordBatch:
        counts, second, lat, lng = make(*part)
        uid = np.repeat(shuffled_ids(seed, *part), counts)
        times = to_arrow_array((second + epoch_s) * 1_000).cast(SCHEMA.field("datetime").type)
        return pa.RecordBatch.from_arrays(
            [to_arrow_array(uid), times, to_arrow_array(lat), to_arrow_array(lng)], schema=SCHEMA
        )

    return batch


def _told(
    batches: Iterator[pa.RecordBatch], parts: list[tuple[int, int]], advance: Callable[[float], None]
) -> Iterator[pa.RecordBatch]:
    for batch, (first, last) in zip(batches, parts, strict=True):
        yield batch
        advance(last - first)
