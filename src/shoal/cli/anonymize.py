"""`shoal anonymize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_json, show_table, working
from shoal.cli.options import MethodSettings, Reading, Running, given, read_options_of
from shoal.errors import SettingsError
from shoal.methods import DEFAULT, make_method
from shoal.pipeline import publish

__all__ = ["anonymize"]


def anonymize(
    *paths: Annotated[Path, Parameter(help="INPUT... OUTPUT: files, folders or globs to read; last, the release.")],
    method: Annotated[str, Parameter(help="How to hide people; shoal methods describes the choices.")] = DEFAULT,
    audit: Annotated[Path | None, Parameter(help="Private file: who is in which record.")] = None,
    run_record: Annotated[Path | None, Parameter(help="Private file: settings, exact counts, cleaning.")] = None,
    ledger: Annotated[
        Path | None, Parameter(help="Private book of releases: refuse people who are in an earlier one of it.")
    ] = None,
    allow_overlap: Annotated[
        bool, Parameter(help="Publish people of earlier releases too; say among how many they are hidden in all.")
    ] = False,
    seed: Annotated[int | None, Parameter(help="Fix the pseudonyms, for research: weakens the claim.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace an existing OUTPUT.")] = False,
    geo: Annotated[bool, Parameter(help="Add the boxes as WGS84 polygons (GeoParquet).")] = False,
    compact: Annotated[bool, Parameter(help="Publish identical records once, with a count.")] = False,
    dry_run: Annotated[bool, Parameter(help="Read, estimate time and memory, and stop.")] = False,
    resume: Annotated[
        bool, Parameter(help="Keep finished parts if interrupted; continue from parts that are already finished.")
    ] = False,
    settings: MethodSettings = MethodSettings(),  # noqa: B008  frozen
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Make, verify and publish a release."""
    if len(paths) < 2:
        raise SettingsError("name at least one INPUT and, last, the OUTPUT: shoal anonymize events.csv release.parquet")
    with working(running) as run:
        done = publish(
            list(paths[:-1]),
            paths[-1],
            make_method(method, given(settings)),
            audit=audit,
            run_record=run_record,
            ledger=ledger,
            allow_overlap=allow_overlap,
            overwrite=overwrite,
            geo=geo,
            compact=compact,
            seed=seed,
            dry_run=dry_run,
            resume=resume,
            options=read_options_of(reading),
            run=run,
        )
    if running.json:
        show_json(done.to_dict())
        return 0
    for note in done.account.notes:
        show(f"note: {note}")
    show_table("Read", done.account.table())
    if done.release is None:
        show_table("Would take about", done.estimate.table())
        return 0
    show_table("Published", done.table())
    for message in done.overlap.messages() if done.overlap else ():
        show(message)
    for note in done.notes:
        show(f"note: {note}")
    claim = done.release.claim
    said = f"Verified: {claim}" if claim.name != "none" else f"Verified, but nothing is promised: the claim is {claim}"
    show(f"{said}. {paths[-1].name} and its manifest are written.")
    return 0
