"""The commands as a person or a program meets them."""

import json
from dataclasses import fields

import pyarrow.parquet as pq
import pytest

import shoal
from shoal.cli.options import Reading
from shoal.reading.options import ReadOptions


def test_version(call):
    assert call("--version")[1].strip() == shoal.__version__


@pytest.mark.parametrize(
    "command", ["demo", "synth", "inspect", "measure", "anonymize", "verify", "attack", "evaluate", "compare"]
)
def test_help_shows_an_example(call, command):
    code, out, _ = call(command, "--help")
    assert code == 0
    assert f"Example: shoal {command}" in " ".join(out.split())


def test_the_forms_other_programs_rely_on(call, events, tmp_path):
    release, audit = tmp_path / "release.parquet", tmp_path / "audit.parquet"
    code, *_ = call("anonymize", events, release, "--method", "k-scale", "--k", "3", "--audit", audit, "--seed", "1")
    assert code == 0
    code, out, _ = call("verify", events, release, "--k", "3", "--audit", audit, "--json")
    assert code == 0
    verdict = json.loads(out)
    assert verdict["ok"] is True
    assert verdict["failures"] == []
    assert verdict["figures"]["min_cover"] >= 3
    code, out, _ = call("verify", events, release, "--k", "60", "--json")
    assert code == 1
    assert json.loads(out)["failures"] == ["cover"]


def test_several_inputs(call, events, tmp_path):
    table = pq.read_table(events)
    for n, part in enumerate((table.slice(0, 1000), table.slice(1000))):
        pq.write_table(part, tmp_path / f"{n}.parquet")
    assert call("anonymize", tmp_path / "0.parquet", tmp_path / "1.parquet", tmp_path / "r.parquet")[0] == 0
    assert call("verify", tmp_path / "[01].parquet", tmp_path / "r.parquet")[0] == 0
    assert call("verify", tmp_path / "0.parquet", tmp_path / "1.parquet", tmp_path / "r.parquet")[0] == 0


def test_existing_output(call, events, tmp_path):
    release = tmp_path / "r.parquet"
    assert call("anonymize", events, release)[0] == 0
    code, _, err = call("anonymize", events, release)
    assert code == 2
    assert "--overwrite" in err
    assert call("anonymize", events, release, "--overwrite")[0] == 0


@pytest.mark.parametrize("how", ["itself", "audit", "glob", "cells"])
def test_an_input_is_never_overwritten(call, events, tmp_path, how):
    copy = tmp_path / "copy.parquet"
    copy.write_bytes(events.read_bytes())
    arguments = {
        "itself": [copy, copy],
        "audit": [copy, tmp_path / "r.parquet", "--audit", copy],
        "glob": [tmp_path / "*.parquet", copy],
        "cells": [events, copy, "--cells", copy],
    }[how]
    code, _, err = call("anonymize", *arguments, "--overwrite")
    assert code == 2
    assert "never overwritten" in err
    assert copy.read_bytes() == events.read_bytes()


def test_a_release_does_not_lie_among_its_inputs(call, events, tmp_path):
    (tmp_path / "copy.parquet").write_bytes(events.read_bytes())
    code, _, err = call("anonymize", tmp_path, tmp_path / "r.parquet")
    assert code == 2
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
def test_what_can_not_be_written_is_refused_before_reading(call, events, tmp_path, monkeypatch, more):
    import shoal.pipeline

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shoal.pipeline, "read", lambda *_, **__: pytest.fail("it was read"))
    assert call("anonymize", events, *more)[0] == 2


def test_another_tools_release_on_the_usual_grid(call, events, tmp_path):
    """Without manifest and metadata the grid must be given; then it is checked, integrity excepted."""
    release = tmp_path / "r.parquet"
    assert call("anonymize", events, release, "--k", "2")[0] == 0
    crs = shoal.read_release(release).frame.crs
    foreign = tmp_path / "foreign.parquet"
    pq.write_table(pq.read_table(release).replace_schema_metadata(None), foreign)
    assert call("verify", events, foreign, "--k", "2")[0] == 2
    code, out, err = call("verify", events, foreign, "--k", "2", "--crs", crs, "--cell", "100m", "--slot", "60s")
    assert code == 0, out + err
    assert "Integrity not checked" in out


