"""Reading within a limit of memory: whatever the limit, the same trajectories, account and errors."""

from __future__ import annotations

import errno
import gc
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.errors import BadRows, LikelySwapped, NoValidRows, OutputError, SettingsError, TooLarge, UnreadableFile
from shoal.kernels.order import rank_users
from shoal.reading import engine, mapped, parts, screen, stream
from shoal.reading.engine import ROW_BYTES, rows_within
from shoal.reading.granules import choose_crs
from shoal.reading.options import ReadOptions
from shoal.reading.parts import event_parts
from shoal.reading.spread import spread_of
from shoal.run import Run
from tests.draws import examples
from tests.forked import forked
from tests.oracle import order as twin
from tests.people import read_events

LIMITS = [1_000 * ROW_BYTES, 2**17]


def table(n=6_000, users=40, seed=5, *, text=True, bad=False):
    """Rows of people with few and with many rows, some of them alike, some rows broken."""
    rng = np.random.default_rng(seed)
    uid = np.minimum(rng.integers(0, users, n), rng.integers(0, users, n))
    seconds = (1_772_323_200 + rng.integers(0, 3 * 1440, n) * 60).astype(float)
    lat, lng = 39.9 + rng.integers(0, 9, n) / 100, 116.4 + rng.integers(0, 9, n) / 100
    alike = slice(0, 8)  # four users with the same two samples
    uid[alike] = users + np.arange(8) // 2
    seconds[alike], lat[alike], lng[alike] = 1_772_323_200 + np.arange(8) % 2 * 60, 39.9, 116.4
    if bad:
        lat[rng.random(n) < 0.02] = 95
        seconds[rng.random(n) < 0.02] = np.nan
        uid[rng.random(n) < 0.02] = -1
        lat[uid == 3] = np.nan  # nothing of theirs is left
        lat[uid >= users + 3] = np.nan
    labels = pa.array(uid, mask=uid < 0)
    return pa.table(
        {
            "uid": pc.binary_join_element_wise("person", labels.cast(pa.string()), "-") if text else labels,
            "time": pa.array(seconds),
            "lat": lat,
            "lng": lng,
        }
    )


def same(a, b):
    """The same people with the same samples on the same grid, and the same account; bit by bit."""
    for name in ("offsets", "t", "x", "y"):
        one, two = getattr(a, name), getattr(b, name)
        assert (one.dtype, type(one)) == (two.dtype, np.ndarray)
        np.testing.assert_array_equal(one, two)
    assert a.labels.equals(b.labels)
    assert (a.frame, a.frame.tz) == (b.frame, b.frame.tz)
    assert a.account.to_dict() == b.account.to_dict()
    return True


def parts_of(source, limit, **options):
    """How many parts a limit makes."""
    with event_parts(source, ReadOptions(**options), run=Run(memory=limit)) as found:
        return len(found)


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("text", [True, False], ids=["text", "integers"])
def test_the_limit_does_not_matter(limit, text, tmp_path):
    rows = table(text=text, bad=True)
    whole = shoal.from_arrow(rows)
    assert whole.account.dropped.keys() >= {"no user", "time can't be read", "coordinates out of range"}
    assert whole.account.users_dropped == {"no usable rows": 2}
    shuffled = rows.take(np.random.default_rng(limit).permutation(len(rows)))
    pq.write_table(shuffled, tmp_path / "a.parquet", row_group_size=500)
    assert parts_of(rows, limit) > 1
    assert same(shoal.from_arrow(rows, run=Run(memory=limit)), whole)
    for threads in (1, 2):
        assert same(shoal.read(tmp_path / "a.parquet", run=Run(memory=limit, threads=threads)), whole)


@pytest.mark.parametrize("limit", LIMITS)
def test_text_files_too(limit, tmp_path):
    rows = table(bad=True)
    pacsv.write_csv(rows, tmp_path / "a.csv")
    whole = shoal.read(tmp_path / "a.csv", run=Run(threads=1))
    assert same(shoal.read(tmp_path / "a.csv", run=Run(memory=limit)), whole)
    (tmp_path / "a.csv").write_bytes((tmp_path / "a.csv").read_bytes() + b"no,row\n")
    torn = shoal.read(tmp_path / "a.csv", run=Run(memory=limit))
    assert torn.account.dropped["not a row of the table"] == 1
    assert same(torn, shoal.read(tmp_path / "a.csv"))


