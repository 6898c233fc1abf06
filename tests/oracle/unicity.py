"""Unicity with sets of points, one person at a time."""

GOLDEN, MASK = 0x9E3779B97F4A7C15, 2**64 - 1


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def coarse_points(people, user, space_m, time_s):
    frame = people.frame
    return {
        ((t + frame.origin_slot) * frame.slot_s // time_s, x * frame.cell_m // space_m, y * frame.cell_m // space_m)
        for t, x, y in people.user(user).tolist()
    }


def in_drawn_order(points, user, seed):
    """All points of a user in the order in which they become known."""
    key = mix(mix((seed + GOLDEN) & MASK) ^ user)

    def number(point):
        z = key
        for value in point:
            z = mix(z ^ (value & MASK))
        return z

    return sorted(points, key=number)


def candidates(people, user, p, space_m, time_s, seed):
    """Everybody who holds the first p points known of a user."""
    sets = [coarse_points(people, other, space_m, time_s) for other in range(len(people))]
    known = set(in_drawn_order(sets[user], user, seed)[:p])
    return [other for other, points in enumerate(sets) if known <= points]
