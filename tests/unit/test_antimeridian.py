"""The antimeridian is a place like others: the same people there take the same work and give the same records."""

from __future__ import annotations

import importlib
import pkgutil
import random

import numpy as np
import pyarrow as pa
import pytest

import shoal
import shoal.kernels
from shoal.search import glove_groups

HERE, THERE = 20, 180  # the longitude of the people, and a shift that brings them to both sides of the antimeridian
METHODS = {
    "glove": shoal.Glove(k=2),
    "kte-hide": shoal.KteHide(k=2, tau="4h", epsilon="4h"),
    "k-concealment": shoal.KConcealment(k=2),
    "shoal": shoal.Shoal(k=2),
}


def people(longitude):
    """Eight people who walk about a longitude in steps of 2^-10 degrees, so that a shift by degrees is exact."""
    draw, rows = random.Random(5), []
    for user in range(8):
        x, y = draw.randrange(-40, 40), draw.randrange(-40, 40)
        for step in range(24):
            x, y = x + draw.randrange(-9, 10), y + draw.randrange(-9, 10)
            east = (longitude + x / 1024 + 180) % 360 - 180
            rows.append((f"u{user}", 1_500_000_000 + step * 1800 + draw.randrange(600), -17 + y / 1024, east))
    return shoal.from_arrow(pa.table(list(map(pa.array, zip(*rows, strict=True))), ["uid", "time", "lat", "lng"]))


def samples(trajectories):
    return np.stack([trajectories.t, trajectories.x, trajectories.y], axis=1).tolist()


def compiled():
    """Count the kernels that are compiled, each for each of its types."""
    modules = [
        importlib.import_module(f"shoal.kernels.{module.name}")
        for module in pkgutil.iter_modules(shoal.kernels.__path__)
    ]
    return sum(len(getattr(kernel, "signatures", ())) for module in modules for kernel in vars(module).values())


@pytest.fixture(scope="module")
def both():
    return people(HERE), people(THERE)


def test_the_people_are_on_both_sides_but_close_together(both):
    here, there = both
    assert there.frame.crs.replace("lon_0=-180", f"lon_0={HERE}") == here.frame.crs
    assert samples(here) == samples(there)
    assert here.labels.to_pylist() == there.labels.to_pylist()
    assert max(np.ptp(there.x), np.ptp(there.y)) < 500


@pytest.mark.parametrize("method", METHODS)
def test_records_and_work_are_the_same(method, both):
    here, there = both
    first = METHODS[method].anonymize(here, seed=1)
    known = compiled()
    second = METHODS[method].anonymize(there, seed=1)
    assert compiled() == known, "nothing is compiled for other types"
    assert second.offsets.tolist() == first.offsets.tolist()
    assert second.layout.edges.tolist() == first.layout.edges.tolist()
    assert shoal.verify(there, second, max_suppressed=1.0).ok


def test_glove_begins_as_many_efforts(both):
    assert glove_groups.glove_groups(both[1], 2).begun == glove_groups.glove_groups(both[0], 2).begun
