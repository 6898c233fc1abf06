"""`k_merge`: merge trajectories at the least cost. This is the public interface of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.errors import InputError, SettingsError
from shoal.kernels.merge import MEMBERS, OWNER, SUM, MemberLists, MergedRecords, merge_records
from shoal.kernels.price import PRICES, PriceName, price_of_worth
from shoal.kernels.samples import Samples
from shoal.lists import offsets_of
from shoal.units import INT32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["OBJECTIVES", "Objective", "k_merge"]

Objective = Literal["sum", "owner", "members"]
OBJECTIVES: dict[str, int] = {"sum": SUM, "owner": OWNER, "members": MEMBERS}


def k_merge(
    trajectories: Sequence[Any],
    objective: Objective = "sum",
    *,
    price: PriceName = "product",
    worth: tuple[float, float] = (1.0, 1.0),
) -> tuple[NDArray[np.int64], float]:
    """Merge trajectories into the cheapest sequence of common boxes (kte-hide, Sec. III; k-scale, Eq. 4).

    Parameters
    ----------
    trajectories
        One (n, 3) integer array of (t, x, y) granules for each, n ≥ 1, in any order; the owner comes first. A granule
        that is given twice counts twice; people read by `shoal.read` have no such rows.
    objective
        The cost to minimise. `sum`: Σ Δt·(Δx+Δy) over boxes (kte-hide, Eq. 3). `owner`: the mean of this cost over the
        owner's samples (k-scale, Eq. 4). `members`: the sum of everybody's `owner` cost.
    price, worth
        What a box costs: `product`, Δt·(Δx+Δy) as in the papers; `sum`, Δs/s₀ + Δt/t₀ with the mean side
        Δs = (Δx+Δy)/2; `roots`, √(Δs/s₀) + √(Δt/t₀). `worth` is (s₀, t₀), in cells and slots. The objective `sum` goes
        with `product` only: by another price, boxes that are not elementary can be cheaper.

    Returns
    -------
    boxes, cost
        An (m, 6) array `t0, t1, x0, x1, y0, y1` of inclusive granules in time order, and the minimal cost.

    Guarantee: exact. Every sample lies in a box, every box holds a sample of every trajectory, and boxes do not overlap
    in time. If two costs are equal, the later box is chosen.

    Cost: near-linear in the number of samples for trajectories of similar density, up to quadratic for few samples
    against very many.

    >>> boxes, cost = k_merge([[(0, 0, 0), (5, 9, 9)], [(1, 1, 0), (5, 9, 8)]], "owner")
    >>> boxes.tolist(), cost
    ([[0, 1, 0, 1, 0, 0], [5, 5, 9, 9, 8, 9]], 4.5)
    """
    if objective not in tuple(OBJECTIVES):
        raise SettingsError(f"objective must be one of {', '.join(OBJECTIVES)}")
    if price not in tuple(PRICES) or (price != "product" and objective == "sum"):
        raise SettingsError(f"price must be one of {', '.join(PRICES)}; the objective sum goes with product only")
    if len(worth) != 2 or not all(0 < one < np.inf for one in worth):
        raise SettingsError("worth must be two numbers above zero: cells and slots")
    arrays = [_checked(samples) for samples in trajectories]
    if not arrays:
        raise InputError("k_merge needs at least one trajectory")
    samples = np.concatenate(arrays)
    origin = samples.min(axis=0)
    if max(int(high) - int(low) for high, low in zip(samples.max(axis=0), origin, strict=True)) > INT32:
        raise InputError("granules span more than 32 bits; use larger cells or slots")
    t, x, y = np.ascontiguousarray((samples - origin).T, dtype=np.int32)
    offsets = offsets_of(np.array([len(array) for array in arrays]))
    boxes = np.empty((min(len(array) for array in arrays), 6), np.int32)
    members = np.arange(len(arrays))
    count, cost = np.zeros(1, np.int64), np.zeros(1)
    ends = np.array([0, len(arrays)])
    merged = MergedRecords(boxes, ends[:1], count, cost)
    merge_records(
        Samples(t, x, y, offsets),
        MemberLists(ends, members),
        OBJECTIVES[objective],
        price_of_worth(price, *worth),
        merged,
    )
    return boxes[: count[0]].astype(np.int64) + np.repeat(origin, 2), float(cost[0])


def _checked(samples: Any) -> NDArray[np.int64]:
    try:
        array = np.asarray(samples)
        if array.dtype.kind == "u":
            array = array.astype(np.int64) if array.max(initial=0) < 2**63 else array[:0]
    except (ValueError, TypeError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] != 3 or len(array) == 0 or array.dtype.kind != "i":
        raise InputError("each trajectory must be an (n, 3) integer array of (t, x, y) granules with n ≥ 1")
    return array[np.argsort(array[:, 0], kind="stable")].astype(np.int64)
