"""A refinement of k-scale: choose who is merged with whom by marginal cost, with a limit on members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.kernels.marginal import Placed, Tried, choose_rows, move_columns, place_leftovers, refresh_costs
from shoal.kernels.pick import cheapest_entries
from shoal.kernels.samples import samples_of
from shoal.lists import ranges_of
from shoal.run import LOCAL, Run
from shoal.search.constraints import hardest_first, own_lists, regular_lists

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.search import PairCosts
    from shoal.search.constraints import Plan
    from shoal.trajectories import Trajectories

__all__ = ["marginal_pick"]

_SWEEPS = 6  # at most; the first that gains less than this share is the last
_WORTHWHILE = 0.003
_COLUMNS_PER_TASK = 4


def marginal_pick(people: Trajectories, costs: PairCosts, k: int, max_members: int, *, run: Run = LOCAL) -> Plan:
    """Place every user into k-1 others' records such that the total owner cost (k-scale, Eq. 3) grows little.

    Everyone is first given one record by a minimum-cost assignment. Then, hardest first and sweep after sweep,
    each user is placed anew: of their present records and their cheapest rows, they enter those k-1 whose exact
    costs grow least. A record that nobody is in merges with its cheapest neighbour.

    Guarantee: every user is a member of at least k records, their own included; every record has between 1 and
    max_members (k-1 or more) members beside its owner; no sweep raises the total. Independent of threads.
    Cost: at most 4·k merges per user and sweep, fewer as less changes.
    """
    placed, tried = _start(costs, k, max_members)
    _refresh(people, placed, np.flatnonzero(placed.size))
    order = hardest_first(costs, costs.others, k)
    with run.stage("placing", _SWEEPS * len(people)) as advance:
        for sweep in range(_SWEEPS):
            before = placed.cost.sum()
            _sweep(people, placed, tried, order, run)
            if sweep == 0:
                changed = place_leftovers(placed, costs.offsets, costs.other, costs.others)
                _refresh(people, placed, np.flatnonzero(changed))
            elif placed.cost.sum() > (1 - _WORTHWHILE) * before:
                advance((_SWEEPS - sweep) * len(people))
                break
            advance(len(people))
    return own_lists(costs, placed.picks)


def _start(costs: PairCosts, k: int, max_members: int) -> tuple[Placed, Tried]:
    """Return records with one member each, or none if no assignment exists, and every column's rows to try."""
    n_users = len(costs.offsets) - 1
    n_rows = min(max(12, 4 * k), int(np.diff(costs.offsets).max()))
    near = cheapest_entries(costs.offsets, costs.other, costs.others, n_rows)
    cheapest = costs.own[cheapest_entries(costs.offsets, costs.other, costs.own, 1)[:, 0]]
    placed = Placed(
        member=np.full((n_users, max_members), -1),
        size=np.zeros(n_users, np.int64),
        picks=np.full((n_users, k - 1), -1),
        cost=cheapest.copy(),
        empty=cheapest,
        version=np.zeros(n_users, np.int64),
    )
    tried = Tried(
        row=np.where(near < 0, -1, costs.other[near]),
        pair=costs.others[near],
        full=np.zeros(near.shape),
        exact=np.zeros(near.shape, np.bool_),
        seen=np.full(near.shape, -1),
        rest=np.zeros((n_users, k - 1)),
        left=np.full((n_users, k - 1), -1),
    )
    lists = regular_lists(costs, 2, costs.own, costs.others)
    if lists is not None:
        placed.member[:, 0] = lists[:, 1]
        placed.size[:] = 1
        placed.picks[lists[:, 1], 0] = np.arange(n_users)
    return placed, tried


def _refresh(people: Trajectories, placed: Placed, rows: NDArray[np.int64]) -> None:
    refresh_costs(samples_of(people), placed, rows)


def _sweep(people: Trajectories, placed: Placed, tried: Tried, order: NDArray[np.int64], run: Run) -> None:
    """Place everyone anew, in batches that choose at the same time; a user whose choice others changed chooses again.

    The batches depend on the number of users only.
    """
    most = min(max(1, len(order) // 64), 1024)
    again = order[:0]
    at = 0
    while at < len(order) or len(again):
        take = max(0, most - len(again))
        columns = np.concatenate([again, order[at : at + take]])
        at += take
        rows, costs = _choose(people, placed, tried, columns, run)
        late = np.empty(len(columns), np.int64)
        again = late[: move_columns(placed, tried, columns, rows, costs, late)]


def _choose(
    people: Trajectories, placed: Placed, tried: Tried, columns: NDArray[np.int64], run: Run
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rows = np.empty((len(columns), placed.picks.shape[1]), np.int64)
    costs = np.empty(rows.shape)
    samples = samples_of(people)

    def choose(start: int, stop: int) -> None:
        part = slice(start, stop)
        choose_rows(samples, placed, tried, columns[part], rows[part], costs[part])

    run.ranges(choose, ranges_of(len(columns), _COLUMNS_PER_TASK))
    return rows, costs
