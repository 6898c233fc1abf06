"""Check by statistical tests that points have the claimed noise, from the places before and after.

Under the claim the distances are those of planar Laplace noise, all directions are alike, and no point's noise tells
about the next one's. Each test rejects true noise less often than once in a million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import CannotCheck
from shoal.lists import offsets_of
from shoal.seen.arrays import spread
from shoal.seen.fixes import rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.claim import Claim
    from shoal.seen.findings import Findings
    from shoal.seen.fixes import OriginalFixes
    from shoal.seen.point_scan import PointScan
    from shoal.seen.track import Track

__all__ = ["check_noise", "check_times", "compare_with_laplace"]

_TRIED = 200_000  # points that are tested, and as many that follow them
_FEW = 1_000
_KOLMOGOROV = 2.9  # of sqrt(n)·D: exceeded with probability 10^-7
_SIGMAS = 5.5
_LEAST_P = 1e-7
# Where no noise was put: at the place, which at most one whole metre is (with a fifth for the CRS), and beside it.
_AT_M, _ROOMY, _BESIDE_M = 0.25, 1.2, 3.0
_SNAPPED = 0.25  # how much of ε² the distribution function may be off because places are whole metres


def check_times(
    findings: Findings, scan: PointScan, owners: NDArray[np.int64], fixes: OriginalFixes
) -> NDArray[np.int64] | None:
    """Check that every point stands for a fix of its owner, at its time; return these fixes, None if not so."""
    there, (ms, _, _) = _kept(fixes, scan)
    starts = rows_of(there, owners, scan.edges[0])
    whole = starts + scan.counts <= there.offsets[owners + 1]
    if not whole.all():
        findings.fail("truth/too-many-points", n=int((~whole).sum()))
        return None
    record = spread(scan.counts)
    rows = np.arange(len(record)) + (starts - offsets_of(scan.counts)[:-1])[record]
    moved = int((there.ms[rows] != ms).sum())
    findings.fail_if(moved, "truth/no-fix-then")
    twice = len(rows) - len(np.unique(rows))
    findings.fail_if(twice, "truth/fix-repeated")
    return None if moved or twice else rows


def _kept(fixes: OriginalFixes, scan: PointScan) -> tuple[Track, tuple[NDArray[Any], ...]]:
    if fixes.columns is None or scan.columns is None:
        raise CannotCheck("points and fixes must be kept to compare them")
    return fixes.columns, scan.columns


def check_noise(
    findings: Findings,
    scan: PointScan,
    owners: NDArray[np.int64],
    fixes: OriginalFixes,
    rows: NDArray[np.int64],
    claim: Claim,
) -> None:
    """Check the claim `geo-indistinguishability` on points and the fixes (`rows`) they stand for."""
    findings.ran("noise")
    epsilon = float(claim.epsilon_per_m or 0)
    most = int(np.bincount(owners, weights=scan.counts).max())
    total = claim.total_per_m
    findings.fail_if(total is not None and total < epsilon * most * (1 - 1e-9), "noise/total")
    there, (_, lng, lat) = _kept(fixes, scan)
    record = spread(scan.counts)
    here = _some(len(record))
    follows = here[:-1][(np.diff(here) > 0) & (here[:-1] + 1 < len(record))]
    follows = follows[record[follows] == record[np.minimum(follows + 1, len(record) - 1)]]
    places = (there.lng, there.lat, lng, lat)
    first = _shift(places, rows, here)
    pair = _shift(places, rows, follows), _shift(places, rows, follows + 1)
    findings.figures.update(compare_with_laplace(findings, epsilon, first, pair))


def compare_with_laplace(
    findings: Findings,
    epsilon: float,
    shift: tuple[NDArray[np.float64], NDArray[np.float64]],
    pair: tuple[tuple[NDArray[np.float64], NDArray[np.float64]], ...],
) -> dict[str, Any]:
    """Compare shifts (angle, metres), and pairs of successive ones, with noise of `epsilon`; return figures.

    A few places without noise do not show in the distribution. So points at their true places are counted, too.
    """
    from scipy.special import bdtrc

    angle, metres = shift
    n = len(metres)
    if n < _FEW:
        findings.note("few-points", n=n, few=_FEW)
    u = np.sort(_distribution(epsilon * metres))
    steps = np.arange(n + 1) / n
    gap = float(max(np.max(steps[1:] - u, initial=0), np.max(u - steps[:-1], initial=0)))
    findings.fail_if(gap > _KOLMOGOROV / np.sqrt(n) + _SNAPPED * epsilon**2, "noise/distances")
    kept = sum(
        bdtrc(here - 1, n, min(1.0, chance)) < _LEAST_P
        for here, chance in (
            (int((metres <= _AT_M).sum()), _ROOMY * epsilon**2 / (2 * np.pi)),
            (int((metres <= _BESIDE_M).sum()), float(_distribution(np.float64(epsilon * (_BESIDE_M + 1))))),
        )
        if here
    )
    findings.fail_if(kept, "noise/true-places")
    uneven = max(float(np.hypot(np.cos(h * angle).mean(), np.sin(h * angle).mean())) for h in (1, 2))
    findings.fail_if(uneven * np.sqrt(2 * n) > _SIGMAS + 1, "noise/direction")
    (before, near), (after, far) = pair
    m = len(near)
    if m > 1:
        turn = abs(float(np.cos(after - before).mean())) * np.sqrt(2 * m)
        ranks = [_distribution(epsilon * some) - 0.5 for some in (near, far)]
        alike = abs(float((ranks[0] * ranks[1]).mean())) * 12 * np.sqrt(m)
        findings.fail_if(max(turn, alike) > _SIGMAS, "noise/dependent")
    return {"noise_points": n, "noise_mean_m": float(metres.mean()), "noise_claimed_mean_m": 2 / epsilon}


def _distribution(s: Any) -> Any:
    """Return the share of planar Laplace noise within s/ε."""
    return 1 - (1 + s) * np.exp(-s)


def _some(count: int) -> NDArray[np.int64]:
    """Draw the points to test; return them ascending."""
    if count <= _TRIED:
        return np.arange(count)
    return np.sort(np.random.default_rng(count).choice(count, _TRIED, replace=False))


def _shift(
    places: tuple[NDArray[np.float64], ...], rows: NDArray[np.int64], points: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the direction and the distance from fixes to their points, along the geodesic."""
    from pyproj import Geod

    lng, lat, to_lng, to_lat = places
    fix = rows[points]
    angle, _, metres = Geod(ellps="WGS84").inv(lng[fix], lat[fix], to_lng[points], to_lat[points])
    return np.radians(angle), np.asarray(metres)
