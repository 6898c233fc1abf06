"""Data frames in memory: Arrow tables, pandas and Polars frames with columns of any type."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.fuzz.case import Case, Kind
from tests.fuzz.columnar import table
from tests.fuzz.tables import options, read

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

_NAME = "frame"


def draw_frame(draw: Random) -> Case:
    made = table(draw)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made)
    return Case({_NAME: sink.getvalue()}, {**options(draw), "_as": draw.choice(("arrow", "pandas", "polars"))})


def act(case: Case, folder: Path) -> Any:
    """Read a frame as files are read; what pandas or Polars can't hold is read as a table of Arrow."""
    made: Any = pa.ipc.open_stream(case.files[_NAME]).read_all()
    (folder / _NAME).unlink()
    source = made
    if case.options["_as"] == "pandas":
        with contextlib.suppress(Exception):
            source = made.to_pandas()
    elif case.options["_as"] == "polars":
        import polars as pl

        with contextlib.suppress(BaseException):
            source = pl.from_arrow(made)
    return read(source, case.options, folder)


FRAME = Kind("frame", draw_frame, act)
