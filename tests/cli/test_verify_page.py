"""The verdict as a person reads it, windows on the command line, and releases of other tools."""

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.seen.codes import NOT_CHECKED, NOTES
from shoal.seen.file import BOX
from tests.kte import hide, walkers
from tests.publishing import written
from tests.releases import write_events

PEOPLE = walkers()


@pytest.fixture(scope="module")
def hidden(tmp_path_factory):
    """The original, a release of windows made of it, and its audit."""
    folder = tmp_path_factory.mktemp("hidden")
    return write_events(PEOPLE, folder / "events.parquet"), *hide(PEOPLE, 3).write(folder)


@pytest.fixture(scope="module")
def groups(events, tmp_path_factory):
    """A release of identical groups of three."""
    path = tmp_path_factory.mktemp("groups") / "r.parquet"
    written(shoal.Shoal(k=3).anonymize(shoal.read(events)), path)
    return path


def test_a_page_that_holds(run, hidden):
    events, path, audit = hidden
    out = run("verify", events, path, "--audit", audit, check=0).stdout
    lines = out.splitlines()
    assert lines[0] == "release.parquet: HOLDS"
    sections = [line for line in lines if line and not line.startswith(" ")][1:]
    assert sections == ["Claimed", "Found right", "Found", "Notes", "An adversary can still"]
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
    assert "Asked for\n  k = 9; at most 1min revealed before or after a window.\n" in out
    assert "An adversary can still" not in out
    assert f"Not checked\n  - {NOT_CHECKED['members']}." in out
    found = run("verify", events, path, "--k", "9", "--epsilon", "1min", "--json", check=1).json
    assert found["codes"] == ["windows/too-few-records", "windows/leakage"]


def test_windows_on_the_command_line(run, events, groups):
    verdict = run("verify", events, groups, "--tau", "60min", "--json", check=0).json
    assert {"ok", "failures", "figures", "claim", "checked", "messages"} <= set(verdict)
    assert verdict["codes"] == []
    assert verdict["figures"]["tau_s"] == 3600
    assert verdict["shown"] == verdict["claim"] == {"name": "k-anonymity", "k": 3}
    out = run("verify", events, groups, "--tau", "60min", "--epsilon", "1h", check=1).stdout
    run("verify", events, groups, "--epsilon", "1h", check=2)
    assert "kte-anonymity" not in out


@pytest.mark.parametrize("name", ["other.csv", "other.parquet", "all-columns.parquet"])
def test_another_tools_boxes(run, events, groups, tmp_path, name):
    """Without manifest and metadata the grid must be given; then it is checked, integrity excepted."""
    other, crs = tmp_path / name, shoal.read_release(groups).frame.crs
    whole = pq.read_table(groups).replace_schema_metadata(None)
    boxes = whole.select(["uid", *BOX])
    if name.endswith(".csv"):
        pa_csv.write_csv(boxes, other)
    else:
        narrow = boxes.set_column(0, "uid", boxes["uid"].cast(pa.int32()))
        pq.write_table(whole if name.startswith("all") else narrow, other)
    run("verify", events, other, "--k", "3", check=2)
    asked = ["verify", events, other, "--crs", crs, "--cell", "100m", "--slot", "60s", "--k", "3"]
    assert NOTES["no-manifest"] in run(*asked, check=0).stdout
    asked.append("--claim")
    for claim in (["k-anonymity"], ["cover"], ["kte-cover", "--tau", "60min"]):
        out = run(*asked, *claim, check=0).stdout
        assert f"{claim[0]}(3" in out
        assert NOTES["no-manifest"] in out
    assert "tau_s" in run(*asked, "kte-cover", check=2).stderr
    assert "k-anonymity" in run(*asked, "perfect", check=2).stderr
