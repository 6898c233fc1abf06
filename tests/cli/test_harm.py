"""Four mistakes that hurt people are refused or said on the command line; tests/unit has them in Python."""

import json

import pytest


def calls(n=60, people=12):
    places = [(40 + i % 7 / 50, 116 + i % 5 / 50) for i in range(n)]
    times = [f"2026-03-0{1 + i % 5}T08:{i % 60:02}:00Z" for i in range(n)]
    rows = (f"{i},C{i % people:03},{times[i]},{lat},{lng}" for i, (lat, lng) in enumerate(places))
    return "id,customer_ref,datetime,lat,lon\n" + "\n".join(rows) + "\n"


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "export.csv"
    path.write_text(calls())
    return path


def test_a_row_number_never_becomes_the_person(run, export, tmp_path):
    for command in (["inspect", export], ["anonymize", export, "r.parquet", "--k", "3"]):
        said = run(*command, check=2).stderr
        assert "several columns could be the user" in said
        assert "--columns user=customer_ref" in said
        told = run(*command, "--columns", "user=id", check=2).stderr
        assert "column id stands in one row only: it seems to number rows, not people" in told
        assert "--confirm one-sample" in told
    out = run("anonymize", export, "r.parquet", "--k", "3", "--columns", "user=customer_ref", check=0).stdout
    assert out.startswith("Columns: user = customer_ref, time = datetime, lat = lat, lng = lon\n")
    assert not (tmp_path / "x.parquet").exists()
    run("anonymize", export, "x.parquet", "--k", "3", "--columns", "user=id", "--confirm", "one-sample", check=0)


def test_a_mistyped_configuration_is_not_ignored(run, export, tmp_path):
    (tmp_path / "run.toml").write_text("[anonymise]\nk = 5\n")
    said = run("anonymize", export, "r.parquet", "--config", tmp_path / "run.toml", check=2).stderr
    assert "did you mean [anonymize]?" in said
    assert "--k" in run("anonymize", export, "r.parquet", "--columns", "user=customer_ref", check=2).stderr


def test_a_failed_verdict_fails(run, export):
    run("anonymize", export, "r.parquet", "--k", "3", "--columns", "user=customer_ref", check=0)
    done = run("verify", export, "r.parquet", "--k", "12", "--columns", "user=customer_ref", "--json", check=1)
    assert json.loads(done.stdout)["ok"] is False


def test_options_that_were_forgotten_are_taken_from_the_run_record_or_named(run, export, tmp_path):
    export.write_text(calls().replace("Z,", ","))
    made = ("--columns", "user=customer_ref", "--tz", "Asia/Tokyo")
    run("anonymize", export, "r.parquet", "--k", "3", *made, "--audit", "a.parquet", check=0)
    assert "--columns, --tz" in " ".join(run("verify", export, "r.parquet", check=0).stdout.split())
    (tmp_path / "r.parquet.run.json").unlink()
    out = run("verify", export, "r.parquet", *made[:2], check=1).stdout
    assert "-9 h apart" in out
    assert "--tz" in out
