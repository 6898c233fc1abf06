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


LAEA = local_crs(10, 50)
