"""Uniform generalization: coarse boxes around everybody's own samples, and no claim."""

import numpy as np
import pytest

import shoal
from shoal.errors import SettingsError
from tests.people import LAEA, random_people


def slow(samples, origin, cells, slots):
    """Boxes of one user: one for each coarse slot, around the coarse cells in it."""
    boxes = {}
    for t, x, y in samples:
        slot = (t + origin) // slots
        boxes.setdefault(slot, []).append((x // cells * cells, y // cells * cells))
    made = []
    for slot, corners in sorted(boxes.items()):
        xs, ys = zip(*corners, strict=True)
        t0 = slot * slots - origin
        made.append([t0, t0 + slots - 1, min(xs), max(xs) + cells - 1, min(ys), max(ys) + cells - 1])
    return made


@pytest.mark.parametrize(("cell_m", "slot_s"), [(100, 60), (1000, 3600), ("5km", "4h"), (None, None)])
def test_equals_plain_loops(cell_m, slot_s):
    people = random_people(25, seed=4, crs=LAEA)
    method = shoal.Uniform(to_cell=cell_m, to_slot=slot_s)
    release = method.anonymize(people)
    cells, slots = (method.to_cell or 100) // 100, (method.to_slot or 60) // 60
    for user in range(len(people)):
        expected = slow(people.user(user).tolist(), people.frame.origin_slot, cells, slots)
        assert release.record(user).tolist() == expected
    verdict = shoal.verify(people, release)
    assert verdict.ok, verdict.messages
    assert str(verdict.shown) == "none"


def test_edges_are_multiples_of_the_coarse_grid_since_the_epoch(tmp_path):
    people = shoal.from_arrow(shoal.synthesize(users=30, days=2, seed=2, start="2026-01-05"))
    shoal.Uniform(to_cell="1km", to_slot="60min").anonymize(people).write(tmp_path / "r.parquet")
    back = shoal.read_release(tmp_path / "r.parquet")
    table = back.to_arrow()
    for name in ("x_min", "x_max", "y_min", "y_max"):
        assert (table[name].to_numpy() % 1000 == 0).all()
    for name in ("t_start", "t_end"):
        assert (table[name].to_numpy().astype(np.int64) % 3_600_000 == 0).all()
    assert back.parameters == {"cell_m": 1000, "slot_s": 3600}


def test_only_multiples():
    people = random_people(5)
    with pytest.raises(SettingsError, match="multiples"):
        shoal.Uniform(to_cell=150).anonymize(people)
