from __future__ import annotations

import pytest

from shoal.errors import SettingsError
from shoal.run import Run
from shoal.units import parse_metres, parse_seconds

METRES = {"200m": 200, "15km": 15_000, "1.5 km": 1_500, "7": 7, 100: 100, "0.001km": 1}
SECONDS = {"30s": 30, "60min": 3_600, "6h": 21_600, "14d": 1_209_600, "0.5h": 1_800, 60: 60}
RUNS = [("threads", 0), ("threads", "two"), ("threads", 1.5), ("memory", 0), ("memory", "8 miles"), ("memory", 8e9)]


@pytest.mark.parametrize(("given", "metres"), METRES.items())
def test_lengths(given, metres):
    assert parse_metres(given) == metres


@pytest.mark.parametrize(("given", "seconds"), SECONDS.items())
def test_durations(given, seconds):
    assert parse_seconds(given) == seconds


@pytest.mark.parametrize("bad", ["", "m", "-5m", "5 miles", "1.5m", "nan", "1e3", None, 1.5, True, "9" * 40, "٣m"])
def test_anything_else_is_a_settings_error(bad):
    for parse in (parse_metres, parse_seconds):
        with pytest.raises(SettingsError):
            parse(bad)


@pytest.mark.parametrize(("name", "wrong"), [*RUNS, ("work_dir", 3)])
def test_a_run_names_what_is_wrong(name, wrong):
    with pytest.raises(SettingsError, match=f"^{name}: "):
        Run(**{name: wrong})
