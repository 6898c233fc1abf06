"""Clusters of users who are cheap to merge, in each epoch: spectral clustering (kte-hide, Alg. 2, line 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.interrupt import raise_if_asked
from shoal.kernels.merge import owner_cost_pairs
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import samples_of
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import coo_array

    from shoal.methods.kte_hide.pieces import Pieces

__all__ = ["spectral_labels"]

_NEIGHBOURS = 12
_PER_CLUSTER = 64  # users, on average
_MOST = 32  # clusters in an epoch, and eigenvectors
_NEAR, _SOON = 10.0, 0.2
_ROUNDS = 20


def spectral_labels(pieces: Pieces, k: int, *, run: Run = LOCAL) -> NDArray[np.int64]:
    """Return the cluster number of every piece; the pieces of each epoch are clustered by themselves.

    The affinity of two pieces is exp(-c/σ), with c the k-merge cost to both owners and σ the median of these, for
    the nearest neighbours in place and time only; the clusters are those of the eigenvectors of the normalised graph
    (Ng, Jordan, Weiss). About 64 users make a cluster: the paper does not say how many. Guarantee: the same for the
    same pieces. Cost: for each epoch that of some 32 eigenvectors of a sparse graph.
    """
    label = np.zeros(len(pieces.user), np.int64)
    edges = np.flatnonzero(np.diff(pieces.ordered, prepend=-1, append=-1))

    def work(start: int, stop: int) -> None:
        for n in range(start, stop):
            raise_if_asked()
            here = pieces.order[edges[n] : edges[n + 1]]
            clusters = min(_MOST, len(here) // max(_PER_CLUSTER, 4 * k))
            if clusters > 1:
                label[here] = _clusters(_affinity(pieces, here), clusters)

    run.ranges(work, [(n, n + 1) for n in range(len(edges) - 1)])
    return label


def _affinity(pieces: Pieces, here: NDArray[np.int64]) -> coo_array:
    """Return the sparse, symmetric affinities of the pieces of an epoch."""
    from scipy.sparse import coo_array
    from scipy.spatial import cKDTree

    box = pieces.bounds[here]
    scale = np.array([max(1.0, _SOON * pieces.length), _NEAR, _NEAR])
    points = ((box[:, 0::2] + box[:, 1::2]) / 2 - box[0, 0::2]) / scale
    near = cKDTree(points).query(points, k=min(_NEIGHBOURS + 1, len(here)), p=1)[1]
    first = np.repeat(np.arange(len(here)), near.shape[1])
    pairs = np.unique(np.sort(np.stack([first, near.ravel()], axis=1), axis=1), axis=0)
    one, other = pairs[pairs[:, 0] != pairs[:, 1]].T
    costs = np.empty((2, len(one)))
    owner_cost_pairs(samples_of(pieces), here[one], here[other], PAPERS, costs[0], costs[1])
    both = costs.sum(axis=0)
    weight = np.exp(-both / np.median(both)) + 1e-6  # so that nobody is cut off from all others
    rows, columns = np.concatenate([one, other]), np.concatenate([other, one])
    return coo_array((np.tile(weight, 2), (rows, columns)), shape=(len(here),) * 2)


def _clusters(affinity: coo_array, n: int) -> NDArray[np.int64]:
    """Cut a graph into n clusters, by its leading eigenvectors and k-means from far-apart starts."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh

    size = affinity.shape[0]
    scale = diags_array(1 / np.sqrt(affinity.sum(axis=1)))
    start = np.ones(size)
    _, vectors = eigsh((scale @ affinity @ scale).tocsr(), k=n, v0=start, which="LA", tol=1e-3)
    rows = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    centres = rows[_far_apart(rows, n)]
    nearest = np.zeros(size, np.int64)
    for _ in range(_ROUNDS):
        before, nearest = nearest, np.argmax(rows @ centres.T, axis=1)
        if (nearest == before).all():
            break
        for c in np.unique(nearest):
            centres[c] = rows[nearest == c].mean(axis=0)
    return nearest


def _far_apart(rows: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return n rows, each the farthest from those before it."""
    chosen = np.zeros(n, np.int64)
    closest = np.full(len(rows), -np.inf)
    for c in range(1, n):
        closest = np.maximum(closest, rows @ rows[chosen[c - 1]])
        chosen[c] = np.argmin(closest)
    return chosen
