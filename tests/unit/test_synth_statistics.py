"""The generated people have the statistics that docs/synth.md states, within bands."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from shoal.frame import transformer
from shoal.synth import synthesize
from shoal.synth.places import CRS


def columns(**options):
    table = synthesize(seed=1, **options)
    uid, seconds = table["uid"].to_numpy(), table["datetime"].cast("int64").to_numpy() // 1000
    x, y = transformer(CRS).transform(table["lng"].to_numpy(), table["lat"].to_numpy())
    starts = np.flatnonzero(np.append(True, uid[1:] != uid[:-1]))
    counts = np.diff(np.append(starts, len(uid)))
    return SimpleNamespace(
        s=seconds,
        x=x,
        y=y,
        starts=starts,
        counts=counts,
        owner=np.repeat(np.arange(len(counts)), counts),
        same=uid[1:] == uid[:-1],
        tower=np.unique(np.round(x) * 1e7 + np.round(y), return_inverse=True)[1],
    )


@pytest.fixture(scope="module")
def calls():
    return columns(users=6_000)


@pytest.fixture(scope="module")
def fixes():
    return columns(users=150, kind="gps", days=7)


def gyration_km(data):
    mean_x, mean_y = (np.repeat(np.add.reduceat(v, data.starts) / data.counts, data.counts) for v in (data.x, data.y))
    squares = np.add.reduceat((data.x - mean_x) ** 2 + (data.y - mean_y) ** 2, data.starts)
    return np.sqrt(squares / data.counts) / 1_000


def test_radius_of_gyration_is_small_for_most_and_large_for_some(calls):
    radius = gyration_km(calls)
    assert 1.0 < np.median(radius) < 4.0
    assert 5.0 < radius.mean() < 20.0
    assert np.percentile(radius, 99) > 40.0


def test_rates_are_heavy_tailed_around_the_mean(calls):
    per_hour = calls.counts / (14 * 24)
    assert 0.40 < per_hour.mean() < 0.46
    assert np.median(calls.counts) < 0.85 * calls.counts.mean()
    assert calls.counts.max() > 6 * calls.counts.mean()


def test_nearly_everyone_is_active_on_most_days(calls):
    active = np.bincount(np.unique(calls.owner * 100_000 + calls.s // 86_400) // 100_000)
    assert (active > 0.75 * 14).mean() > 0.95


def test_nights_are_quiet_and_evenings_busy(calls):
    hours = np.bincount(calls.s // 3_600 % 24, minlength=24)
    assert int(np.argmax(hours)) in (18, 19, 20)
    assert 10 <= int(np.argmax(hours[:14])) <= 12
    assert hours[1:5].mean() < 0.12 * hours.max()
    assert hours[14] < min(hours[11], hours[19])
    weekend = ((calls.s // 86_400 + 3) % 7) >= 5  # day 0 of the epoch was a Thursday
    assert 0.7 < (weekend.sum() / 4) / ((~weekend).sum() / 10) < 0.97


def test_calls_come_in_bursts(calls):
    gaps = np.diff(calls.s)[calls.same] / 60.0
    assert 0.3 < (gaps < 10).mean() < 0.6
    assert (gaps > 12 * 60).mean() > 0.02
    assert (gaps.std() - gaps.mean()) / (gaps.std() + gaps.mean()) > 0.25


def test_four_points_single_out_nearly_everyone(calls):
    point = calls.tower * 10_000 + (calls.s // 3_600 - calls.s.min() // 3_600)
    crowd = {}
    for p, u in zip(point.tolist(), calls.owner.tolist(), strict=True):
        crowd.setdefault(p, set()).add(u)
    rng = np.random.default_rng(0)
    alone = []
    for u in rng.choice(len(calls.counts), 400, replace=False):
        own = np.unique(point[calls.starts[u] : calls.starts[u] + calls.counts[u]])
        known = rng.permutation(own)[:4]
        alone.append(len(set.intersection(*(crowd[p] for p in known.tolist()))) == 1)
    assert np.mean(alone) > 0.85


def test_nights_are_spent_in_one_place_and_many_work_elsewhere(calls):
    hour, workday = calls.s // 3_600 % 24, ((calls.s // 86_400 + 3) % 7) < 5
    night, office = hour < 6, workday & (hour >= 10) & (hour < 16)
    home, day = (usual_tower(calls, rows) for rows in (night, office))
    both = [u for u in home if u in day]
    at_home = [home[u][1] for u in both]
    assert np.mean(at_home) > 0.85
    assert 0.3 < np.mean([home[u][0] != day[u][0] for u in both]) < 0.75


def usual_tower(data, rows):
    """Return for users with five such samples or more their most frequent tower and its share."""
    found = {}
    for u in range(len(data.counts)):
        part = slice(data.starts[u], data.starts[u] + data.counts[u])
        towers = data.tower[part][rows[part]]
        if len(towers) >= 5:
            often = np.bincount(towers)
            found[u] = int(np.argmax(often)), often.max() / len(towers)
    return found


def test_lands_differ_by_seed_and_towers_grow_with_users():
    small, large = columns(users=50, scene="nation"), columns(users=4_000, scene="nation", samples=20)
    assert small.tower.max() < large.tower.max()
    assert np.ptp(small.x) < np.ptp(large.x)


def test_a_town_is_about_forty_kilometres_wide():
    town = columns(users=1_000, scene="town")
    assert 25_000 < max(np.ptp(town.x), np.ptp(town.y)) < 50_000
    assert gyration_km(town).max() < 20.0


def test_fixes_move_at_plausible_speeds_and_rest_within_noise(fixes):
    step = np.hypot(np.diff(fixes.x), np.diff(fixes.y))[fixes.same]
    wait = np.diff(fixes.s)[fixes.same]
    speed = step / wait
    assert speed[wait >= 30].max() < 35.0
    moving = speed[(wait == 60) & (step > 60)]
    assert 1.0 < np.median(moving) < 10.0
    assert 0.15 < (wait <= 60).mean() < 0.6
    resting = step[(wait > 300) & (step < 100)]
    assert len(resting) > 0.5 * (wait > 300).sum()
    assert 7.0 < np.median(resting) < 16.0


def test_fixes_are_dense(fixes):
    per_day = fixes.counts / 7
    assert 100 < per_day.mean() < 500
    assert np.diff(fixes.s)[fixes.same].max() < 3 * 3_600


def test_a_person_seen_by_both_instruments_lives_in_the_same_place():
    calls, fixes = columns(users=120), columns(users=120, kind="gps")
    for u in range(0, 120, 10):
        call, fix = (slice(d.starts[u], d.starts[u] + d.counts[u]) for d in (calls, fixes))
        apart = np.hypot(
            np.median(calls.x[call]) - np.median(fixes.x[fix]), np.median(calls.y[call]) - np.median(fixes.y[fix])
        )
        assert apart < 15_000
