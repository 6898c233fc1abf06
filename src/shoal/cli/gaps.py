"""The k-gaps of `shoal measure`: measure, save, draw and explain them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.cli.console import show, show_table
from shoal.errors import SettingsError
from shoal.folders import refuse_existing
from shoal.measure.correlates import correlations, properties
from shoal.measure.kgap import k_gap
from shoal.measure.plots import PLOTS, plots
from shoal.measure.sweep import sweep
from shoal.measure.tails import tails
from shoal.measure.unicity import resolution_text
from shoal.tables import save_file, save_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from shoal.measure.kgap import Gaps
    from shoal.measure.sweep import Level
    from shoal.measure.tails import Tails
    from shoal.run import Run
    from shoal.trajectories import Trajectories

__all__ = ["Exposure", "find_gaps", "refuse_plots", "save_gaps", "save_plots", "show_gaps"]

_DRAWN = 1000  # people whose k-gap is measured again at each level of the sweep, for the picture
_WORDS = {
    "gyration_km": "radius of gyration",
    "neighbours": "people around",
    "travelled_km": "distance travelled",
    "irregularity_min": "irregularity of sampling",
    "samples_per_hour": "samples an hour",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Exposure:
    """The measurements of how hard people are to hide."""

    gaps: Gaps
    tails: Tails
    levels: Sequence[Level]
    correlations: dict[str, dict[str, float | None]]

    def by_k(self) -> list[dict[str, Any]]:
        """Return a row of figures for each k."""
        return [_figures(self.gaps, column) for column in range(len(self.gaps.k))]

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary that `--json` prints: aggregates only."""
        return {
            "k_gap": self.by_k(),
            "tails": self.tails.to_dict(),
            "generalization": [level.to_dict() for level in self.levels],
            "correlations": self.correlations,
            "pairs_computed": self.gaps.begun,
        }


def find_gaps(
    people: Trajectories, k: Sequence[int], *, sample: int | None, seed: int, draw: bool, run: Run
) -> Exposure:
    """Measure k-gaps for each k and, for the smallest k, what explains them."""
    gaps = k_gap(people, k, sample=sample, seed=seed, run=run)
    drawn = min(_DRAWN, len(gaps.users)) if draw else 0
    few = len(gaps.users) < 2
    return Exposure(
        gaps=gaps,
        tails=tails(gaps, run=run),
        levels=sweep(people, k=min(k), sample=drawn, seed=seed, run=run),
        correlations={} if few else correlations(properties(people, gaps.users, run=run), _least(gaps)),
    )


def refuse_plots(folder: Path, *, overwrite: bool) -> None:
    """Check, before any work, that the pictures can be saved there; raises otherwise."""
    if folder.exists() and not folder.is_dir():
        raise SettingsError("--plots takes a folder, and there is a file of that name")
    if folder.is_dir():
        refuse_existing([folder / name for name in PLOTS], overwrite=overwrite)
    else:
        refuse_existing([folder], overwrite=overwrite)


def save_plots(found: Exposure, folder: Path, *, overwrite: bool) -> None:
    """Draw the pictures into a folder."""
    folder.mkdir(exist_ok=True)
    for name, text in plots(found.gaps, found.tails, found.levels).items():
        save_file(text.encode(), folder / name, overwrite=overwrite)


def save_gaps(found: Exposure, path: Path, *, overwrite: bool) -> None:
    """Save everybody's k-gaps (uid, k, gap, space, time) in a private file, because it names people."""
    save_table(found.gaps.table(), path, overwrite=overwrite)


