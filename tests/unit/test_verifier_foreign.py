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
from shoal.seen.codes import NOT_CHECKED
from shoal.verifier import verify
from tests.kte import EPOCH, hide, walkers
from tests.releases import FRAME, grouped, ring, toy_people, write_events

K = 3
PEOPLE = toy_people(users=30, samples=8, seed=4)
BOXES = ["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max"]


COVER = Claim("cover", k=K)


def minimal(draft):
    return draft.table().select(BOXES)


@pytest.fixture(scope="module")
def covering():
    """The box columns of a release that covers everybody."""
    return minimal(ring(PEOPLE, K))


def check(table, tmp_path, claim=COVER, name="other.parquet", people=PEOPLE, **more):
    path = tmp_path / name
    (pa_csv.write_csv if path.suffix == ".csv" else pq.write_table)(table, path)
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
    table = minimal(make(PEOPLE, K))
    verdict = check(table, tmp_path, Claim(claim, k=K), name)
    assert verdict.ok, verdict.messages
    assert verdict.shown == Claim(claim, k=K)
    assert "integrity" not in verdict.checked
    assert {NOT_CHECKED["integrity"], NOT_CHECKED["form"]} <= set(verdict.not_checked)
    assert check(table, tmp_path, Claim(claim, k=K + 1), name).failures


def test_windows_of_another_tool(tmp_path):
    people = walkers()
    table = minimal(hide(people, K))
    assert check(table, tmp_path, Claim("kte-cover", k=K, tau_s=EPOCH * 60), people=people).ok
    assert check(table, tmp_path, people=people).failures == ("cover",)
    assert check(table, tmp_path, None, people=people, k=K, tau="6min").ok


@pytest.mark.parametrize(
    "form", ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S+0000"]
)
@pytest.mark.parametrize("name", ["other.parquet", "other.csv"])
def test_times_may_be_text(covering, form, name, tmp_path):
    verdict = check(as_text(covering, form), tmp_path, name=name)
    assert verdict.ok, verdict.messages


def test_types_order_and_first_number_are_free(covering, tmp_path):
    columns = {name: covering[name].cast(pa.int64()) for name in BOXES[3:]}
    columns["t_end"] = covering["t_end"].cast(pa.timestamp("us"))
    columns["t_start"] = covering["t_start"].cast(pa.timestamp("ns", "Europe/Paris"))
    columns["uid"] = pc.add(covering["uid"], 1).cast(pa.int32())
    verdict = check(pa.table(columns).replace_schema_metadata({"pandas": "{}"}), tmp_path)
    assert verdict.ok, verdict.messages
    assert NOT_CHECKED["form"] in verdict.not_checked


def test_what_can_not_be_checked_fails(covering, tmp_path):
    for table, code in (
        (covering.append_column("speed", pa.array(np.zeros(len(covering)))), "leaks/foreign-columns"),
        (covering.set_column(0, "uid", pc.multiply(covering["uid"], 2)), "leaks/numbering"),
        (covering.append_column("datetime", covering["t_start"]), "leaks/times"),
    ):
        assert check(table, tmp_path).codes == (code,)
    assert "leaks/unsorted" in check(covering.take(np.arange(len(covering))[::-1]), tmp_path).codes


@pytest.mark.parametrize("name", ["other.parquet", "other.csv"])
def test_what_are_no_boxes_is_said(covering, name, tmp_path):
    text = covering.set_column(0, "uid", pa.array(["who"] * len(covering)))
    half = covering.set_column(3, "x_min", pc.add(covering["x_min"].cast(pa.float64()), 0.5))
    for table, said in ((covering.drop_columns(["x_max"]), "x_max"), (text, "whole numbers"), (half, "whole numbers")):
        with pytest.raises(CannotCheck, match=said) as caught:
            check(table, tmp_path, name=name)
        assert "who" not in str(caught.value).split()


def test_a_grid_must_be_named_for_files(covering, tmp_path):
    events = write_events(PEOPLE, tmp_path / "events.parquet")
    with pytest.raises(CannotCheck, match="`crs`, `cell` and `slot`"):
        check(covering, tmp_path, name="other.csv", people=events)
    options = ReadOptions(crs=FRAME.crs, cell=100, slot=60)
    verdict = check(covering, tmp_path, name="other.csv", people=events, options=options)
    assert verdict.ok, verdict.messages
