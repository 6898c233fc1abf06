"""Metres on the ellipsoid: the same as PROJ's geodesics, wherever on Earth."""

import numpy as np
import pytest
from pyproj import Geod

from shoal.kernels.geodesy import (
    EARTH_M,
    Vector,
    across,
    arc_m,
    chord_m,
    geocentric,
    move,
    place,
    place_after,
    toward,
    upward,
)
from tests.tracks import CORNERS

GEOD = Geod(ellps="WGS84")


@pytest.mark.parametrize("corner", CORNERS)
def test_there_and_back(corner):
    assert np.allclose(place(geocentric(*corner)), corner, rtol=0, atol=1e-9)


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("metres", [1.0, 200.0, 10_000.0, 100_000.0])
def test_a_step_is_as_long_as_the_geodesic(corner, metres):
    here = geocentric(*corner)
    east, north = (np.array(side) for side in across(upward(here)))
    for turn in np.linspace(0, 2 * np.pi, 7):
        c, s = np.cos(turn), np.sin(turn)
        course = Vector(*(c * east + s * north))
        ahead, down = EARTH_M * np.sin(metres / EARTH_M), EARTH_M * (1 - np.cos(metres / EARTH_M))
        there = place(move(here, course, ahead, down))
        angle, _, distance = GEOD.inv(*corner, *there)
        assert distance == pytest.approx(metres, rel=2e-6, abs=1e-6)
        if abs(corner[1]) < 80:
            assert np.cos(np.radians(90 - angle) - turn) == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("corner", CORNERS)
@pytest.mark.parametrize("metres", [1.0, 200.0, 5_000.0, 100_000.0])
def test_places_one_after_the_other_are_those_found_at_once(corner, metres):
    """A long walk, over poles and the antimeridian: the degrees never drift from the places."""
    here = geocentric(*corner)
    lng, lat = corner
    ahead, down = EARTH_M * np.sin(metres / EARTH_M), EARTH_M * (1 - np.cos(metres / EARTH_M))
    east, north = (np.array(side) for side in across(upward(here)))
    there = move(here, Vector(*((east + 2 * north) / 5**0.5)), ahead, down)
    for step in range(400):
        lng, lat = place_after(lng, lat, here, there)
        assert -180 <= lng <= 180
        expected = place(there)
        assert abs(lat - expected[1]) < 1e-11
        assert abs((lng - expected[0] + 180) % 360 - 180) * max(np.cos(np.radians(lat)), 1e-9) < 1e-11
        back, here = here, there
        course = toward(here, back)
        turn = 0.02 * step  # a spiral
        side = np.cross(upward(here), course)
        there = move(here, Vector(*(-np.cos(turn) * np.array(course) + np.sin(turn) * side)), ahead, down)


def test_chords_and_arcs_are_geodesics_to_a_part_in_a_million():
    for metres in (10.0, 1e3, 1e5):
        lng, lat, _ = GEOD.fwd(10.0, 50.0, 33.0, metres)
        chord = np.linalg.norm(np.subtract(geocentric(10.0, 50.0), geocentric(lng, lat)))
        assert chord <= metres + 1e-6
        assert arc_m(chord) == pytest.approx(metres, rel=1e-6)
        assert chord_m(metres) == pytest.approx(chord, rel=1e-6)


def test_toward_the_opposite_side_is_some_direction():
    here = geocentric(0.0, 0.0)
    assert np.linalg.norm(toward(here, here._replace(x=-here.x))) == pytest.approx(1)
