"""Charts: where lines stand, what axes show, and that nothing foreign gets in."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import shoal
from shoal.measure import sweep, tails
from shoal.measure.chart import ChartAxis, Curve, chart
from shoal.measure.plots import PLOTS, plots
from tests.people import random_people

SVG = "{http://www.w3.org/2000/svg}"


def drawn(text):
    """The lines of the curves (not of the legend) as lists of points, and all texts."""
    root = ET.fromstring(text)
    paths = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("stroke-width") == "2"]
    lines = [[tuple(map(float, p.split())) for p in path[1:].split("L")] for path in paths if "h" not in path]
    return lines, [element.text for element in root.iter(f"{SVG}text")]


def test_points_stand_where_they_belong():
    curve = Curve(name="line", x=[0, 5, 10], y=[0, 1, 0.5])
    (line,), texts = drawn(chart("T", [curve], ChartAxis(label="across"), ChartAxis(label="up", percent=True)))
    (x0, y0), (x1, y1), (x2, y2) = line
    assert x1 == pytest.approx((x0 + x2) / 2)
    assert y1 < y2 < y0  # up is less
    assert y2 == pytest.approx((y0 + y1) / 2, abs=0.2)
    assert {"T", "across", "up", "line", "0", "10", "100 %"} <= set(texts)


def test_a_log_axis_shows_decades_and_leaves_out_what_it_can_t():
    curve = Curve(name="line", x=[0, 1, 10, 100, np.nan, np.inf], y=[1, 1, 2, 3, 4, 5])
    (line,), texts = drawn(chart("T", [curve], ChartAxis(label="x", log=True), ChartAxis(label="y", low=0)))
    assert len(line) == 3
    assert line[1][0] == pytest.approx((line[0][0] + line[2][0]) / 2)
    assert {"1", "10", "100"} <= set(texts)


def test_values_beyond_the_axis_stay_inside():
    curve = Curve(name="line", x=[-5, 0, 1, 9], y=[0, 0, 1, 1])
    (line,), _ = drawn(chart("T", [curve], ChartAxis(label="x", low=0, high=1), ChartAxis(label="y")))
    assert line[0][0] == line[1][0]
    assert line[2][0] == line[3][0]


def test_texts_are_escaped_and_empty_curves_are_fine():
    curves = [Curve(name="<script>&", x=[], y=[]), Curve(name="one", x=[3], y=[0])]
    text = chart("a < b", curves, ChartAxis(label="x"), ChartAxis(label="y"))
    assert "<script>" not in text
    assert "<script>&" in drawn(text)[1]
    assert "<circle" in text


@pytest.mark.parametrize("seed", [0, 1])
def test_all_plots_of_people(seed):
    people = random_people(40, seed=seed, slots=2000)
    gaps = shoal.k_gap(people, [2, 5])
    found = plots(gaps, tails(gaps), sweep(people, sample=10))
    assert tuple(found) == PLOTS
    lines, texts = drawn(found["k-gap.svg"])
    assert len(lines) == 2
    assert {"k = 2", "k = 5"} <= set(texts)
    for line in lines:  # a distribution function never falls
        assert (np.diff([x for x, _ in line]) >= 0).all()
        assert (np.diff([-y for _, y in line]) >= 0).all()
    assert len(drawn(found["k-gap-by-k.svg"])[0]) == 4
    assert len(drawn(found["sweep.svg"])[0]) == 7
    for text in found.values():
        assert not re.search(r"nan|inf\b", text)


def test_people_who_cost_nothing_can_be_drawn():
    people = random_people(6, side=1, slots=2, mean=1)
    same = type(people)(people.offsets, 0 * people.t, 0 * people.x, 0 * people.y, people.frame, people.labels)
    gaps = shoal.k_gap(same, 2)
    assert all(ET.fromstring(text).tag == f"{SVG}svg" for text in plots(gaps, tails(gaps), sweep(same)).values())
