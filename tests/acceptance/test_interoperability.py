"""The release opens where recipients work."""

import duckdb
import geopandas
import pandas as pd
import polars as pl
import pytest
from pyproj import Transformer

import shoal
from shoal.cli import main


@pytest.fixture(scope="module")
def release(events, tmp_path_factory):
    path = tmp_path_factory.mktemp("geo") / "release.parquet"
    with pytest.raises(SystemExit) as done:
        main(["anonymize", str(events), str(path), "--k", "2", "--geo"])
    assert done.value.code == 0
    return path


def test_pandas(release):
    frame = pd.read_parquet(release)
    assert str(frame.t_start.dtype) == "datetime64[ms, UTC]"
    assert len(frame) == len(shoal.read_release(release).boxes)


def test_polars(release):
    assert pl.read_parquet(release)["uid"].n_unique() == 120
    assert shoal.read_release(release).to_polars()["uid"].n_unique() == 120


def test_duckdb(release):
    (users, empty), *_ = duckdb.sql(
        f"SELECT count(DISTINCT uid), count(*) FILTER (t_end <= t_start) FROM '{release}'"
    ).fetchall()
    assert (users, empty) == (120, 0)


def test_geopandas(release):
    frame = geopandas.read_parquet(release)
    assert frame.crs.to_epsg() == 4326 or frame.crs == "OGC:CRS84"
    assert frame.geometry.is_valid.all()
    assert (frame.geometry.geom_type == "Polygon").all()
    # A few corners, recomputed: the box is the polygon.
    back = Transformer.from_crs("OGC:CRS84", shoal.read_release(release).frame.crs, always_xy=True)
    for row in frame.head(20).itertuples():
        x, y = back.transform(*row.geometry.exterior.coords.xy)
        assert (min(x), max(x)) == pytest.approx((row.x_min, row.x_max), abs=1e-2)
        assert (min(y), max(y)) == pytest.approx((row.y_min, row.y_max), abs=1e-2)
    assert len(shoal.read_release(release).to_geopandas()) == len(frame)


def test_points_have_the_shape_of_scikit_mobility(release):
    points = shoal.read_release(release).to_points()
    assert list(points.columns) == ["uid", "datetime", "lat", "lng"]
    assert pd.api.types.is_datetime64_any_dtype(points.datetime)
    assert points.lat.between(-90, 90).all()
    assert points.lng.between(-180, 180).all()
    assert pd.read_parquet(release, columns=["uid", "datetime", "lat", "lng"]).equals(points)


@pytest.fixture(scope="module")
def plain(events, tmp_path_factory):
    """A release without `--geo`."""
    path = tmp_path_factory.mktemp("plain") / "release.parquet"
    shoal.Uniform().anonymize(shoal.read(events)).write(path)
    return path


def test_geopandas_needs_geometry_or_makes_points_of_the_columns(plain):
    with pytest.raises(ValueError, match="Missing geo metadata"):
        geopandas.read_parquet(plain)
    frame = pd.read_parquet(plain)
    points = geopandas.GeoDataFrame(frame, geometry=geopandas.points_from_xy(frame.lng, frame.lat), crs="EPSG:4326")
    assert points.geometry.x.equals(frame.lng)
    people = shoal.from_geopandas(points)
    assert len(people) == frame.uid.nunique()


def test_a_release_with_geometry_is_read_by_its_middles(release):
    """Its polygons are no points; `datetime`, `lat` and `lng` are found before them."""
    assert len(shoal.read(release)) == 120
