"""`shoal measure`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_json, working
from shoal.cli.options import Reading, Running, whole_numbers
from shoal.errors import SettingsError
from shoal.io import read
from shoal.io.tables import refuse_table, save_rows
from shoal.measure import Unicity
from shoal.measure import unicity as count_unique
from shoal.measure.unicity import resolution_text
from shoal.units import parse_metres, parse_seconds

if TYPE_CHECKING:
    from shoal.frame import Frame
    from shoal.measure.unicity import Resolution

__all__ = ["measure"]

_NATIVE = "native"


def measure(
    *paths: Annotated[Path, Parameter(help="INPUT...: files, folders or globs to read.")],
    unicity: Annotated[bool, Parameter(help="How many people are unique from a few points known of them.")] = False,
    points: Annotated[
        str, Parameter(help="How many points are known: one or several numbers.")
    ] = "1,2,3,4,5,6,7,8,9,10",
    resolution: Annotated[
        str, Parameter(help="How exactly they are known: length/duration, several with commas; native is the grid.")
    ] = "native,1km/1h",
    sample: Annotated[int, Parameter(help="How many people to look at, drawn at random.")] = 1000,
    seed: Annotated[int, Parameter(help="Of all draws: the same seed, the same figures.")] = 0,
    output: Annotated[Path | None, Parameter(help="Save the table: .csv, .json or .parquet.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace an existing table.")] = False,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Measure how exposed people are before publishing."""
    if not paths:
        raise SettingsError("name a file: shoal measure events.parquet --unicity")
    if not unicity:
        raise SettingsError("say what to measure: --unicity (how many people are unique from a few points)")
    known, resolutions = whole_numbers(points, "--points 1,2,4"), _resolutions(resolution)
    if output is not None:
        refuse_table(output, [str(path) for path in paths], overwrite=overwrite)
    with working(quiet=running.quiet or running.json) as progress:
        people = read(
            [str(path) for path in paths],
            options=reading.options(),
            threads=running.threads,
            memory=running.memory_bytes,
            work_dir=running.work_dir,
            progress=progress,
        )
        rows = count_unique(
            people,
            points=known,
            resolutions=[one or _grid(people.frame) for one in resolutions],
            sample=sample,
            seed=seed,
            threads=running.threads,
            progress=progress,
        )
    if output is not None:
        save_rows([row.to_dict() for row in rows], output, overwrite=overwrite)
    if running.json:
        show_json({"ok": True, "users": len(people), "unicity": [row.to_dict() for row in rows]})
        return 0
    for note in people.account.notes if people.account else ():
        show(f"note: {note}")
    _show_unicity(rows, len(people))
    return 0


def _resolutions(text: str) -> list[Resolution | None]:
    """Read resolutions; None stands for the grid's own."""
    found: list[Resolution | None] = []
    for part in (part.strip() for part in text.split(",")):
        space, slash, time = part.partition("/")
        if part == _NATIVE:
            found.append(None)
        elif slash:
            found.append((parse_metres(space), parse_seconds(time)))
        else:
            raise SettingsError("--resolution takes length/duration pairs: --resolution native,1km/1h,100m/1min")
    return found


def _grid(frame: Frame) -> Resolution:
    return frame.cell_m, frame.slot_s


def _show_unicity(rows: tuple[Unicity, ...], users: int) -> None:
    """Write a line for each number of points, a column for each resolution, and what it means."""
    resolutions = list(dict.fromkeys((row.space_m, row.time_s) for row in rows))
    cell = {(row.points, row.space_m, row.time_s): row for row in rows}
    show(f"People whom nobody else looks like, of {rows[0].people:,} drawn from {users:,} (95 % interval)")
    show("  ".join(["points", *(f"{resolution_text(*one):>24}" for one in resolutions)]))
    for p in dict.fromkeys(row.points for row in rows):
        figures = (_share(cell[p, *one]) for one in resolutions)
        show("  ".join([f"{p:>6}", *(f"{figure:>24}" for figure in figures)]))
    show()
    for line in _meaning(rows):
        show(line)


def _share(row: Unicity) -> str:
    low, high = row.interval
    return f"{row.share:6.1%} ({low:.1%} – {high:.1%})"


def _meaning(rows: tuple[Unicity, ...]) -> list[str]:
    """Say what the figures mean for publishing."""
    telling = max(rows, key=lambda row: (row.points <= 4, row.points, row.space_m))
    low, high = telling.interval
    points = "one point" if telling.points == 1 else f"{telling.points} points"
    lines = [
        f"Somebody who knows {points} of a person (a place and a time each, to {resolution_text(*_of(telling))}) finds",
        f"{low:.0%} to {high:.0%} of the people in this data, whatever their names are replaced by, and with them",
        "everything else that is recorded of them. Replacing names does not protect these people.",
    ]
    if telling.share < 0.01:
        lines[2] = "everything else that is recorded of them. More points, or more exact ones, may single out more."
    lines.append("Publish a release in which everyone is hidden among k: shoal anonymize INPUT release.parquet --k 5")
    if any(row.fewer for row in rows):
        lines.append("Some people have fewer points than that; they are known by all they have.")
    return lines


def _of(row: Unicity) -> Resolution:
    return row.space_m, row.time_s
