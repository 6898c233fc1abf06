"""`shoal compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_columns, show_json, working
from shoal.cli.options import Reading, Running, read_options_of, whole_numbers
from shoal.comparison import Compared, ComparedPoints, contests, read_for, save_table
from shoal.comparison import compare as run_all
from shoal.errors import SettingsError
from shoal.memory import human_bytes
from shoal.tables import refuse_table

__all__ = ["compare"]

_HEADER = (
    "method",
    "k",
    "claim",
    "owner cost",
    "span",
    "median",
    "duration",
    "median",
    "suppressed",
    "time",
    "peak memory",
)
_POINTS_HEADER = (
    "method",
    "F-score",
    "precision",
    "recall",
    "spatial error",
    "range queries",
    "compression",
    "records",
    "time",
)


def compare(
    *paths: Annotated[Path, Parameter(help="The files, folders or globs to read.")],
    methods: Annotated[
        str,
        Parameter(
            help="The methods, with commas; a variant follows a colon: k-scale:full. "
            "For GPS fixes, e.g. raw,promesse:200m; raw is the data without any method."
        ),
    ] = "shoal,k-scale",
    k: Annotated[str, Parameter(help="One k, or several with commas.")] = "2",
    queries: Annotated[int, Parameter(help="Point methods: how many range queries to draw.")] = 1000,
    seed: Annotated[int, Parameter(help="Point methods: the seed of the range queries.")] = 0,
    output: Annotated[Path | None, Parameter(help="Save the table: .csv, .json or .parquet.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace an existing table.")] = False,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Run several methods on the same people and show them side by side."""
    if not paths:
        raise SettingsError("name a file: shoal compare events.parquet --methods shoal,k-scale --k 2,5")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    inputs = [str(path) for path in paths]
    options = read_options_of(reading)
    if output is not None:
        refuse_table(output, inputs, overwrite=overwrite)
    runs = contests(names, whole_numbers(k, "--k 2,5,10"))
    with working(running) as run:
        people = read_for(runs, inputs, options, run=run)
        lines = run_all(people, runs, queries=queries, seed=seed, run=run)
    if output is not None:
        save_table(lines, output, overwrite=overwrite)
    if running.json:
        show_json({"ok": True, "runs": [line.to_dict() for line in lines]})
        return 0
    for note in people.account.notes if people.account else ():
        show(f"note: {note}")
    header = _HEADER if isinstance(lines[0], Compared) else _POINTS_HEADER
    show_columns([header, *(_cells(line) for line in lines)], left={"method", "claim"})
    return 0


def _point_cells(line: ComparedPoints) -> tuple[str, ...]:
    return (
        line.method,
        _share(line.fscore, 2),
        _share(line.precision, 1),
        _share(line.recall, 1),
        "-" if line.spatial_error_m is None else f"{line.spatial_error_m:,.1f} m",
        f"{line.query_distortion:.1%}",
        f"{line.compression:.0%}",
        f"{line.records:,}",
        "-" if line.seconds is None else f"{line.seconds:.2f} s",
    )


def _share(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}%}"


def _cells(line: Compared | ComparedPoints) -> tuple[str, ...]:
    return _box_cells(line) if isinstance(line, Compared) else _point_cells(line)


def _box_cells(line: Compared) -> tuple[str, ...]:
    of = line.precision
    peak = "-" if line.peak_memory_bytes is None else human_bytes(line.peak_memory_bytes)
    return (
        line.method,
        "-" if line.k is None else str(line.k),
        line.claim,
        f"{of.owner_cost:,.0f}",
        f"{of.span_km_mean:.2f} km",
        f"{of.span_km_median:.2f} km",
        f"{of.duration_min_mean:,.0f} min",
        f"{of.duration_min_median:,.0f} min",
        f"{of.suppressed:.1%}",
        f"{line.seconds:.1f} s",
        peak,
    )
