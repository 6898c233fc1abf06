"""The commands as a person or a program meets them."""

import io
import json
import re
import sys
from dataclasses import fields

import pyarrow.parquet as pq
import pytest

import shoal
from shoal.cli.options import MethodSettings, Reading
from shoal.methods import METHODS
from shoal.reading.options import ReadOptions


def test_version(run):
    assert run("--version")[1].strip() == shoal.__version__


@pytest.mark.parametrize(
    "command",
    ["demo", "synth", "inspect", "measure", "anonymize", "verify", "attack", "evaluate", "compare", "methods"],
)
def test_help_shows_an_example(run, command):
    out = run(command, "--help", check=0).stdout
    assert f"Example: shoal {command}" in " ".join(out.split())
    assert "PATHS" not in out


def test_help_shows_each_method_its_own_text(run):
    out = run("anonymize", "--help", check=0).stdout
    assert "│ --k INT " in out
    assert "│ INPUT... OUTPUT  The files" in out
    assert re.findall(r"--epsilon (\w+) +(\w+ \w+)", out) == [("DURATION", "How much"), ("NUMBER", "The privacy")]


def test_the_forms_other_programs_rely_on(run, events, tmp_path):
    release, audit = tmp_path / "release.parquet", tmp_path / "audit.parquet"
    run("anonymize", events, release, "--method", "k-scale", "--k", "3", "--audit", audit, "--seed", "1", check=0)
    verdict = run("verify", events, release, "--k", "3", "--audit", audit, "--json", check=0).json
    assert verdict["ok"] is True
    assert verdict["failures"] == []
    assert verdict["figures"]["min_cover"] >= 3
    assert run("verify", events, release, "--k", "60", "--json", check=1).json["failures"] == ["cover"]


def test_several_inputs(run, events, tmp_path):
    table = pq.read_table(events)
    for n, part in enumerate((table.slice(0, 1000), table.slice(1000))):
        pq.write_table(part, tmp_path / f"{n}.parquet")
    run("anonymize", tmp_path / "0.parquet", tmp_path / "1.parquet", tmp_path / "r.parquet", "--k", 2, check=0)
    run("verify", tmp_path / "[01].parquet", tmp_path / "r.parquet", check=0)
    run("verify", tmp_path / "0.parquet", tmp_path / "1.parquet", tmp_path / "r.parquet", check=0)


def test_existing_output(run, events, tmp_path):
    release = tmp_path / "r.parquet"
    run("anonymize", events, release, "--k", 2, check=0)
    err = run("anonymize", events, release, "--k", 2, check=2).stderr
    assert "--overwrite" in err
    run("anonymize", events, release, "--k", 2, "--overwrite", check=0)


@pytest.mark.parametrize("how", ["itself", "audit", "glob", "cells"])
def test_an_input_is_never_overwritten(run, events, tmp_path, how):
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(events.read_bytes())
    arguments = {
        "itself": [copy, copy],
        "audit": [copy, tmp_path / "r.parquet", "--audit", copy],
        "glob": [tmp_path / "*.parquet", copy],
        "cells": [events, copy, "--cells", copy],
    }[how]
    err = run("anonymize", *arguments, "--k", 2, "--overwrite", check=2).stderr
    assert "never overwritten" in err
    assert copy.read_bytes() == events.read_bytes()


def test_a_release_does_not_lie_among_its_inputs(run, events, tmp_path):
    (tmp_path / "copy.parquet").write_bytes(events.read_bytes())
    err = run("anonymize", tmp_path, tmp_path / "r.parquet", "--k", 2, check=2).stderr
    assert "put it elsewhere" in err


@pytest.mark.parametrize(
    "more",
    [
        ["r.pq"],
        ["r.parquet", "--audit", "a.txt"],
        ["r.csv", "--geo"],
        ["r.parquet", "--compact"],
        ["r.parquet", "--crs", "+proj=laea +lat_0=14.5 +lon_0=-17 +datum=WGS84 +units=m"],
    ],
)
def test_what_can_not_be_written_is_refused_before_reading(run, events, monkeypatch, more):
    monkeypatch.setattr(shoal.Shoal, "read", lambda *_, **__: pytest.fail("it was read"))
    run("anonymize", events, *more, "--k", 2, check=2)


