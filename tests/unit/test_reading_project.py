from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shoal.errors import InputError, SettingsError
from shoal.frame import Frame, floor_cells, local_crs, transformer
from shoal.reading import project


@pytest.fixture(autouse=True)
def _few_points_are_enough(monkeypatch):
    monkeypatch.setattr(project, "MIN_POINTS", 10_000)


def cloud(lng, lat, spread, n=300_000, seed=0):
    rng = np.random.default_rng(seed)
    return lng + rng.uniform(-spread, spread, n), lat + rng.uniform(-spread, spread, n)


@pytest.mark.parametrize("cell_m", [1, 100, 500])
@pytest.mark.parametrize(
    "place", [(116.4, 39.9, 0.5), (-73.9, 40.7, 2), (12.5, 69.0, 6), (-70.0, -33.0, 3), (0.1, 0.1, 1)]
)
def test_cells_are_exactly_those_of_proj(place, cell_m):
    lng, lat = cloud(*place)
    crs = local_crs(round(place[0]), round(place[1]))
    table = project.projection_table(lng, lat, crs)
    assert table is not None
    x, y, fits = project.project_cells(lng, lat, transformer(crs), cell_m, table)
    east, north = transformer(crs).transform(lng, lat)
    assert fits is None
    np.testing.assert_array_equal(x, np.floor(east / cell_m))
    np.testing.assert_array_equal(y, np.floor(north / cell_m))


def test_points_on_the_edge_of_a_cell_are_left_to_proj():
    crs = local_crs(116, 40)
    rng = np.random.default_rng(1)
    edges = rng.integers(-300, 300, (2, 100_000)) * 100.0
    lng, lat = transformer(crs).transform(*edges, direction="INVERSE")
    table = project.projection_table(lng, lat, crs)
    assert table is not None
    x, y, _ = project.project_cells(lng, lat, transformer(crs), 100, table)
    east, north = transformer(crs).transform(lng, lat)
    np.testing.assert_array_equal(x, np.floor(east / 100))
    np.testing.assert_array_equal(y, np.floor(north / 100))
    assert 0.2 < np.mean(x == edges[0] / 100) < 0.8, "some fall to each side"


@pytest.mark.parametrize(
    "place", [(0, 0, 40), (179.9, 0, 0.05), (10, 89.99, 0.005)], ids=["wide", "antimeridian", "pole"]
)
def test_proj_does_it_all_where_a_table_would_not_do(place):
    lng, lat = cloud(*place)
    assert project.projection_table(lng, lat, local_crs(round(place[0]), round(place[1]))) is None


def test_a_table_that_is_not_right_is_not_used():
    lng, lat = cloud(-60.0, -38.0, 3)  # near the antipode of the centre the projection is not smooth
    assert project.projection_table(lng, lat, local_crs(121, 39)) is None


def test_few_points_do_not_need_a_table():
    assert project.projection_table(np.zeros(10), np.zeros(10), local_crs(0, 0)) is None


def test_metres_beyond_32_bits_are_refused():
    with pytest.raises(SettingsError, match="`cell"):
        floor_cells(np.array([3e9]), np.array([0.0]), 100)


def test_a_frame_gives_no_cell_to_places_it_cannot_hold():
    frame = Frame(crs=local_crs(116, 40))
    assert [cells.dtype for cells in frame.cells([116.4], [39.9])] == [np.int32, np.int32]
    assert [len(cells) for cells in frame.cells([], [])] == [0, 0]
    with pytest.raises(InputError, match="`crs"):
        frame.cells([116.4, -64.0], [39.9, -40.0])


def test_threads_share_a_transform():
    """The cells are the same when many threads ask one transform at the same time."""
    lng, lat = cloud(116.4, 39.9, 0.5, n=20_000)
    transform = transformer("EPSG:32650")

    def cells(_):
        return np.stack(project.project_cells(lng, lat, transform, 1, None)[:2])

    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(cells, range(32)):
            np.testing.assert_array_equal(found, cells(0))
