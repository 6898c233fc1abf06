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


def shuffled(table):
    return table.take(pa.array(np.random.default_rng(0).permutation(table.num_rows)))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads(events, expected, tmp_path, threads):
    anonymize(events, tmp_path / "release.parquet", "--threads", threads)
    assert (tmp_path / "release.parquet").read_bytes() == expected


def relabelled(table):
    labels = pa.array([f"z{hash((7, uid)) % 10**12}-{uid}" for uid in table["uid"].to_pylist()])
    return table.set_column(0, "uid", labels)


def in_parts(table, folder):
    for n in range(3):
        pq.write_table(shuffled(table).take(pa.array(np.arange(n, len(table), 3))), folder / f"{n}.parquet")


# How the same events are given: what is written into a folder, and which of its files are named.
GIVEN = {
    "shuffled": (lambda table, folder: pq.write_table(shuffled(table), folder / "0.parquet"), ["0.parquet"]),
    "text": (lambda table, folder: pa_csv.write_csv(shuffled(table), folder / "0.csv"), ["0.csv"]),
    "other labels": (lambda table, folder: pq.write_table(relabelled(table), folder / "0.parquet"), ["0.parquet"]),
    "several files": (in_parts, ["0.parquet", "1.parquet", "2.parquet"]),
    "a folder": (in_parts, [""]),
    "a glob": (in_parts, ["*.parquet"]),
}


@pytest.mark.parametrize("how", GIVEN)
def test_however_the_events_are_given(events, expected, tmp_path, how):
    write, names = GIVEN[how]
    (tmp_path / "in").mkdir()
    write(pq.read_table(events), tmp_path / "in")
    anonymize(*(tmp_path / "in" / name for name in names), tmp_path / "release.parquet")
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