OPTIONS = {
    "screening": {"min_samples": 100, "min_active_days": 3},
    "few stay": {"min_samples": 280},
    "zone": {"tz": "America/New_York", "min_active_days": 4},
    "crs": {"crs": "EPSG:32650", "cell": 500},
    "grid": {"cell": "5km", "slot": "1h"},
    "bbox": {"bbox": (116.4, 39.92, 116.45, 40)},
    "period": {"period": ("2026-03-01T12:00", "2026-03-02")},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_options_do_not_matter(options):
    rows = table()
    whole = shoal.from_arrow(rows, **options)
    assert parts_of(rows, LIMITS[0], **options) > 1
    assert same(shoal.from_arrow(rows, run=Run(memory=LIMITS[0]), **options), whole)


def test_active_days_are_counted_some_users_at_a_time(monkeypatch):
    rows, options = table(), {"min_active_days": 3, "tz": "Asia/Tokyo"}
    whole = shoal.from_arrow(rows, **options)
    assert whole.account.users_dropped.keys() == {"of users with too few active days"}
    for most in (1, 200, 1_000):
        monkeypatch.setattr(screen, "_ROWS_AT_ONCE", most)
        assert same(shoal.from_arrow(rows, **options), whole)


def test_gridded_data_cells_files_and_places_outside_the_crs(tmp_path):
    rng = np.random.default_rng(1)
    uid, slot = rng.integers(0, 20, 2_000), rng.integers(0, 48, 2_000)
    place = {"x": rng.integers(-9, 9, 2_000), "y": rng.integers(0, 9, 2_000)}
    rows = pa.table({"uid": uid, "d": slot % 5, "t": slot, **place})
    grid = {"cell": 500, "slot": 1800}
    assert same(shoal.from_arrow(rows, run=Run(memory=2**15), **grid), shoal.from_arrow(rows, **grid))
    broken = rows.set_column(3, "x", pa.array(np.where(np.arange(2_000) == 1_700, 0.5, 1.0)))
    for limit in (None, 2**15):
        with pytest.raises(SettingsError, match="whole numbers"):
            shoal.from_arrow(broken, run=Run(memory=limit), **grid)
    (tmp_path / "cells.csv").write_text("id,lat,lng\n" + "".join(f"{n},{n},{n}\n" for n in range(40)))
    calls = pa.table({"uid": uid, "time": slot * 3600, "cell": slot})
    cells = {"cells": tmp_path / "cells.csv"}
    assert same(shoal.from_arrow(calls, run=Run(memory=2**15), **cells), shoal.from_arrow(calls, **cells))
    lng = np.where(uid == 7, -64.0, 116.0 + uid / 100)
    far = pa.table({"uid": uid, "time": slot * 3600, "lat": np.where(uid == 7, -40.0, 40.0), "lng": lng})
    whole = shoal.from_arrow(far)
    assert whole.account.users_dropped == {"no usable rows": 1}
    assert same(shoal.from_arrow(far, run=Run(memory=2**15)), whole)


def test_the_antimeridian_is_where_it_was():
    rng = np.random.default_rng(2)
    lng = (rng.normal(0, 3, 1_000) % 360) - 180
    rows = pa.table({"uid": rng.integers(0, 30, 1_000), "time": np.arange(1_000), "lat": rng.normal(0, 2, 1_000)})
    rows = rows.append_column("lng", pa.array(lng))
    assert same(shoal.from_arrow(rows, run=Run(memory=2**15)), shoal.from_arrow(rows))


ROW = st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1))


@examples(30)
@given(st.lists(ROW, min_size=1, max_size=60), st.integers(1, 60), st.integers(0, 4))
def test_any_rows_within_any_limit(rows, limit, min_samples):
    """Small numbers, so that users are often alike, equal, or dropped by the screening."""
    uid, t, lat, lng = (list(column) for column in zip(*rows, strict=True))
    people = pa.table({"uid": uid, "time": [60 * n for n in t], "lat": [n / 10 for n in lat], "lng": lng})
    limit *= 2 * ROW_BYTES

    def outcome(memory):
        try:
            return shoal.from_arrow(people, min_samples=min_samples, run=Run(memory=memory))
        except (NoValidRows, TooLarge) as error:
            return error

    whole, limited = outcome(None), outcome(limit)
    if max(map(uid.count, uid)) > rows_within(limit):
        assert isinstance(limited, TooLarge)
    elif isinstance(whole, NoValidRows):
        assert str(limited) == str(whole)
    else:
        assert same(limited, whole)


SAMPLES = st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=1, max_size=4, unique=True).map(sorted)


@examples(200)
@given(st.lists(SAMPLES, min_size=1, max_size=12))
def test_ranks_by_columns_equal_the_slow_twin(groups):
    counts = np.array([len(group) for group in groups])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    columns = tuple(np.array([s[i] for group in groups for s in group], dtype=np.int32) for i in range(3))
    first = tuple(column[offsets[:-1]] for column in columns)
    assert rank_users(offsets, counts, first, columns).tolist() == twin.canonical_order(groups)


