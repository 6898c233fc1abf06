from __future__ import annotations

import pytest

from shoal.errors import SettingsError
from shoal.units import parse_metres, parse_seconds


@pytest.mark.parametrize(
    ("text", "metres"), [("200m", 200), ("15km", 15_000), ("1.5 km", 1_500), ("7", 7), (100, 100), ("0.001km", 1)]
)
def test_lengths(text, metres):
    assert parse_metres(text) == metres


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("60min", 3_600), ("6h", 21_600), ("14d", 1_209_600), ("0.5h", 1_800), (60, 60)]
)
def test_durations(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("bad", ["", "m", "-5m", "5 miles", "1.5m", "nan", "1e3", None, 1.5, True, "9" * 40, "٣m"])
def test_anything_else_is_a_settings_error(bad):
    with pytest.raises(SettingsError):
        parse_metres(bad)
    with pytest.raises(SettingsError):
        parse_seconds(bad)
