from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

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
