from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import InputError, SettingsError
from shoal.reading.options import ReadOptions
from shoal.reading.times import LAST_MS, zone
from tests.people import read_events

ZONES = [
    "UTC",
    "Europe/Paris",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "Pacific/Apia",
    "Asia/Kathmandu",
]
EPOCH = datetime(1970, 1, 1)


def near_changes(name):
    """Times around every clock change, where mistakes would be, and some at random."""
    changes = zone(name).utc // 1000
    around = (changes[:, None] + np.arange(-90_000, 90_001, 1_800)).ravel()
    some = np.random.default_rng(3).integers(0, LAST_MS // 1000, 500)
    return np.unique(np.clip(np.concatenate([around, some]), 200_000, LAST_MS // 1000 - 200_000))


@pytest.mark.parametrize("name", ZONES)
def test_local_times_are_read_as_python_reads_them(name):
    local = near_changes(name)[::7]
    expected = [(EPOCH + timedelta(seconds=int(s))).replace(tzinfo=ZoneInfo(name)).timestamp() for s in local]
    np.testing.assert_array_equal(zone(name).to_utc(local * 1000), np.array(expected, dtype=np.int64) * 1000)


@pytest.mark.parametrize("name", ZONES)
def test_instants_become_local_as_in_python(name):
    utc = near_changes(name)[::7]
    expected = [datetime.fromtimestamp(int(s), ZoneInfo(name)).replace(tzinfo=UTC).timestamp() for s in utc]
    np.testing.assert_array_equal(zone(name).to_local(utc * 1000), np.array(expected, dtype=np.int64) * 1000)


def test_the_stated_rule_for_folds_and_gaps():
    def utc(text):
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000

    paris = zone("Europe/Paris")
    fold, gap = utc("2026-10-25 02:30"), utc("2026-03-29 02:30")
    both = paris.to_utc(np.array([fold, gap], dtype=np.int64))
    assert both[0] == utc("2026-10-25 00:30"), "the first of the two"
    assert paris.to_local(both[1:])[0] == utc("2026-03-29 03:30"), "moved forward by the gap"


def epoch(times, **options):
    n = len(times)
    table = pa.table({"uid": pa.array(range(n)), "time": times, "lat": [1.0] * n, "lng": [2.0] * n})
    events = read_events(table, ReadOptions(**options))
    result = [None] * n
    for label, ms in zip(events.labels.take(pa.array(events.users)).to_pylist(), events.epoch_ms, strict=True):
        result[label] = int(ms)
    return result, events.account


NOON = 1_772_366_400_000  # 2026-03-01 12:00 UTC
TEXTS = {
    "2026-03-01T12:00:00Z": NOON,
    "2026-03-01 12:00:00+00": NOON,
    "2026-03-01T14:00:00+02:00": NOON,
    "2026-03-01T07:00:00-0500": NOON,
    "2026-03-01T17:30:00.250+05:30": NOON + 250,
    "2026-03-01T14:00+02:00": NOON,
    "2026-03-01 12:00Z": NOON,
    "2026-3-1 9:00-03:00": NOON,
    "2026-3-1 1:00+02:00": NOON - 13 * 3_600_000,
    "1772366400": NOON,
    "1772366400.5": NOON + 500,
    "1772366400000": NOON,
    "1772366400000000": NOON,
    "2026-03-01 13:00:00": NOON,
    "2026-03-01T13:00": NOON,
    "2026-03-01 13:00:00.125": NOON + 125,
    " 2026-03-01 13:00:00 ": NOON,
    "2026-03-01": NOON - 13 * 3_600_000,
}


def test_texts_of_all_kinds_in_one_column():
    result, account = epoch(list(TEXTS), tz="Europe/Paris")
    assert dict(zip(TEXTS, result, strict=True)) == TEXTS
    assert account.dropped == {}
    assert any("read as Europe/Paris" in note for note in account.notes)
    assert any("by their size" in note for note in account.notes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "31/02/2026 12:00",
        "2026-03-01 12:00 noon",
        "2026-02-30",
        "2026-03-01T25:00:00",
        "12:00:00",
        "nan",
        "-",
        "\0",
    ],
)
def test_what_is_no_time_is_counted(text):
    result, account = epoch(["2026-03-01T12:00:00Z", text])
    assert result == [NOON, None]
    assert account.dropped == {"time can't be read": 1}


@pytest.mark.parametrize(
    "text",
    ["1969-12-31T23:59:59Z", "2100-01-01T00:00:00Z", "-5", "1e30", "0001-01-01", "9999-12-31", "4102444800", "inf"],
)
def test_times_out_of_range_have_their_own_rule(text):
    _, account = epoch(["2026-03-01T12:00:00Z", text])
    assert account.dropped == {"time before 1970 or after 2099": 1}


def test_the_first_and_the_last_second_are_in():
    result, account = epoch(["1970-01-01T00:00:00Z", "2099-12-31T23:59:59Z"])
    assert result == [0, LAST_MS - 1000]
    assert account.dropped == {}


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_a_stated_unit_is_taken_literally(unit, kind):
    factor = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    values = pa.array([5 * factor, 1_000_000_000 * factor]).cast(kind)
    assert epoch(values, time_unit=unit)[0] == [5_000, 1_000_000_000_000]


@pytest.mark.parametrize(
    "kind",
    [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "Asia/Tokyo")],
)
def test_typed_timestamps(kind):
    values = pa.array([NOON // 1000]).cast(pa.timestamp("s")).cast(kind if kind.tz is None else pa.timestamp("us"))
    zoned = kind.tz is not None
    result, account = epoch(values.cast(kind) if zoned else values, tz="Europe/Paris")
    assert result == [NOON if zoned else NOON - 3_600_000]
    assert bool(account.notes) is not zoned


def test_dates_are_midnights():
    assert epoch(pa.array([NOON // 86_400_000], pa.date32()))[0] == [NOON - 12 * 3_600_000]


@pytest.mark.parametrize(
    ("tz", "hours"), [("+02:00", 2), ("UTC+2", 2), ("-0330", -3.5), ("UTC-03:30", -3.5), ("+00:00", 0), ("UTC+14", 14)]
)
def test_a_fixed_offset_is_a_zone(tz, hours):
    assert epoch(["2026-03-01 13:00:00"], tz=tz)[0] == [NOON + 3_600_000 - round(hours * 3_600_000)]
    assert epoch(["2026-03-01 13:00:00Z"], tz=tz)[0] == [NOON + 3_600_000]


@pytest.mark.parametrize("tz", ["GMT+2", "UTC+15", "CEST", "+2:75", "Mars/Olympus"])
def test_what_is_no_zone_is_refused(tz):
    with pytest.raises(SettingsError, match="tz: "):
        ReadOptions(tz=tz)


@pytest.mark.parametrize("text", ["2026-03-01 12:00:00 Europe/Paris", "2026-03-01 12:00:00 foo"])
def test_names_of_zones_in_texts_are_not_read(text):
    assert epoch(["2026-03-01T12:00:00Z", text])[0] == [NOON, None]


@pytest.mark.parametrize(
    "form", ["%H:%M", "%d.%m.%Y %I:%M", "%d.%m.%Y %H:%M %p", "%Y-%m-%d %Q", "%Y-%Y-%m-%d", "%d.%m.%Y%Z", ""]
)
def test_formats_that_give_no_time_are_refused(form):
    with pytest.raises(SettingsError, match="time_format: "):
        ReadOptions(time_format=form)


@pytest.mark.parametrize(
    "offset", ["-99", "+25:00", "+24", "-15", "+14:30", "+1401", "+02:75", "+0260", "+99:59", " +99:00", "UTC+15"]
)
@pytest.mark.parametrize(
    "date", ["2026-03-01 12:00:00", "2026-03-01T12:00:00.5", "13.03.2026 12:00", "13 Mar 2026 12:00"]
)
def test_what_is_no_offset_makes_no_time(date, offset):
    result, account = epoch(["2026-03-01T12:00:00Z", date + offset])
    assert result == [NOON, None]
    assert account.dropped == {"time can't be read": 1}


@pytest.mark.parametrize(("offset", "hours"), [("+14:00", 14), ("-12", -12), ("+13:45", 13.75), ("-0930", -9.5)])
def test_real_offsets_are_read(offset, hours):
    assert epoch([f"2026-03-01 12:00:00{offset}"])[0] == [NOON - round(hours * 3_600_000)]


def test_an_offset_beyond_the_clock_is_none_in_a_given_format_too():
    times = ["01/03/2026 12:00 +0100", "01/03/2026 12:00 +9900"]
    assert epoch(times, time_format="%d/%m/%Y %H:%M %z")[0] == [NOON - 3_600_000, None]


@pytest.mark.parametrize("kind", [pa.float64(), pa.string()])
@pytest.mark.parametrize("days", [[46_082.5] * 5 + [1_772_366_400.0] * 95, [46_082.5, 46_083.0], [32_874.1, 73_050.9]])
def test_serial_days_beside_epoch_times_are_refused(kind, days):
    with pytest.raises(InputError, match='`time_unit="excel"`'):
        epoch(pa.array(days).cast(kind))


def test_seconds_from_a_start_are_no_serial_days():
    assert epoch(pa.array(range(0, 86_400, 600)))[0] == [1000 * s for s in range(0, 86_400, 600)]
    stray = [50_000.0] + [1_772_366_400.0 + i for i in range(999)]
    assert epoch(pa.array(stray))[0][:2] == [50_000_000, NOON]


PLACES = {
    "52,5163": 52.5163,
    "39.9N": 39.9,
    "N 39.9": 39.9,
    "39.9 S": -39.9,
    "39°54'27.36\"N": 39.9076,
    "39°54.456′S": -39.9076,
    "1 5": None,
    "39° 54′ 27.36″ N": 39.9076,
    "39.9E": None,
    "39.9O": None,
    "-39.9S": None,
    "39°61'N": None,
    "39,9,1": None,
    "12:30": None,
    "39.9NN": None,
}


@pytest.mark.parametrize(("text", "expected"), PLACES.items(), ids=PLACES)
def test_latitudes_as_people_write_them(text, expected):
    table = pa.table({"uid": [1, 1], "time": [0, 60], "lat": ["1.0", text], "lng": [2.0, 2.0]})
    lat = read_events(table, ReadOptions()).lat[1:]
    assert lat.tolist() == ([] if expected is None else [pytest.approx(expected, abs=1e-9)])


def test_commas_in_metres_are_not_guessed():
    table = pa.table({"uid": [1, 1], "time": [0, 60], "x": ["441,234", "441 234"], "y": [2.0, 2.0]})
    events = read_events(table, ReadOptions(crs="EPSG:32650"))
    assert len(events) == 1
    assert any("thousands or decimals" in note for note in events.account.notes)