def show_gaps(found: Exposure) -> None:
    """Print the figures and what they mean."""
    gaps = found.gaps
    show(f"How hard people are to hide among k: k-gaps of {len(gaps.users):,} of {len(gaps.people):,} people")
    show("(0: hidden already; 1: nothing in common. One person in ten is below the 10 % figure, one above the 90 %.)")
    show(f"{'k':>6}  {'10 %':>6}  {'median':>6}  {'mean':>6}  {'90 %':>6}  {'hidden':>7}  stretched on average by")
    for row in found.by_k():
        figures = "  ".join(f"{row[name]:6.3f}" for name in ("tenth", "median", "mean", "nine_tenths"))
        by = f"{row['space_km']:.2f} km and {row['time_min']:.0f} min"
        show(f"{row['k']:>6}  {figures}  {row['hidden']:7.1%}  {by}")
    show()
    _show_why(found.tails.to_dict())
    show()
    levels = [(resolution_text(level.space_m, level.time_s), f"{level.share:.1%}") for level in found.levels]
    if levels:
        show_table(f"Hidden among {found.levels[0].k} if everybody's data is made coarser to", levels)
        show()
    related = [(_WORDS[name], _of(one["pearson"])) for name, one in found.correlations.items()]
    if related:
        show_table(f"What goes with a large k-gap (k = {min(gaps.k)}; correlation, from -1 to 1)", related)
        show()
    for line in _meaning(found):
        show(line)


def _show_why(why: dict[str, Any]) -> None:
    rows = [
        ("time costs more than space for", _percent(why["time_dominates"])),
        ("time is 80 % of the k-gap or more for", _percent(why["time_four_fifths"])),
        ("heavy tail in time (a few samples cost far more) for", _percent(why["tail_heavy"]["time"])),
        ("heavy tail in space (a few samples cost far more) for", _percent(why["tail_heavy"]["space"])),
        ("unevenness over samples in time (Gini), median", _of(why["gini_median"]["time"])),
        ("unevenness over samples in space (Gini), median", _of(why["gini_median"]["space"])),
    ]
    show_table(f"Why (k = {why['k']}; samples of {why['people']:,} people)", rows)
    unknown = why["tail_unknown"]
    if unknown["time"] or unknown["space"]:
        show(f"  the tail can't be computed for {unknown['time']:,} (time) and {unknown['space']:,} (space) of them")


def _figures(gaps: Gaps, column: int) -> dict[str, Any]:
    """Return the distribution of gaps for one k, and the mean stretch in kilometres and minutes."""
    gap, terms = gaps.gap[:, column], gaps.stretch
    tenth, median, nine_tenths = np.quantile(gap, [0.1, 0.5, 0.9], method="inverted_cdf").tolist()
    space = float(gaps.space[:, column].mean()) / terms.space_weight * terms.space_max_m / 1000
    time = float(gaps.time[:, column].mean()) / (1 - terms.space_weight) * terms.time_max_s / 60
    return {
        "k": gaps.k[column],
        "people": len(gap),
        "tenth": tenth,
        "median": median,
        "mean": float(gap.mean()),
        "nine_tenths": nine_tenths,
        "hidden": float((gap == 0).mean()),
        "space_km": space,
        "time_min": time,
    }


def _meaning(found: Exposure) -> list[str]:
    """Return sentences on what the figures mean for publishing."""
    least = min(found.by_k(), key=lambda row: int(row["k"]))
    k, hidden = least["k"], least["hidden"]
    others = "one other person" if k == 2 else f"{k - 1} others"
    if hidden == 0:
        first = f"In the data as it is, nobody looks the same as {others}: replacing names hides nobody among {k}."
    else:
        first = f"In the data as it is, {hidden:.1%} of the people look the same as {others}; nothing hides the rest."
    by = f"{least['space_km']:.2f} km and {least['time_min']:.0f} min"
    lines = [
        first,
        f"To look like {others}, a person's samples must be stretched by {by} on average.",
        "This is an average. A person is hidden only if all their samples are, so the hardest samples decide the cost.",
    ]
    if found.levels:
        coarse = found.levels[-1]
        lines.append(
            f"If everybody's data is made coarser, even to {resolution_text(coarse.space_m, coarse.time_s)}, this "
            f"hides {coarse.share:.1%} among {k}."
        )
    lines += [
        "A small k-gap means that a precise release is possible. It does not mean that the data is safe as it is.",
        "Publish a release in which everyone is hidden: shoal anonymize INPUT release.parquet --k 5",
    ]
    return lines


def _least(gaps: Gaps) -> Any:
    return gaps.gap[:, gaps.k.index(min(gaps.k))]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _of(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}"
