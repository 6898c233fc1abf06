"""kte-hide (Sec. III-E to III-G): an adversary who has followed a person for a time τ finds k candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import model_validator

from shoal.claim import Claim
from shoal.errors import SettingsError
from shoal.layouts import Boxes
from shoal.lists import offsets_of
from shoal.methods.kte_hide.clusters import spectral_labels
from shoal.methods.kte_hide.pieces import cut, windows_of
from shoal.methods.kte_hide.records import own_first, piece_lists, stays
from shoal.methods.kte_hide.sets import Hiding, find_sets
from shoal.methods.protocol import CrowdMethod, Estimate
from shoal.methods.records import merge_all
from shoal.methods.registry import register
from shoal.release import Members, Release
from shoal.run import LOCAL, Run
from shoal.settings import setting
from shoal.units import (
    INT32,
    Seconds,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.methods.kte_hide.pieces import Pieces
    from shoal.methods.kte_hide.sets import Sets
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories

__all__ = ["KteHide"]

# Measured on one core: a sample in a window and a round of hiding sets took 28 to 41 µs (500 to 3,000 generated users,
# 1,500 of tdrive_cdr). In memory: a sample, and a sample in a window; 384 bytes together with two windows.
_WINDOW_NS, _SAMPLE_BYTES, _WINDOW_BYTES = 35_000.0, 120, 132


@register
class KteHide(CrowdMethod):
    """Hide everyone, in every window of time, among k-1 others who change from window to window.

    Parameters
    ----------
    k
        How many records fit what an adversary knows about a person during a time τ.
    tau
        τ, how long an adversary may have followed a person. A number is seconds; text has a unit: `"30min"`, `"4h"`.
    epsilon
        ε, how much time beyond τ may be revealed. Time is cut into epochs of this length. `tau` must be a multiple of
        `epsilon`, and `epsilon` a multiple of the slot.
    reuse
        How many of the k-1 people who hide a person in a window may also hide them in epochs outside it: `half` allows
        half of them (none if k = 2), `strict` none (the paper's rule).
    clusters
        `none`: everybody with the same activity may hide each other. `spectral`: only people of the same cluster may
        (the paper's way); then fewer people are available, and more samples are left out.

    Guarantee: `kte-cover(k, τ)`. If all of a person's samples within τ are known, at least k records fit. Samples are
    left out where too few people have the same activity. Records do not depend on threads, labels or the order of the
    input. Leakage beyond ε is kept small but not excluded, because people may move on together by chance. It is
    measured when the release is written. If there is none, the release claims `kte-anonymity(k, τ, ε)`.

    Not guaranteed: anything about knowledge of two separate times, or of more than τ.

    Cost: about linear in the number of users who are active in each window.

    >>> import shoal
    >>> people = shoal.from_arrow(shoal.synthesize(users=200, scene="town", days=1, samples=20, seed=1))
    >>> KteHide(k=2, tau="4h", epsilon="4h").anonymize(people)
    Release(... records, ... boxes, kte-hide, claim kte-cover(2, 240min))
    """

    name: ClassVar[str] = "kte-hide"
    about: ClassVar[str] = "Hide everyone, in every window of time, among k-1 others who change from window to window."
    citation: ClassVar[str] = "kte-hide, Sec. III-E to III-G (docs/papers/kte-hide.md)"
    variants: ClassVar[dict[str, dict[str, Any]]] = {
        span: {"tau": span, "epsilon": span} for span in ("10min", "30min", "60min", "2h", "4h")
    }
    resumable: ClassVar[bool] = True
    less_loss: ClassVar[str] = "take a longer `epsilon`, a shorter `period`, a lower `k`, or more people"

    tau: Seconds = setting(
        1800,
        unit="s",
        help="How long an adversary may have followed a person, e.g. 60min.",
        public="tau_s",
        gt=0,
        le=INT32,
    )
    epsilon: Seconds = setting(
        1800,
        unit="s",
        help="How much time beyond tau may be revealed, e.g. 30min; tau must be a multiple of it.",
        public="epsilon_s",
        gt=0,
        le=INT32,
    )
    reuse: Literal["half", "strict"] = setting(
        "half",
        help="How many of the people who hide a person may do so again at other times: half, or strict for none.",
        public="reuse",
        quiet=True,
    )
    clusters: Literal["none", "spectral"] = setting(
        "none",
        help="Who may hide whom: none for everybody, spectral for clusters as in the paper.",
        public="clusters",
        quiet=True,
    )

    @model_validator(mode="after")
    def _go_together(self) -> KteHide:
        if self.tau % self.epsilon:
            raise ValueError('tau must be a multiple of epsilon, such as `tau="60min"` and `epsilon="30min"`')
        return self

    def make(self, people: Trajectories, *, run: Run) -> Release:
        """Return one record per user who has published samples; see the class for what it guarantees."""
        pieces = cut(people, self.epsilon // people.frame.slot_s)
        windows = windows_of(pieces, self.tau // self.epsilon)
        hiding = self._hiding(pieces, run)
        alive, sets = find_sets(pieces, windows, hiding, run=run)
        published, offsets, lists = piece_lists(pieces, alive, sets, windows.span)
        box_offsets, boxes = merge_all(pieces, offsets, lists, "sum", run=run)
        owners, per_user = np.unique(pieces.user[published], return_counts=True)
        samples = int(pieces.counts[published].sum())
        return Release(
            offsets=box_offsets[offsets_of(per_user)],
            layout=Boxes(boxes),
            frame=people.frame,
            method=self.name,
            parameters=self.parameters,
            claim=self.claim,
            samples=samples,
            suppressed=people.samples - samples,
            members=_members(people, pieces, owners, sets, windows.span),
        )

    @property
    def claim(self) -> Claim:
        """The least that its releases promise."""
        return Claim("kte-cover", k=self.k, tau_s=self.tau)

    def estimate(self, people: Trajectories, *, run: Run = LOCAL) -> Estimate:
        """Return the estimated time and memory of `anonymize`: linear in the users active in each window."""
        pieces = min(people.samples, len(people) * (1 + int(np.ptp(people.t)) // (self.epsilon // people.frame.slot_s)))
        work = pieces * (1 + self.tau // self.epsilon) * (self.k - 1)
        memory = _SAMPLE_BYTES * people.samples + _WINDOW_BYTES * work
        return Estimate(int(memory), _WINDOW_NS * work / 1e9 / run.workers)

    def require(self, people: Trajectories | Traces) -> None:
        """Check that there are at least k people and that epochs are whole slots; raises otherwise."""
        super().require(people)
        if self.epsilon % people.frame.slot_s:
            raise SettingsError("epsilon must be a whole number of slots; choose another one, or another `slot`")

    def _hiding(self, pieces: Pieces, run: Run = LOCAL) -> Hiding:
        others = self.k - 1
        label = np.zeros(len(pieces.user), np.int64)
        if self.clusters == "spectral":
            label = spectral_labels(pieces, self.k, run=run)
        return Hiding(self.k, others if self.reuse == "strict" else others - others // 2, label)


def _members(people: Trajectories, pieces: Pieces, owners: NDArray[np.int64], sets: list[Sets], span: int) -> Members:
    """Return who was merged into each record, and in which slots; the owner comes first and is in all slots."""
    record, member, first, last = stays(sets, span)
    offsets, own = own_first(np.searchsorted(owners, record), len(owners))
    indices, spans = np.empty(offsets[-1], np.int64), np.zeros((offsets[-1], 2), np.int64)
    indices[own], indices[~own] = owners, member
    spans[~own, 0] = pieces.first + np.maximum(first, 0) * pieces.length
    spans[~own, 1] = pieces.first + np.minimum(last, pieces.n_epochs) * pieces.length
    return Members(owners, offsets, indices, people, spans=spans)
