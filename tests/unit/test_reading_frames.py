"""Frames of other libraries with odd names and types: they are read, or refused with a typed error."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import ColumnsNotFound, InputError

TIMES = ["2026-03-01T08:00:00Z", "2026-03-01T09:00:00Z"]
GOOD = {"uid": ["ann", "bob"], "datetime": TIMES, "lat": [39.9, 39.8], "lng": [116.4, 116.3]}
CANARY = "canary7319"


def twice(name, kind=pd.DataFrame):
    return kind(
        [[1, 2, *row] for row in zip(*list(GOOD.values())[1:], strict=True)], columns=[name, name, *list(GOOD)[1:]]
    )


class Panic(BaseException):
    """As libraries in Rust raise it."""


Panic.__module__ = "pyo3_runtime"


class Frame:
    """A frame whose conversion fails."""

    columns = ("uid",)

    def __init__(self, error):
        self.error = error

    def to_arrow(self):
        raise self.error


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (lambda: twice("uid"), "several columns are called uid"),
        (lambda: twice("a name; of no plain words"), "several columns are called"),
        (lambda: pd.DataFrame({**GOOD, "uid": [2**70, 2**71]}), "beyond 64 bits"),
        (lambda: pl.DataFrame({**GOOD, f"{CANARY}\0": [1, 2]}), "is no text"),
        (
            lambda: pl.DataFrame({**GOOD}).with_columns(pl.lit(2**70).cast(pl.Int128).alias("uid")),
            "Arrow does not know",
        ),
        (lambda: pd.DataFrame({**GOOD, "uid": [1, "a"]}), "mixes types"),
        (lambda: pd.DataFrame({**GOOD, "lat": [Decimal("1.5"), Decimal("Infinity")]}), "mixes types"),
        (lambda: Frame(Panic(CANARY)), "Arrow does not know"),
        (lambda: Frame(RuntimeError(CANARY)), "Arrow does not know"),
        (lambda: Frame(UnicodeEncodeError("utf-8", CANARY, 0, 1, "")), "Arrow does not know"),
    ],
)
def test_a_frame_that_has_no_form_in_arrow_is_refused(frame, said):
    with pytest.raises(InputError, match=said) as caught:
        shoal.read(frame())
    assert CANARY not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_ctrl_c_in_a_conversion_passes():
    with pytest.raises(KeyboardInterrupt):
        shoal.read(Frame(KeyboardInterrupt()))


@pytest.mark.parametrize("crs", [4326, 3857])
def test_geodataframes_are_refused_as_other_frames_are(crs):
    geopandas = pytest.importorskip("geopandas")
    points = geopandas.points_from_xy([1, 2], [3, 4])
    for frame in (twice("uid"), pd.DataFrame({"uid": [2**70, 1], "datetime": TIMES})):
        with pytest.raises(InputError, match=r"several columns|64 bits"):
            shoal.from_geopandas(geopandas.GeoDataFrame(frame, geometry=points, crs=crs))
    with pytest.raises(InputError, match="from_geopandas takes"):
        shoal.from_geopandas(pd.DataFrame(GOOD))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("lat", pa.array([Decimal("39.9"), Decimal("39.8")], pa.decimal256(76, 40))),
        ("lat", pa.array([Decimal("39.9"), Decimal("39.8")], pa.decimal128(38, 30))),
        ("lat", pa.array(np.array([39.9, 39.8], np.float16))),
        ("other", pa.array(np.array([1, 2], np.float16))),
        ("other", pa.array([Decimal("1e5"), None], pa.decimal128(5, -3))),
    ],
    ids=str,
)
def test_odd_numbers_are_read(name, values):
    people = shoal.read(pa.table({**GOOD, name: values}), cell="5km")
    assert people.labels.to_pylist() in (["ann", "bob"], ["bob", "ann"])
    assert len(set(people.x.tolist())) == 2


NAMES = ["uid", "UID", "datetime", "lat", "lat", "lng"]
COLUMNS = [["ann", "bob"], ["ANN", "BOB"], TIMES, [39.9, 39.8], [10.0, 10.1], [116.4, 116.3]]


def as_table(_, names):
    return pa.table([pa.array(column) for column in COLUMNS], names=names)


def as_parquet(folder, names):
    pq.write_table(as_table(folder, names), folder / "a.parquet")
    return folder / "a.parquet"


def as_csv(folder, names):
    lines = [names, *zip(*COLUMNS, strict=True)]
    (folder / "a.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
    return folder / "a.csv"


def places(people):
    return sorted(zip(people.labels.to_pylist(), people.y[people.offsets[:-1]].tolist(), strict=True))


@pytest.mark.parametrize("form", [as_table, as_parquet, as_csv])
def test_names_that_stand_twice_or_differ_in_case(form, tmp_path):
    source = form(tmp_path, NAMES)
    with pytest.raises(ColumnsNotFound, match='could be the user: uid, UID; say which: `columns="user=uid"`'):
        shoal.read(source)
    for given in ("user=uid", "user=uid,lat=lat", "user=UID,lat=Lat"):
        with pytest.raises(
            ColumnsNotFound, match=r'2 columns are called lat; .*`columns="lat=4"` or `columns="lat=5"`'
        ):
            shoal.read(source, columns=given)
    with pytest.raises(ColumnsNotFound, match="can't find the column given for user"):
        shoal.read(source, columns="user=Uid,lat=4")
    north = places(shoal.read(source, columns="user=UID,lat=4", crs="EPSG:32650"))
    south = places(shoal.read(source, columns="user=2,lat=5", crs="EPSG:32650"))
    assert [user for user, _ in north] == [user for user, _ in south] == ["ANN", "BOB"]
    assert min(y for _, y in north) > 3 * max(y for _, y in south)
    assert shoal.read(source, columns="user=UID,lat=#4").account.columns["lat"] == "#4"


@pytest.mark.parametrize("form", [as_table, as_parquet, as_csv])
def test_a_name_that_stands_twice_is_not_passed_over_for_another(form, tmp_path):
    source = form(tmp_path, ["uid", "uid", "datetime", "lat", "id", "lng"])
    with pytest.raises(ColumnsNotFound, match="2 columns are called uid"):
        shoal.read(source)


@pytest.mark.parametrize("form", [as_table, as_parquet, as_csv])
def test_columns_called_like_our_own(form, tmp_path):
    (tmp_path / "cells.csv").write_text("id,lat,lng\n39.9,39.9,116.4\n39.8,39.8,116.3\n")
    source = form(tmp_path, ["id", "shoal_point", "datetime", "cell_id", "lat", "shoal_file"])
    people = shoal.read(source, columns="user=id", cells=tmp_path / "cells.csv")
    assert sorted(people.labels.to_pylist()) == ["ann", "bob"]
    if form is not as_table:
        assert shoal.read(source, columns="user=@file", cells=tmp_path / "cells.csv").labels.to_pylist() == ["a"]


def test_a_cells_file_with_a_name_that_stands_twice(tmp_path):
    (tmp_path / "cells.csv").write_text("id,lat,lng,lat\n1,39.9,116.4,10\n")
    with pytest.raises(ColumnsNotFound, match="2 columns are called lat"):
        shoal.read(pa.table({"uid": [1], "datetime": TIMES[:1], "cell": ["1"]}), cells=tmp_path / "cells.csv")
