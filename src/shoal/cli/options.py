"""Flags that several commands share: how to read, how to run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.errors import SettingsError
from shoal.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from shoal.reading.options import ReadOptions

__all__ = ["Reading", "Running", "whole_numbers"]


@Parameter(name="*", group="Reading")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How to read the original data; the same flags for anonymize, verify and inspect."""

    columns: Annotated[
        str | None, Parameter(help="Which column is what: user=…,time=…,lat=…,lng=… (or x, y, cell).")
    ] = None
    tz: Annotated[str | None, Parameter(help="Zone of times that have none, e.g. Africa/Dakar; else UTC.")] = None
    time_unit: Annotated[str | None, Parameter(help="Unit of numeric times: s, ms or us; else by their size.")] = None
    crs: Annotated[str | None, Parameter(help="Projected CRS in metres; else a local one around the data.")] = None
    cell: Annotated[str | None, Parameter(help="Side of a cell of the grid; else 100m.")] = None
    slot: Annotated[str | None, Parameter(help="Length of a slot of the grid; else 60s.")] = None
    cells: Annotated[Path | None, Parameter(help="File of cells (id, lat, lng) for events that name a cell.")] = None
    min_samples: Annotated[int | None, Parameter(help="Leave out users with fewer samples.")] = None
    min_active_days: Annotated[int | None, Parameter(help="Leave out users active on fewer days.")] = None
    bbox: Annotated[
        str | None, Parameter(help="Keep only west,south,east,north (degrees).", allow_leading_hyphen=True)
    ] = None
    period: Annotated[str | None, Parameter(help="Keep only start,end (ISO; the end is left out).")] = None
    align_days: Annotated[
        int | None, Parameter(help="Points: everyone's first so many days with data, moved to one start day.")
    ] = None
    split_gap: Annotated[
        str | None, Parameter(help="Points: split traces where nothing is logged for so long, e.g. 4h.")
    ] = None
    strict: Annotated[bool, Parameter(help="Any bad row is an error.")] = False

    def options(self) -> ReadOptions:
        """Return those that were set as ReadOptions; raises SettingsError for what makes no sense."""
        from shoal.reading.options import read_options

        given = {flag.name: getattr(self, flag.name) for flag in fields(self)}
        given = {name: value for name, value in given.items() if value not in (None, False)}
        parsed = {name: _PARSE[name](value) if name in _PARSE else value for name, value in given.items()}
        return read_options(**{_OPTION.get(name, name): value for name, value in parsed.items()})


@Parameter(name="*", group="Running")
@dataclass(frozen=True, kw_only=True)
class Running:
    """How to run; none of it changes a result."""

    threads: Annotated[int | None, Parameter(help="Threads to use; by default all cores.")] = None
    work_dir: Annotated[
        Path | None, Parameter(help="Folder for private spill files; by default beside the output.")
    ] = None
    memory: Annotated[str | None, Parameter(help="Memory to use, e.g. 8GB; by default what is free.")] = None
    quiet: Annotated[bool, Parameter(help="No progress.")] = False
    json: Annotated[bool, Parameter(help="Print JSON.")] = False

    @property
    def memory_bytes(self) -> int | None:
        """The limit of memory, in bytes."""
        return None if self.memory is None else parse_bytes(self.memory)


def _pairs(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    if not all(equals and column for _, equals, column in pairs):
        raise SettingsError("--columns takes role=column pairs, e.g. user=msisdn,time=start_time")
    return {role.strip(): column.strip() for role, _, column in pairs}


def _four_numbers(text: str) -> tuple[float, ...]:
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        raise SettingsError("--bbox takes four numbers: west,south,east,north") from None
    return west, south, east, north


def _two_times(text: str) -> tuple[str, str]:
    start, comma, end = text.partition(",")
    if not comma:
        raise SettingsError("--period takes two ISO times with a comma between: 2026-03-01,2026-03-15")
    return start.strip(), end.strip()


_OPTION = {"cell": "cell_m", "slot": "slot_s", "split_gap": "split_gap_s"}
_PARSE: dict[str, Callable[[str], Any]] = {"columns": _pairs, "bbox": _four_numbers, "period": _two_times}


def whole_numbers(text: str, example: str) -> list[int]:
    """Read whole numbers with commas between; `example` is the flag with some."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SettingsError(
            f"{example.split(maxsplit=1)[0]} takes whole numbers with commas between: {example}"
        ) from None
