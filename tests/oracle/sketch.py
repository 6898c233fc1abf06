"""Time sketches the slow and obvious way: users are lists of (t, x, y) in time order."""

import numpy as np


def sketch(samples, origin, first, width, slots, floor):
    """Return (x, y, t - centre, share) of every slot: of the sample nearest to the centre, the later one of two."""
    rows = []
    for slot in range(slots):
        centre = first + (slot + 0.5) * width
        nearest = min(range(len(samples)), key=lambda n: (abs(samples[n][0] - centre), -n))
        inside = [min(slots - 1, int((t - first) / width)) == slot for t, _, _ in samples]
        t, x, y = samples[nearest]
        rows.append((x - origin[0], y - origin[1], t - centre, floor + sum(inside) / len(samples)))
    return rows


def box_price(price, apart, later):
    """What a box of this extent and duration costs: kind 1 is the weighted sum, 2 the sum of roots."""
    kind, time, side = price
    parts = np.float32(side) * apart, np.float32(time) * later
    return sum(parts) if kind == 1 else sum(map(np.sqrt, parts))


def distance(one, other, near, soon, price):
    """Add up slot by slot, in 32 bits as the sketches are kept."""
    near, soon, total = np.float32(near), np.float32(soon), np.float32(0)
    for (x, y, t, share), (x2, y2, t2, share2) in zip(one, other, strict=True):
        apart = abs(x2 - x) + abs(y2 - y) + near
        later = abs(t2 - t) + soon
        weight = share2 + share
        total += weight * apart * later if price[0] == 0 else weight * box_price(price, apart, later)
    return total


def nearest(sketches, near, soon, user, count, price):
    """Return the users at least distance, the lower index first of two that are as near."""
    others = [other for other in range(len(sketches)) if other != user]
    return sorted(others, key=lambda other: (distance(sketches[user], sketches[other], near, soon, price), other))[
        :count
    ]
