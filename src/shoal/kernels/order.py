"""Order: turn rows of any order into each user's sorted distinct samples, and rank users canonically."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from shoal.jit import jit
from shoal.kernels.samples import Samples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from shoal.jit import Ints, Ints32

__all__ = ["Packed", "Ranges", "pack_rows", "packed_order", "packed_slots", "rank_users", "unpack_users"]


_ROWS = 1 << 16  # rows sorted by one call


class Ranges(Protocol):
    """Calls `work(first, last)` for every range, on threads or one after the other."""

    def __call__(self, work: Callable[[int, int], object], ranges: Iterable[tuple[int, int]], /) -> None:
        """Call `work` for every range; in any order."""
        ...


def _one_by_one(work: Callable[[int, int], object], ranges: Iterable[tuple[int, int]]) -> None:
    for first, last in ranges:
        work(first, last)


class Granules(NamedTuple):
    """Rows as columns of granules; a column of length one stands for a constant."""

    t: Ints32
    x: Ints32
    y: Ints32


class Packing(NamedTuple):
    """How granules are packed into a key: t, x, y relative to `low`, y in the lowest bits."""

    low: Ints
    x_bits: int
    y_bits: int


class _Users(NamedTuple):
    """User u has counts[u] samples, sorted, from offsets[u] on in the columns."""

    offsets: Ints
    counts: Ints
    columns: tuple[Ints | Ints32, ...]


class Packed(NamedTuple):
    """Rows grouped by user, one integer each, in the order of (t, x, y) and distinct.

    User u has `counts[u]` keys from `offsets[u]` on; what lies between them and `offsets[u+1]` is left over.
    A key holds t, x, y as `packing` says; or t and the number of a cell in `places`.
    """

    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    keys: NDArray[np.int64]
    packing: Packing
    places: NDArray[np.int64] | None


def pack_rows(
    users: NDArray[np.int32] | NDArray[np.int64],
    t: NDArray[np.int32],
    x: NDArray[np.int32],
    y: NDArray[np.int32],
    n_users: int,
    *,
    run_ranges: Ranges = _one_by_one,
) -> Packed:
    """Group rows by user; each user's rows are sorted by (t, x, y) and distinct.

    Input: per row the user (0 … n_users-1) and the granule. Output: Packed, see `unpack_users`.
    Guarantee: exact; the same for any order of the rows, and whether `run_ranges` uses threads or not. The input is
    not changed.
    Cost: O(rows · log(rows per user)); 8 bytes a row.

    >>> i = np.array([1, 0, 1, 1], dtype=np.int32)
    >>> pack_rows(i, i, i, i, 3).counts.tolist()
    [1, 1, 0]
    """
    users, t, x, y = (np.ascontiguousarray(a, dtype=np.int32) for a in (users, t, x, y))
    low = np.array([a.min() if len(a) else 0 for a in (t, x, y)], dtype=np.int64)
    t_bits, x_bits, y_bits = (
        (int(a.max()) - int(lo)).bit_length() if len(a) else 0 for a, lo in zip((t, x, y), low, strict=True)
    )
    places = None
    if t_bits + x_bits + y_bits > 63:
        # Too wide to pack: number the distinct cells in the order of (x, y), which keeps the order of (t, x, y).
        places, y = _number_cells(x, y)
        x = np.zeros(1, dtype=np.int32)
        low[1:] = 0
        x_bits, y_bits = 0, len(places).bit_length()
    offsets = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=n_users))])
    keys = np.empty(len(users), dtype=np.int64)
    packing = Packing(low, x_bits, y_bits)
    _scatter_keys(users, Granules(t, x, y), packing, offsets[:-1].copy(), keys)
    counts = np.empty(n_users, dtype=np.int64)
    run_ranges(lambda first, last: _sort_distinct(keys, offsets, first, last, counts), _cut(offsets))
    return Packed(offsets, counts, keys, packing, places)


def unpack_users(
    packed: Packed,
    users: NDArray[np.int64],
    *,
    run_ranges: Ranges = _one_by_one,
    into: tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return the rows of some users, in the given order: offsets, t, x, y; linear.

    The columns are new arrays, or the first part of the three arrays `into`: new memory costs as much as the rest.

    >>> i = np.array([1, 0, 1, 1], dtype=np.int32)
    >>> unpack_users(pack_rows(i, i, i, i, 3), np.array([1, 0]))[1].tolist()
    [1, 0]
    """
    found = np.concatenate([[0], np.cumsum(packed.counts[users])])
    t, x, y = (np.empty(found[-1], np.int32) if into is None else into[i][: found[-1]] for i in range(3))
    starts, samples = packed.offsets[users], Samples(t, x, y, found)
    run_ranges(lambda first, last: _unpack(packed.keys, starts, packed.packing, first, last, samples), _cut(found))
    if packed.places is not None:
        cells = packed.places[y]
        np.right_shift(cells, 32, out=x, casting="unsafe")
        np.subtract(cells & 0xFFFFFFFF, 2**31, out=y, casting="unsafe")
    return found, t, x, y


