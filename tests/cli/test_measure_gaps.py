"""`shoal measure --k`, as a person or a program meets it."""

import json
import stat
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.measure.plots import PLOTS


def test_the_form_other_programs_rely_on(run, events, tmp_path):
    path = tmp_path / "gaps.parquet"
    run("measure", events, "--k", "2,4", "--output", path, check=0)
    table = pq.read_table(path)
    assert table.column_names == ["uid", "k", "gap", "space", "time"]
    assert table.num_rows == 240
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    gaps = shoal.k_gap(shoal.read(events), [2, 4])
    assert table.equals(gaps.table())
    columns = {name: np.array(table[name]) for name in table.column_names}
    assert set(columns["k"].tolist()) == {2, 4}
    assert np.allclose(columns["gap"], columns["space"] + columns["time"], atol=1e-12)
    assert set(columns["uid"].tolist()) == set(pq.read_table(events)["uid"].to_pylist())


def test_in_plain_words(run, events):
    out = run("measure", events, "--k", "2,5", check=0).stdout
    lines = out.splitlines()
    assert "k-gaps of 120 of 120 people" in lines[0]
    rows = [line.split() for line in lines[3:5]]
    assert [row[0] for row in rows] == ["2", "5"]
    assert all(0 <= float(figure) <= 1 for row in rows for figure in row[1:5])
    assert float(rows[0][2]) <= float(rows[1][2])
    assert "20 km / 8 h" in out
    assert "radius of gyration" in out
    assert "nobody looks the same as one other person" in out
    assert "--k 5" in lines[-1]


def test_figures_for_programs(run, events):
    found = run("measure", events, "--k", "3,2", "--sample", "30", "--seed", "4", "--json", check=0).json
    gaps = shoal.k_gap(shoal.read(events), [3, 2], sample=30, seed=4)
    assert [row["k"] for row in found["k_gap"]] == [3, 2]
    assert [row["people"] for row in found["k_gap"]] == [30, 30]
    assert [row["mean"] for row in found["k_gap"]] == pytest.approx(gaps.gap.mean(axis=0).tolist())
    first = found["k_gap"][0]
    assert first["space_km"] / 20 * 0.5 + first["time_min"] / 480 * 0.5 == pytest.approx(first["mean"])
    assert found["tails"]["k"] == 2
    assert found["users"] == 120
    assert [level["space_m"] for level in found["generalization"]][-1] == 20_000
    assert -1 <= found["correlations"]["irregularity_min"]["pearson"] <= 1


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_other_tables(run, events, tmp_path, ending):
    path = tmp_path / f"gaps.{ending}"
    run("measure", events, "--k", "2", "--sample", "7", "--output", path, check=0)
    rows = pyarrow.csv.read_csv(path).to_pylist() if ending == "csv" else json.loads(path.read_text())
    assert len(rows) == 7
    assert list(rows[0]) == ["uid", "k", "gap", "space", "time"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    code, _, err = run("measure", events, "--k", "2", "--output", path)
    assert (code, "--overwrite" in err) == (2, True)


def test_plots_are_inert_and_whole(run, events, tmp_path):
    folder = tmp_path / "figures"
    run("measure", events, "--k", "2,5", "--sample", "40", "--plots", folder, check=0)
    assert sorted(path.name for path in folder.iterdir()) == sorted(PLOTS)
    for path in folder.iterdir():
        root = ET.parse(path).getroot()
        assert root.tag.endswith("svg")
        kinds = {element.tag.split("}")[1] for element in root.iter()}
        assert kinds <= {"svg", "title", "rect", "text", "path", "circle"}
        assert "http" not in path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
    run("measure", events, "--k", "2", "--plots", folder, check=2)
    run("measure", events, "--k", "2", "--sample", "9", "--plots", folder, "--overwrite", check=0)


def test_both_at_once(run, events):
    out = run("measure", events, "--k", "2", "--unicity", "--points", "4", "--sample", "20", check=0).stdout
    assert "k-gaps of 20 of 120" in out
    assert "among 20 drawn from 120" in out
    found = run("measure", events, "--k", "2", "--unicity", "--points", "4", "--json", check=0).json
    assert found["k_gap"][0]["people"] == 120
    assert found["unicity"][0]["people"] == 120


def test_settings_in_a_file(run, events, tmp_path):
    (tmp_path / "run.toml").write_text('[measure]\nk = "2,3"\nsample = 5\n')
    out = run("measure", events, "--config", tmp_path / "run.toml", "--json", check=0).stdout
    assert [(row["k"], row["people"]) for row in json.loads(out)["k_gap"]] == [(2, 5), (3, 5)]


def minute(n):
    return f"2024-01-0{1 + n // 1440}T{n // 60 % 24:02}:{n % 60:02}:00Z"


ODD = {
    "one person": ([(0, 5, 0), (0, 90, 1)], 2, "lower k"),
    "fewer than k": ([(0, 5, 0), (1, 5, 0)], 2, "lower k"),
    "identical": ([(user, t, 0) for user in range(6) for t in (5, 700)], 0, ""),
    "one sample each": ([(user, 7 * user, user) for user in range(6)], 0, ""),
    "a crowded minute": ([(user, 3, n) for user in range(3) for n in range(1500)], 0, ""),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_people(run, tmp_path, name):
    rows, expected, hint = ODD[name]
    path = tmp_path / "odd.csv"
    lines = [f"u{user},{minute(t)},{14.5 + cell * 1e-3:.4f},-17.2" for user, t, cell in rows]
    path.write_text("\n".join(["uid,datetime,lat,lng", *lines, ""]))
    release = tmp_path / "release.parquet"
    for command in (
        ["measure", path, "--k", "3", "--json"],
        ["anonymize", path, release, "--method", "glove", "--variant", "loose", "--k", "3"],
    ):
        _, out, err = run(*command, check=expected)
        assert hint in err
        assert "Traceback" not in out + err
        assert "14.5" not in err
    assert release.exists() == (expected == 0)
