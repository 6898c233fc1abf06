"""Geo-indistinguishability: publish every fix with planar Laplace noise added to its place."""

from __future__ import annotations

import hashlib
import math
import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from shoal.claim import Claim
from shoal.errors import InputError, SettingsError
from shoal.frame import transformer
from shoal.kernels.noise import LaplaceDraws, shift_places
from shoal.layouts import DECIMALS, Points
from shoal.lists import ranges_of
from shoal.methods.protocol import Estimate, PointMethod
from shoal.methods.registry import register
from shoal.release import Members, Release
from shoal.run import LOCAL, Run
from shoal.settings import setting
from shoal.units import checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from shoal.traces import Traces

__all__ = ["GeoIndistinguishability", "parse_epsilon"]

_FIX_NS, _FIX_BYTES = 900.0, 104  # 24 for the noise, and 80 for checking it
_BLOCK = 1 << 17  # fixes between two checks for Ctrl-C
_DRAW_BYTES = 16  # of a fix: two numbers of 64 bits
_LN = re.compile(r"\s*ln\s*\(\s*(\d{1,9}(?:\.\d{1,9})?)\s*\)\s*/\s*(\d{1,9}(?:\.\d{1,9})?)\s*")


def parse_epsilon(value: Any) -> Any:
    """Read an ε per metre: a number, or text such as `0.01` or, as papers write it, `ln(4)/200`.

    >>> parse_epsilon("ln(4)/200") == math.log(4) / 200
    True
    """
    if not isinstance(value, str):
        return value
    match = _LN.fullmatch(value.lower())
    try:
        return math.log(float(match[1])) / float(match[2]) if match else float(value)
    except (ValueError, ZeroDivisionError):
        raise SettingsError("epsilon is a number per metre, such as 0.01 or ln(4)/200") from None


