"""The commands for points: made, verified, attacked, evaluated, compared."""

import json

import pyarrow.parquet as pq
import pytest

import shoal
from tests.tracks import planted, table_of


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Thirty people between a few places, two days of them."""
    path = tmp_path_factory.mktemp("fixes") / "fixes.parquet"
    people = {}
    for n in range(30):
        fixes, _ = planted(n, stays=4)
        people[f"canary-{n}"] = fixes + [(ms + 86_400_000, lng, lat) for ms, lng, lat in fixes]
    pq.write_table(table_of(people), path)
    return path


def test_the_form_that_other_programs_rely_on(run, original, tmp_path):
    run("anonymize", original, "out.parquet", "--method", "promesse", "--step", "200m", "--split-gap", "4h", check=0)
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.column_names == ["uid", "datetime", "lat", "lng"]
    assert table["uid"].to_pylist() == sorted(table["uid"].to_pylist())
    assert len(set(table["uid"].to_pylist())) == 60  # two days are two records
    manifest = json.loads((tmp_path / "out.parquet.manifest.json").read_text())
    assert manifest["shoal"]["parameters"] == {"step_m": 200}
    assert manifest["shoal"]["claim"] == {"name": "none"}
    assert list(manifest["shoal"]) == ["format", "method", "parameters", "claim", "cell_m", "slot_s", "crs"]
    assert manifest["counts"]["samples_created"] == manifest["counts"]["samples_published"]


def test_make_verify_attack_evaluate(run, original, tmp_path):
    made = ("--split-gap", "4h", "--audit", "a.parquet")
    run("anonymize", original, "p.csv", "--method", "promesse", *made, "--run-record", "run.json", check=0)
    page = run("verify", original, "p.csv", *made, check=0).stdout
    assert page.startswith("p.csv: NOTHING IS CLAIMED\n")
    assert "Nothing is promised" in page
    attacked = run("attack", original, "p.csv", "--attack", "all", *made, "--json", check=0).json
    assert [one["attack"] for one in attacked["attacks"]] == ["poi"]
    assert attacked["attacks"][0]["rows"][0]["fscore"] < 0.3
    more = ("--run-record", "run.json", "--queries", "100", "--output", "e.csv", "--json")
    found = run("evaluate", original, "p.csv", *made, *more, check=0).json
    assert found["spatial_error_m"] < 40
    assert found["seconds"] >= 0
    assert (tmp_path / "e.csv").exists()
    written = "".join(path.read_text() for path in tmp_path.glob("*.csv*"))
    assert "canary" not in written + page


def test_noise_and_its_claim(run, original, tmp_path):
    noisy = ("--method", "geo-indistinguishability", "--epsilon")
    said = run("anonymize", original, "g.parquet", *noisy, "ln(4)/200", check=0).stdout
    assert "Verified: geo-indistinguishability(0.00693" in said
    for name in ("a", "b"):
        run("anonymize", original, f"{name}.parquet", *noisy, "0.01", "--seed", "1", check=0)
    one, two = (shoal.read_release(tmp_path / f"{name}.parquet") for name in ("a", "b"))
    assert str(one.claim) == "none (research)"
    assert one.to_arrow().equals(two.to_arrow())


def test_compare(run, original):
    methods = "raw,promesse:200m,geo-indistinguishability:ln(10)/100"
    some = ("--split-gap", "4h", "--queries", "50")
    lines = run("compare", original, "--methods", methods, *some, "--json", check=0).json["runs"]
    assert [line["method"] for line in lines][:2] == ["raw", "promesse:200m"]
    assert lines[1]["fscore"] < lines[0]["fscore"] == 1
    assert "F-score" in run("compare", original, "--methods", "raw,promesse", *some, check=0).stdout


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--k", "2", "--split-gap", "4h"), "point methods"),
        (("--method", "promesse", "--k", "3"), "no setting --k"),
        (("--method", "promesse", "--compact"), "compact"),
        (("--method", "promesse", "--step", "100km"), "too short"),
        (("--method", "promesse", "--resume"), "can't be resumed"),
        (("--method", "geo-indistinguishability"), "ln(4)/200"),
        (("--method", "geo-indistinguishability", "--epsilon", "30min"), "per metre"),
        (("--method", "kte-hide", "--epsilon", "ln(4)/200"), "30min"),
        (("--method", "promesse", "--step", "1m", "--memory", "1MB"), "memory"),
    ],
)
def test_refusals(run, original, tmp_path, flags, said):
    err = run("anonymize", original, "out.parquet", *flags, check=2).stderr
    assert said in err
    assert "canary" not in err
    assert list(tmp_path.iterdir()) == []


def test_attacks_on_boxes_are_refused(run, original):
    run("anonymize", original, "p.parquet", "--method", "promesse", check=0)
    err = run("attack", original, "p.parquet", check=2).stderr
    assert "--attack poi" in err
