"""Uniform generalization: publish samples on a coarser grid, the baseline of the papers (GLOVE, Sec. 5.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.claim import Claim
from shoal.errors import SettingsError
from shoal.layouts import Boxes
from shoal.methods.protocol import Estimate, Method
from shoal.methods.registry import register
from shoal.release import Members, Release
from shoal.run import LOCAL, Run
from shoal.settings import setting
from shoal.units import Metres, Seconds  # noqa: TC001  pydantic needs them

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["Uniform"]

_SAMPLE_NS, _SAMPLE_BYTES = 100.0, 100


@register
class Uniform(Method):
    """Publish everybody's samples as boxes of a coarser grid; samples of one slot share a box.

    Parameters
    ----------
    to_cell, to_slot
        The coarser cell and slot: whole multiples of those of the data; None to keep those of the data. A number is
        metres or seconds; text has a unit: `"1km"`, `"60min"`.

    Guarantee: the claim is `none`. Each sample is inside a box of its own user's record. The edges of boxes are
    multiples of the coarser cell and slot.

    Not guaranteed: that anybody is hidden. Coarse grids leave people unique.

    Cost: linear.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    >>> Uniform(to_cell="1km", to_slot="60min").anonymize(people)
    Release(50 records, ... boxes, uniform, claim none)
    """

    name: ClassVar[str] = "uniform"
    about: ClassVar[str] = (
        "Publish everybody's samples on a coarser grid. It hides nobody; the papers use it as a baseline."
    )
    citation: ClassVar[str] = "GLOVE, Sec. 5.3 (docs/papers/glove.md)"
    examples: ClassVar[dict[str, Any]] = {"to_cell": "1km", "to_slot": "1h"}
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        f"{cell}/{slot}": {"to_cell": cell, "to_slot": slot}
        for cell, slot in (("1km", "1h"), ("2km", "2h"), ("5km", "4h"), ("20km", "8h"))
    }

    to_cell: Metres | None = setting(
        None, unit="m", help="The side of a coarser cell, e.g. 1km.", public="cell_m", gt=0
    )
    to_slot: Seconds | None = setting(
        None, unit="s", help="The length of a coarser slot, e.g. 60min.", public="slot_s", gt=0
    )

    def make(self, people: Trajectories, *, run: Run) -> Release:
        """Return one record per user; see the class for what it guarantees."""
        cells, slots = self._factors(people)
        with run.stage("coarsen"):
            offsets, boxes = _coarse_boxes(people, cells, slots)
        everyone = np.arange(len(people))
        return Release(
            offsets=offsets,
            layout=Boxes(boxes),
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
        """Return the estimated time and memory of `anonymize`."""
        return Estimate(_SAMPLE_BYTES * people.samples, _SAMPLE_NS * people.samples / 1e9)

    def _factors(self, people: Trajectories) -> tuple[int, int]:
        """Return how many cells and slots of the data make one of the coarser grid."""
        fine = people.frame.cell_m, people.frame.slot_s
        coarse = self.to_cell or fine[0], self.to_slot or fine[1]
        if coarse[0] % fine[0] or coarse[1] % fine[1]:
            raise SettingsError("the coarser cell and slot must be whole multiples of those the data were read with")
        return coarse[0] // fine[0], coarse[1] // fine[1]


def _coarse_boxes(people: Trajectories, cells: int, slots: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return each user's boxes: one for each coarse slot with samples, around the coarse cells of the samples."""
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
