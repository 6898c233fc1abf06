"""Uniform generalization: everybody's samples on a coarser grid, the baseline of the papers (000, Sec. 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from shoal.errors import SettingsError
from shoal.methods.protocol import BoxMethod, Estimate
from shoal.release import Claim, Members, Release
from shoal.run import LOCAL, Run
from shoal.units import Metres, Seconds  # noqa: TC001  pydantic needs them

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["Uniform"]

_SAMPLE_NS, _SAMPLE_BYTES = 100.0, 100


class Uniform(BoxMethod):
    """Publish everybody's samples as boxes of a coarser grid; samples of one slot share a box.

    Parameters
    ----------
    cell_m, slot_s
        The coarser cell and slot, whole multiples of those that the data are on; None for those themselves. Text with
        a unit is taken too: `"1km"`, `"60min"`.

    Guarantee: the claim is `none`. Each sample is inside a box of its own user's record; edges are multiples of the
    coarser cell and slot. Not guaranteed: that anybody is hidden: coarse grids leave people unique.
    Cost: linear.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> Uniform(cell_m="1km", slot_s="60min").anonymize(people)
    Release(50 records, ... boxes, uniform, claim none)
    """

    name: ClassVar[str] = "uniform"
    cell_m: Annotated[Metres, Field(gt=0)] | None = None
    slot_s: Annotated[Seconds, Field(gt=0)] | None = None

    def anonymize(self, people: Trajectories, *, run: Run = LOCAL) -> Release:
        """Return one record per user; see the class for what it guarantees."""
        cells, slots = self._factors(people)
        with run.stage("coarsen"):
            offsets, boxes = _coarse_boxes(people, cells, slots)
        everyone = np.arange(len(people))
        return Release(
            offsets=offsets,
            boxes=boxes,
            frame=people.frame,
            method=self.name,
            parameters={"cell_m": cells * people.frame.cell_m, "slot_s": slots * people.frame.slot_s},
            claim=self.claim,
            samples=people.samples,
            members=Members(everyone, np.arange(len(people) + 1), everyone, people),
        )

    @property
    def claim(self) -> Claim:
        """What its releases promise."""
        return Claim("none")

    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:  # noqa: ARG002
        """Return what `anonymize` would take."""
        return Estimate(_SAMPLE_BYTES * people.samples, _SAMPLE_NS * people.samples / 1e9)

    def _factors(self, people: Trajectories) -> tuple[int, int]:
        """Return how many cells and slots of the data make one of the coarser grid."""
        fine = people.frame.cell_m, people.frame.slot_s
        coarse = self.cell_m or fine[0], self.slot_s or fine[1]
        if coarse[0] % fine[0] or coarse[1] % fine[1]:
            raise SettingsError("the coarser cell and slot must be whole multiples of those the data were read with")
        return coarse[0] // fine[0], coarse[1] // fine[1]


def _coarse_boxes(people: Trajectories, cells: int, slots: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return each user's boxes: one for each coarse slot with samples, around the coarse cells of these."""
    origin = people.frame.origin_slot
    slot = (people.t.astype(np.int64) + origin) // slots
    new = np.ones(people.samples, np.bool_)
    new[1:] = slot[1:] != slot[:-1]
    new[people.offsets[:-1]] = True
    first = np.flatnonzero(new)
    boxes = np.empty((len(first), 6), np.int64)
    boxes[:, 0] = slot[first] * slots - origin
    boxes[:, 1] = boxes[:, 0] + slots - 1
    for column, values in ((2, people.x), (4, people.y)):
        boxes[:, column] = np.minimum.reduceat(values, first) // cells * cells
        boxes[:, column + 1] = np.maximum.reduceat(values, first) // cells * cells + cells - 1
    return np.searchsorted(first, people.offsets), boxes.astype(np.int32)
