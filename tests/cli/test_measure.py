"""`shoal measure`, and the flags of the ledger, as a person or a program meets them."""

import json

import pyarrow.parquet as pq


def test_unicity_in_plain_words(run, events):
    out = run("measure", events, "--unicity", check=0).stdout
    header, columns, *lines = out.splitlines()
    assert "among 120 drawn from 120" in header
    assert columns.split() == ["points", "100", "m", "/", "1", "min", "1", "km", "/", "1", "h"]
    assert [line.split()[0] for line in lines[:10]] == [str(p) for p in range(1, 11)]
    assert "knows 4 points" in out
    assert "shoal anonymize" in out


def test_unicity_for_programs(run, events, tmp_path):
    table = tmp_path / "unicity.parquet"
    arguments = ["measure", events, "--unicity", "--points", "2,4", "--resolution", "1km/1h,native", "--sample", "50"]
    rows = run(*arguments, "--json", "--output", table, check=0).json["unicity"]
    assert [(row["points"], row["space_m"], row["time_s"]) for row in rows] == [
        (2, 1000, 3600),
        (4, 1000, 3600),
        (2, 100, 60),
        (4, 100, 60),
    ]
    assert all(row["people"] == 50 and row["low"] <= row["share"] <= row["high"] for row in rows)
    assert pq.read_table(table).to_pylist() == rows
    code, _, err = run(*arguments, "--output", table)
    assert (code, "--overwrite" in err) == (2, True)


def test_measure_reads_as_the_other_commands_do(run, events, tmp_path):
    (tmp_path / "run.toml").write_text('[read]\ncell = "2km"\n[measure]\nunicity = true\npoints = "3"\n')
    out = run("measure", events, "--config", tmp_path / "run.toml", "--resolution", "native", "--json", check=0).stdout
    (row,) = json.loads(out)["unicity"]
    assert (row["points"], row["space_m"]) == (3, 2000)


def test_a_ledger_on_the_command_line_and_in_the_configuration(run, events, tmp_path):
    (tmp_path / "run.toml").write_text(f'[anonymize]\nledger = "{tmp_path / "book"}"\n')
    config = ["--config", tmp_path / "run.toml"]
    _, out, err = run("anonymize", events, tmp_path / "1.parquet", "--k", 2, *config, check=0)
    assert "shares people with no earlier one" in out
    _, out, err = run(
        "anonymize", events, tmp_path / "2.parquet", "--k", 2, "--ledger", tmp_path / "book", "--json", check=2
    )
    assert json.loads(out)["error"]["kind"] == "OverlapError"
    assert "--allow-overlap" in err
    out = run("anonymize", events, tmp_path / "2.parquet", *config, "--allow-overlap", "--k", "3", check=0).stdout
    assert "120 of 120 people are in earlier releases too" in out
    assert "among fewer than k = 3" in out
    out = run(
        "anonymize", events, tmp_path / "3.parquet", "--k", 2, *config, "--allow-overlap", "--json", check=0
    ).stdout
    overlap = json.loads(out)["overlap"]
    assert overlap["shared"] == 120
    assert [one["release"] for one in overlap["each"]] == ["1.parquet", "2.parquet"]
    assert overlap["together"]["least"] >= 1


def test_without_a_ledger_nothing_is_noted(run, events, tmp_path):
    for name in ("1.parquet", "2.parquet"):
        assert run("anonymize", events, tmp_path / name, "--k", 2, "--json", check=0).json["overlap"] is None
    assert len(list(tmp_path.iterdir())) == 4
