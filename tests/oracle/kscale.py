"""k-scale by loops over all users (k-scale, Sec. III, Alg. 1). Only k-merge itself is taken as given."""

import math

import shoal


def square(samples):
    """Footnote 5: the centre of mass and the radius of gyration weighted by dwell; (x, y, half side)."""
    n = len(samples)
    x, y = (sum(s[axis] for s in samples) / n for axis in (1, 2))
    dwell = []
    for i, (t, _, _) in enumerate(samples):
        before = t - samples[i - 1][0] if i > 0 else 0
        after = samples[i + 1][0] - t if i + 1 < n else 0
        dwell.append((before + after) / 2)
    if sum(dwell) == 0:
        dwell = [1] * n
    square_sum = sum(d * ((s[1] - x) ** 2 + (s[2] - y) ** 2) for d, s in zip(dwell, samples, strict=True))
    return x, y, max(0.5, math.sqrt(square_sum / sum(dwell)))


def proxy(a, b):
    """Eq. 6-7 with the Dice coefficient, as a sort key: overlapping pairs first, then by Manhattan distance."""
    (ax, ay, ah), (bx, by, bh) = a, b
    wide = min(ax + ah, bx + bh) - max(ax - ah, bx - bh)
    high = min(ay + ah, by + bh) - max(ay - ah, by - bh)
    if wide <= 0 or high <= 0:
        return (1, abs(ax - bx) + abs(ay - by))
    c = 2 * wide * high / ((2 * ah) ** 2 + (2 * bh) ** 2)
    return (0, (1 - c) / (1 + c))


def candidates(people, n):
    """For each user the set of those that are among its n nearest or have it among theirs."""
    squares = [square(people.user(u).tolist()) for u in range(len(people))]
    near = []
    for u in range(len(people)):
        others = sorted((proxy(squares[u], squares[v]), v) for v in range(len(people)) if v != u)
        near.append({v for _, v in others[:n]})
    return [{v for v in range(len(people)) if v in near[u] or u in near[v]} for u in range(len(people))]


def owner_cost(people, owner, other):
    """Eq. 4: what the owner's record loses if it is merged with one other."""
    return shoal.k_merge([people.user(owner), people.user(other)], "owner")[1]


def nu_k_pick(people, k, n):
    """Alg. 1: the members of every record, the owner left out."""
    support = candidates(people, n)
    members = [set() for _ in support]
    for column, rows in enumerate(support):
        for _, row in sorted((owner_cost(people, row, column), row) for row in rows)[: k - 1]:
            members[row].add(column)
    for row, chosen in enumerate(members):
        if not chosen:
            chosen.add(min((owner_cost(people, row, j), j) for j in support[row])[1])
    return members
