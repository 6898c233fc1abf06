"""The verdict as a person reads it, windows on the command line, and releases of other tools."""

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import shoal
from tests.kte import hide, walkers
from tests.unit.test_verifier_check import write_events

PEOPLE = walkers()


@pytest.fixture
def hidden(tmp_path):
    path, audit = hide(PEOPLE, 3).write(tmp_path)
    return write_events(PEOPLE, tmp_path / "events.parquet"), path, audit


def test_a_page_that_holds(run, hidden):
    events, path, audit = hidden
    out = run("verify", events, path, "--audit", audit, check=0).stdout
    lines = out.splitlines()
    assert lines[0] == "release.parquet: HOLDS"
    sections = [line for line in lines if line and not line.startswith(" ")][1:]
    assert sections == ["Claimed", "Checked", "Found", "Notes", "An adversary can still"]
    assert "kte-anonymity(3, 6min, 6min)." in out
    assert "24 people" in out
    assert "leak more than 360 s" in out
    assert max(map(len, lines)) < 120
    assert "{" not in out


def test_a_page_that_does_not_hold(run, hidden):
    events, path, _ = hidden
    out = run("verify", events, path, "--k", "9", "--epsilon", "1min", check=1).stdout
    assert out.startswith("release.parquet: DOES NOT HOLD\n")
    problems = out.split("Does not hold\n")[1].split("\n\n")[0]
    assert "hidden by fewer than 9 records" in problems
    assert "before or after" in problems
    assert "Asked for\n  k = 9; at most 1min told before or after a window.\n" in out
    assert "An adversary can still" not in out
    assert "Not checked\n  - truth of members and suppression, which need the audit file." in out


def test_windows_on_the_command_line(run, events, tmp_path):
    release = tmp_path / "r.parquet"
    run("anonymize", events, release, "--k", "3", check=0)
    verdict = run("verify", events, release, "--tau", "60min", "--json", check=0).json
    assert {"ok", "failures", "figures", "claim", "checked", "messages"} <= set(verdict)
    assert verdict["figures"]["tau_s"] == 3600
    assert verdict["shown"] == verdict["claim"] == {"name": "k-anonymity", "k": 3}
    out = run("verify", events, release, "--tau", "60min", "--epsilon", "1h", check=1).stdout
    run("verify", events, release, "--epsilon", "1h", check=2)
    assert "kte-anonymity" not in out


@pytest.mark.parametrize("name", ["other.csv", "other.parquet"])
def test_another_tools_boxes(run, events, tmp_path, name):
    release, other = tmp_path / "r.parquet", tmp_path / name
    run("anonymize", events, release, "--k", "3", check=0)
    crs = shoal.read_release(release).frame.crs
    table = pq.read_table(release).replace_schema_metadata(None)
    boxes = table.select(["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max"])
    if name.endswith(".csv"):
        pa_csv.write_csv(boxes, other)
    else:
        pq.write_table(boxes.set_column(0, "uid", boxes["uid"].cast(pa.int32())), other)
    grid = ["--crs", crs, "--cell", "100m", "--slot", "60s"]
    for claim in (["k-anonymity"], ["cover"], ["kte-cover", "--tau", "60min"]):
        _, out, err = run("verify", events, other, *grid, "--k", "3", "--claim", *claim, check=0)
        assert f"{claim[0]}(3" in out
        assert "Integrity not checked" in out
    err = run("verify", events, other, *grid, "--k", "3", "--claim", "kte-cover", check=2).stderr
    assert "tau_s" in err
    err = run("verify", events, other, *grid, "--k", "3", "--claim", "perfect", check=2).stderr
    assert "k-anonymity" in err
