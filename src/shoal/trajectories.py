"""Trajectories: everybody's samples as columns of integers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.arrow import to_arrow_array
from shoal.errors import SettingsError
from shoal.memory import held_bytes
from shoal.notebook import Displayed

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.frame import Frame
    from shoal.reading.account import Account

__all__ = ["Trajectories", "build", "require_trajectories"]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories(Displayed):
    """The samples of all people, user after user, in canonical order.

    Make one with `shoal.read` or `shoal.from_pandas`.

    `offsets` (int64, U+1) says where each user's samples start in `t`, `x`, `y` (int32 granules of `frame`). A user's
    samples are distinct and sorted by (t, x, y). Users are sorted by their number of samples, then by the samples. So
    ties that are broken by the index of a user do not depend on labels or on the order of the input. `labels` are the
    original identifiers in the same order; they are private. `account` counts the rows that were read and dropped.
    """

    offsets: NDArray[np.int64]
    t: NDArray[np.int32]
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    frame: Frame
    labels: pa.Array
    account: Account | None = field(default=None)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"Trajectories({len(self):,} users, {self.samples:,} samples, {self.frame})"

    def summary(self) -> list[tuple[str, Any]]:
        """Return how many people and samples there are, and the grid they are on."""
        grid = f"{self.frame.cell_m} m, {self.frame.slot_s} s, {self.frame.crs or 'no CRS'}"
        return [("users", len(self)), ("samples", self.samples), ("grid", grid)]

    @property
    def samples(self) -> int:
        """How many samples there are in all."""
        return len(self.t)

    @property
    def nbytes(self) -> int:
        """How many bytes of memory the samples and labels take; samples in mapped files take none."""
        return held_bytes(*self.arrays) + int(self.labels.nbytes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many samples each user has."""
        return np.diff(self.offsets)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """Everything that is known of people besides their labels."""
        return self.offsets, self.t, self.x, self.y

    def first(self, n: int) -> Trajectories:
        """Return the first n users, or all if there are fewer."""
        offsets = self.offsets[: n + 1]
        end = int(offsets[-1])
        columns = (self.t[:end], self.x[:end], self.y[:end])
        return Trajectories(offsets, *columns, self.frame, self.labels[: len(offsets) - 1])

    def user(self, index: int) -> NDArray[np.int32]:
        """Return one user's samples as an (n, 3) array of (t, x, y), as `shoal.k_merge` takes them."""
        part = slice(int(self.offsets[index]), int(self.offsets[index + 1]))
        return np.stack([self.t[part], self.x[part], self.y[part]], axis=1)

    def to_pandas(self) -> pd.DataFrame:
        """Return a frame `uid, datetime, x, y` (+ `lat, lng` if there is a CRS): slot starts and cell centres.

        The labels are the original ones: the result is as private as the input.
        """
        import pandas as pd

        owner = np.repeat(np.arange(len(self)), self.counts)
        metres = self.frame.cell_m
        columns = {
            "uid": self.labels.take(to_arrow_array(owner)).to_pandas(),
            "datetime": pd.to_datetime(self.frame.epoch_s(self.t), unit="s", utc=True),
            "x": self.x,
            "y": self.y,
        }
        if self.frame.crs is not None:
            lng, lat = self.frame.degrees((self.x + 0.5) * metres, (self.y + 0.5) * metres)
            columns |= {"lat": lat, "lng": lng}
        return pd.DataFrame(columns)


def require_trajectories(people: Any, function: str) -> None:
    """Raise SettingsError, with the call to make, if something else than Trajectories was given to a function."""
    if not isinstance(people, Trajectories):
        raise SettingsError(f"{function} works on people that were read: call {function}(shoal.read(data), …)")


def build(
    users: NDArray[Any],
    t: NDArray[np.int32],
    x: NDArray[np.int32],
    y: NDArray[np.int32],
    *,
    labels: pa.Array,
    frame: Frame,
    account: Account | None = None,
    reuse: bool = False,
) -> Trajectories:
    """Make Trajectories from rows in any order.

    Input: per row the index of its user in `labels` and its granule. Output: Trajectories in canonical order,
    each user's rows sorted and distinct; labels without rows are left out. The input is not changed
    unless `reuse` lets the result take the memory of t, x and y.
    Cost: O(rows · log(rows per user) + users · log users); 20 bytes a row while it runs, with `reuse` 8.

    >>> import numpy as np, pyarrow as pa
    >>> from shoal.frame import Frame
    >>> i = np.array([0, 1, 0, 0], dtype=np.int32)
    >>> people = build(i, i, i, i, labels=pa.array(["a", "b"]), frame=Frame(crs=None))
    >>> people.labels.to_pylist(), people.offsets.tolist()
    (['a', 'b'], [0, 1, 2])
    """
    from shoal.kernels.order import pack_rows, packed_order, unpack_users

    packed = pack_rows(users, t, x, y, len(labels))
    order = packed_order(packed)
    order = order[packed.counts[order] > 0]
    offsets, t, x, y = unpack_users(packed, order, into=(t, x, y) if reuse else None)
    return Trajectories(offsets, t, x, y, frame, labels.take(to_arrow_array(order)), account)
