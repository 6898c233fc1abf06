"""Slow twins of shoal.kernels.order: sets, sorted lists and tuples."""

from __future__ import annotations

from collections import defaultdict


def group_rows(users, t, x, y, n_users):
    """Return each user's sorted distinct samples, as lists of tuples."""
    samples = defaultdict(set)
    for user, *granule in zip(users, t, x, y, strict=True):
        samples[user].add(tuple(granule))
    return [sorted(samples[user]) for user in range(n_users)]


def canonical_order(groups):
    """Rank users by (number of samples, samples); equal users keep their order."""
    return sorted(range(len(groups)), key=lambda user: (len(groups[user]), groups[user]))
