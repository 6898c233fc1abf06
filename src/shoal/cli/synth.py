"""`shoal synth`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from shoal.cli.console import show, show_json, working
from shoal.cli.options import Running

__all__ = ["synth"]


def synth(
    output: Annotated[Path, Parameter(help="The file to write: .parquet, .csv or .csv.gz.")],
    /,
    *,
    users: Annotated[int, Parameter(help="How many people to generate.")] = 10_000,
    kind: Annotated[Literal["cdr", "gps"], Parameter(help="cdr: call records at antennas. gps: GPS fixes.")] = "cdr",
    scene: Annotated[
        Literal["town", "nation"], Parameter(help="Where the people live: in one town, or in a nation of many towns.")
    ] = "nation",
    days: Annotated[int, Parameter(help="How many days of data.")] = 14,
    samples: Annotated[
        float | None, Parameter(help="cdr: mean number of calls per person; by default 144 in 14 days.")
    ] = None,
    start: Annotated[str, Parameter(help="The first day, as YYYY-MM-DD.")] = "2026-01-05",
    seed: Annotated[int, Parameter(help="The same seed gives the same people.")] = 0,
    overwrite: Annotated[bool, Parameter(help="Replace an existing file.")] = False,
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Generate people and write their events."""
    from shoal.synth import synthesize

    with working(running) as run:
        synthesize(
            output,
            users=users,
            kind=kind,
            scene=scene,
            days=days,
            samples=samples,
            start=start,
            seed=seed,
            overwrite=overwrite,
            run=run,
        )
    if running.json:
        show_json({"ok": True, "users": users, "kind": kind, "days": days, "seed": seed})
    else:
        show(f"{users:,} people over {days} days are in {output.name}")
    return 0