@register
class GeoIndistinguishability(PointMethod):
    """Publish every fix at a random place around the true one (Andrés et al. 2013); times are not changed.

    Parameters
    ----------
    epsilon
        ε per metre: a published point is at most exp(d·ε) times as likely for one true place as for another d metres
        away. A number, or text such as `"ln(4)/200"`.

    The noise is planar Laplace in the tangent plane of each place. It has a mean length of 2/ε metres and no preferred
    direction, at every latitude. Results are rounded to whole metres of the release's CRS. The random numbers come from
    the operating system. A seed, for research, makes the noise repeatable, and then nothing is claimed.

    Guarantee: `geo-indistinguishability(ε)` for each point. A person loses ε for each of their points; `total_per_m` is
    the loss of the person with the most points.

    Not guaranteed: that places where people stay are hidden. The noise over many fixes averages out.

    Cost: linear, about a microsecond a fix. Memory: 24 bytes a point.

    >>> import shoal
    >>> table = shoal.synthesize(users=5, kind="gps", scene="town", days=1, seed=1)
    >>> GeoIndistinguishability(epsilon="ln(4)/200").anonymize(shoal.read_traces(table), seed=1)
    Release(5 records, ... points, geo-indistinguishability, claim none (research))
    """

    name: ClassVar[str] = "geo-indistinguishability"
    about: ClassVar[str] = "Publish every fix at a random place around the true one (planar Laplace noise)."
    citation: ClassVar[str] = "Andrés et al. 2013, Geo-indistinguishability (a baseline in Promesse, Sec. V)"
    value_setting: ClassVar[str | None] = "epsilon"
    examples: ClassVar[dict[str, Any]] = {"epsilon": "ln(4)/200"}
    noisy: ClassVar[bool] = True

    epsilon: Annotated[float, checked(parse_epsilon)] = setting(
        help="The privacy loss per metre, e.g. 0.01 or ln(4)/200; a smaller one means more noise.",
        public="epsilon_per_m",
        ge=1e-6,
        le=1.0,
    )

    def make(self, traces: Traces, *, run: Run, seed: int | None = None) -> Release:
        """Return one record for every trace, a point for every fix; see the class for what it guarantees."""
        lng, lat = np.empty(traces.fixes), np.empty(traces.fixes)
        draws = None if seed is None else _seeded_draws(traces, seed)
        snap = _snapper(traces)

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            drawn = _system_draws(stop - start) if draws is None else draws[part]
            shifted = np.empty(stop - start), np.empty(stop - start)
            uniform = (drawn >> np.uint64(11)) * 2.0**-53
            unit = LaplaceDraws(*(uniform[:, n].astype(np.float64) for n in (0, 1)))
            shift_places(traces.lng[part], traces.lat[part], self.epsilon, unit, *shifted)
            lng[part], lat[part] = snap(*shifted)

        ranges = ranges_of(traces.fixes, _BLOCK)
        with run.stage("draw noise", traces.fixes) as advance:
            run.ranges(work, ranges, advance=advance)
        return Release(
            offsets=traces.offsets,
            layout=Points(traces.ms, lng, lat),
            frame=traces.frame,
            method=self.name,
            parameters=self.parameters,
            claim=self._claim_of(traces) if seed is None else Claim("none", why="research"),
            samples=traces.fixes,
            seeded=seed is not None,
            members=Members(traces.users, np.arange(len(traces) + 1), traces.users, traces),
        )

    @property
    def claim(self) -> Claim:
        """What its releases promise, without the total, which depends on the number of fixes."""
        return Claim("geo-indistinguishability", epsilon_per_m=self.epsilon)

    def estimate(self, traces: Traces, *, run: Run = LOCAL) -> Estimate:
        """Return the estimated time and memory of `anonymize`."""
        return Estimate(_FIX_BYTES * traces.fixes, _FIX_NS * traces.fixes / 1e9 / run.workers)

    def _claim_of(self, traces: Traces) -> Claim:
        """Return the claim with the total for the person with the most fixes, that number rounded up to two digits."""
        most = int(np.bincount(traces.users, weights=traces.counts).max())
        unit = 10 ** max(0, len(str(most)) - 2)
        total = -(-most // unit) * unit * self.epsilon
        return Claim("geo-indistinguishability", epsilon_per_m=self.epsilon, total_per_m=total)


def _system_draws(count: int) -> NDArray[np.uint64]:
    return np.frombuffer(os.urandom(_DRAW_BYTES * count), np.uint64).reshape(-1, 2)


def _seeded_draws(traces: Traces, seed: int) -> NDArray[np.uint64]:
    """Return repeatable draws that depend on the seed and on each trace's own fixes, not on labels or order."""
    draws = np.empty((traces.fixes, 2), np.uint64)
    for start, stop in pairwise(traces.offsets.tolist()):
        content = hashlib.blake2b(str(seed).encode(), digest_size=16)
        for column in (traces.ms, traces.lng, traces.lat):
            content.update(np.ascontiguousarray(column[start:stop]).data)
        key = int.from_bytes(content.digest(), "little")
        draws[start:stop] = np.random.Philox(key=key).random_raw(2 * (stop - start)).reshape(-1, 2)
    return draws


def _snapper(traces: Traces) -> Callable[[Any, Any], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return the function that moves places to the whole metres of the release's CRS."""
    if traces.frame.crs is None:
        raise SettingsError('points are snapped to metres of a CRS; give one, e.g. `crs="EPSG:32650"`')
    transform = transformer(traces.frame.crs).transform

    def snap(lng: Any, lat: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        east, north = transform(lng, lat)
        lng, lat = transform(np.rint(east), np.rint(north), direction="INVERSE")
        if not (np.isfinite(lng).all() and np.isfinite(lat).all()):
            raise InputError("the CRS can't hold some of the places; leave them out or choose another `crs`")
        return np.round(lng, DECIMALS), np.round(lat, DECIMALS)

    return snap