def test_full_and_compact(call, events, tmp_path):
    release, audit = tmp_path / "r.parquet", tmp_path / "a.parquet"
    arguments = ["--k", "4", "--method", "k-scale", "--constraint", "full", "--compact", "--audit", audit, "--json"]
    code, out, _ = call("anonymize", events, release, *arguments)
    assert code == 0
    assert json.loads(out)["claim"] == {"name": "k-anonymity", "k": 4}
    for more in ([], ["--audit", audit]):
        assert call("verify", events, release, *more)[0] == 0


def test_csv_release(call, events, tmp_path):
    release = tmp_path / "r.csv"
    assert call("anonymize", events, release, "--k", "3")[0] == 0
    assert call("verify", events, release)[0] == 0


def test_run_record_and_config(call, events, tmp_path):
    """A run can be written down: the same TOML serves anonymize and verify; flags come first."""
    (tmp_path / "run.toml").write_text(
        '[read]\nmin_samples = 5\ncell = "500m"\n[anonymize]\nk = 4\nmethod = "k-scale"\nconstraint = "k-pick"\n'
        "[verify]\nexact = true\n"
    )
    config = ["--config", tmp_path / "run.toml"]
    arguments = [events, tmp_path / "r.parquet", "--run-record", tmp_path / "run.json", "--k", "3", "--json"]
    code, out, err = call("anonymize", *arguments, *config)
    assert code == 0, err
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["read"]["min_samples"] == 5
    assert run["read"]["cell_m"] == 500
    assert run["parameters"]["k"] == 3
    assert run["parameters"]["constraint"] == "k-pick"
    assert run["cleaning"]["rows_read"] == json.loads(out)["account"]["rows_read"]
    assert call("verify", events, tmp_path / "r.parquet", *config)[0] == 0


@pytest.mark.parametrize("text", ["[read]\nno_such = 1\n", "[anonymize]\nk = 'x'\n", "not toml"])
def test_wrong_config(call, events, tmp_path, text):
    (tmp_path / "run.toml").write_text(text)
    code, _, err = call("anonymize", events, tmp_path / "r.parquet", "--config", tmp_path / "run.toml")
    assert code == 2
    assert err.startswith("shoal: ")
    assert not (tmp_path / "r.parquet").exists()


def test_missing_config(call, events, tmp_path):
    assert call("anonymize", events, tmp_path / "r.parquet", "--config", tmp_path / "none.toml")[0] == 2


def test_a_part_of_the_data(call, events, tmp_path):
    """What is left out by --period, --bbox and --min-samples is outside the claim; verify takes the same flags."""
    release = tmp_path / "r.parquet"
    flags = ["--period", "2026-01-05,2026-01-07", "--min-samples", "5", "--bbox", "-180,-90,180,90"]
    assert call("anonymize", events, release, "--k", "2", *flags)[0] == 0
    assert call("verify", events, release, *flags)[0] == 0
    assert call("verify", events, release)[0] == 1


def test_dry_run(call, events, tmp_path):
    code, out, _ = call("anonymize", events, tmp_path / "r.parquet", "--dry-run")
    assert code == 0
    assert "memory" in out
    assert list(tmp_path.iterdir()) == []


def test_inspect(call, events):
    code, out, _ = call("inspect", events, "--json")
    assert code == 0
    assert json.loads(out)["users"] == 120
    assert "users" in call("inspect", events)[1]


def test_compare(call, events, tmp_path):
    table = tmp_path / "table.json"
    arguments = ["compare", events, "--methods", "shoal,k-scale:full", "--k", "2,3", "--threads", "1"]
    code, out, err = call(*arguments, "--output", table)
    assert code == 0, err
    header, *rows = out.splitlines()
    assert header.split()[:5] == ["method", "k", "claim", "owner", "cost"]
    assert [row.split()[:3] for row in rows] == [
        ["shoal", "2", "k-anonymity(2)"],
        ["k-scale:full", "2", "k-anonymity(2)"],
        ["shoal", "3", "k-anonymity(3)"],
        ["k-scale:full", "3", "k-anonymity(3)"],
    ]
    code, _, err = call(*arguments, "--output", table)
    assert code == 2
    assert "--overwrite" in err
    saved = table.read_text()
    code, out, _ = call(*arguments, "--output", table, "--overwrite", "--json")
    assert code == 0
    runs = json.loads(out)["runs"]
    assert json.loads(table.read_text()) == runs
    assert [{**run, "seconds": 0, "peak_memory_bytes": 0} for run in runs] == [
        {**run, "seconds": 0, "peak_memory_bytes": 0} for run in json.loads(saved)
    ]