@pytest.mark.parametrize("limit", [None, *LIMITS])
def test_parts_hold_all_rows_of_their_users(limit):
    rows, options = table(bad=True), ReadOptions()
    whole = read_events(rows, options)
    with event_parts(rows, options, run=Run(memory=limit)) as found:
        everyone = list(found)
        assert len(everyone) == len(found)
        assert [len(part) for part in found] == [len(part) for part in everyone], "as often as needed"
        assert (len(found) == 1) == (limit is None)
        assert found.rows == len(whole) == sum(map(len, everyone))
        assert found.account == whole.account
        assert found.labels.equals(whole.labels)
        assert pa.concat_arrays([part.labels for part in everyone]).equals(whole.labels)
        if limit is not None:
            assert max(map(len, everyone)) <= max(rows_within(limit) // 2, np.bincount(whole.users).max())
        first = 0
        for part in everyone:
            assert part.account == whole.account
            assert (np.bincount(part.users, minlength=len(part.labels)) > 0).all()
            theirs = (whole.users >= first) & (whole.users < first + len(part.labels))
            assert columns_of(part, first) == columns_of(whole, 0, theirs)
            first += len(part.labels)


def columns_of(events, first, mask=slice(None)):
    columns = events.users[mask] + first, events.epoch_ms[mask], events.lng[mask], events.lat[mask]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_what_fits_is_not_spilled(tmp_path, monkeypatch):
    rows = table()
    monkeypatch.setattr(parts, "spill_files", None)
    assert same(
        shoal.from_arrow(rows, run=Run(memory=2 * len(rows) * ROW_BYTES, work_dir=tmp_path)), shoal.from_arrow(rows)
    )
    with pytest.raises(TypeError):
        shoal.from_arrow(rows, run=Run(memory=2 * len(rows) * ROW_BYTES - 1, work_dir=tmp_path))


def test_one_user_with_more_rows_than_a_part():
    rows = table(3_000, users=1)
    huge = pc.max(pc.value_counts(rows["uid"]).field("counts")).as_py()
    assert huge > len(rows) / 2
    whole = shoal.from_arrow(rows)
    assert same(shoal.from_arrow(rows, run=Run(memory=2 * huge * ROW_BYTES)), whole), (
        "more than a part, less than the limit"
    )
    with pytest.raises(TooLarge, match="one user alone") as caught:
        shoal.from_arrow(rows, run=Run(memory=2 * huge * ROW_BYTES - 1))
    assert "person" not in str(caught.value)


def test_errors_do_not_depend_on_the_limit(tmp_path):
    rows = table()
    swapped = rows.rename_columns(["uid", "time", "lng", "lat"])
    late = rows.set_column(2, "lat", pa.array(np.where(np.arange(len(rows)) == 4_321, 91.0, 40.0)))
    long = rows.set_column(1, "time", pa.array(np.where(np.arange(len(rows)) == 4_321, 4e9, 0.0)))
    pq.write_table(rows, tmp_path / "torn.parquet")
    data = bytearray((tmp_path / "torn.parquet").read_bytes())
    data[1_000:20_000:7] = bytes(b ^ 0xA5 for b in data[1_000:20_000:7])
    (tmp_path / "torn.parquet").write_bytes(data)
    cases = [
        (swapped, {}, LikelySwapped),
        (late, {"strict": True}, BadRows),
        (long, {"slot": 1}, SettingsError),
        (rows, {"min_samples": 10_000}, NoValidRows),
        (rows.set_column(0, "uid", pa.nulls(len(rows), pa.int64())), {}, NoValidRows),
        (rows, {"period": ("2030-01-01", "2031-01-01")}, NoValidRows),
        (rows, {"cell": 10, "crs": "EPSG:4326"}, SettingsError),
        (tmp_path / "torn.parquet", {}, UnreadableFile),
    ]
    work = tmp_path / "work"
    work.mkdir()
    for source, options, kind in cases:
        said = []
        for limit in (None, *LIMITS):
            with pytest.raises(kind) as caught:
                shoal.read(source, run=Run(memory=limit, work_dir=work), **options)
            said.append(str(caught.value))
            assert list(work.iterdir()) == []
        assert len(set(said)) == 1


def test_files_are_private_and_gone(tmp_path, monkeypatch):
    rows, seen = table(), {}
    write = parts.SpillFile.write

    def spy(self, values, at):
        seen[self.path.name] = self.path.stat().st_mode & 0o777, self.path.parent.stat().st_mode & 0o777
        assert self.path.parent.parent == tmp_path
        write(self, values, at)

    monkeypatch.setattr(parts.SpillFile, "write", spy)
    people = shoal.from_arrow(rows, run=Run(memory=2**17, work_dir=tmp_path))
    assert seen == dict.fromkeys(["users", "ms", "a", "b", "run-t", "run-x", "run-y", "t", "x", "y"], (0o600, 0o700))
    assert list(tmp_path.iterdir()) == []
    assert mapped_here(tmp_path), "the samples live on in the unlinked files"
    assert same(people, shoal.from_arrow(rows))
    t = people.t
    del people
    gc.collect()
    assert len(t[:3].tolist()) == 3, "an array keeps its file alive"
    del t
    gc.collect()
    assert not mapped_here(tmp_path)


def mapped_here(folder):
    return [line for line in Path("/proc/self/maps").read_text().splitlines() if str(folder) in line]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize(
    "where", [(stream, "judge"), (parts, "_load"), (mapped, "screen"), (mapped, "_chunk")], ids=str
)
def test_nothing_stays_after_an_error(where, error, tmp_path, monkeypatch):
    calls = []
    original = getattr(*where)

    def fail(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise error
        return original(*arguments, **options)

    monkeypatch.setattr(*where, fail)
    monkeypatch.setattr(stream, "BATCH", 2_048)
    monkeypatch.setattr(mapped, "_SAMPLES", 100)
    with pytest.raises(BaseException) as caught:  # noqa: PT011  of three kinds
        shoal.from_arrow(table(), run=Run(memory=2**16, work_dir=tmp_path))
    assert isinstance(caught.value, KeyboardInterrupt | RuntimeError | MemoryError | TooLarge)
    assert len(calls) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_caller_that_breaks_off_leaves_nothing(tmp_path):
    with event_parts(table(), ReadOptions(), run=Run(memory=2**16, work_dir=tmp_path)) as found:
        next(iter(found))
        assert len(list(tmp_path.iterdir())) == 1
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(KeyboardInterrupt),
        event_parts(table(), ReadOptions(), run=Run(memory=2**16, work_dir=tmp_path)),
    ):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_the_disk_is_looked_at_first_and_may_still_be_full(tmp_path, monkeypatch):
    rows = table()
    usage = shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", lambda _: usage._replace(free=len(rows) * 40))
        patched.setattr(parts, "private_folder", None)
        with pytest.raises(TooLarge, match="`work_dir"):
            shoal.from_arrow(rows, run=Run(memory=2**17, work_dir=tmp_path))
        assert shoal.from_arrow(rows, run=Run(work_dir=tmp_path)).samples, "what fits in memory takes no disk"
    with pytest.raises(OutputError, match=r"work.dir"):
        shoal.from_arrow(rows, run=Run(memory=2**17, work_dir=tmp_path / "nowhere"))

    def full(handle, data, at, write=os.pwrite):
        if len(data) < 1000:  # the mark of a private folder
            return write(handle, data, at)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OutputError, match="disk is full"):
        shoal.from_arrow(rows, run=Run(memory=2**17, work_dir=tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_engine_keeps_to_the_limit(tmp_path, monkeypatch):
    seen = []
    settings = engine._settings
    monkeypatch.setattr(engine, "_settings", lambda *a, **k: seen.extend(settings(*a, **k)) or settings(*a, **k))
    shoal.from_arrow(table(), run=Run(memory=8 * 2**30, work_dir=tmp_path))
    shoal.from_arrow(table(), run=Run(memory=2**17, work_dir=tmp_path))
    assert [line for line in seen if "memory_limit" in line] == [
        f"SET memory_limit = '{2 * 2**30}B'",
        f"SET memory_limit = '{2**28}B'",
    ]


def test_kernels_take_mapped_samples(events):
    """Without compiling anything anew: the arrays look like others."""
    people = shoal.read(events, run=Run(memory=2**19))
    whole = shoal.read(events)
    assert same(people, whole)
    method = shoal.KScale(k=2)
    a, b = (method.anonymize(p).to_pandas() for p in (people, whole))
    assert a.equals(b)


def test_killed_while_spilling(tmp_path):
    """The next run sweeps what a killed one leaves."""
    pq.write_table(table(), tmp_path / "a.parquet")
    (tmp_path / "work").mkdir()
    code = """
import os, shoal, signal, sys
from shoal.reading import mapped
mapped.screen = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
shoal.read(sys.argv[1], run=shoal.Run(memory=2**17, work_dir=sys.argv[2]))
"""
    assert forked(code, tmp_path / "a.parquet", tmp_path / "work")[0] == -signal.SIGKILL
    assert len(list((tmp_path / "work").iterdir())) == 2
    shoal.read(tmp_path / "a.parquet", run=Run(memory=2**17, work_dir=tmp_path / "work"))
    assert list((tmp_path / "work").iterdir()) == []


def test_the_crs_is_that_of_the_whole():
    rows, options = table(), ReadOptions()
    assert shoal.from_arrow(rows, run=Run(memory=2**17)).frame.crs == choose_crs(
        spread_of(read_events(rows, options)), options
    )
