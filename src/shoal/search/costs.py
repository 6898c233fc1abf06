"""Pair costs: the exact owner costs of merging two candidates, to each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.kernels.merge import owner_cost_pairs
from shoal.kernels.pick import neighbour_lists
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import samples_of
from shoal.lists import even_ranges
from shoal.run import LOCAL, Run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["PairCosts", "pair_costs"]

_SAMPLES_PER_RANGE = 1_000_000  # some hundredths of a second of k-merges


class PairCosts(NamedTuple):
    """Neighbour lists with costs: user u's neighbours are other[offsets[u]:offsets[u+1]], ascending.

    own[p] is the owner cost (k-scale, Eq. 4) to u of being merged with other[p]; others[p] the cost to other[p].
    """

    offsets: NDArray[np.int64]
    other: NDArray[np.int64]
    own: NDArray[np.float64]
    others: NDArray[np.float64]


def pair_costs(
    people: Trajectories,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    *,
    known: PairCosts | None = None,
    run: Run = LOCAL,
) -> PairCosts:
    """Return the exact owner costs of the sorted pairs first < second, to each of the two, as neighbour lists.

    Every pair is merged once, and none of those whose costs are `known` (all of them among the pairs). Cost: about
    10 µs a pair of 150 samples each, on every thread.
    """
    cost_first, cost_second = np.empty(len(first)), np.empty(len(first))
    new = np.arange(len(first)) if known is None else _take_known(known, first, second, cost_first, cost_second)
    new_first, new_second = first[new], second[new]
    found_first, found_second = np.empty(len(new)), np.empty(len(new))

    def fill(start: int, stop: int) -> None:
        part = slice(start, stop)
        ends, found = (new_first[part], new_second[part]), (found_first[part], found_second[part])
        owner_cost_pairs(samples_of(people), *ends, PAPERS, *found)

    ranges = even_ranges(people.counts[new_first] + people.counts[new_second], _SAMPLES_PER_RANGE)
    with run.stage("pair costs", len(new)) as advance:
        run.ranges(fill, ranges, advance=advance)
    cost_first[new], cost_second[new] = found_first, found_second
    return PairCosts(*neighbour_lists(len(people), first, second, cost_first, cost_second))


def _take_known(
    known: PairCosts,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    cost_first: NDArray[np.float64],
    cost_second: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Fill in the known costs; return the places of the other pairs."""
    n_users = len(known.offsets) - 1
    user = np.repeat(np.arange(n_users), np.diff(known.offsets))
    once = np.flatnonzero(user < known.other)
    places = np.searchsorted(first * n_users + second, user[once] * n_users + known.other[once])
    cost_first[places], cost_second[places] = known.own[once], known.others[once]
    return np.delete(np.arange(len(first)), places)
