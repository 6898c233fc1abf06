"""`shoal evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_json, show_table, working
from shoal.cli.options import Reading, Running, RunRecord, read_options_of
from shoal.errors import SettingsError
from shoal.stores.addresses import shown

__all__ = ["evaluate"]


def evaluate(
    *paths: Annotated[str, Parameter(help="The files that the release was made from; last, the release.")],
    audit: Annotated[Path | None, Parameter(help="The private audit file; needed for the spatial error.")] = None,
    run_record: RunRecord = None,
    queries: Annotated[int, Parameter(help="How many range queries to draw.")] = 1000,
    seed: Annotated[int, Parameter(help="Seed of all draws: the same seed gives the same figures.")] = 0,
    output: Annotated[Path | None, Parameter(help="Save the figures: .csv, .json or .parquet.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace an existing table.")] = False,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Measure how useful a release still is."""
    from shoal.tables import refuse_table, save_rows
    from shoal.utility import evaluate as measure

    if len(paths) < 2:
        raise SettingsError("name the ORIGINAL and, last, the RELEASE: shoal evaluate events.csv release.parquet")
    if output is not None:
        private = [path for path in (audit, run_record) if path is not None]
        refuse_table(output, [*paths, *private], overwrite=overwrite)
    with working(running) as run:
        found = measure(
            list(paths[:-1]),
            paths[-1],
            audit=audit,
            run_record=run_record,
            queries=queries,
            seed=seed,
            options=read_options_of(reading),
            run=run,
        )
    if output is not None:
        save_rows([found.to_dict()], output, overwrite=overwrite)
    if running.json:
        show_json({"ok": True, **found.to_dict(), "notes": list(found.notes)})
        return 0
    for note in found.notes:
        show(f"note: {note}")
    show_table(f"How useful {shown(paths[-1])} still is", found.table())
    if found.unmeasured:
        show(f"{', '.join(found.unmeasured).capitalize()} not measured: give the audit file, --audit.")
    return 0
