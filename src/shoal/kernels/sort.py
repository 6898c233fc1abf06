"""Sort inside kernels; numpy's own sorts take several seconds to compile each time they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.jit import jit

if TYPE_CHECKING:
    from shoal.jit import Floats, Ints

__all__ = ["fill_order"]


@jit
def fill_order(keys: Floats, order: Ints, n: int) -> None:
    """Fill the first n of `order` with the places of the first n keys, least key first; equal keys keep their order.

    By Shell's method: no memory, and quick for the tens to thousands that are left after pruning.
    """
    for p in range(n):
        order[p] = p
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for p in range(gap, n):
            one = order[p]
            key = keys[one]
            q = p
            while q >= gap:
                other = order[q - gap]
                if keys[other] < key or (keys[other] == key and other < one):
                    break
                order[q] = other
                q -= gap
            order[q] = one
        gap //= 3
