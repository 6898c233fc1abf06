"""Threads, row order, files, formats: the same release for the same seed, byte for byte."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.cli import main


def anonymize(*arguments):
    with pytest.raises(SystemExit) as done:
        main(["anonymize", *map(str, arguments), "--k", "3", "--seed", "1"])
    assert done.value.code == 0


@pytest.fixture(scope="module")
def expected(events, tmp_path_factory):
    path = tmp_path_factory.mktemp("expected") / "release.parquet"
    anonymize(events, path)
    return path.read_bytes()


def shuffled(events):
    table = pq.read_table(events)
    return table.take(pa.array(np.random.default_rng(0).permutation(table.num_rows)))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(events, expected, tmp_path, threads):
    anonymize(events, tmp_path / "release.parquet", "--threads", threads)
    assert (tmp_path / "release.parquet").read_bytes() == expected


def test_shuffled_rows(events, expected, tmp_path):
    pq.write_table(shuffled(events), tmp_path / "shuffled.parquet")
    anonymize(tmp_path / "shuffled.parquet", tmp_path / "release.parquet")
    assert (tmp_path / "release.parquet").read_bytes() == expected


@pytest.mark.parametrize("how", ["listed", "folder", "glob"])
def test_several_files(events, expected, tmp_path, how):
    table, parts = shuffled(events), tmp_path / "parts"
    parts.mkdir()
    for n in range(3):
        pq.write_table(table.take(pa.array(np.arange(n, len(table), 3))), parts / f"{n}.parquet")
    inputs = {"listed": sorted(parts.iterdir()), "folder": [parts], "glob": [parts / "*.parquet"]}[how]
    anonymize(*inputs, tmp_path / "release.parquet")
    assert (tmp_path / "release.parquet").read_bytes() == expected


def test_csv_instead_of_parquet(events, expected, tmp_path):
    pa_csv.write_csv(shuffled(events), tmp_path / "events.csv")
    anonymize(tmp_path / "events.csv", tmp_path / "release.parquet")
    assert (tmp_path / "release.parquet").read_bytes() == expected


def test_other_labels(events, expected, tmp_path):
    table = pq.read_table(events)
    labels = pa.array([f"z{hash((7, uid)) % 10**12}-{uid}" for uid in table["uid"].to_pylist()])
    pq.write_table(table.set_column(0, "uid", labels), tmp_path / "relabelled.parquet")
    anonymize(tmp_path / "relabelled.parquet", tmp_path / "release.parquet")
    assert (tmp_path / "release.parquet").read_bytes() == expected


def test_shifted_by_whole_slots(events, expected, tmp_path):
    """A shift by whole slots moves every box by as much and changes nothing else."""
    table = pq.read_table(events)
    later = pa.compute.add(table["datetime"], pa.scalar(7 * 60_000, pa.duration("ms")))
    pq.write_table(table.set_column(1, "datetime", later), tmp_path / "later.parquet")
    anonymize(tmp_path / "later.parquet", tmp_path / "release.parquet")
    (tmp_path / "expected.parquet").write_bytes(expected)
    before, after = (pq.read_table(tmp_path / name).to_pandas() for name in ("expected.parquet", "release.parquet"))
    for name in ("t_start", "t_end", "datetime"):
        assert ((after.pop(name) - before.pop(name)).dt.total_seconds() == 7 * 60).all()
    assert before.equals(after)


def test_without_the_compiler(process, tmp_path):
    """Kernels are Python: uncompiled they give the same records."""
    few = tmp_path / "few.parquet"
    shoal.synthesize(few, users=6, scene="town", days=1, seed=3)
    anonymize(few, tmp_path / "release.parquet")
    arguments = ["anonymize", few, tmp_path / "slow.parquet", "--k", "3", "--seed", "1"]
    process(*arguments, env={"NUMBA_DISABLE_JIT": "1"}, check=0)
    assert (tmp_path / "slow.parquet").read_bytes() == (tmp_path / "release.parquet").read_bytes()