def test_compare_reads_as_the_other_commands_do(call, events, tmp_path):
    (tmp_path / "run.toml").write_text('[read]\ncell = "2km"\n[compare]\nmethods = "shoal"\nk = "4"\n')
    code, out, err = call("compare", events, "--config", tmp_path / "run.toml", "--json")
    assert code == 0, err
    (run,) = json.loads(out)["runs"]
    assert (run["method"], run["k"]) == ("shoal", 4)
    assert run["span_km_median"] >= 2


def test_synth(call, tmp_path):
    assert call("synth", tmp_path / "p.parquet", "--users", "30", "--days", "2", "--seed", "1")[0] == 0
    assert len(shoal.read(tmp_path / "p.parquet")) == 30
    assert call("synth", tmp_path / "p.parquet", "--users", "30")[0] == 2


def test_demo_leaves_its_files(call, tmp_path):
    code, out, _ = call("demo", "--users", "200", "--folder", tmp_path / "shoal-demo")
    assert code == 0
    assert "single out" in out
    assert (
        call("verify", tmp_path / "shoal-demo/events.parquet", tmp_path / "shoal-demo/release.parquet", "--k", "3")[0]
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["anonymize"], "OUTPUT"),
        (["anonymize", "none.parquet"], "OUTPUT"),
        (["anonymize", "none.parquet", "r.parquet"], "none.parquet"),
        (["anonymize", "EVENTS", "none/r.parquet"], "does not exist"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "1"], "k:"),
        (["anonymize", "EVENTS", "r.parquet", "--k", "500"], "500"),
        (["anonymize", "EVENTS", "r.parquet", "--method", "magic"], "k-scale"),
        (["anonymize", "EVENTS", "r.parquet", "--threads", "0"], "--threads"),
        (["anonymize", "EVENTS", "r.parquet", "--cell", "tiny"], "200m"),
        (["anonymize", "EVENTS", "r.parquet", "--columns", "user"], "role=column"),
        (["anonymize", "EVENTS", "r.parquet", "--bbox", "here"], "west"),
        (["anonymize", "EVENTS", "r.parquet", "--bbox", "1,2,3"], "four numbers"),
        (["anonymize", "EVENTS", "r.parquet", "--period", "2026-01-05"], "comma"),
        (["anonymize", "EVENTS", "r.parquet", "--tz", "Moon/Crater"], "zone"),
        (["anonymize", "EVENTS", "r.parquet", "--crs", "EPSG:4326"], "metres"),
        (["anonymize", "EVENTS", "r.parquet", "--seed", "-1"], "seed"),
        (["anonymize", "EVENTS", "r.parquet", "--audit", "r.parquet"], "different names"),
        (["anonymize", "EVENTS", "r.csv", "--geo"], "GeoParquet"),
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
        (["inspect"], "file"),
        (["inspect", "none.csv"], "none.csv"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(refused, arguments, hint):
    assert hint in refused(*arguments)


def test_errors_as_json(call, tmp_path):
    code, out, _ = call("inspect", tmp_path / "none.csv", "--json")
    assert code == 2
    assert json.loads(out)["error"]["kind"] == "UnreadableFile"


@pytest.mark.parametrize("arguments", [["anonymise"], ["anonymize", "a", "b", "--no-such-flag"]])
def test_usage_errors_exit_2(run, arguments):
    done = run(*arguments)
    assert done.returncode == 2


def test_an_unexpected_error_says_where_and_no_value(call, events, tmp_path, monkeypatch):
    import shoal.pipeline

    def broken(*_, **__):
        raise ValueError("a secret value")

    monkeypatch.setattr(shoal.pipeline, "read", broken)
    code, out, err = call("anonymize", events, tmp_path / "r.parquet")
    assert code == 2
    assert "secret" not in out + err
    assert "ValueError in" in err


def test_quiet_in_a_pipe(run, events, tmp_path):
    done = run("anonymize", events, tmp_path / "r.parquet", check=0)
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_flags_and_options_agree():
    flags = {field.name for field in fields(Reading)}
    units = {"cell": "cell_m", "slot": "slot_s", "split_gap": "split_gap_s"}
    assert {units.get(flag, flag) for flag in flags} == set(ReadOptions.model_fields)
