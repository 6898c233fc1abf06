"""`shoal compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show_columns, show_json, show_notes, working
from shoal.cli.options import Reading, Running, read_options_of, whole_numbers
from shoal.errors import SettingsError

__all__ = ["compare"]


def compare(
    *paths: Annotated[str, Parameter(help="The files, folders, globs or addresses to read.")],
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
    from shoal.comparison import compare as run_all
    from shoal.comparison import contests, read_for, save_comparison
    from shoal.tables import refuse_table

    if not paths:
        raise SettingsError("name a file: shoal compare events.parquet --methods shoal,k-scale --k 2,5")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    inputs = list(paths)
    options = read_options_of(reading)
    if output is not None:
        refuse_table(output, inputs, overwrite=overwrite)
    runs = contests(names, whole_numbers(k, "--k 2,5,10"))
    with working(running) as run:
        people = read_for(runs, inputs, options, run=run)
        lines = run_all(people, runs, queries=queries, seed=seed, run=run)
    if output is not None:
        save_comparison(lines, output, overwrite=overwrite)
    if running.json:
        show_json({"ok": True, "runs": [line.to_dict() for line in lines]})
        return 0
    show_notes(people.account)
    printed = [line.printed() for line in lines]
    header = [name for name, _ in printed[0]]
    show_columns([header, *([text for _, text in line] for line in printed)], left={"method", "claim"})
    return 0
