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


def distance(one, other, near, soon):
    """Add up slot by slot, in 32 bits as the sketches are kept."""
    near, soon, total = np.float32(near), np.float32(soon), np.float32(0)
    for (x, y, t, share), (x2, y2, t2, share2) in zip(one, other, strict=True):
        apart = abs(x2 - x) + abs(y2 - y) + near
        total += (share2 + share) * apart * (abs(t2 - t) + soon)
    return total


def nearest(sketches, near, soon, user, count):
    """Return the users at least distance, the lower index first of two that are as near."""
    others = [other for other in range(len(sketches)) if other != user]
    return sorted(others, key=lambda other: (distance(sketches[user], sketches[other], near, soon), other))[:count]
