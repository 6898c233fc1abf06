"""Check by statistical tests that the numbering of records tells nothing; a fresh random one practically never fails.

Under a uniformly random numbering every fixed quantity of the records, and every fixed list of the users, is
independent of the numbers. So each test has a valid p-value for any quantity. A list is judged by its trend, and by its
echoes: a numbering in strides, in rounds (one record of each group after the other) or there and back repeats itself
after some number of records, or backwards. A check makes some fifty tests at 5·10⁻⁹ each. As measured on random
numberings, p-values of that size are at most four times too severe, so a fresh numbering is blamed less than once in a
million.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, scalar_of
from shoal.lists import offsets_of
from shoal.seen.index import hold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.audit import Witnesses
    from shoal.seen.findings import Findings
    from shoal.seen.people import Crowd
    from shoal.seen.records import Catalogue

__all__ = ["check_labels", "check_numbering", "check_owned", "check_quantities"]

_LEAST_USERS = 20
_LEAST_P = 5e-9
_PAIRS = 5_000_000  # of identical records, whose distances are counted
_SHUFFLES = 20
_TRIED = 50_000
_RANKINGS = 3


def check_numbering(findings: Findings, records: Catalogue) -> None:
    """Check that the numbers do not follow anything in the records, and that identical ones are not side by side."""
    groups = records.groups
    first, last, bounds = (edges[groups] for edges in records.unique.ends)
    sizes = bounds[:, 1::2] - bounds[:, 0::2]
    quantities = {
        "when they begin": first[:, 0],
        "when they end": last[:, 1],
        "how many boxes they have": records.unique.counts[groups],
        "where they begin": first[:, 2] + first[:, 3],
        "where they begin (second axis)": first[:, 4] + first[:, 5],
        "how far they reach": sizes[:, 1] + sizes[:, 2],
    }
    if not check_quantities(findings, quantities, len(records)):
        return
    side_by_side = int((np.diff(groups) == 0).sum())
    together = np.bincount(groups)
    expected = float((together * (together - 1)).sum()) / len(groups)
    if _too_many(side_by_side, expected):
        findings.fail("leaks/side-by-side")
    elif expected * len(groups) <= 2 * _PAIRS and _is_regular(groups):
        findings.fail("leaks/regular")


def check_quantities(findings: Findings, quantities: dict[str, NDArray[Any]], records: int) -> bool:
    """Check that the numbers of so many records follow none of these lists, each in the order of the numbers.

    Returns whether there are enough records for that.
    """
    if records < _LEAST_USERS:
        findings.note("order-not-judged", n=_LEAST_USERS)
        return False
    for name, values in quantities.items():
        if _follows(values):
            findings.fail("leaks/order", what=name)
    return True


def check_labels(
    findings: Findings,
    people: Crowd,
    records: Catalogue,
    witnesses: Witnesses | None,
    homes: NDArray[np.int64] | None = None,
) -> None:
    """Check that the numbers have nothing to do with the original labels, or with an order of the users.

    With an audit the owner of each record is known. Without one, the user that a number would point at is tried:
    if such users fit their records more often than shuffled ones, the numbers follow the users. Of identical records,
    `homes` says in which group everybody is (-1: in none): then the numbers of the groups are judged.
    """
    if min(len(records), len(people)) < _LEAST_USERS:
        return
    lists = {
        "the number of samples of their users": _canonical(people),
        "the order of the original": np.arange(len(people)),
    }
    if witnesses is not None:
        check_owned(findings, people.labels, lists, witnesses.owner, records.uids)
        return
    numbers, rank = _label_numbers(people.labels)
    if homes is not None:
        _check_homes(findings, {"the original labels": rank, **lists}, records, homes)
    lists = {"the original labels (as numbers)": numbers, "the original labels": rank, **lists}
    for name, values in lists.items():
        if _points_at(people, records, values):
            findings.fail("leaks/order", what=name)


def _check_homes(
    findings: Findings, lists: dict[str, NDArray[np.int64]], records: Catalogue, homes: NDArray[np.int64]
) -> None:
    """Check that neither the numbers of the groups' records nor their first ones follow a list of the users."""
    housed = homes >= 0
    sizes = np.bincount(homes[housed], minlength=len(records.unique))
    copies = np.bincount(records.groups, minlength=len(records.unique))
    first = np.sort(np.unique(records.groups, return_index=True)[1])
    in_turn = records.groups[first]  # groups in the order of their first records, alike for groups of one size
    classes = [in_turn[copies[in_turn] == size] for size in np.unique(copies)]
    for name, values in lists.items():
        means = np.bincount(homes[housed], values[housed], len(records.unique)) / np.maximum(sizes, 1)
        orders = [means[records.groups], *(means[some] for some in classes if len(some) >= _LEAST_USERS)]
        if any(_follows(values) for values in orders):
            findings.fail("leaks/order", what=name)


def check_owned(
    findings: Findings,
    labels: Any,
    lists: dict[str, NDArray[np.int64]],
    owner: NDArray[np.int64],
    uids: NDArray[np.int64],
) -> None:
    """Check, where the owner of each record is known, that the numbers follow neither labels nor lists of users."""
    if min(len(uids), len(labels)) < _LEAST_USERS:
        return
    numbers, rank = _label_numbers(labels)
    for name, values in {"the original labels": rank, **lists}.items():
        if _follows(values[owner]):
            findings.fail("leaks/order", what=name)
    if _too_many(int((numbers[owner] == uids).sum()), 1.0):
        findings.fail("leaks/labels")