def test_full_and_compact(run, events, tmp_path):
    release, audit = tmp_path / "r.parquet", tmp_path / "a.parquet"
    arguments = ["--k", "4", "--method", "k-scale", "--constraint", "full", "--compact", "--audit", audit, "--json"]
    assert run("anonymize", events, release, *arguments, check=0).json["claim"] == {"name": "k-anonymity", "k": 4}
    for more in ([], ["--audit", audit]):
        run("verify", events, release, *more, check=0)


def test_csv_release(run, events, tmp_path):
    release = tmp_path / "r.csv"
    run("anonymize", events, release, "--k", "3", check=0)
    run("verify", events, release, check=0)


def test_run_record_and_config(run, events, tmp_path):
    """A run can be written down: the same TOML serves anonymize and verify; flags come first."""
    (tmp_path / "run.toml").write_text(
        '[read]\nmin_samples = 5\ncell = "500m"\nbbox = [-180, -90, 180, 90]\n'
        'columns = {user = "uid"}\n[anonymize]\nk = 4\nmethod = "k-scale"\nconstraint = "k-pick"\n'
        "[verify]\nexact = true\n"
    )
    config = ["--config", tmp_path / "run.toml"]
    arguments = [events, tmp_path / "r.parquet", "--run-record", tmp_path / "run.json", "--k", "3", "--json"]
    out = run("anonymize", *arguments, *config, check=0).stdout
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["read"]["min_samples"] == 5
    assert record["read"]["cell"] == 500
    assert record["parameters"]["k"] == 3
    assert record["parameters"]["constraint"] == "k-pick"
    assert record["cleaning"]["rows_read"] == json.loads(out)["account"]["rows_read"]
    run("verify", events, tmp_path / "r.parquet", *config, check=0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("not toml", "is not TOML"),
        ("k = 5", "k is in no table"),
        ("[anonymise]\nk = 5", "no table [anonymise]; did you mean [anonymize]?"),
        ("[reading]\ntz = 'UTC'", "no table [reading]; did you mean [read]?"),
        ("[zzz]", "there are: [read], [demo]"),
        ("[read]\nsell = '1km'", "[read] has no setting sell; did you mean cell?"),
        ("[read]\nk = 5", "[read] has no setting k; there are: columns, tz"),
        ("[anonymize]\nmax_spam = '5km'", "[anonymize] has no setting max_spam; did you mean max_span?"),
        ("[verify]\nexacts = true", "[verify] has no setting exacts; did you mean exact?"),
        ("[anonymize]\nk = 'x'", "--k: must be a whole number"),
    ],
)
def test_wrong_config(run, events, tmp_path, text, said):
    (tmp_path / "run.toml").write_text(text)
    err = run("anonymize", events, tmp_path / "r.parquet", "--config", tmp_path / "run.toml", check=2).stderr
    assert err.startswith("shoal: ")
    assert said in err
    assert not (tmp_path / "r.parquet").exists()


def test_a_part_of_the_data(run, events, tmp_path):
    """What is left out by --period, --bbox and --min-samples is outside the claim; verify takes the same flags."""
    release = tmp_path / "r.parquet"
    flags = ["--period", "2026-01-05,2026-01-07", "--min-samples", "5", "--bbox", "-180,-90,180,90"]
    run("anonymize", events, release, "--k", "2", *flags, check=0)
    run("verify", events, release, *flags, check=0)
    run("verify", events, release, check=1)


def test_dry_run(run, events, tmp_path):
    out = run("anonymize", events, tmp_path / "r.parquet", "--k", 2, "--dry-run", check=0).stdout
    assert "memory" in out
    assert list(tmp_path.iterdir()) == []


def test_inspect(run, events):
    assert run("inspect", events, "--json", check=0).json["users"] == 120
    out = run("inspect", events)[1]
    assert "users" in out
    assert "Columns: user = uid, time = datetime, lat = lat, lng = lng" in out


