"""Small made-up populations for tests."""

import numpy as np
import pyarrow as pa

from shoal.frame import Frame, local_crs
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


def people_of(lists, frame=None):
    """Users who have these samples each."""
    rows = np.concatenate([np.array(samples, np.int32).reshape(-1, 3) for samples in lists])
    users = np.repeat(np.arange(len(lists)), [len(samples) for samples in lists])
    labels = pa.array([f"p{n}" for n in range(len(lists))])
    return build(users, *np.ascontiguousarray(rows.T), labels=labels, frame=frame or Frame(crs=None))


def same(one, other):
    """Two releases have the same records about the same people."""
    for a, b in ((one, other), (one.members, other.members)):
        assert a.offsets.tolist() == b.offsets.tolist()
    assert one.boxes.tolist() == other.boxes.tolist()
    assert one.members.indices.tolist() == other.members.indices.tolist()
    assert one.members.owners.tolist() == other.members.owners.tolist()


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
}
