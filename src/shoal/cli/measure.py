"""`shoal measure`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from shoal.cli.console import show, show_json, show_notes, working
from shoal.cli.options import Reading, Running, read_options_of, whole_numbers
from shoal.errors import SettingsError

if TYPE_CHECKING:
    from shoal.cli.gaps import Exposure
    from shoal.frame import Frame
    from shoal.measure import Unicity
    from shoal.measure.unicity import Resolution

__all__ = ["measure"]

_NATIVE = "native"
_SAMPLE = 1000


def measure(
    *paths: Annotated[str, Parameter(help="The files, folders, globs or addresses to read.")],
    k: Annotated[
        str | None, Parameter(help="Measure how hard people are to hide among k people; several k with commas.")
    ] = None,
    unicity: Annotated[
        bool, Parameter(help="Count the people who are unique if a few points of them are known.")
    ] = False,
    points: Annotated[
        str, Parameter(help="--unicity: how many points are known; several numbers with commas.")
    ] = "1,2,3,4,5,6,7,8,9,10",
    resolution: Annotated[
        str,
        Parameter(help="--unicity: how exactly points are known, as length/duration; native is the grid of the data."),
    ] = "native,1km/1h",
    sample: Annotated[
        int | None, Parameter(help="How many people to draw at random; by default all for --k, 1000 for --unicity.")
    ] = None,
    seed: Annotated[int, Parameter(help="Seed of all draws: the same seed gives the same figures.")] = 0,
    output: Annotated[
        Path | None,
        Parameter(help="Save the table: .csv, .json or .parquet. With --k it names people: keep it secret."),
    ] = None,
    plots: Annotated[Path | None, Parameter(help="--k: the folder for pictures of the k-gaps, as SVG files.")] = None,
    overwrite: Annotated[bool, Parameter(help="Replace files that exist already.")] = False,
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Measure how exposed people are before publishing, and how hard they are to hide."""
    from shoal.cli.gaps import find_gaps, show_gaps
    from shoal.measure import unicity as count_unique
    from shoal.reading import read

    inputs = list(paths)
    _refuse(inputs, k, unicity=unicity, output=output, plots=plots, overwrite=overwrite)
    among = None if k is None else whole_numbers(k, "--k 2,5,10")
    known = whole_numbers(points, "--points 1,2,4")
    resolutions = _resolutions(resolution)
    found = None
    with working(running) as run:
        people = read(inputs, options=read_options_of(reading), run=run)
        if among is not None:
            found = find_gaps(people, among, sample=sample, seed=seed, draw=plots is not None, run=run)
        rows: tuple[Unicity, ...] = ()
        if unicity:
            at = [one or _grid(people.frame) for one in resolutions]
            some = _SAMPLE if sample is None else sample
            rows = count_unique(people, points=known, resolutions=at, sample=some, seed=seed, run=run)
    _save(found, rows, output, plots, overwrite=overwrite)
    if running.json:
        figures: dict[str, Any] = {} if found is None else found.to_dict()
        if unicity:
            figures |= {"unicity": [row.to_dict() for row in rows]}
        show_json({"ok": True, "users": len(people), **figures})
        return 0
    show_notes(people.account)
    if found is not None:
        show_gaps(found)
    if found is not None and unicity:
        show()
    if unicity:
        _show_unicity(rows, len(people))
    return 0


def _refuse(
    inputs: list[str], k: str | None, *, unicity: bool, output: Path | None, plots: Path | None, overwrite: bool
) -> None:
    """Check the flags before any work; raises if they make no sense or the output can't be saved."""
    from shoal.cli.gaps import refuse_plots
    from shoal.tables import refuse_table

    if not inputs:
        raise SettingsError("name a file: shoal measure events.parquet --k 2,5")
    if k is None and not unicity:
        raise SettingsError(
            "say what to measure: --k 2,5 (how hard people are to hide), --unicity (who is unique), or both"
        )
    if output is not None and k is not None and unicity:
        raise SettingsError("--output saves one table; measure --k and --unicity one after the other")
    if plots is not None and k is None:
        raise SettingsError("--plots draws k-gaps; say among how many: --k 2,5,10")
    if output is not None:
        refuse_table(output, inputs, overwrite=overwrite)
    if plots is not None:
        refuse_plots(plots, overwrite=overwrite)


def _save(
    found: Exposure | None, rows: tuple[Unicity, ...], output: Path | None, plots: Path | None, *, overwrite: bool
) -> None:
    from shoal.cli.gaps import save_gaps, save_plots
    from shoal.tables import save_rows

    if output is not None and found is not None:
        save_gaps(found, output, overwrite=overwrite)
    elif output is not None:
        save_rows([row.to_dict() for row in rows], output, overwrite=overwrite)
    if plots is not None and found is not None:
        save_plots(found, plots, overwrite=overwrite)


def _resolutions(text: str) -> list[Resolution | None]:
    """Read resolutions; None stands for the grid's own resolution."""
    from shoal.units import parse_metres, parse_seconds

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
    """Print a line for each number of points, a column for each resolution, and what the figures mean."""
    from shoal.measure.unicity import resolution_text

    resolutions = list(dict.fromkeys((row.space_m, row.time_s) for row in rows))
    cell = {(row.points, row.space_m, row.time_s): row for row in rows}
    show(f"The share of unique people among {rows[0].people:,} drawn from {users:,} (95 % interval)")
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
    """Return sentences on what the figures mean for publishing."""
    from shoal.measure.unicity import resolution_text

    telling = max(rows, key=lambda row: (row.points <= 4, row.points, row.space_m))
    low, high = telling.interval
    points = "one point" if telling.points == 1 else f"{telling.points} points"
    lines = [
        f"Somebody who knows {points} of a person (a place and a time each, to {resolution_text(*_of(telling))}) finds",
        f"{low:.0%} to {high:.0%} of the people in this data, even if numbers replace their names. They also learn",
        "everything else that is recorded about these people. Replacing names does not protect them.",
    ]
    if telling.share < 0.01:
        lines[2] = (
            "everything else that is recorded about these people. More points, or more exact ones, may find more."
        )
    lines.append("Publish a release that hides everyone among k people: shoal anonymize INPUT release.parquet --k 5")
    if any(row.fewer for row in rows):
        lines.append("Some people have fewer points than that. For them, all their points are known.")
    return lines


def _of(row: Unicity) -> Resolution:
    return row.space_m, row.time_s
