"""The whole way on real and generated data, k = 2, 3, 5: verify against a brute-force count for every user."""

import duckdb
import numpy as np
import pytest

import shoal
from shoal.methods import make_method
from shoal.pipeline import publish
from shoal.seen.cover import count_cover
from shoal.seen.original import Original
from shoal.seen.records import Records
from tests.oracle.many_covers import cover_counts


def subset(source, target, users):
    chosen = f"SELECT DISTINCT uid FROM '{source}' ORDER BY md5(uid::VARCHAR) LIMIT {users}"
    rows = f"SELECT * FROM '{source}' WHERE uid IN ({chosen})"
    duckdb.connect().execute(f"COPY ({rows}) TO '{target}' (FORMAT parquet)")


SIZES = {"few generated": 80, "generated": 2000, "tdrive_cdr": 2000, "gowalla_nyc": 2000}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.slow] * (users > 80)) for name, users in SIZES.items()],
)
def original(request, tmp_path_factory):
    path, users = tmp_path_factory.mktemp("data") / "original.parquet", SIZES[request.param]
    if "generated" in request.param:
        shoal.synthesize(path, users=users, days=5 if users == 80 else 14, seed=1)
    else:
        subset(request.getfixturevalue("data") / f"{request.param}.parquet", path, users)
    return path


METHODS = {
    "shoal": ("shoal", {}),
    "nu-k-pick": ("k-scale", {"constraint": "nu-k-pick"}),
    "k-pick": ("k-scale", {"constraint": "k-pick"}),
    "marginal": ("k-scale", {"picking": "marginal"}),
    "full": ("k-scale", {"constraint": "full"}),
    "k-concealment": ("k-concealment", {}),
}


@pytest.mark.parametrize("chosen", METHODS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_verified_and_counted(original, k, chosen, tmp_path):
    output = tmp_path / "release.parquet"
    method, parameters = METHODS[chosen]
    parameters = {"k": k, **parameters}
    done = publish(original, output, make_method(method, parameters))
    assert done.verdict.ok
    verdict = shoal.verify(original, output, k=k, exact=True)
    assert verdict.ok, verdict.messages
    people, release = shoal.read(original), shoal.read_release(output)
    expected = cover_counts(people, release)
    assert min(expected) >= k
    slots = people.t.astype(np.int64) + people.frame.origin_slot
    everyone = Original(people.labels, people.offsets, slots, people.x.astype(np.int64), people.y.astype(np.int64))
    records = Records(release.offsets, release.boxes.astype(np.int64), np.ones(len(release), np.int64))
    assert count_cover(everyone, records, np.arange(len(people))).tolist() == expected