def test_compare(run, tmp_path):
    few, table = tmp_path / "few.parquet", tmp_path / "table.json"
    shoal.synthesize(few, users=30, scene="town", days=2, seed=3)
    arguments = ["compare", few, "--methods", "shoal,k-scale:full", "--k", "2,3", "--threads", "1"]
    _, out, err = run(*arguments, "--output", table, check=0)
    header, *rows = out.splitlines()
    assert header.split()[:5] == ["method", "k", "claim", "owner", "cost"]
    assert [row.split()[:3] for row in rows] == [
        ["shoal", "2", "k-anonymity(2)"],
        ["k-scale:full", "2", "k-anonymity(2)"],
        ["shoal", "3", "k-anonymity(3)"],
        ["k-scale:full", "3", "k-anonymity(3)"],
    ]
    err = run(*arguments, "--output", table, check=2).stderr
    assert "--overwrite" in err
    saved = table.read_text()
    runs = run(*arguments, "--output", table, "--overwrite", "--json", check=0).json["runs"]
    assert json.loads(table.read_text()) == runs
    assert [{**one, "seconds": 0, "peak_memory_bytes": 0} for one in runs] == [
        {**one, "seconds": 0, "peak_memory_bytes": 0} for one in json.loads(saved)
    ]


def test_compare_reads_as_the_other_commands_do(run, events, tmp_path):
    (tmp_path / "run.toml").write_text('[read]\ncell = "2km"\n[compare]\nmethods = "shoal"\nk = "4"\n')
    (one,) = run("compare", events, "--config", tmp_path / "run.toml", "--json", check=0).json["runs"]
    assert (one["method"], one["k"]) == ("shoal", 4)
    assert one["span_km_median"] >= 2


def test_synth(run, tmp_path):
    run("synth", tmp_path / "p.parquet", "--users", "30", "--days", "2", "--seed", "1", check=0)
    assert len(shoal.read(tmp_path / "p.parquet")) == 30
    run("synth", tmp_path / "p.parquet", "--users", "30", check=2)


