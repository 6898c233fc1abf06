"""`shoal attack` as a person or a program meets it."""

import csv
import json

import pyarrow.parquet as pq
import pytest

import shoal
from shoal.attacks import ATTACKS
from tests.releases import grouped, toy_people, write_events

BOX = ["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max"]


@pytest.fixture(scope="module")
def made(events, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    people = shoal.read(events)
    shoal.Shoal(k=3).anonymize(people).write(folder / "release.parquet", audit=folder / "audit.parquet")
    shoal.KScale(k=2).anonymize(people).write(folder / "second.parquet", audit=folder / "second-audit.parquet")
    return folder


def test_it_says_what_was_known_won_and_promised(run, events, made):
    code, out, err = run("attack", events, made / "release.parquet", "--points", "4", "--victims", "50")
    assert (code, err) == (0, "")
    assert "Promised: k-anonymity(3)" in out
    assert "A guess among 3 people is right in 33.3 % of cases." in out
    assert "points: 50 victims; the adversary knows a few random samples of the victim" in out
    assert "singles out the person in 0 % of cases; in raw data in" in out
    header, line = out.splitlines()[-2:]
    assert header.split("  ")[1:] != []
    assert line.split()[0] == "4"
    assert "0 % (0.0–7.1)" in line


def test_all_of_them(run, events, made):
    arguments = ["attack", events, made / "release.parquet", "--attack", "all", "--victims", "30", "--json"]
    out = run(*arguments, check=0).stdout
    boxes = {name: entry for name, entry in ATTACKS.items() if not entry.on_traces}
    plain = [name for name, entry in boxes.items() if not (entry.needs_audit or entry.needs_other)]
    assert [one["attack"] for one in json.loads(out)["attacks"]] == plain
    more = ["--audit", made / "audit.parquet", "--other", made / "second.parquet"]
    out = run(*arguments, *more, "--other-audit", made / "second-audit.parquet", check=0).stdout
    assert [one["attack"] for one in json.loads(out)["attacks"]] == list(boxes)
    out = run(*arguments[:-1], *more, check=0).stdout
    assert all(f"\n{name}: 30 victims" in out for name in boxes)


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_the_table_is_saved(run, events, made, tmp_path, ending):
    table = tmp_path / f"table.{ending}"
    arguments = ["attack", events, made / "release.parquet", "--attack", "points,window", "--victims", "20"]
    out = run(*arguments, "--output", table, "--json", check=0).stdout
    wanted = [(one["attack"], row) for one in json.loads(out)["attacks"] for row in one["rows"]]
    if ending == "csv":
        with table.open(newline="") as file:
            saved = list(csv.DictReader(file))
    else:
        saved = json.loads(table.read_text()) if ending == "json" else pq.read_table(table).to_pylist()
    assert len(saved) == len(wanted) == 13
    for line, (attack, row) in zip(saved, wanted, strict=True):
        assert (line["attack"], line["claim"], int(line["k"])) == (attack, "k-anonymity(3)", 3)
        assert float(line["control"]) == row["control"]
        assert (line["tau_s"] or None) is None or int(line["tau_s"]) == row["tau_s"]
    err = run(*arguments, "--output", table, check=2).stderr
    assert "--overwrite" in err
    run(*arguments, "--output", table, "--overwrite", check=0)


def test_a_broken_promise_is_exit_1(run, tmp_path):
    draft = grouped(toy_people(users=12), 3)
    draft.records.pop()
    command = ["attack", write_events(draft.people, tmp_path / "events.parquet"), draft.write(tmp_path)[0]]
    out = run(*command, "--points", "9", check=1).stdout
    assert "BROKEN: 3 of 12 victims have fewer than 3 candidates" in out
    assert run(*command, "--points", "9", "--json", check=1).json["ok"] is False


def test_another_tools_release(run, events, made, tmp_path):
    bare = tmp_path / "bare.parquet"
    own = pq.read_table(made / "release.parquet")
    pq.write_table(own.select(BOX).replace_schema_metadata(None), bare)
    err = run("attack", events, bare, check=2).stderr
    assert "--crs, --cell and --slot" in err
    crs = json.loads(own.schema.metadata[b"shoal"])["crs"]
    grid = ["--crs", crs, "--cell", "100m", "--slot", "60s"]
    out = run("attack", events, bare, *grid, "--k", "3", "--json", check=0).stdout
    assert json.loads(out)["attacks"][0]["figures"]["claim"] == "none (unclaimed)"
    assert json.loads(out)["attacks"][0]["rows"][0]["candidates_min"] >= 3
    run("attack", events, bare, *grid, "--k", "80", check=1)


def test_seed_and_threads(run, events, made):
    arguments = ["attack", events, made / "second.parquet", "--victims", "30", "--json"]
    one = run(*arguments, "--seed", "3", "--threads", "1")
    assert run(*arguments, "--seed", "3", "--threads", "4") == one
    assert run(*arguments, "--seed", "4") != one


def test_settings_from_a_file(run, events, made, tmp_path):
    (tmp_path / "run.toml").write_text(
        '[read]\ntz = "Africa/Dakar"\n[attack]\nattack = "window"\ntau = "2h"\nvictims = 7\n'
    )
    out = run("attack", events, made / "release.parquet", "--config", tmp_path / "run.toml", "--json", check=0).stdout
    (one,) = json.loads(out)["attacks"]
    assert (one["attack"], one["victims"], one["rows"][0]["tau_s"]) == ("window", 7, 7200)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([], "ORIGINAL"),
        (["EVENTS"], "RELEASE"),
        (["EVENTS", "none.parquet"], "can't be read"),
        (["none.csv", "RELEASE"], "none.csv"),
        (["EVENTS", "RELEASE", "--attack", "magic"], "points, top-locations, home-work, window"),
        (["EVENTS", "RELEASE", "--attack", ","], "choose among"),
        (["EVENTS", "RELEASE", "--attack", "owner"], "--audit"),
        (["EVENTS", "RELEASE", "--attack", "intersection"], "--other"),
        (["EVENTS", "RELEASE", "--attack", "window", "--points", "3"], "--points"),
        (["EVENTS", "RELEASE", "--tau", "6h"], "--tau"),
        (["EVENTS", "RELEASE", "--attack", "window", "--tau", "six"], "duration"),
        (["EVENTS", "RELEASE", "--other", "RELEASE"], "--other"),
        (["EVENTS", "RELEASE", "--victims", "0"], "--victims"),
        (["EVENTS", "RELEASE", "--seed", "-1"], "--seed"),
        (["EVENTS", "RELEASE", "--output", "table.txt"], ".parquet"),
        (["EVENTS", "RELEASE", "--output", "RELEASE", "--overwrite"], "never overwritten"),
        (["EVENTS", "RELEASE", "--audit", "RELEASE"], "audit"),
    ],
)
def test_mistakes_are_answered(run, events, made, arguments, hint):
    places = {"EVENTS": events, "RELEASE": made / "release.parquet"}
    err = run("attack", *[places.get(argument, argument) for argument in arguments], check=2).stderr
    assert hint in err
    assert "Traceback" not in err
    assert len(err.splitlines()) == 1
