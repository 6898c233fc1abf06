"""Read: files or frames become Trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.errors import InputError
from shoal.reading.granules import choose_crs, granules, make_frame
from shoal.reading.mapped import mapped_trajectories
from shoal.reading.options import ReadOptions, read_options
from shoal.reading.parts import event_parts
from shoal.reading.sanity import require_sane, warn_of_naive_times
from shoal.reading.screen import Lost, complete, screen
from shoal.reading.spread import spread_of
from shoal.run import LOCAL, Run
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from shoal.reading.events import Events, Input

__all__ = ["from_arrow", "from_pandas", "from_polars", "read", "trajectories"]


def read(source: Input, *, options: ReadOptions | None = None, run: Run = LOCAL, **fields: Any) -> Trajectories:
    r"""Read trajectories from files (a file, a folder, a glob or a list of them) or from a data frame.

    Parameters
    ----------
    source
        The files, or a data frame of pandas, Polars, GeoPandas or Arrow.
    options, **fields
        How to read: `ReadOptions`, or its fields as keywords (`tz="Africa/Dakar"`).
    run
        Threads, memory and the folder for temporary files. Data that does not fit into `run.memory` is read part by
        part, and its samples are kept in private files that are mapped into memory.

    Returns
    -------
    Trajectories
        Everybody's samples in canonical order, with an account of the rows that were dropped.

    Raises
    ------
    InputError
        The data can't be used; its subclasses say why.
    SettingsError, TooLarge, OutputError
        An option makes no sense; the data is too large; there is no room in `run.work_dir`.

    Warns (NaiveTimes) if times have no zone and `tz` was not given: they are then read as UTC.

    Guarantee: the result does not depend on the order of rows, on how they are split into files, on the kind of files,
    or on threads and memory.

    Cost: 20 million rows take about 4 s from Parquet and 10 s from CSV on two cores. They need 41 bytes a row (CSV 73),
    or less if memory is short.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "events.csv")
    ...     _ = path.write_text("uid,datetime,lat,lng\nann,2026-03-01T08:00:00Z,39.9,116.4\n")
    ...     people = read(path, crs="EPSG:32650")
    >>> people.labels.to_pylist(), people.x.tolist(), people.t.tolist()
    (['ann'], [4487], [480])
    """
    chosen = read_options(options, **fields)
    chosen.require_whole_users()
    with event_parts(source, chosen, run=run) as parts:
        warn_of_naive_times(parts.account, chosen)
        if parts.spread is None:
            return trajectories(parts.take(), chosen, run=run)
        return mapped_trajectories(parts, parts.spread, chosen, run=run)


def from_arrow(table: pa.Table, **options: Any) -> Trajectories:
    """Make Trajectories from an Arrow table, as `read` does from a file with the same content.

    `options` are the fields of `ReadOptions` as keywords.

    >>> from_arrow(pa.table({"uid": [1], "t": [3], "d": [0], "x": [5], "y": [6]}), slot="30min").t.tolist()
    [3]
    """
    return _from_frame(table, "from_arrow takes a pyarrow.Table", isinstance(table, pa.Table), options)


def from_pandas(frame: pd.DataFrame, **options: Any) -> Trajectories:
    """Make Trajectories from a pandas frame, as `read` does from a file with the same content.

    `options` are the fields of `ReadOptions` as keywords. The index of the frame is ignored.
    """
    return _from_frame(frame, "from_pandas takes a pandas.DataFrame", hasattr(frame, "iloc"), options)


def from_polars(frame: pl.DataFrame, **options: Any) -> Trajectories:
    """Make Trajectories from a Polars frame, as `read` does from a file with the same content.

    `options` are the fields of `ReadOptions` as keywords.
    """
    return _from_frame(frame, "from_polars takes a polars.DataFrame", hasattr(frame, "to_arrow"), options)


def _from_frame(frame: Any, wrong: str, right: bool, options: dict[str, Any]) -> Trajectories:
    if not right:
        raise InputError(f"{wrong}; for files, call shoal.read")
    return read(frame, **options)


def trajectories(events: Events, options: ReadOptions, *, crs: str | None = None, run: Run = LOCAL) -> Trajectories:
    """Put events on the grid, merge duplicates, screen users and bring everything into canonical order.

    Input: events, the options they were read with, and a CRS that overrides the one `choose_crs` gives.
    Output: Trajectories with the completed account. Raises SettingsError if the grid does not fit 32 bits,
    NoValidRows if the screening leaves nobody.
    """
    from shoal.kernels.order import pack_rows, unpack_users

    spread = spread_of(events)
    frame = make_frame(crs or choose_crs(spread, options), spread.first_ms, spread.last_ms, options)
    account = require_sane(events.account, spread, options)
    rows, labels, lost = len(events), events.labels, Lost()
    with run.stage("project", rows) as advance:
        users, t, x, y = granules(events, frame, run, advance)
    del events  # if nobody else holds them, their memory is needed now
    with run.stage("sort"):
        packed = pack_rows(users, t, x, y, len(labels), run_ranges=run.ranges)
        order = screen(packed, rows, frame, options, lost)
        account = complete(account, lost)
        offsets, t, x, y = unpack_users(packed, order, run_ranges=run.ranges, into=(t, x, y))
    return Trajectories(offsets, t, x, y, frame, labels.take(to_arrow_array(order)), account)
