"""Useless releases are called so, in words, and people who are left out are counted."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import shoal
from shoal.judgement import judged
from shoal.layouts import Boxes
from shoal.release import Members


def release(people, side_m=1_000, lasts_s=600, published=None, boxes=20):
    """A release of made-up boxes: `side_m` and `lasts_s` may be arrays, a value for each box."""
    side = np.broadcast_to(np.asarray(side_m) // 100, boxes)
    lasts = np.broadcast_to(np.asarray(lasts_s) // 60, boxes)
    edges = np.zeros((boxes, 6), np.int32)
    edges[:, 1], edges[:, 3], edges[:, 5] = lasts - 1, side - 1, side - 1
    owners = np.arange(len(people) if published is None else published)
    offsets = np.arange(len(owners) + 1) * boxes // len(owners)
    members = Members(owners, np.arange(len(owners) + 1), owners, people)
    claim = shoal.Claim("k-anonymity", k=5)
    return shoal.Release(offsets, Boxes(edges), people.frame, "by-hand", {}, claim, members=members)


@pytest.fixture(scope="module")
def people():
    table = pa.table({"uid": np.arange(20) % 10, "time": np.arange(20.0) * 600, "lat": [0.1] * 20, "lng": [9.5] * 20})
    return shoal.from_arrow(table)


def test_a_good_release_is_not_commented(people):
    assert judged(release(people), shoal.Shoal(k=5)) == ()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"lasts_s": 30 * 86_400}, "Half of the boxes last 30 days or longer: too coarse"),
        ({"lasts_s": 26 * 3_600}, "Half of the boxes last 26 hours or longer: too coarse"),
        ({"side_m": 60_000}, "Half of the boxes are 60 km wide or wider: too coarse"),
        ({"side_m": 18_000}, "Half of the boxes are 18 km wide or wider: good for regions, too coarse within a town"),
        ({"side_m": [1_000] * 17 + [600_000] * 3}, "One box in ten is 600 km wide or wider"),
        ({"published": 9}, "1 of 10 people are left out of the release."),
        ({"published": 4}, "6 of 10 people are left out of the release. That is much"),
    ],
)
def test_a_useless_release_is_called_so(people, made, said):
    words = judged(release(people, **made), shoal.Shoal(k=5))
    assert len(words) == 1
    assert words[0].startswith(said)


def test_advice_fits_the_method(people):
    coarse = release(people, lasts_s=30 * 86_400)
    (shoals,) = judged(coarse, shoal.Shoal(k=5))
    assert "a shorter `period`, `k=3` or limits beyond which samples are left out (`max_span=" in shoals
    (limited,) = judged(coarse, shoal.Shoal(k=2, max_span="15km"))
    assert limited.endswith("Try a shorter `period`.")


def test_on_the_command_line_and_in_the_result(run, tmp_path):
    """Few people, far apart for a month: boxes of days."""
    rng = np.random.default_rng(1)
    shown = pa.table(
        {
            "uid": np.repeat(np.arange(12), 4),
            "time": rng.integers(0, 30 * 86_400, 48).astype(float),
            "lat": 48 + rng.uniform(0, 1, 48),
            "lng": 2 + rng.uniform(0, 1, 48),
        }
    )
    pa_csv.write_csv(shown, (path := tmp_path / "few.csv"))
    out = run("anonymize", path, "coarse.parquet", "--k", "5", check=0).stdout
    assert "too coarse for most uses. Try a shorter --period, --k 3 or limits" in out
    assert "people left out" in out
    found = run("anonymize", path, "again.parquet", "--k", "5", "--json", check=0).json
    assert any("too coarse" in sentence for sentence in found["judgement"])
    assert found["figures"]["people"] == 12
    assert found["figures"]["people_left_out"] == 0