def packed_slots(packed: Packed, users: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the user and the t of every row of some users.

    >>> i = np.array([1, 0, 1, 1], dtype=np.int32)
    >>> [a.tolist() for a in packed_slots(pack_rows(i, i, i, i, 3), np.arange(3))]
    [[0, 1], [0, 1]]
    """
    _, t, _, _ = unpack_users(packed, users)
    return np.repeat(users, packed.counts[users]), t


def packed_order(packed: Packed) -> NDArray[np.int64]:
    """Rank users by (number of samples, samples compared lexicographically); equal users keep their order.

    Output: the user at each rank (int64). Cost: O(users · log users) comparisons, each as long as the common
    beginning of two users.

    >>> i = np.array([1, 0, 1, 2], dtype=np.int32)
    >>> packed_order(pack_rows(i, i * 0, i, np.arange(4), 3)).tolist()
    [0, 2, 1]
    """
    some = packed.counts > 0
    first = np.zeros(len(packed.counts), dtype=np.int64)
    first[some] = packed.keys[packed.offsets[:-1][some]]
    return rank_users(packed.offsets, packed.counts, (first,), (packed.keys,))


def rank_users(
    offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
    first: tuple[Ints | Ints32, ...],
    samples: tuple[Ints | Ints32, ...],
) -> NDArray[np.int64]:
    """Rank users by (number of samples, samples compared lexicographically); equal users keep their order.

    Input: user u has `counts[u]` samples, sorted, from `offsets[u]` on in the columns of `samples` (t, x, y, or
    keys that are in their order); `first` holds the columns of each user's first sample. Output: the user at each
    rank. Cost: as `packed_order`; `samples` are looked at only for users who agree in number and first sample.

    >>> t = np.array([5, 7, 5, 6], dtype=np.int32)
    >>> rank_users(np.array([0, 2]), np.array([2, 2]), (t[::2].copy(),), (t,)).tolist()
    [1, 0]
    """
    order = np.lexsort((*first[::-1], counts)).astype(np.int64)
    _sort_ties(order, _Users(offsets, counts, samples), first)
    return order


def _number_cells(x: NDArray[np.int32], y: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return the sorted distinct cells, packed so that integer order is (x, y) order, and the number of each row's."""
    packed = (x.astype(np.int64) << 32) | (y.astype(np.int64) + 2**31)
    places, rank = np.unique(packed, return_inverse=True)
    return places, rank.astype(np.int32)


def _cut(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut users into ranges that hold about equally many rows."""
    parts = max(1, int(offsets[-1]) // _ROWS)
    cuts = np.searchsorted(offsets, np.linspace(0, offsets[-1], parts + 1)[1:-1])
    return list(pairwise([0, *cuts.tolist(), len(offsets) - 1]))


@jit
def _scatter_keys(users: Ints32, granules: Granules, packing: Packing, at: Ints, keys: Ints) -> None:
    t, x, y = granules
    low, x_bits, y_bits = packing
    x_step = 1 if len(x) > 1 else 0  # a column of length one stands for a constant
    for row in range(len(users)):
        key = ((t[row] - low[0]) << (x_bits + y_bits)) | ((x[row * x_step] - low[1]) << y_bits) | (y[row] - low[2])
        user = users[row]
        keys[at[user]] = key
        at[user] += 1


@jit
def _sort_distinct(keys: Ints, offsets: Ints, first: int, last: int, counts: Ints) -> None:
    """Sort each user's keys in place and move the distinct keys to the front of the user's part."""
    for user in range(first, last):
        start, end = offsets[user], offsets[user + 1]
        part = keys[start:end]
        for i in range(1, len(part)):
            if part[i] < part[i - 1]:
                part.sort()
                break
        kept = min(len(part), 1)
        for i in range(1, len(part)):
            if part[i] != part[kept - 1]:
                part[kept] = part[i]
                kept += 1
        counts[user] = kept


@jit
def _unpack(keys: Ints, starts: Ints, packing: Packing, first: int, last: int, samples: Samples) -> None:
    """Write the rows of the users first…last-1, whose keys begin at `starts`, to where `samples` has room for them."""
    low, x_bits, y_bits = packing
    t, x, y, found = samples
    x_mask = (1 << x_bits) - 1
    y_mask = (1 << y_bits) - 1
    for rank in range(first, last):
        shift = starts[rank] - found[rank]
        for row in range(found[rank], found[rank + 1]):
            key = keys[row + shift]
            t[row] = (key >> (x_bits + y_bits)) + low[0]
            x[row] = ((key >> y_bits) & x_mask) + low[1]
            y[row] = (key & y_mask) + low[2]


@jit
def _before(a: int, b: int, offsets: Ints, counts: Ints, columns: tuple[Ints | Ints32, ...]) -> bool:
    """Return whether user a's samples come strictly before user b's; both have equally many."""
    i, j = offsets[a], offsets[b]
    for step in range(counts[a]):
        for column in columns:
            if column[i + step] != column[j + step]:
                return bool(column[i + step] < column[j + step])
    return False


@jit
def _merge_sort(order: Ints, lo: int, hi: int, spare: Ints, users: _Users) -> None:
    """Stable bottom-up merge sort of order[lo:hi]."""
    offsets, counts, columns = users
    width = 1
    while width < hi - lo:
        start = lo
        while start + width < hi:
            middle, end = start + width, min(start + 2 * width, hi)
            for i in range(start, middle):  # loops, because slices take seconds to compile
                spare[i] = order[i]
            i, j, out = start, middle, start
            while i < middle and j < end:
                if _before(order[j], spare[i], offsets, counts, columns):
                    order[out] = order[j]
                    j += 1
                else:
                    order[out] = spare[i]
                    i += 1
                out += 1
            while i < middle:
                order[out] = spare[i]
                i += 1
                out += 1
            start = end
        width *= 2


@jit
def _sort_ties(order: Ints, users: _Users, first: tuple[Ints | Ints32, ...]) -> None:
    """Order the users inside runs with the same number of samples and the same first sample."""
    counts = users.counts
    spare = np.empty_like(order)
    lo = 0
    for hi in range(1, len(order) + 1):
        if hi < len(order):
            a, b = order[lo], order[hi]
            alike = counts[a] == counts[b]
            for column in first:
                alike = alike and column[a] == column[b]
            if alike:
                continue
        if hi - lo > 1:
            _merge_sort(order, lo, hi, spare, users)
        lo = hi
