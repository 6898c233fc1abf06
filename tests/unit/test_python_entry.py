"""What people try first in Python works, or the error says which call to make."""

import warnings
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import shoal
from shoal.errors import InputError, NaiveTimes

TABLE = shoal.synthesize(users=30, scene="town", days=2, seed=1)
NAIVE = TABLE.set_column(1, "datetime", TABLE["datetime"].cast(pa.timestamp("ms")))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("entry") / "events.parquet"
    pa.parquet.write_table(TABLE, path)
    return path


class Streamed:
    """A frame of a library that only speaks Arrow's protocol."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


FRAMES = {
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.from_arrow(TABLE),
    "arrow": lambda: TABLE,
    "protocol": Streamed,
    "reader": lambda: pa.RecordBatchReader.from_stream(Streamed()),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_all_kinds_of_frames_are_read_everywhere(kind, file):
    people = shoal.read(file)
    frame = FRAMES[kind]
    assert (shoal.read(frame()).x == people.x).all()
    assert shoal.read_traces(frame()).fixes == shoal.read_traces(file).fixes
    release = shoal.KScale(k=2).anonymize(people)
    assert shoal.verify(frame(), release).ok
    assert shoal.attack(frame(), release, victims=5).rows == shoal.attack(file, release, victims=5).rows
    assert shoal.evaluate(frame(), release, queries=5).figures == shoal.evaluate(file, release, queries=5).figures


def test_lists_of_files(file):
    for several in ([file], (str(file), file), iter([file])):
        assert len(shoal.read(several)) == 30


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: shoal.read(None), "give a file, a folder"),
        (lambda: shoal.read(5), "give a file, a folder"),
        (lambda: shoal.read({"uid": [1]}), "a data frame of pandas"),
        (lambda: shoal.read([(1, 2, 3)]), "a data frame of pandas"),
        (lambda: shoal.read([]), "no input file"),
        (lambda: shoal.read(pd.DataFrame({"uid": [1, "a"]})), "mixes types"),
        (lambda: shoal.read([TABLE.to_pandas(), TABLE.to_pandas()]), r"pandas\.concat"),
        (lambda: shoal.from_pandas("events.csv"), r"from_pandas takes .*shoal\.read"),
        (lambda: shoal.from_polars("events.csv"), r"from_polars takes .*shoal\.read"),
        (lambda: shoal.from_arrow(TABLE.to_pandas()), r"from_arrow takes .*shoal\.read"),
        (lambda: shoal.Shoal(k=3).anonymize(TABLE.to_pandas()), r"call Shoal\(…\)\.anonymize\(shoal\.read\(data\)\)"),
        (lambda: shoal.Shoal(k=3).anonymize(Path("events.csv")), r"call Shoal\(…\)\.anonymize\(shoal\.read\(data\)\)"),
        (lambda: shoal.Shoal(k=3).anonymize(["events.csv"]), r"call Shoal\(…\)\.anonymize\(shoal\.read\(data\)\)"),
        (lambda: shoal.Promesse(step=100).anonymize(shoal.read(TABLE)), r"anonymize\(shoal\.read_traces\(data\)\)"),
        (lambda: shoal.Shoal(5), r"by name, e\.g\. Shoal\(k=…\)"),
        (lambda: shoal.ReadOptions("UTC"), r"by name, e\.g\. ReadOptions\(columns=…\)"),
        (lambda: shoal.publish("events.csv", "r.parquet", shoal.Shoal), r"shoal\.Shoal\(…\)"),
        (lambda: shoal.publish(TABLE.to_pandas(), "r.parquet", shoal.Shoal(k=3)), r"\.write\(path\)"),
        (lambda: shoal.unicity(TABLE, points=4), r"shoal\.unicity\(shoal\.read\(data\), …\)"),
        (lambda: shoal.k_gap(TABLE, k=3), r"shoal\.k_gap\(shoal\.read\(data\), …\)"),
        (lambda: shoal.verify("release.parquet", shoal.read(TABLE)), "the original comes first, then the release"),
        (shoal.Shoal, "k: is missing: hide everyone among at least k people, e.g. 5"),
    ],
)
def test_a_wrong_call_is_told_the_right_one(call, said):
    with pytest.raises(shoal.ShoalError, match=said) as error:
        call()
    assert isinstance(error.value, InputError | shoal.SettingsError | shoal.CannotCheck)


@pytest.mark.parametrize("read", [shoal.read, shoal.read_traces, shoal.from_arrow])
def test_times_without_a_zone_warn_unless_it_is_given(read):
    with pytest.warns(NaiveTimes, match='tz="Africa/Dakar"'):
        read(NAIVE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(NAIVE, tz="UTC")
        read(NAIVE, options=shoal.ReadOptions(tz="Africa/Dakar"))
        read(TABLE)


def test_the_command_line_says_it_in_a_note(run, tmp_path):
    pa.parquet.write_table(NAIVE, tmp_path / "naive.parquet")
    out, err = run("inspect", tmp_path / "naive.parquet", check=0)[1:]
    assert "note: times without a zone were read as UTC" in out
    assert err == ""


def test_a_verdict_that_fails_is_false():
    people = shoal.read(TABLE)
    verdict = shoal.verify(people, shoal.KScale(k=2).anonymize(people), k=30)
    assert not verdict
    assert bool(verdict) is verdict.ok is False
    with pytest.raises(shoal.NotVerified):
        verdict.raise_if_broken()


def test_writing_always_verifies(tmp_path):
    """A release of other boxes than its people have is not written."""
    from dataclasses import replace

    people = shoal.read(TABLE)
    release = shoal.KScale(k=2).anonymize(people)
    moved = release.boxes.copy()
    moved[:, 2:4] += 500
    with pytest.raises(shoal.NotVerified):
        replace(release, layout=replace(release.layout, edges=moved)).write(tmp_path / "r.parquet")
    assert list(tmp_path.iterdir()) == []
