"""Releases of other tools: the box columns alone, as CSV or Parquet, are enough to be checked."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from shoal.claim import Claim
from shoal.errors import CannotCheck
from shoal.reading.options import ReadOptions
from shoal.verifier import verify
from tests.kte import EPOCH, hide, walkers
from tests.releases import FRAME, grouped, ring, toy_people

K = 3
PEOPLE = toy_people(users=30, samples=8, seed=4)
BOXES = ["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max"]


def minimal(draft):
    return draft.table().select(BOXES)


def check(table, tmp_path, claim, name="other.parquet", people=PEOPLE, **more):
    path = tmp_path / name
    if path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return verify(people, path, claim=claim, **more)


def as_text(table, form):
    """Return the times as another tool may write them."""
    for name in ("t_start", "t_end"):
        texts = pc.strftime(table[name].cast(pa.timestamp("s", "UTC")), format=form)
        table = table.set_column(table.column_names.index(name), name, texts)
    return table


@pytest.mark.parametrize("name", ["other.parquet", "other.csv"])
@pytest.mark.parametrize(("make", "claim"), [(ring, "cover"), (grouped, "k-anonymity")])
def test_the_box_columns_are_enough(make, claim, name, tmp_path):
    verdict = check(minimal(make(PEOPLE, K)), tmp_path, Claim(claim, k=K), name)
    assert verdict.ok, verdict.messages
    assert verdict.shown == Claim(claim, k=K)
    assert "integrity" not in verdict.checked
    assert any("integrity" in what for what in verdict.not_checked)
    assert check(minimal(make(PEOPLE, K)), tmp_path, Claim(claim, k=K + 1), name).failures


def test_windows_of_another_tool(tmp_path):
    people = walkers()
    draft = hide(people, K)
    claim = Claim("kte-cover", k=K, tau_s=EPOCH * 60)
    assert check(minimal(draft), tmp_path, claim, people=people).ok
    assert check(minimal(draft), tmp_path, Claim("cover", k=K), people=people).failures == ("cover",)
    assert check(minimal(draft), tmp_path, None, people=people, k=K, tau="6min").ok


@pytest.mark.parametrize(
    "form", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S+0000"]
)
@pytest.mark.parametrize("name", ["other.parquet", "other.csv"])
def test_times_may_be_text(form, name, tmp_path):
    verdict = check(as_text(minimal(ring(PEOPLE, K)), form), tmp_path, Claim("cover", k=K), name)
    assert verdict.ok, verdict.messages


def test_types_order_and_first_number_are_free(tmp_path):
    table = minimal(ring(PEOPLE, K))
    columns = {name: table[name].cast(pa.int64()) for name in BOXES[3:]}
    columns["t_end"] = table["t_end"].cast(pa.timestamp("us"))
    columns["t_start"] = table["t_start"].cast(pa.timestamp("ns", "Europe/Paris"))
    columns["uid"] = pc.add(table["uid"], 1).cast(pa.int32())
    other = pa.table(columns).replace_schema_metadata({"pandas": "{}"})
    verdict = check(other, tmp_path, Claim("cover", k=K))
    assert verdict.ok, verdict.messages
    assert "the file's form and metadata, which are another tool's" in verdict.not_checked


def test_what_can_not_be_checked_fails(tmp_path):
    table = minimal(ring(PEOPLE, K))
    more = table.append_column("speed", pa.array(np.zeros(len(table))))
    assert check(more, tmp_path, Claim("cover", k=K)).failures == ("leaks",)
    gap = table.set_column(0, "uid", pc.multiply(table["uid"], 2))
    assert check(gap, tmp_path, Claim("cover", k=K)).failures == ("leaks",)
    assert "leaks" in check(table.take(np.arange(len(table))[::-1]), tmp_path, Claim("cover", k=K)).failures
    wrong = check(table.append_column("datetime", table["t_start"]), tmp_path, Claim("cover", k=K))
    assert wrong.failures == ("leaks",)


@pytest.mark.parametrize("name", ["other.parquet", "other.csv"])
def test_what_are_no_boxes_is_said(name, tmp_path):
    table = minimal(ring(PEOPLE, K))
    with pytest.raises(CannotCheck, match="x_max"):
        check(table.drop_columns(["x_max"]), tmp_path, Claim("cover", k=K), name)
    text = table.set_column(0, "uid", pa.array(["who"] * len(table)))
    with pytest.raises(CannotCheck, match="whole numbers") as caught:
        check(text, tmp_path, Claim("cover", k=K), name)
    assert "who" not in str(caught.value).split()
    half = table.set_column(3, "x_min", pc.add(table["x_min"].cast(pa.float64()), 0.5))
    with pytest.raises(CannotCheck, match="whole numbers"):
        check(half, tmp_path, Claim("cover", k=K), name)


def test_a_grid_must_be_named_for_files(tmp_path):
    from tests.unit.test_verifier_check import write_events

    events = write_events(PEOPLE, tmp_path / "events.parquet")
    path = tmp_path / "other.csv"
    pa_csv.write_csv(minimal(ring(PEOPLE, K)), path)
    with pytest.raises(CannotCheck, match="--crs, --cell and --slot"):
        verify(events, path, claim=Claim("cover", k=K))
    verdict = verify(events, path, claim=Claim("cover", k=K), options=ReadOptions(crs=FRAME.crs, cell=100, slot=60))
    assert verdict.ok, verdict.messages
