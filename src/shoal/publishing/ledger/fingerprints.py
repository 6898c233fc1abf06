"""Fingerprints: people as keyed hashes of their labels, and the groups they were published in."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release import Members, Release

__all__ = ["KEY_BYTES", "People", "fingerprints", "groups_of", "people_of"]

KEY_BYTES = 32
_WHOLE = re.compile(r"(-?\d+)\.0+")


class People(NamedTuple):
    """The people of one release: sorted fingerprints, and the number of everyone's group (None without groups).

    Groups are numbered by their first fingerprint, which says nothing about records, labels or the order of input.
    """

    fingerprints: NDArray[np.uint64]
    groups: NDArray[np.int32] | None


def fingerprints(labels: pa.Array, key: bytes) -> NDArray[np.uint64]:
    """Return the keyed hash of each label (BLAKE2b, 64 bits), in the order of the labels.

    The same label has the same fingerprint however it was read: as a number (5, 5.0) or as text ("5", " 5"), in any
    Unicode form. Two of a million people collide with a chance of 3 in 10^8. Cost: about 2 µs a label.

    >>> mine = fingerprints(pa.array([5, 6]), b"key")
    >>> bool((mine == fingerprints(pa.array([" 5", "6.0"]), b"key")).all())
    True
    """
    texts = labels.cast(pa.string()).to_pylist()
    digests = (hashlib.blake2b(_normal(text).encode(), key=key, digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _normal(label: str) -> str:
    """Return the normal form of a label."""
    if not label.isascii():
        label = unicodedata.normalize("NFC", label)
    label = label.strip()
    whole = _WHOLE.fullmatch(label) if label.endswith("0") else None
    return whole[1] if whole else label


def groups_of(release: Release) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
    """Return the published users (canonical indices) and, where records are identical in groups, their groups."""
    members = release.members
    if members is None:
        return np.empty(0, np.int64), None
    published = np.unique(members.indices)
    if release.claim.name != "k-anonymity":
        return published, None
    groups = _partition(members)
    return published, None if groups is None else groups[published]


def _partition(members: Members) -> NDArray[np.int64] | None:
    """Return everybody's group, numbered by its least member; None if a person is in records of different members."""
    least = np.minimum.reduceat(members.indices, members.offsets[:-1])
    of_row = np.repeat(least, np.diff(members.offsets))
    groups = np.full(len(members.people.labels), -1, np.int64)
    groups[members.indices] = of_row
    return groups if (groups[members.indices] == of_row).all() else None


def people_of(marks: NDArray[np.uint64], groups: NDArray[np.int64] | None) -> People:
    """Sort fingerprints, and number groups by them."""
    order = np.argsort(marks, kind="stable")
    if groups is None:
        return People(marks[order], None)
    _, first, group = np.unique(groups[order], return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int32)
    number[np.argsort(first)] = np.arange(len(first))
    return People(marks[order], number[group])
