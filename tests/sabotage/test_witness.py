"""Misreadings: a reader that is wrong in the same way for `anonymize` and `verify` is noticed by the witness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import NotVerified
from shoal.reading import parse, stream
from shoal.run import Run
from tests.witness import findings_of

RUN = Run(threads=1)


@pytest.fixture(scope="module")
def people():
    """Rows of 24 people in three days, one without a place, with ids that only differ in case or in their end."""
    names = [f"{name}{end}" for name in ("Ann", "ann", "Bob", "bob") for end in range(6)]
    rows = [
        (
            name,
            f"2026-03-0{1 + step // 4} {7 + step % 4:02}:{user:02}:{step:02}",
            39.9 + user / 997 if (user, step) != (10, 0) else None,
            116.4 + step / 991,
        )
        for user, name in enumerate(names)
        for step in range(12)
    ]
    return pa.table(list(map(pa.array, zip(*rows, strict=True))), ["uid", "datetime", "lat", "lng"])


@pytest.fixture(params=["csv", "parquet"])
def folder(people, tmp_path, request):
    """Three files of equal size in a folder."""
    inside = tmp_path / "in"
    inside.mkdir()
    for n in range(3):
        part = people.slice(n * 96, 96)
        if request.param == "csv":
            pa_csv.write_csv(part, inside / f"{n}.csv")
        else:
            pq.write_table(part, inside / f"{n}.parquet")
    return inside


def sources(change):
    """Change the list of files that are read."""

    def misread(patch):
        honest = stream._look_at
        patch.setattr(stream, "_look_at", lambda *asked: change(honest(*asked)))

    return misread


def rows(change):
    """Change the rows of each batch."""

    def misread(patch):
        honest = stream._stream

        def wrong(*asked):
            for batch, kinds in honest(*asked):
                yield change(batch), kinds

        patch.setattr(stream, "_stream", wrong)

    return misread


def users(sql):
    """Change how a label is read; `sql` has the honest one as {}."""

    def misread(patch):
        honest = parse._user
        patch.setattr(parse, "_user", lambda *asked, **more: sql.format(honest(*asked, **more)))

    return misread


def shuffled_times(batch):
    ms, known = batch.ms.copy(), np.flatnonzero(np.isfinite(batch.b))
    ms[known] = np.roll(ms[known], 7)
    return replace(batch, ms=ms)


def others_place(batch):
    a = batch.a.copy()
    a[0] = a[-1]
    return replace(batch, a=a)


def without(which):
    def change(batch):
        kept = which(batch)
        return replace(batch, users=batch.users[kept], ms=batch.ms[kept], a=batch.a[kept], b=batch.b[kept])

    return change


def column(name, change):
    """Change a column of each batch."""
    return rows(lambda batch: replace(batch, **{name: change(getattr(batch, name))}))


MISREADINGS = {
    "drops a file": (sources(lambda found: found[:-1]), {"rows", "people", "kept"}),
    "reads a file twice": (sources(lambda found: [*found, found[0]]), {"rows", "kept"}),
    "reads a file twice and another never": (
        sources(lambda found: [found[0], *found[:-1]]),
        {"people", "times", "places"},
    ),
    "drops the last row": (rows(without(lambda batch: np.arange(len(batch.ms)) < len(batch.ms) - 1)), {"rows", "kept"}),
    "drops rows without a place silently": (rows(without(lambda batch: np.isfinite(batch.b))), {"rows"}),
    "drops northern rows": (rows(without(lambda batch: batch.b < 39.91)), {"rows", "kept"}),
    "replaces a latitude by the folder's": (column("b", lambda b: np.where(np.isnan(b), b, 48.5)), {"places"}),
    "replaces the times by the folder's": (column("ms", lambda ms: np.full_like(ms, 10**12)), {"times"}),
    "exchanges latitude and longitude": (rows(lambda batch: replace(batch, a=batch.b, b=batch.b - 40)), {"places"}),
    "shifts times by an hour": (column("ms", lambda ms: ms + 3_600_000), {"times"}),
    "shifts times by a second": (column("ms", lambda ms: ms + 1_000), {"times"}),
    "cuts times to minutes": (column("ms", lambda ms: ms // 60_000 * 60_000), {"times"}),
    "shuffles times among people": (rows(shuffled_times), {"pairs"}),
    "takes one place from another row": (rows(others_place), {"places"}),
    "rounds places to floats of 32 bits": (column("a", lambda a: a.astype("f4").astype("f8")), {"places"}),
    "rounds places to four decimals": (column("b", lambda b: b.round(4)), {"places"}),
    "exchanges two people": (column("users", lambda u: np.where(u < 2, 1 - u, u).astype("i4")), {"pairs"}),
    "gives one person's rows to another": (column("users", lambda u: np.maximum(u, 1).astype("i4")), {"people"}),
    "ignores the case of ids": (users("lower({})"), {"people"}),
    "cuts ids off": (users("left({}, 3)"), {"people"}),
    "adds to ids": (users("{} || '.0'"), {"people"}),
}


@pytest.mark.parametrize("name", MISREADINGS)
def test_a_misreading_is_noticed(name, folder, monkeypatch):
    misread, codes = MISREADINGS[name]
    assert findings_of(folder).codes == []
    misread(monkeypatch)
    assert set(findings_of(folder).codes) == {f"original/{code}" for code in codes}


@pytest.mark.parametrize("name", ["reads a file twice and another never", "replaces a latitude by the folder's"])
def test_nothing_misread_is_published_or_holds(name, folder, tmp_path, monkeypatch):
    misread, codes = MISREADINGS[name]
    misread(monkeypatch)
    release = tmp_path / "release.parquet"
    with pytest.raises(NotVerified, match="original"):
        shoal.publish(folder, release, shoal.Shoal(k=2), run=RUN)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    shoal.Shoal(k=2).anonymize(shoal.read(folder, run=RUN)).write(release)
    verdict = shoal.verify(folder, release, run=RUN)
    assert verdict.failures == ("original",)
    assert set(verdict.codes) == {f"original/{code}" for code in codes}