def test_demo_leaves_its_files(run, tmp_path):
    out = run("demo", "--users", "60", "--folder", tmp_path / "shoal-demo", check=0).stdout
    assert "single out" in out
    run("verify", "shoal-demo/events.parquet", "shoal-demo/release.parquet", "--k", "3", check=0)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["anonymize"], "OUTPUT"),
        (["anonymize", "none.parquet"], "OUTPUT"),
        (["anonymize", "none.parquet", "r.parquet", "--k", "2"], "none.parquet"),
        (["anonymize", "EVENTS", "none/r.parquet", "--k", "2"], "does not exist"),
        (["anonymize", "EVENTS", "r.parquet"], "--k: is missing: hide everyone among at least k people, e.g. 5"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "1"], "k:"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "500"], "500"),
        (["anonymize", "EVENTS", "r.parquet", "--method", "magic"], "k-scale"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--threads", "0"], "--threads: "),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--memory", "8 miles"], "--memory: "),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--cell", "0", "--slot", "0"], "; --slot: "),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--columns", "usr=uid"], "--columns: no such role"),
        (
            ["anonymize", "EVENTS", "r.parquet", "--k", "2", "--min-samples", "9999"],
            "lower --min-samples or --min-active-days",
        ),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--cell", "tiny"], "200m"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--columns", "user"], "role=column"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--bbox", "here"], "west"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--bbox", "1,2,3"], "four numbers"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--period", "2026-01-05"], "--period: give two ISO times"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--tz", "Moon/Crater"], "zone"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--crs", "EPSG:4326"], "metres"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--seed", "-1"], "seed"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--audit", "r.parquet"], "different names"),
        (["anonymize", "EVENTS", "r.csv", "--k", "2", "--geo"], "GeoParquet"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--config", "none.toml"], "none.toml"),
        (["verify", "EVENTS", "none.parquet"], "release"),
        (["verify", "EVENTS"], "RELEASE"),
        (["compare"], "file"),
        (["compare", "none.csv"], "none.csv"),
        (["compare", "EVENTS", "--methods", "magic"], "k-scale:marginal"),
        (["compare", "EVENTS", "--methods", "shoal:magic"], "shoal:thorough"),
        (["compare", "EVENTS", "--methods", ","], "--methods"),
        (["compare", "EVENTS", "--k", "two"], "--k 2,5,10"),
        (["compare", "EVENTS", "--k", "2,1"], "k:"),
        (["compare", "EVENTS", "--k", "2,500"], "500"),
        (["compare", "EVENTS", "--output", "table.txt"], ".parquet"),
        (["compare", "EVENTS", "--output", "none/table.csv"], "does not exist"),
        (["measure"], "file"),
        (["measure", "EVENTS"], "--unicity"),
        (["measure", "none.csv", "--unicity"], "none.csv"),
        (["measure", "EVENTS", "--unicity", "--points", "four"], "--points"),
        (["measure", "EVENTS", "--unicity", "--points", ","], "from 1 to"),
        (["measure", "EVENTS", "--unicity", "--points", "0,1"], "from 1 to"),
        (["measure", "EVENTS", "--unicity", "--resolution", "fine"], "--resolution"),
        (["measure", "EVENTS", "--unicity", "--resolution", "1km/soon"], "duration"),
        (["measure", "EVENTS", "--unicity", "--resolution", "1m/1h"], "finer than the grid"),
        (["measure", "EVENTS", "--unicity", "--sample", "0"], "sample"),
        (["measure", "EVENTS", "--unicity", "--seed", "-1"], "seed"),
        (["measure", "EVENTS", "--unicity", "--output", "table.txt"], ".parquet"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--allow-overlap"], "--ledger"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--ledger", "r.parquet"], "different names"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--ledger", "none/book"], "folder"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "2", "--ledger", "."], "ledger"),
        (["measure", "EVENTS", "--k", "two"], "--k"),
        (["measure", "EVENTS", "--k", "1"], "from 2"),
        (["measure", "EVENTS", "--k", ","], "from 2"),
        (["measure", "EVENTS", "--k", "2,121"], "120 people"),
        (["measure", "EVENTS", "--k", "2", "--sample", "0"], "sample"),
        (["measure", "EVENTS", "--k", "2", "--unicity", "--output", "t.parquet"], "one table"),
        (["measure", "EVENTS", "--k", "2", "--output", "t.txt"], ".parquet"),
        (["measure", "EVENTS", "--unicity", "--plots", "figures"], "--k"),
        (["measure", "EVENTS", "--k", "2", "--plots", "none/figures"], "does not exist"),
        (["inspect"], "file"),
        (["inspect", "none.csv"], "none.csv"),
        (["anonymise"], "anonymise"),
        (["anonymize", "a", "b", "--no-such-flag"], "--no-such-flag"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(refused, arguments, hint):
    assert hint in refused(*arguments)


def test_errors_as_json(run, tmp_path):
    assert run("inspect", tmp_path / "none.csv", "--json", check=2).json["error"]["kind"] == "UnreadableFile"


def test_an_unexpected_error_says_where_and_no_value(run, events, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise ValueError("a secret value")

    monkeypatch.setattr(shoal.Shoal, "read", broken)
    _, out, err = run("anonymize", events, tmp_path / "r.parquet", "--k", 2, check=2)
    assert "secret" not in out + err
    assert "ValueError in" in err


def test_quiet_in_a_pipe(process, events, tmp_path):
    _, out, err = process("anonymize", events, tmp_path / "r.parquet", "--k", 2, check=0)
    assert re.sub(r"shoal: .+ elapsed.*\n", "", err) == ""  # these lines come only from runs of many seconds
    assert "\x1b" not in out
    process("anonymise", check=2)


def test_flags_are_the_settings_of_reading_and_of_all_methods():
    assert {field.name for field in fields(Reading)} == set(ReadOptions.model_fields)
    settings = {name for method in METHODS.values() for name in method.model_fields}
    assert {field.name for field in fields(MethodSettings)} == settings


def test_data_is_piped_in_by_a_hyphen(run, monkeypatch):
    rows = "".join(f"{user};23.04.2012;{hour}:00;52,51;13,37\n" for user in "ab" for hour in (8, 9))
    piped = f"Nutzer;Datum;Uhrzeit;Breite;Länge\n{rows}".encode("cp1252")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    _, out, err = run("inspect", "-")
    assert "day/month/year" in out + err
    assert "Windows-1252" in out + err


def test_unclear_dates_name_the_flag(refused, tmp_path, monkeypatch):
    piped = b"uid,time,lat,lng\na,03/04/2012 08:00,1,2\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
    said = refused("inspect", "-", "--work-dir", str(tmp_path))
    assert "--time-format dmy for day/month/year, or --time-format mdy for month/day/year" in said
