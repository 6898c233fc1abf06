"""Digests: sums over rows that do not depend on their order, to compare two readings of one input.

The sums are keyed with random numbers of this process, so that nobody can make two inputs with the same sums.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, scalar_of
from shoal.seen.arrays import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Digest", "People", "text_hashes", "user_hashes"]

_KEYS = np.array([secrets.randbits(64) | 1 for _ in range(8)], np.uint64)
_ROWS = 1 << 16  # rows at a time: they stay in the processor's cache
_PENDING = 1 << 20
_EMPTY, _NOBODY, _TRUE = scalar_of(""), scalar_of(-1), scalar_of(value=True)


@dataclass
class Digest:
    """Sums over rows (user, time, place): how many rows, their parts, and their parts together, modulo 2^64.

    >>> ids, ms, place = np.array([7, 8], np.uint64), np.array([0, 60]), np.array([1.5, 2.5])
    >>> one, other = Digest(), Digest()
    >>> one.add(ids, ms, place, place)
    >>> other.add(ids[::-1], ms[::-1], place[::-1], place[::-1])
    >>> one == other
    True
    """

    rows: int = 0
    users: int = 0
    times: int = 0
    places: int = 0
    user_times: int = 0
    user_places: int = 0
    whole: int = 0

    def add(
        self,
        users: NDArray[np.uint64],
        ms: NDArray[np.int64] | None,
        a: NDArray[np.float64] | None,
        b: NDArray[np.float64] | None,
    ) -> None:
        """Add rows: hashes of users, times in milliseconds, and places; None for what is not compared."""
        self.rows += len(users)
        for start in range(0, len(users), _ROWS):
            part = slice(start, start + _ROWS)
            self._add(users[part], ms if ms is None else ms[part], _places(a, b, part))

    def add_by(
        self,
        hashes: NDArray[np.uint64],
        users: NDArray[Any],
        ms: NDArray[np.int64] | None,
        a: NDArray[np.float64] | None,
        b: NDArray[np.float64] | None,
    ) -> None:
        """Add rows whose user is `hashes[users]`."""
        for start in range(0, len(users), _ROWS):
            part = slice(start, start + _ROWS)
            some_a, some_b = (None, None) if a is None or b is None else (a[part], b[part])
            self.add(hashes[users[part]], None if ms is None else ms[part], some_a, some_b)

    def _add(self, users: NDArray[np.uint64], ms: Any, place: NDArray[np.uint64] | None) -> None:
        self.users = _sum(self.users, users)
        time = None if ms is None else ms.astype(np.uint64) * _KEYS[0]
        if time is not None:
            self.times = _sum(self.times, time)
            self.user_times = _sum(self.user_times, _mixed(users + time))
        if place is not None:
            self.places = _sum(self.places, place)
            self.user_places = _sum(self.user_places, _mixed(users + place))
        if time is not None and place is not None:
            self.whole = _sum(self.whole, _mixed(users + time + place))

    def merge(self, other: Digest) -> None:
        """Add the rows of another digest."""
        self.rows += other.rows
        for name in ("users", "times", "places", "user_times", "user_places", "whole"):
            setattr(self, name, (getattr(self, name) + getattr(other, name)) % 2**64)


def _places(a: Any, b: Any, part: slice) -> NDArray[np.uint64] | None:
    if a is None or b is None:
        return None
    # 0.0 is added because -0.0 is the same place.
    found = (a[part] + 0.0).view(np.uint64) * _KEYS[1] + (b[part] + 0.0).view(np.uint64) * _KEYS[2]
    return _mixed(found)


def _sum(total: int, values: NDArray[np.uint64]) -> int:
    return (total + int(values.sum(dtype=np.uint64))) % 2**64


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number, so that sums of parts say nothing about sums of these."""
    mixed = values ^ (values >> np.uint64(32))
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    mixed ^= mixed >> np.uint64(29)
    mixed *= _KEYS[3]
    mixed ^= mixed >> np.uint64(32)
    return mixed


def text_hashes(texts: pa.Array) -> NDArray[np.uint64]:
    """Return a hash of each text (nulls as if empty).

    >>> text_hashes(pa.array(["7", "ann", "7"]))[[0, 1]].tolist() == text_hashes(pa.array(["7", "ann"])).tolist()
    True
    """
    texts = pc.cast(pc.fill_null(pc.cast(texts, pa.large_string()), _EMPTY), pa.large_binary())
    if not len(texts):
        return np.empty(0, np.uint64)
    edges = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, texts.offset * 8)
    starts, sizes = edges[:-1], np.diff(edges)
    data = texts.buffers()[2]
    padded = np.zeros((data.size if data is not None else 0) + 8, np.uint8)
    if data is not None:
        padded[: data.size] = np.frombuffer(data, np.uint8)
    words = np.ndarray((len(padded) - 7,), np.dtype("<u8"), padded, strides=(1,))  # the 8 bytes from each byte on
    hashes = _mixed(sizes.astype(np.uint64) * _KEYS[4])
    rows, at = np.arange(len(sizes)), 0
    while len(rows := rows[sizes[rows] > at]):
        word = words[starts[rows] + at]
        beyond = np.maximum(at + 8 - sizes[rows], 0).astype(np.uint64) * np.uint64(8)
        hashes[rows] = _mixed(hashes[rows] + (word << beyond) * _KEYS[5])
        at += 8
    return hashes


@dataclass
class People:
    """Distinct people, by the hashes of their labels; 8 bytes each."""

    known: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    pending: list[NDArray[np.uint64]] = field(default_factory=list)
    waiting: int = 0

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Add people, each as often as wanted."""
        self.pending.append(hashes)
        self.waiting += len(hashes)
        if self.waiting > max(_PENDING, len(self.known)):
            self._settle()

    def __len__(self) -> int:
        self._settle()
        return len(self.known)

    @property
    def total(self) -> int:
        """A sum over all people that does not depend on their order."""
        self._settle()
        return _sum(0, _mixed(self.known))

    def _settle(self) -> None:
        self.known = distinct(np.concatenate([self.known, *self.pending]))
        self.pending.clear()
        self.waiting = 0


def user_hashes(column: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the hashes of the people in a column, and which of them each row is about; -1 for nobody.

    A label is compared as text. Empty labels, and those with a NUL, are nobody's.

    >>> user_hashes(pa.array(["ann", "", None, "ann"]))[1].tolist()
    [0, -1, -1, 0]
    """
    if pa.types.is_dictionary(column.type) and len(column.dictionary) > len(column):
        column = column.dictionary_decode()
    packed = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    labels = pc.cast(packed.dictionary, pa.large_string())
    which = from_arrow_array(pc.fill_null(pc.cast(packed.indices, pa.int64()), _NOBODY))
    nobody = pc.fill_null(pc.or_(pc.equal(labels, _EMPTY), pc.match_substring(labels, "\0")), _TRUE)
    if not pc.any(nobody).as_py():
        return text_hashes(labels), which
    taken = ~from_arrow_array(pc.cast(nobody, pa.uint8())).astype(bool)
    number = np.append(np.where(taken, np.cumsum(taken) - 1, -1), -1)
    return text_hashes(labels)[taken], number[which]