def _follows(values: NDArray[Any]) -> bool:
    """Return whether a list is in order, reversed, in runs of like values or repeats itself, beyond chance."""
    return bool(min(_trend(values), _echoes(values)) < _LEAST_P)


def _trend(values: NDArray[np.int64]) -> float:
    """Return the p-value of Spearman's correlation with the position, equal values sharing their middle rank."""
    from scipy.special import stdtr

    _, which, times = np.unique(values, return_inverse=True, return_counts=True)
    n = len(values)
    if len(times) < 2:
        return 1.0
    rank = (np.cumsum(times) - times / 2)[which]
    rho = float(np.corrcoef(rank, np.arange(n))[0, 1])
    return float(2 * stdtr(n - 2, -abs(rho) * np.sqrt((n - 2) / max(1e-300, 1 - rho * rho))))


def _echoes(values: NDArray[Any]) -> float:
    """Return the p-value of the largest correlation of a list with itself, moved by any distance or turned around.

    The next value counts by itself, the other distances and turns all together. A few rare values side by side would
    have a heavy tail, so equal values are ranked at random; of several such rankings the least suspicious counts.
    """
    from scipy.special import ndtr

    n = len(values)
    random = np.random.default_rng(n)
    p_values = []
    for _ in range(_RANKINGS):
        shuffled = np.empty(n, dtype=np.int64)
        shuffled[random.permutation(n)] = np.arange(n)
        rank = np.empty(n)
        rank[shuffled[np.argsort(values[shuffled], kind="stable")]] = np.arange(n)
        unit = (rank - rank.mean()) / rank.std()
        waves = np.fft.rfft(unit)
        moved = np.fft.irfft(np.abs(waves) ** 2, n)[1 : n // 2 + 1] / np.sqrt(n)
        moved[-1] /= np.sqrt(2) if n % 2 == 0 else 1  # halfway around, every pair counts twice
        turned = np.fft.irfft(waves * waves, n) / np.sqrt(2 * n)
        alike = ndtr(-np.array([moved[0], moved.max(), turned.max()])) * (1, n // 2, n)
        p_values.append(float(alike.min()))
    return max(p_values)


def _is_regular(groups: NDArray[np.int64]) -> bool:
    """Return whether records of one group are more often at one distance, or opposite, than chance would have it."""
    n = len(groups)
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = offsets_of(sizes)
    distances, sums = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for step in range(1, int(sizes.max())):
        here = np.flatnonzero(np.arange(n) + step < starts[1:][groups[order]])
        low, high = order[here], order[here + step]
        apart = high - low
        distances.append(np.minimum(apart, n - apart))
        sums.append((low + high) % n)
    expected = float((sizes * (sizes - 1)).sum()) / (n - 1)
    most = (int(np.bincount(np.concatenate(found), minlength=1).max()) for found in (distances, sums))
    return any(_too_many(seen, chance, n) for seen, chance in zip(most, (expected, expected / 2), strict=True))


def _too_many(seen: int, expected: float, chances: int = 1) -> bool:
    """Return whether chance (a Poisson distribution) hardly ever gives so many, or more, in one of several chances."""
    from scipy.special import gammainc

    return bool(gammainc(seen, max(expected, 1e-9)) * chances < _LEAST_P)


def _points_at(people: Crowd, records: Catalogue, values: NDArray[np.int64]) -> bool:
    """Return whether the records with these numbers fit their users more often than shuffled ones do."""
    from scipy.special import bdtrc

    random = np.random.default_rng(len(records))
    users = np.flatnonzero((values >= 0) & (values < len(records)) & (people.counts > 0))
    if len(users) > _TRIED:
        users = np.sort(random.choice(users, _TRIED, replace=False))
    shuffles = [random.permutation(len(records)) for _ in range(_SHUFFLES)]
    fits = chance = 0
    for start, part in people.parts():
        mine = users[(users >= start) & (users < start + len(part))]
        numbers = np.concatenate([values[mine], *(shuffle[values[mine]] for shuffle in shuffles)])
        every = np.tile(mine - start, _SHUFFLES + 1)
        kinds = records.groups[numbers]
        held = hold(part, records.unique, every, kinds)
        good = (held.samples == part.counts[every]) & (held.boxes == records.unique.counts[kinds])
        fits += int(good[: len(mine)].sum())
        chance += int(good[len(mine) :].sum())
    return bool(bdtrc(fits - 1, fits + chance, 1 / (_SHUFFLES + 1)) < _LEAST_P)


def _label_numbers(labels: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the labels as whole numbers (-1 where they are none) and their rank, numerical if all are numbers."""
    text = labels.cast(pa.large_string())
    fits = pc.match_substring_regex(text, r"^\d{1,18}$")
    whole = pc.if_else(fits, text, scalar_of("-1")).cast(pa.int64())
    numbers = from_arrow_array(whole)
    order = from_arrow_array(pc.sort_indices(whole if pc.all(fits).as_py() else text))
    rank = np.empty(len(numbers), dtype=np.int64)
    rank[order] = np.arange(len(numbers))
    return numbers, rank


def _canonical(people: Crowd) -> NDArray[np.int64]:
    t, x, y = people.first.T
    rank = np.empty(len(people), dtype=np.int64)
    rank[np.lexsort((y, x, t, people.counts))] = np.arange(len(people))
    return rank
