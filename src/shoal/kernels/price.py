"""The price of a box, which k-merge adds up.

`PRODUCT` is that of the papers, Δt · (Δx + Δy) (k^(τ,ε)-anonymity, Eq. 1-2). The others weigh time against space:
`SUM` is Δt/t₀ + (Δx + Δy)/s₀, `ROOTS` is √(Δt/t₀) + √((Δx + Δy)/s₀). All grow with the box. So if a box is split, every
sample gets a box that costs no more, and where boxes weigh as many times as there are samples in them, splitting never
costs more: the recursion of kernels/recursion.py is exact for any such price. It is not for a sum over boxes that weigh
the same, unless the price is `PRODUCT`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from shoal.jit import inlined

__all__ = [
    "PAPERS",
    "PRICES",
    "PRODUCT",
    "ROOTS",
    "SUM",
    "Price",
    "PriceName",
    "least_more",
    "price_of",
    "price_of_worth",
]

PRODUCT = 0
SUM = 1
ROOTS = 2

PriceName = Literal["product", "sum", "roots"]
PRICES: dict[str, int] = {"product": PRODUCT, "sum": SUM, "roots": ROOTS}


class Price(NamedTuple):
    """The kind of price, and what a slot of time and a cell of Δx + Δy weigh in it (1/t₀, 1/s₀; not for PRODUCT)."""

    kind: int
    time: float
    side: float


PAPERS = Price(PRODUCT, 1.0, 1.0)


def price_of_worth(name: PriceName, cells: float, slots: float) -> Price:
    """Return the price of a box if a mean side, (Δx+Δy)/2, of so many cells is worth as much as so many slots.

    >>> price_of_worth("sum", 5, 32)
    Price(kind=1, time=0.03125, side=0.1)
    """
    return PAPERS if name == "product" else Price(PRICES[name], 1 / slots, 1 / (2 * cells))


@inlined
def price_of(price: Price, slots: float, cells: float) -> float:
    """Return the price of a box of so many slots, and cells of Δx + Δy."""
    if price.kind == PRODUCT:
        c = slots * cells
    elif price.kind == SUM:
        c = price.time * slots + price.side * cells
    else:
        c = np.sqrt(price.time * slots) + np.sqrt(price.side * cells)
    return c


@inlined
def least_more(price: Price, cells: float, slots: float, weight: float, less_slots: float, less_weight: float) -> float:
    """Return a lower bound of how much more a box costs that starts earlier, at any end from now on.

    Both boxes have `cells` at least. The earlier one has `slots` and `weight` now, the later one `less_slots` and
    `less_weight`; whatever follows adds the same to both.
    """
    if price.kind == PRODUCT:
        more = cells * (slots * weight - less_slots * less_weight)
    elif price.kind == SUM:
        more = price.time * (slots * weight - less_slots * less_weight) + price.side * cells * (weight - less_weight)
    else:
        more = price_of(price, slots, cells) * (weight - less_weight)
    return more
