"""Plots of k-gaps: their distribution, how they grow with k, their causes, and the effect of coarser grids.

Curves go through at most 200 points of a distribution: no person's own figures are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.measure.chart import ChartAxis, Curve, chart
from shoal.measure.tails import EXPONENTIAL
from shoal.measure.unicity import resolution_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from shoal.measure.kgap import Gaps
    from shoal.measure.sweep import Level
    from shoal.measure.tails import Tails

__all__ = ["PLOTS", "plot_by_k", "plot_gaps", "plot_sweep", "plot_tails", "plot_time_share", "plots"]

PLOTS = ("k-gap.svg", "k-gap-by-k.svg", "tails.svg", "time-share.svg", "sweep.svg")
_POINTS = 200
_PEOPLE = ChartAxis(label="share of people", low=0, high=1, percent=True)
_GAP = "k-gap (0: hidden already, 1: nothing alike)"


def plots(gaps: Gaps, of_tails: Tails, levels: Sequence[Level]) -> dict[str, str]:
    """Draw all plots that can be drawn; return SVG texts by file name.

    >>> import shoal
    >>> from shoal.measure import sweep, tails
    >>> people = shoal.from_arrow(shoal.synthesize(users=40, days=3, seed=1))
    >>> gaps = shoal.k_gap(people, [2, 5])
    >>> tuple(plots(gaps, tails(gaps), sweep(people, levels=[(5000, 7200)], sample=10))) == PLOTS
    True
    """
    drawn = (plot_gaps(gaps), plot_by_k(gaps), plot_tails(of_tails), plot_time_share(of_tails), plot_sweep(levels))
    return dict(zip(PLOTS, drawn, strict=True))


def plot_gaps(gaps: Gaps) -> str:
    """Draw the distribution of the k-gap for each k (GLOVE, Fig. 6)."""
    curves = [_distribution(f"k = {k}", gaps.gap[:, column]) for column, k in enumerate(gaps.k)]
    return chart("How hard people are to hide among k", curves, ChartAxis(label=_GAP, low=0), _PEOPLE)


def plot_by_k(gaps: Gaps) -> str:
    """Draw how the k-gap grows with k (GLOVE, Fig. 7): mean, median and quartiles for every k up to the largest."""
    among = list(range(2, gaps.near.shape[1] + 2))
    every = np.cumsum(gaps.effort, axis=1) / np.arange(1, len(among) + 1)
    low, middle, high = np.quantile(every, [0.25, 0.5, 0.75], axis=0).tolist()
    curves = [
        Curve(name="mean", x=among, y=every.mean(axis=0).tolist()),
        Curve(name="median", x=among, y=middle),
        Curve(name="a quarter is above", x=among, y=high, line="dashed", colour=2),
        Curve(name="a quarter is below", x=among, y=low, line="dotted", colour=2),
    ]
    return chart("The k-gap for larger k", curves, ChartAxis(label="k"), ChartAxis(label="k-gap", low=0))


def plot_tails(of: Tails) -> str:
    """Draw the distribution of the tail weight of sample efforts (GLOVE, Fig. 9a)."""
    names = ("effort", "its part of space", "its part of time")
    curves = []
    for column, name in enumerate(names):
        known = of.tail[~np.isnan(of.tail[:, column]), column]
        curves.append(_distribution(name, known, colour=(6, 0, 1)[column]))
    curves.append(Curve(name="exponential", x=[EXPONENTIAL, EXPONENTIAL], y=[0, 1], line="dotted", colour=2))
    weight = ChartAxis(label="tail weight index of a person's sample efforts", low=0.1, log=True)
    return chart(f"Few samples make people hard to hide (k = {of.k})", curves, weight, _PEOPLE)


def plot_time_share(of: Tails) -> str:
    """Draw how much of people's effort is in time (GLOVE, Fig. 9c, as a share)."""
    share = 1 / (1 + 1 / of.ratio[of.ratio > 0])
    share = np.concatenate([share, np.zeros(int((of.ratio == 0).sum()))])
    part = ChartAxis(label="part of time in the effort", low=0, high=1, percent=True)
    return chart(f"When is harder to hide than where (k = {of.k})", [_distribution("people", share)], part, _PEOPLE)


def plot_sweep(levels: Sequence[Level]) -> str:
    """Draw the distribution of the k-gap on coarser and coarser grids (GLOVE, Fig. 8)."""
    curves = [_distribution(resolution_text(level.space_m, level.time_s), level.gap) for level in levels]
    among = f" (k = {levels[0].k})" if levels else ""
    return chart(f"Blurring everything alike{among}", curves, ChartAxis(label=_GAP, low=0), _PEOPLE)


def _distribution(name: str, values: NDArray[np.float64], *, colour: int | None = None) -> Curve:
    """Return the distribution function of values, through points of equal share."""
    if len(values) == 0:
        return Curve(name=name, x=[], y=[], colour=colour)
    share = np.linspace(0, 1, min(_POINTS, len(values)) + 1)
    x = np.quantile(values, share, method="inverted_cdf")
    return Curve(name=name, x=x.tolist(), y=share.tolist(), colour=colour)
