"""Stretch efforts and the k-gap by their definitions (GLOVE, Eq. 1-11; k-gap, Eq. 1-5), in exact fractions.

A box is (t0, t1, x0, x1, y0, y1), inclusive granules, so dx = x1 - x0 + 1; a sample (t, x, y) is the box
(t, t, x, x, y, y). A trajectory is a sorted list of boxes.
"""

from fractions import Fraction
from typing import NamedTuple


class Terms(NamedTuple):
    """w_σ (w_τ is the rest), φσmax and φτmax, and the grid that granules are on."""

    space_weight: Fraction = Fraction(1, 2)
    space_max_m: int = 20_000
    time_max_s: int = 28_800
    cell_m: int = 100
    slot_s: int = 60


PAPER = Terms()


def as_boxes(samples):
    return sorted((t, t, x, x, y, y) for t, x, y in samples)


def left_and_right(a0, da, b0, db):
    """l + r of Eq. 5-6 and 8-9 along one axis: how far a must be stretched to cover b."""
    left = a0 - min(a0, b0)
    right = max(a0 + da, b0 + db) - a0 - da
    return left + right


def spans(box):
    t0, t1, x0, x1, y0, y1 = box
    return (t0, t1 - t0 + 1), (x0, x1 - x0 + 1), (y0, y1 - y0 + 1)


def sample_parts(a, b, n_a=1, n_b=1, terms=PAPER):
    """The two terms of δ (Eq. 1): w_σ·φ_σ and w_τ·φ_τ."""
    (ta, xa, ya), (tb, xb, yb) = spans(a), spans(b)

    def weighted(of_a, of_b):  # Eq. 4 and 7
        return Fraction(of_a * n_a + of_b * n_b, n_a + n_b)

    space = weighted(
        left_and_right(*xa, *xb) + left_and_right(*ya, *yb), left_and_right(*xb, *xa) + left_and_right(*yb, *ya)
    )
    time = weighted(left_and_right(*ta, *tb), left_and_right(*tb, *ta))
    phi_space = min(space * terms.cell_m / terms.space_max_m, Fraction(1))  # Eq. 2
    phi_time = min(time * terms.slot_s / terms.time_max_s, Fraction(1))  # Eq. 3
    return terms.space_weight * phi_space, (1 - terms.space_weight) * phi_time


def sample_effort(a, b, n_a=1, n_b=1, terms=PAPER):
    """δ_ab (Eq. 1)."""
    return sum(sample_parts(a, b, n_a, n_b, terms))


def first_is_longer(a, b):
    """Whether Eq. 10 averages over a: more samples; of as many, the lexicographically smaller list."""
    return (len(a), b) >= (len(b), a)


def nearest(box, others, n_a=1, n_b=1, terms=PAPER):
    """Which of the others is at the least effort; of several the first."""
    return min(range(len(others)), key=lambda j: (sample_effort(box, others[j], n_a, n_b, terms), j))


def parts(a, b, n_a=1, n_b=1, terms=PAPER):
    """For every sample of the longer, the two terms of its least effort."""
    if not first_is_longer(a, b):
        a, b, n_a, n_b = b, a, n_b, n_a
    return [sample_parts(box, b[nearest(box, b, n_a, n_b, terms)], n_a, n_b, terms) for box in a]


def effort(a, b, n_a=1, n_b=1, terms=PAPER):
    """Δ_ab (Eq. 10)."""
    found = parts(a, b, n_a, n_b, terms)
    return sum(space + time for space, time in found) / len(found)


def rounded(value):
    """What ties are judged by: the effort to 1e-12."""
    return round(value * 10**12)


def in_order(people, user, terms=PAPER):
    """All others as (effort, index), nearest first; equal efforts in canonical order (people are in it)."""
    efforts = [(effort(people[user], people[v], terms=terms), v) for v in range(len(people)) if v != user]
    return sorted(efforts, key=lambda found: (rounded(found[0]), found[1]))


def k_gap(people, user, k, terms=PAPER):
    """Δ_a^k (Eq. 11)."""
    near = in_order(people, user, terms)[: k - 1]
    return sum(found for found, _ in near) / (k - 1)


def all_parts(people, user, k, terms=PAPER):
    """The sets S_a^k and T_a^k (k-gap, Sec. 4.3.1; GLOVE, Sec. 5.4): all terms towards the k - 1 nearest."""
    near = [v for _, v in in_order(people, user, terms)[: k - 1]]
    return [term for v in near for term in parts(people[user], people[v], terms=terms)]


def taxicab(a, b, terms=PAPER):
    """d_ab of two samples (t, x, y) in the form of k-gap, Eq. 1-3."""
    metres = (abs(a[1] - b[1]) + abs(a[2] - b[2])) * terms.cell_m
    seconds = abs(a[0] - b[0]) * terms.slot_s
    space = min(Fraction(metres, terms.space_max_m), Fraction(1))
    time = min(Fraction(seconds, terms.time_max_s), Fraction(1))
    return terms.space_weight * space + (1 - terms.space_weight) * time
