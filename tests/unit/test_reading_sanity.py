"""Data that looks like a mistake is refused until it is confirmed; rows that would spoil a release are noted."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import Implausible, LikelySwapped
from shoal.reading.account import BAD_ZERO
from shoal.reading.world import inhabited
from shoal.run import Run

NEW_YORK = (-74.0, 40.7)
DAY = 86_400


def table(lng, lat, users=None, time=None):
    n = len(lng)
    users = np.arange(n) % max(1, n // 5) if users is None else users
    time = np.arange(n) * 600 + 20_000 * DAY if time is None else time
    return pa.table({"uid": users, "time": np.asarray(time, float), "lat": lat, "lng": lng})


def around(place, n=200, wide=0.05, seed=0):
    rng = np.random.default_rng(seed)
    return place[0] + rng.uniform(-wide, wide, n), place[1] + rng.uniform(-wide, wide, n)


@pytest.mark.parametrize("read", [shoal.read, shoal.read_traces])
@pytest.mark.parametrize("memory", [None, 2**14], ids=["in memory", "in parts"])
@pytest.mark.parametrize("repeated", [0, 15])
def test_a_column_that_numbers_rows_is_not_taken_as_people(read, memory, repeated):
    """Also if a few rows share a number: 15 of 185 people here have two rows."""
    users = np.concatenate([np.arange(200 - repeated), np.arange(repeated)])
    rows = table(*around(NEW_YORK), users=users)
    with pytest.raises(Implausible, match=r"column uid .*`columns=\"user=…\"`.*`confirm=\"one-sample\"`"):
        read(rows, run=Run(memory=memory))
    assert len(read(rows, run=Run(memory=memory), confirm="one-sample").labels) == 200 - repeated


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_numbers_of_rows_that_begin_anew_in_each_file_are_not_people(tmp_path, kind):
    """The number 7 of seven files is seven people, who would be one; a person in each file once is confirmed."""
    lng, lat = around(NEW_YORK, 60)
    for day in range(5):
        rows = table(lng, lat, users=np.arange(60), time=np.arange(60) * 600 + (20_000 + day) * DAY)
        rows = rows.append_column("person", pa.array(np.arange(60) % 12))
        path = tmp_path / f"{day}.{kind}"
        pa_csv.write_csv(rows, path) if kind == "csv" else pq.write_table(rows, path)
    with pytest.raises(Implausible, match=r"column uid stands twice in one file.*`confirm=\"one-sample\"`"):
        shoal.read(tmp_path, columns="user=uid")
    assert len(shoal.read(tmp_path, columns="user=uid", confirm="one-sample")) == 60
    assert len(shoal.read(tmp_path, columns="user=person")) == 12
    assert len(shoal.read([tmp_path / f"{day}.{kind}" for day in (0, 1)], columns="user=person")) == 12


def test_people_with_several_samples_each_are_nothing_odd():
    assert len(shoal.read(table(*around(NEW_YORK), users=np.arange(200) % 150))) == 150  # two thirds have one row
    assert len(shoal.read(table(*around(NEW_YORK, 9), users=np.arange(9)))) == 9  # too few to say


@pytest.mark.parametrize("read", [shoal.read, shoal.read_traces])
@pytest.mark.parametrize("memory", [None, 2**14], ids=["in memory", "in parts"])
@pytest.mark.parametrize("place", [NEW_YORK, (2.35, 48.85), (-58.4, -34.6)], ids=["New York", "Paris", "Buenos Aires"])
def test_exchanged_axes_are_refused_where_nobody_lives(read, memory, place):
    lng, lat = around(place)
    assert len(read(table(lng, lat), run=Run(memory=memory)).labels) == 40
    with pytest.raises(LikelySwapped, match=r'columns="lat=lng,lng=lat".*`confirm="swapped"`'):
        read(table(lat, lng), run=Run(memory=memory))
    assert len(read(table(lat, lng), run=Run(memory=memory), confirm="swapped").labels) == 40
    assert len(read(table(lat, lng), run=Run(memory=memory), columns="lat=lng,lng=lat").labels) == 40


@pytest.mark.parametrize(
    "place", [(-150, 10), (116.4, 39.9), (10, 56), (120, -80)], ids=["ship", "east", "strait", "ice"]
)
def test_places_where_nobody_lives_are_no_mistake_by_themselves(place):
    assert len(shoal.read(table(*around(place)))) == 40


def test_exchanged_axes_are_told_by_the_bounding_box():
    """In Angola people live where Dakar would be with exchanged axes; the box says what was meant."""
    lng, lat = around((-17.4, 14.7))
    box = (-18.0, 14.0, -17.0, 15.0)
    assert len(shoal.read(table(lng, lat), bbox=box)) == 40
    with pytest.raises(LikelySwapped, match="inside with both exchanged"):
        shoal.read(table(lat, lng), bbox=box)
    with pytest.raises(shoal.errors.NoValidRows):
        shoal.read(table(lng + 60, lat), bbox=box)


@pytest.mark.parametrize("read", [shoal.read, shoal.read_traces])
def test_fixes_at_zero_zero_are_dropped_and_counted(read):
    lng, lat = around(NEW_YORK)
    lng[:7], lat[:7] = 0, 0
    lng[7] = 0  # on the meridian, but no missing fix
    found = read(table(lng, lat))
    assert found.account.dropped[BAD_ZERO] == 7
    assert any("7 rows at 0, 0" in note and '`confirm="zero-zero"`' in note for note in found.account.notes)
    kept = read(table(lng, lat), confirm="zero-zero").account
    assert BAD_ZERO not in kept.dropped
    with pytest.raises(shoal.errors.BadRows, match="row 1, column lat and lng"):
        read(table(lng, lat), strict=True)


def notes(rows, **options):
    return " ".join(shoal.read(rows, **options).account.notes)


@pytest.mark.parametrize("memory", [None, 2**14], ids=["in memory", "in parts"])
def test_stray_places_are_noted_with_a_box_that_keeps_the_rest(memory):
    lng, lat = around(NEW_YORK, 1_000)
    lng[5], lat[6] = -60, 10
    said = notes(table(lng, lat), run=Run(memory=memory))
    assert "2 rows are far away" in said
    box = said.split('`bbox="')[1].partition('"')[0]
    west, south, east, north = map(float, box.split(","))
    assert west < NEW_YORK[0] < east < -60
    assert 10 < south < NEW_YORK[1] < north
    assert shoal.read(table(lng, lat), bbox=box).account.dropped == {"outside the bounding box": 2}
    lng[:100] = -60  # too many to be strays
    assert "far away" not in notes(table(lng, lat))


def test_strays_beside_the_antimeridian():
    lng, lat = around((180.0, -17.0), 1_000, wide=2)
    lng = (lng + 180) % 360 - 180
    assert "far away" not in notes(table(lng, lat))
    lng[3] = 100
    said = notes(table(lng, lat))
    box = said.split('`bbox="')[1].partition('"')[0]
    assert shoal.read(table(lng, lat), bbox=box).account.dropped == {"outside the bounding box": 1}


def test_stray_times_and_missing_days_are_noted():
    lng, lat = around(NEW_YORK, 1_000)
    time = np.arange(1_000) * DAY / 100 + 20_000 * DAY  # ten days
    assert "days" not in notes(table(lng, lat, time=time))
    assert "on 2 of 12 days there is no row" in notes(
        table(lng, lat, time=np.where(time < 20_004 * DAY, time, time + 2 * DAY))
    )
    time[:3] = 0
    said = notes(table(lng, lat, time=time))
    assert "3 rows are months before or after the rest" in said
    period = said.split('`period="')[1].partition('"')[0]
    assert shoal.read(table(lng, lat, time=time), period=period).account.dropped == {"outside the period": 3}


def test_unknown_codes_are_refused_with_the_nearest():
    with pytest.raises(shoal.SettingsError, match="did you mean one-sample"):
        shoal.ReadOptions(confirm="one-samples")
    assert shoal.ReadOptions(confirm="swapped, zero-zero").confirm == ("swapped", "zero-zero")


def test_the_world_is_where_people_live():
    assert inhabited().shape == (181, 361)
    assert (inhabited()[:, 0] == inhabited()[:, 360]).all()
    for lng, lat in [NEW_YORK, (2.35, 48.85), (139.7, 35.7), (-17.4, 14.7), (178.4, -18.1), (151.2, -33.9)]:
        assert inhabited()[round(lat) + 90, round(lng) + 180]
    for lng, lat in [(40.7, -74.0), (-140.0, -30.0), (0.0, 85.0)]:
        assert not inhabited()[round(lat) + 90, round(lng) + 180]
