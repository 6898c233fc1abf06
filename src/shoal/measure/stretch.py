"""The stretch effort: how much precision it costs to make two trajectories look the same (GLOVE, Sec. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import InputError, SettingsError
from shoal.kernels.stretch import RowRange, Scale, StretchedBoxes, Weights, box_effort, box_reach

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.frame import Frame

__all__ = ["Stretch", "stretch_effort"]

_FINEST = 2**31  # sums of whole numbers must fit 64 bits
_FARTHEST = 2**30


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The cost of a stretch; by default as in the paper.

    A sample stretched by `space_max_m` or more is worth nothing in space, by `time_max_s` or more nothing in time;
    below that, the loss is linear. Space counts with `space_weight`, time with the rest of 1.
    """

    space_max_m: int = 20_000
    time_max_s: int = 28_800
    space_weight: float = 0.5

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        if self.space_max_m < 1 or self.time_max_s < 1:
            raise SettingsError("the largest stretches must be at least 1 m and 1 s; give e.g. 20 km and 8 h")
        if not 0 < self.space_weight < 1:
            raise SettingsError("the weight of space must be above 0 and below 1")

    def scale(self, frame: Frame) -> Scale:
        """Return the cost of a cell and of a slot of a grid in whole numbers, exactly.

        >>> from shoal.frame import Frame
        >>> Stretch().scale(Frame(crs=None))
        Scale(space=12, time=5, space_cap=2400, time_cap=2400)
        """
        of_space = Fraction(str(self.space_weight))
        caps = (of_space, 1 - of_space)
        steps = (
            caps[0] * Fraction(frame.cell_m, self.space_max_m),
            caps[1] * Fraction(frame.slot_s, self.time_max_s),
        )
        whole = lcm(*(part.denominator for part in (*steps, *caps)))
        if whole > _FINEST:
            raise SettingsError("these stretches, cells and slots have no common measure; choose rounder ones")
        return Scale(*(int(part * whole) for part in (*steps, *caps)))


def stretch_effort(
    a: Any, b: Any, *, weights: tuple[int, int] = (1, 1), frame: Frame | None = None, stretch: Stretch | None = None
) -> float:
    """Return the stretch effort Δ of two trajectories (GLOVE, Eq. 1-10): from 0 (the same) to 1 (nothing in common).

    Parameters
    ----------
    a, b
        Each an (n, 3) integer array of (t, x, y) granules, as `Trajectories.user` returns it, or an (n, 6) array of
        boxes `t0, t1, x0, x1, y0, y1` (inclusive), as `shoal.k_merge` returns them; n ≥ 1, in any order.
    weights
        How many people each of them stands for (n_a and n_b in GLOVE, Eq. 4 and 7).
    frame
        The grid; by default 100 m and 60 s.
    stretch
        The cost of a stretch; by default as in the paper.

    Guarantee: exact. The effort is a mean over the samples of the longer trajectory. If both are equally long, it is
    taken over the lexicographically smaller list, so that the order of a and b does not matter. (The paper takes the
    first.)

    Cost: near-linear.

    >>> stretch_effort([(0, 0, 0), (60, 10, 0)], [(0, 0, 0), (60, 0, 0)])  # one of two samples is 1 km off, of 20
    0.0125
    """
    from shoal.frame import Frame as Grid

    if len(weights) != 2 or min(weights) < 1:
        raise SettingsError("weights are two numbers of people, each at least 1")
    first, second = _boxes(a), _boxes(b)
    both = np.concatenate([first, second])
    if int(np.abs(both).max()) > _FARTHEST:
        raise InputError("granules must lie within 30 bits of 0; count them from a nearer origin")
    boxes = StretchedBoxes(both.astype(np.int32), np.empty(len(both), np.int32))
    rows = RowRange(0, len(first)), RowRange(len(first), len(both))
    for own in rows:
        box_reach(boxes, *own)
    scale = (stretch or Stretch()).scale(frame or Grid(crs=None))
    return float(box_effort(boxes, *rows, Weights(*weights), scale, 1.0))


def _boxes(samples: Any) -> NDArray[np.int64]:
    """Return samples or boxes as sorted boxes; raises InputError for anything else."""
    try:
        array = np.asarray(samples)
    except (ValueError, TypeError):
        array = np.empty(0)
    if array.ndim != 2 or array.shape[1] not in (3, 6) or len(array) == 0 or array.dtype.kind not in "iu":
        raise InputError(
            "a trajectory must be an (n, 3) integer array of (t, x, y) granules, or (n, 6) of boxes, with n ≥ 1"
        )
    if array.shape[1] == 3:
        array = np.repeat(array, 2, axis=1)
    if (array[:, 0::2] > array[:, 1::2]).any():
        raise InputError("a box must not end before it begins: t0 ≤ t1, x0 ≤ x1, y0 ≤ y1")
    return array[np.lexsort(array.T[::-1])].astype(np.int64)
