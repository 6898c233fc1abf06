"""`shoal anonymize`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_json, show_table, working
from shoal.cli.options import Reading, Running
from shoal.errors import SettingsError
from shoal.methods import DEFAULT
from shoal.pipeline import Outputs, publish

__all__ = ["anonymize"]


def anonymize(
    *paths: Annotated[Path, Parameter(help="INPUT... OUTPUT: files, folders or globs to read; last, the release.")],
    method: Annotated[str, Parameter(help="How to hide people.")] = DEFAULT,
    k: Annotated[int | None, Parameter(help="Hide everyone among at least k; else 2.")] = None,
    effort: Annotated[str | None, Parameter(help="shoal: quick, normal or thorough; else normal.")] = None,
    max_span: Annotated[
        str | None, Parameter(help="shoal, glove: leave out what needs wider boxes, e.g. 15km.")
    ] = None,
    max_duration: Annotated[
        str | None, Parameter(help="shoal, glove: leave out what needs longer boxes, e.g. 6h.")
    ] = None,
    constraint: Annotated[str | None, Parameter(help="k-scale: nu-k-pick, k-pick or full.")] = None,
    candidates: Annotated[int | None, Parameter(help="k-scale, k-concealment: nearest users looked at; 100·k.")] = None,
    picking: Annotated[str | None, Parameter(help="k-scale: cost (the paper's) or marginal (better).")] = None,
    max_members: Annotated[int | None, Parameter(help="k-scale: most people in a record beside its owner.")] = None,
    variant: Annotated[str | None, Parameter(help="glove: strict (groups stop at k) or loose; else strict.")] = None,
    merge: Annotated[str | None, Parameter(help="glove: k-merge or two-stage (the paper's); else k-merge.")] = None,
    step: Annotated[str | None, Parameter(help="promesse: distance between points; else 200m.")] = None,
    tau: Annotated[str | None, Parameter(help="kte-hide: how long a person may have been followed; 30min.")] = None,
    epsilon: Annotated[
        str | None,
        Parameter(
            help="kte-hide: how much more may be learned, tau is a multiple of it; 30min. "
            "geo-indistinguishability: of a point, per metre, e.g. 0.01 or ln(4)/200."
        ),
    ] = None,
    reuse: Annotated[str | None, Parameter(help="kte-hide: half or strict (the paper's); else half.")] = None,
    clusters: Annotated[str | None, Parameter(help="kte-hide: none or spectral (the paper's); else none.")] = None,
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
    resume: Annotated[bool, Parameter(help="Keep finished parts if interrupted; go on from those there are.")] = False,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Make, verify and publish a release."""
    if len(paths) < 2:
        raise SettingsError("name at least one INPUT and, last, the OUTPUT: shoal anonymize events.csv release.parquet")
    chosen = {
        "k": k,
        "effort": effort,
        "max_span_m": max_span,
        "max_duration_s": max_duration,
        "constraint": constraint,
        "candidates": candidates,
        "picking": picking,
        "max_members": max_members,
        "variant": variant,
        "merge": merge,
        "step_m": step,
        "epsilon": epsilon,
        "tau": tau,
        "reuse": reuse,
        "clusters": clusters,
    }
    outputs = Outputs(
        paths[-1],
        audit=audit,
        run_record=run_record,
        ledger=ledger,
        allow_overlap=allow_overlap,
        overwrite=overwrite,
        geo=geo,
        compact=compact,
    )
    with working(running) as run:
        done = publish(
            [str(path) for path in paths[:-1]],
            outputs,
            method=method,
            parameters={name: value for name, value in chosen.items() if value is not None},
            options=reading.options(),
            seed=seed,
            dry_run=dry_run,
            resume=resume,
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
