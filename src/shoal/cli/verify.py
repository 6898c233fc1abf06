"""`shoal verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_json, show_table, working
from shoal.cli.options import Reading, Running
from shoal.errors import SettingsError
from shoal.verifier import MAX_SUPPRESSED
from shoal.verifier import verify as check

__all__ = ["verify"]


def verify(
    *paths: Annotated[Path, Parameter(help="ORIGINAL... RELEASE: what the release was made of; last, the release.")],
    k: Annotated[int | None, Parameter(help="Everyone must be hidden among k; by default as claimed.")] = None,
    audit: Annotated[Path | None, Parameter(help="The private audit file: faster, and checks more.")] = None,
    exact: Annotated[bool, Parameter(help="Count all covering records, not only up to k.")] = False,
    max_suppressed: Annotated[float, Parameter(help="Largest share of samples that may be left out.")] = MAX_SUPPRESSED,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Check a release; 0 holds, 1 does not, 2 (raised) could not be checked."""
    if len(paths) < 2:
        raise SettingsError("name the ORIGINAL and, last, the RELEASE: shoal verify events.csv release.parquet --k 5")
    with working(quiet=running.quiet or running.json) as progress:
        verdict = check(
            [str(path) for path in paths[:-1]],
            paths[-1],
            k=k,
            audit=audit,
            options=reading.options(),
            exact=exact,
            max_suppressed=max_suppressed,
            threads=running.threads,
            memory=running.memory_bytes,
            work_dir=running.work_dir,
            progress=progress,
        )
    if running.json:
        show_json(verdict.to_dict())
    else:
        show(f"{'Holds' if verdict.ok else 'DOES NOT HOLD'}: {verdict.claim}")
        for message in verdict.messages:
            show(f"  {message}")
        show_table("Figures", list(verdict.figures.items()))
    return 0 if verdict.ok else 1
