"""Places: an imaginary land of towns and towers, and how its people choose among them.

The land is drawn in metres on a Lambert azimuthal equal-area plane. Its size follows the number of users, so
that a small population lives in a smaller land with towers as dense as in a large one, not in a desert.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from shoal.frame import local_crs, transformer
from shoal.kernels.synth import Land

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Propose = Callable[[int], tuple[Floats, Floats]]

__all__ = ["CRS", "TowerMap", "make_places"]

CRS = local_crs(-14, 14)

# Sizes of `sen` and `dak` in Tab. I of "k^(tau,epsilon)-anonymity", the paper of kte-hide.
NATION_TOWERS, NATION_KM2 = 1_666, 197_000.0
TOWN_TOWERS, TOWN_KM2 = 457, 1_024.0
FULL_SIZE_USERS = 100_000  # from here on the land has its full size
CAPITAL_SHARE, RURAL_SHARE = 0.27, 0.24  # of the towers
WEST_EAST_STRETCH = 1.4


class _Towers(NamedTuple):
    """Towers of a land: metres, residents, jobs (both relative), number of the town (-1: countryside)."""

    x: Floats
    y: Floats
    residents: Floats
    jobs: Floats
    town: NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class TowerMap:
    """The towers of a land in degrees, and the arrays that the kernels move people on."""

    land: Land
    lng: Floats
    lat: Floats
    towns: int
    area_km2: float


def make_places(scene: Literal["town", "nation"], users: int, rng: np.random.Generator) -> TowerMap:
    """Draw the land for a number of users; cost quadratic in its towers, below a second at full size.

    >>> places = make_places("town", 500, np.random.default_rng(1))
    >>> places.towns, len(places.lng)
    (1, 120)
    """
    scale = min(1.0, (users / FULL_SIZE_USERS) ** 0.4)
    if scene == "town":
        towers = _town_towers(max(120, round(TOWN_TOWERS * scale)), TOWN_KM2, rng)
        area_km2 = TOWN_KM2
    else:
        count = max(80, round(NATION_TOWERS * scale))
        area_km2 = NATION_KM2 * count / NATION_TOWERS
        towers = _nation_towers(count, area_km2, rng)
    lng, lat = transformer(CRS).transform(towers.x, towers.y, direction="INVERSE")
    return TowerMap(land=_land(towers), lng=lng, lat=lat, towns=int(towers.town.max()) + 1, area_km2=area_km2)


def _town_towers(count: int, area_km2: float, rng: np.random.Generator) -> _Towers:
    """Spread towers over one town, denser towards its centre, where most of the work is."""
    radius = math.sqrt(area_km2 * 1e6 / math.pi)
    squash, turn = rng.uniform(0.65, 1.0), rng.uniform(0.0, math.pi)

    def propose(n: int) -> tuple[Floats, Floats]:
        r, angle = radius * rng.random(n) ** 0.7, rng.uniform(0.0, 2.0 * math.pi, n)
        return r * np.cos(angle) / math.sqrt(squash), r * np.sin(angle) * math.sqrt(squash)

    u, v = _spaced(count, propose, np.empty(0), np.empty(0), 0.35 * radius)
    from_centre = np.hypot(u, v) / radius
    residents = rng.lognormal(0.0, 0.4, count)
    jobs = residents * (0.3 + 2.5 * np.exp(-3.0 * from_centre))
    x, y = u * math.cos(turn) - v * math.sin(turn), u * math.sin(turn) + v * math.cos(turn)
    return _Towers(x, y, residents, jobs, np.zeros(count, np.int64))


def _spaced(count: int, propose: Propose, x: Floats, y: Floats, core_m: float) -> tuple[Floats, Floats]:
    """Take `count` points, each the best of three proposals: far from the others, measured by the local spacing.

    Points already there come in as x, y. With `core_m` the spacing may shrink towards the origin.
    """
    xs, ys = list(x), list(y)
    for _ in range(count):
        u, v = propose(3)
        if xs:
            gap = np.hypot(u[:, None] - np.array(xs), v[:, None] - np.array(ys)).min(axis=1)
            best = int(np.argmax(gap / (core_m + np.hypot(u, v)) if core_m else gap))
        else:
            best = 0
        xs.append(u[best])
        ys.append(v[best])
    return np.array(xs[len(x) :]), np.array(ys[len(y) :])


def _nation_towers(count: int, area_km2: float, rng: np.random.Generator) -> _Towers:
    """Place a capital in the west, towns of Zipf-like size, and towers along roads and in the country between."""
    north = math.sqrt(area_km2 * 1e6 / math.pi / WEST_EAST_STRETCH)
    east = north * WEST_EAST_STRETCH
    rural = round(RURAL_SHARE * count)
    sizes = _town_sizes(count - rural, round(CAPITAL_SHARE * count))

    def anywhere(n: int) -> tuple[Floats, Floats]:
        r, angle = np.sqrt(rng.random(n)), rng.uniform(0.0, 2.0 * math.pi, n)
        # Towards the capital the land is settled more densely.
        return east * (1.9 * ((1.0 + r * np.cos(angle)) / 2.0) ** 1.35 - 0.95), north * r * np.sin(angle)

    capital = np.array([-0.82 * east]), np.array([0.0])
    town_x, town_y = _spaced(len(sizes) - 1, anywhere, *capital, 0.0)
    town_x, town_y = np.append(capital[0], town_x), np.append(capital[1], town_y)
    towns = [_town_towers(size, size * TOWN_KM2 / TOWN_TOWERS, rng) for size in sizes]
    x = np.concatenate([town.x + cx for town, cx in zip(towns, town_x, strict=True)])
    y = np.concatenate([town.y + cy for town, cy in zip(towns, town_y, strict=True)])
    road_x, road_y = _spaced(rural // 2, _on_roads(town_x, town_y, rng), x, y, 0.0)
    far_x, far_y = _spaced(rural - rural // 2, anywhere, np.append(x, road_x), np.append(y, road_y), 0.0)
    villagers = rng.lognormal(0.0, 0.5, rural)
    return _Towers(
        np.concatenate([x, road_x, far_x]),
        np.concatenate([y, road_y, far_y]),
        np.concatenate([*(town.residents for town in towns), villagers]),
        np.concatenate([*(town.jobs for town in towns), 0.8 * villagers]),
        np.append(np.repeat(np.arange(len(sizes)), sizes), np.full(rural, -1)),
    )


def _town_sizes(urban: int, capital: int) -> NDArray[np.int64]:
    """Return the towers of each town: the capital's, then by Zipf's rule, about nine a town, at least one."""
    ranks = np.arange(max(3, round(urban / 9)))
    share = 1.0 / (ranks + 2.5)
    others = np.maximum(1, np.round((urban - capital) * share / share.sum())).astype(np.int64)
    return np.append(capital, others)


def _on_roads(town_x: Floats, town_y: Floats, rng: np.random.Generator) -> Propose:
    """Propose points along the straight roads from each town to the nearest larger one."""
    to = np.array(
        [0] + [int(np.argmin(np.hypot(town_x[:i] - town_x[i], town_y[:i] - town_y[i]))) for i in range(1, len(town_x))]
    )

    def propose(n: int) -> tuple[Floats, Floats]:
        a = rng.integers(1, len(town_x), n)
        share, side = rng.random(n), 1_500.0 * rng.standard_normal((2, n))
        x = town_x[a] + share * (town_x[to[a]] - town_x[a]) + side[0]
        return x, town_y[a] + share * (town_y[to[a]] - town_y[a]) + side[1]

    return propose


# Distances at which choices decay. A jump in an evenly settled plane has P(r) ~ (r + r0)^-beta * exp(-r / cutoff),
# the truncated power law of González et al. (Nature 2008), beta = 1.75.
JUMP_BETA, JUMP_R0_M, JUMP_CUTOFF_M = 1.75, 1_500.0, 80_000.0
WORK_BETA, WORK_R0_M, WORK_CUTOFF_M = 2.2, 2_000.0, 15_000.0
TRIP_FROM_M, TRIP_CUTOFF_M = 30_000.0, 120_000.0
OVERLAP_M = 2_500.0


def _land(towers: _Towers) -> Land:
    """Turn towers into the arrays from which people choose places."""
    distance = np.hypot(towers.x[:, None] - towers.x, towers.y[:, None] - towers.y)
    apart = ~np.eye(len(distance), dtype=bool)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, 1:4]
    gaps = np.take_along_axis(distance, nearest, axis=1)
    jump = towers.jobs * (distance + JUMP_R0_M) ** -(1.0 + JUMP_BETA) * np.exp(-distance / JUMP_CUTOFF_M) * apart
    work = towers.jobs * (distance + WORK_R0_M) ** -WORK_BETA * np.exp(-distance / WORK_CUTOFF_M)
    trip = (
        towers.residents
        * (distance > TRIP_FROM_M)
        / np.maximum(distance, TRIP_FROM_M)
        * np.exp(-distance / TRIP_CUTOFF_M)
    )
    return Land(
        x=towers.x,
        y=towers.y,
        spread=np.clip(0.35 * gaps[:, 0], 100.0, 1_500.0),
        home=np.cumsum(towers.residents),
        work=np.cumsum(work, axis=1),
        jump=np.cumsum(jump, axis=1),
        trip=np.cumsum(trip, axis=1),
        beside=np.where(gaps < OVERLAP_M, nearest, -1),
    )
