"""One door for releases: in memory and in a file, of boxes and points, the same is seen."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import CannotCheck
from shoal.publishing.audit import audit_table
from shoal.seen import file as files
from shoal.seen import open_release
from shoal.seen.audit import audit_of
from shoal.seen.findings import Findings
from tests.publishing import written
from tests.releases import toy_people
from tests.tracks import traces_of, walk


@pytest.fixture(scope="module")
def releases():
    people = toy_people(users=40)
    traces = traces_of({n: walk(n, pace_m=0.1 if n == 3 else 80.0) for n in range(12)})
    return {
        "cover": shoal.KScale(k=2).anonymize(people),
        "groups": shoal.Shoal(k=3).anonymize(people),
        "windows": shoal.KteHide(k=2, tau="1h", epsilon="30min").anonymize(people),
        "points": shoal.Promesse(step=100).anonymize(traces),  # one person is not published
    }


NAMES = ["cover", "groups", "windows", "points"]


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_of_a_release_in_memory_is_the_one_that_would_be_written(releases, name):
    own, wanted = audit_of(releases[name]), audit_table(releases[name])
    assert own.column_names == wanted.column_names
    assert own.to_pylist() == wanted.to_pylist()
    assert ("t_start" in own.column_names) == (name == "windows")
    assert bool(pa.compute.sum(pa.compute.is_null(own["record"])).as_py()) == (name == "points")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("name", NAMES)
def test_memory_and_file_look_the_same(releases, name, ending, tmp_path):
    path = tmp_path / f"r.{ending}"
    written(releases[name], path)
    made = shoal.read_release(path)  # numbered as it was published
    here, there = open_release(made), open_release(path)
    assert here.layout == there.layout == ("points" if name == "points" else "boxes")
    assert here.header == there.header
    assert (here.file, here.manifest, here.stated) == (None, None, None)
    assert there.audit is None
    (numbers, track), (uids, read) = here.track(), there.track()
    assert numbers.tolist() == uids.tolist() == list(range(len(made)))
    for column in ("offsets", "ms", "lng", "lat"):
        assert np.array_equal(getattr(track, column), getattr(read, column)), column
    if here.layout == "boxes":
        grid = here.header.grid
        one, other = (seen.boxes(Findings(), grid).records for seen in (here, there))
        assert np.array_equal(one.unique.boxes, other.unique.boxes)
        assert np.array_equal(one.groups, other.groups)


def test_an_interrupted_publication_is_finished_before_a_file_is_opened(releases, tmp_path, monkeypatch):
    written(releases["cover"], tmp_path / "r.parquet")
    mended = []
    monkeypatch.setattr(files, "mend", mended.append)
    open_release(tmp_path / "r.parquet")
    assert mended == [tmp_path]
    with pytest.raises(CannotCheck, match="the release can't be read"):
        open_release(tmp_path / "missing.parquet")
