"""Small made-up populations for tests."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from shoal.frame import Frame, local_crs
from shoal.kernels.samples import Samples
from shoal.reading.parts import event_parts
from shoal.trajectories import build


def random_people(n_users, *, seed=0, slots=300, side=60, mean=12, crs=None):
    """Users of 1…2·mean random samples around random homes, some of them alike."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 2 * mean, n_users)
    users = np.repeat(np.arange(n_users), counts)
    home = rng.integers(-side, side, (n_users, 2))[users]
    t = rng.integers(0, slots, len(users)).astype(np.int32)
    x, y = (home + rng.normal(0, side / 12, home.shape)).astype(np.int32).T
    labels = pa.array([f"person-{n}" for n in rng.permutation(n_users)])
    return build(users, t, x, y, labels=labels, frame=Frame(crs=crs))


def as_samples(lists):
    """Lists of (t, x, y), one of each user, as kernels take them."""
    rows = np.concatenate([np.array(samples, np.int32).reshape(-1, 3) for samples in lists])
    return Samples(*np.ascontiguousarray(rows.T), np.cumsum([0, *map(len, lists)]))


def people_of(lists, frame=None):
    """Users who have these samples each."""
    *columns, offsets = as_samples(lists)
    users = np.repeat(np.arange(len(lists)), np.diff(offsets))
    labels = pa.array([f"p{n}" for n in range(len(lists))])
    return build(users, *columns, labels=labels, frame=frame or Frame(crs=None))


def lists_of(people):
    """The samples of each user, as lists of (t, x, y)."""
    samples = list(zip(people.t.tolist(), people.x.tolist(), people.y.tolist(), strict=True))
    return [samples[a:b] for a, b in pairwise(people.offsets.tolist())]


def groups_of(release):
    """The groups of a release with their boxes, in canonical order."""
    members = release.members
    ends = enumerate(pairwise(members.offsets))
    records = {tuple(sorted(members.indices[a:b].tolist())): record for record, (a, b) in ends}
    return [(group, [tuple(box) for box in release.record(r).tolist()]) for group, r in sorted(records.items())]


def read_events(*given):
    with event_parts(*given) as parts:
        return parts.take()


def same(one, other):
    """Two releases have the same records about the same people."""
    for a, b in ((one, other), (one.members, other.members)):
        assert a.offsets.tolist() == b.offsets.tolist()
    assert one.boxes.tolist() == other.boxes.tolist()
    assert one.members.indices.tolist() == other.members.indices.tolist()
    assert one.members.owners.tolist() == other.members.owners.tolist()
    assert np.array_equal(one.members.matchings, other.members.matchings)  # both None, or alike


LAEA = local_crs(10, 50)

# Samples of people who are hard to group.
ODD = {
    "identical": [[(5, 5, 5), (7, 1, 1)]] * 7,
    "all but one identical": [[(5, 5, 5), (7, 1, 1)]] * 7 + [[(900, 900, 900)]],
    "one sample": [[(3 * n, n * n, 0)] for n in range(8)],
    "isolated": [[(n, 3**n, -(3**n)), (50 + n, 3**n, 7)] for n in range(9)],
    "one far away": [[(n, n, n), (40, n, 0)] for n in range(6)] + [[(10_000, 100_000, 100_000)]],
    "all at one time": [[(7, n, 0), (7, 0, n)] for n in range(6)],
    "very unlike lengths": [[(t, n, n) for t in range(0, 1000, 7 ** (n % 4))] for n in range(6)],
    "static": [[(t, n // 3, 4) for t in range(0, 50, n + 2)] for n in range(12)],
    "mixed": [[(0, 0, 0), (9, 1, 1)], [(1, 0, 0)], [(500, 10_000, 0)], [(3, 0, 0), (4, 4, 4), (5, 5, 5)], [(1, 0, 0)]],
}
