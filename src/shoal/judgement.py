"""Judgement: say in words how much use a release is, and what to try if that is little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.layouts import Boxes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shoal.methods import Method
    from shoal.release import Release

__all__ = ["judged"]

_LONG_S, _WIDE_M = 24 * 3600, 50_000  # half of the boxes beyond this: too coarse for most uses
_TOWN_M = 15_000  # half of the boxes beyond this: too coarse within a town
_HUGE_M = 200_000  # a tenth of the boxes beyond this: strays, or people who have nothing in common
_MANY = 0.2  # a larger share of people, or traces, left out is much


def judged(release: Release, method: Method) -> tuple[str, ...]:
    """Return what a publisher should know before using a release, and what to try; settings are in backticks.

    Nothing is said about a release that is as precise and complete as most uses need.
    """
    return (*_left_out(release, method), *(_coarse(release, method) if isinstance(release.layout, Boxes) else ()))


def _left_out(release: Release, method: Method) -> Iterator[str]:
    people, left = release.members.people if release.members else None, release.people_left_out
    if people is None or not left:
        return
    everybody = len(people.labels)
    much = left > _MANY * everybody
    advice = f" That is much: {method.less_loss}." if much and method.among is not None else ""
    yield f"{left:,} of {everybody:,} people are left out of the release.{advice}"


def _coarse(release: Release, method: Method) -> Iterator[str]:
    if not len(release.layout):
        return
    sides, lasts = release.spans()
    ways = _ways(method)
    half_s, half_m, tenth_m = np.median(lasts), np.median(sides), np.quantile(sides, 0.9)
    if half_s > _LONG_S:
        yield f"Half of the boxes last {_days(float(half_s))} or longer: too coarse for most uses. Try {ways}."
    if half_m > _WIDE_M:
        yield f"Half of the boxes are {half_m / 1000:,.0f} km wide or wider: too coarse for most uses. Try {ways}."
    elif half_m > _TOWN_M:
        yield (
            f"Half of the boxes are {half_m / 1000:,.0f} km wide or wider: good for regions, too coarse within a town. "
            f"For smaller ones, try {ways}."
        )
    elif tenth_m > _HUGE_M:
        yield (
            f"One box in ten is {tenth_m / 1000:,.0f} km wide or wider. A few places far from the rest may be why "
            f"(shoal inspect says so). Try a smaller `bbox`, or {ways}."
        )


def _ways(method: Method) -> str:
    """Return what makes boxes smaller, as far as the method can."""
    ways = ["a shorter `period`"]
    if method.among is not None and method.among > 2:
        ways.append(f"`k={_less(method.among)}`")
    if "max_span" in type(method).model_fields and getattr(method, "max_span", None) is None:
        ways.append('limits beyond which samples are left out (`max_span="15km"`, `max_duration="6h"`)')
    return f"{', '.join(ways[:-1])} or {ways[-1]}" if len(ways) > 1 else ways[0]


def _less(k: int) -> int:
    return 3 if k > 3 else 2


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:,.0f} days" if seconds >= 2 * 86_400 else f"{seconds / 3600:.0f} hours"
