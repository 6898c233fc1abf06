"""`shoal anonymize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_account, show_json, show_table, working
from shoal.cli.options import DEFAULT, MethodSettings, Reading, Running, given, read_options_of
from shoal.cli.sign import key_in
from shoal.errors import SettingsError
from shoal.stores.addresses import shown

__all__ = ["anonymize"]


def anonymize(
    *paths: Annotated[
        str, Parameter(help="The files, folders, globs or addresses to read; last, the release to write.")
    ],
    method: Annotated[
        str, Parameter(help="The method that hides people; the command shoal methods lists them.")
    ] = DEFAULT,
    settings: MethodSettings = MethodSettings(),  # noqa: B008  frozen
    audit: Annotated[Path | None, Parameter(help="Write a private file that says who is in which record.")] = None,
    run_record: Annotated[
        Path | None,
        Parameter(
            help="Write a private file with settings, exact counts and dropped rows; by default OUTPUT.run.json beside "
            "the audit file, if there is one."
        ),
    ] = None,
    ledger: Annotated[
        Path | None, Parameter(help="Private file that remembers who was published; releasing them again is refused.")
    ] = None,
    allow_overlap: Annotated[
        bool, Parameter(help="With --ledger: publish them again all the same, and print how well they stay hidden.")
    ] = False,
    seed: Annotated[
        int | None,
        Parameter(help="Make random draws repeatable, for research. Only k-anonymity is still claimed then."),
    ] = None,
    overwrite: Annotated[bool, Parameter(help="Replace files that exist already.")] = False,
    geo: Annotated[
        bool,
        Parameter(
            help="Add a column with the boxes as WGS84 polygons, or the points, for GeoPandas and QGIS (GeoParquet)."
        ),
    ] = False,
    compact: Annotated[bool, Parameter(help="Write identical records once, with a count.")] = False,
    sign: Annotated[
        Path | None, Parameter(help="Sign the manifest with this private key, a PEM file (Ed25519).")
    ] = None,
    dry_run: Annotated[bool, Parameter(help="Only read the input and estimate time and memory.")] = False,
    resume: Annotated[
        bool, Parameter(help="Keep finished work if the run is interrupted, and continue from it next time.")
    ] = False,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Make, verify and publish a release."""
    from shoal.methods import make_method
    from shoal.pipeline import publish

    if len(paths) < 2:
        raise SettingsError("name at least one INPUT and, last, the OUTPUT: shoal anonymize events.csv release.parquet")
    key = None if sign is None else key_in(sign)  # before bars are drawn: it may ask for a passphrase
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
            sign=key,
            seed=seed,
            dry_run=dry_run,
            resume=resume,
            options=read_options_of(reading),
            run=run,
        )
    if running.json:
        show_json(done.to_dict())
        return 0
    show_account(done.account)
    if done.release is None:
        show_table("Would take about", done.estimate.table())
        return 0
    show_table("Published", done.table())
    for sentence in done.judgement:
        show(f"note: {sentence}")
    for message in done.overlap.messages() if done.overlap else ():
        show(message)
    for note in done.notes:
        show(f"note: {note}")
    claim = done.release.claim
    said = f"Verified: {claim}" if claim.name != "none" else f"Checked, but nothing is promised: the claim is {claim}"
    show(f"{said}. {shown(paths[-1])} and its manifest are written.")
    if audit is not None:
        show("The audit file and the run record beside it are private: they say who is in which record.")
    return 0
