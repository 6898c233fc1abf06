"""GLOVE's groups (GLOVE, Alg. 1): always merge the pair at least effort, found without comparing all pairs.

Everybody, and every group made, is searched for: the few nearest of all that are there. The least effort of any pair
is then at the head of some list, for of two groups one was searched for when the other was there. Lists are kept in a
queue by their heads; merged groups drop out of them, which only ever makes a head dearer, and who has no more on the
list is searched for again once the end of that list is the least of all. So the order of merges, ties included, is
that of the algorithm as written.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from shoal.interrupt import raise_if_asked
from shoal.kernels.glove import merge_two_stage
from shoal.kernels.glove_search import Field, Found, Sought, Standing, TimeBins, fill_box_gaps, search
from shoal.kernels.kgap import Floors, fill_places
from shoal.kernels.merge import MEMBERS, MemberLists, MergedRecords, merge_records
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import Samples, samples_of
from shoal.kernels.stretch import StretchedBoxes, Weights, box_reach
from shoal.lists import offsets_of, ranges_of
from shoal.measure.kgap import floors_of
from shoal.measure.stretch import Stretch
from shoal.run import LOCAL, Run
from shoal.search import homes
from shoal.search.constraints import Plan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.trajectories import Trajectories

__all__ = ["GloveGroups", "glove_groups"]

_LISTED = 3  # nearest groups that a search finds: more cost more to find than they save in later searches
_BATCH = 256  # people searched for between two entries of what was found
_AHEAD = 64  # heads of lists that are looked at for searches to be done along with one that must be done
_RANGE = 4  # groups in one call of the search: well below a second
_GONE = 0.05  # of those in the order by space, before they are taken out of it
_ROOM = 1.5  # rows for boxes, for each sample, before there must be more
_ANY = 2**62

# The effort, the two groups, whether it is of a pair (or the end of a list), whose list it is, and when it was made.
_Entry: TypeAlias = "tuple[int, int, int, bool, int, int]"


class GloveGroups(NamedTuple):
    """The groups; their boxes if they were merged on the way (two-stage); the number of efforts begun."""

    plan: Plan
    offsets: NDArray[np.int64] | None
    boxes: NDArray[np.int32] | None
    begun: int


def glove_groups(
    people: Trajectories, k: int, *, loose: bool = False, two_stage: bool = False, run: Run = LOCAL
) -> GloveGroups:
    """Merge the pair of groups with the least stretch effort until nobody is in a group of fewer than k.

    Guarantee: the groups of Alg. 1 of the paper, in the canonical order of their first members where efforts are equal
    to 1e-12. Unless `loose`, groups of k or more are left alone, and fewer than k people may remain, in no group.
    Cost: for everybody and every group made, a bound for each of the others, and efforts where it does not suffice.
    """
    greedy = _Greedy(people, k, loose=loose, two_stage=two_stage, run=run)
    with run.stage("nearest", len(people)) as advance:
        everybody = greedy.by_space
        for start in range(0, len(people), _BATCH):
            raise_if_asked()
            some = everybody[start : start + _BATCH]
            greedy.search(some)
            advance(len(some))
    with run.stage("groups", len(people)) as advance:
        while (pair := greedy.least_pair()) is not None:
            raise_if_asked()
            advance(greedy.merge(*pair))
    return greedy.groups()


class _Greedy:
    """The state of the algorithm: the field, the queue of lists, and what has been finished."""

    def __init__(self, people: Trajectories, k: int, *, loose: bool, two_stage: bool, run: Run) -> None:
        self._people, self._k, self._loose, self._two_stage, self._run = people, k, loose, two_stage, run
        self._scale = Stretch().scale(people.frame)
        floors, self._width = floors_of(people, self._scale, run)
        self._field = _field(people, floors, boxes_too=loose or k > 2)
        self._used = people.samples  # rows of the boxes
        self.by_space = homes(people, run=run).order
        self._where = np.empty(len(people), np.int64)  # in that order, at first
        self._where[self.by_space] = np.arange(len(people))
        self._everybody = np.arange(len(people))
        self._gone = 0
        self._at = np.zeros(len(people), np.int64)  # how far a list is used up
        self._members: dict[int, NDArray[np.int64]] = {}
        self._finished: list[tuple[NDArray[np.int64], NDArray[np.int32] | None]] = []
        self._queue: list[_Entry] = []
        self._small = len(people)  # groups of fewer than k
        self._clock = 0
        self._begun = 0

    def search(self, groups: NDArray[np.int64]) -> None:
        """Find the nearest of some groups, and queue the lists."""
        field, n = self._field, len(groups)
        below = np.where(field.size[groups] >= self._k, self._k, _ANY)
        rank = np.searchsorted(self._where[self.by_space], self._where[groups])
        standing = Standing(self.by_space, self._everybody)
        found = Found(
            np.empty((n, _LISTED), np.int32),
            np.empty((n, _LISTED), np.int64),
            np.empty(n, np.int64),
            np.empty(n, np.int64),
        )

        def work(start: int, stop: int) -> None:
            rows = slice(start, stop)
            part = Found(found.near[rows], found.effort[rows], found.listed[rows], found.begun[rows])
            search(field, Sought(groups[rows], rank[rows], below[rows]), standing, part)

        self._run.ranges(work, ranges_of(n, _RANGE))
        self._clock += 1
        field.near[groups], field.effort[groups], field.listed[groups] = found.near, found.effort, found.listed
        field.searched[groups] = self._clock
        self._at[groups] = 0
        self._begun += int(found.begun.sum())
        for group in groups.tolist():
            self._enqueue(group)

    def _enqueue(self, group: int) -> None:
        """Queue a list by its first pair that still exists; by its end if none does, since there may be others."""
        field = self._field
        listed, at = int(field.listed[group]), int(self._at[group])
        while at < listed and not self._is_there(group, int(field.near[group, at])):
            at += 1
        self._at[group] = at
        searched = int(field.searched[group])
        if at < listed:
            other = int(field.near[group, at])
            pair = (min(group, other), max(group, other))
            heappush(self._queue, (int(field.effort[group, at]), *pair, True, group, searched))
        elif listed == _LISTED:
            # An earlier person was searched for while this one was there, so the earlier list already has the pair.
            first = group if field.born[group] == 0 else -1
            heappush(self._queue, (int(field.effort[group, -1]), first, first + 1, False, group, searched))

    def _is_there(self, group: int, other: int) -> bool:
        """Return whether a group that was found still exists; it may have been merged since."""
        field = self._field
        return bool(field.there[other] and field.born[other] <= field.searched[group])

    def least_pair(self) -> tuple[int, int] | None:
        """Return the pair of groups with the least effort; None if there are no more."""
        field = self._field
        while self._queue and self._small:
            *_, is_pair, group, searched = heappop(self._queue)
            if not field.there[group] or field.searched[group] != searched:
                continue
            if not is_pair:
                self.search(np.array([group, *self._others_to_search()]))
                continue
            other = int(field.near[group, self._at[group]])
            if self._is_there(group, other):
                return group, other
            self._enqueue(group)
        return None

    def _others_to_search(self) -> list[int]:
        """Return the other groups early in the queue whose lists are used up; searching several keeps threads busy."""
        field = self._field
        kept: list[_Entry] = []
        found: list[int] = []
        while self._queue and len(kept) + len(found) < _AHEAD:
            entry = heappop(self._queue)
            *_, is_pair, group, searched = entry
            if not field.there[group] or field.searched[group] != searched:
                continue
            if is_pair:
                kept.append(entry)
            else:
                found.append(group)
        for entry in kept:
            heappush(self._queue, entry)
        return found

    def merge(self, one: int, other: int) -> int:
        """Merge two groups; return how many people are in a group of at least k for the first time."""
        field = self._field
        group, gone = min(one, other), max(one, other)
        members = np.sort(np.concatenate([self._members_of(group), self._members_of(gone)]))
        small = [int(field.size[at]) for at in (group, gone) if field.size[at] < self._k]
        boxes = self._merged(group, gone, members)
        done = len(members) >= self._k
        self._small -= len(small) - (not done)
        self._clock += 1
        self._leave(gone)
        field.size[group] = len(members)
        field.born[group] = self._clock
        field.searched[group] = field.listed[group] = 0
        self._members.pop(gone, None)
        self._members[group] = members
        if done and not self._loose:
            self._leave(group)
            self._finished.append((self._members.pop(group), boxes))
        elif boxes is not None:
            self._stand(group, boxes)
            if self._small:
                self.search(np.array([group, *self._others_to_search()]))
        return sum(small) if done else 0

    def _leave(self, group: int) -> None:
        self._field.there[group] = False
        self._gone += 1
        if self._gone > _GONE * len(self.by_space):
            self.by_space = self.by_space[self._field.there[self.by_space]]
            self._everybody = np.sort(self.by_space)
            self._gone = 0

    def _members_of(self, group: int) -> NDArray[np.int64]:
        return self._members.get(group, np.array([group]))

    def _merged(self, group: int, other: int, members: NDArray[np.int64]) -> NDArray[np.int32] | None:
        """Return the merged boxes of two groups; None if they are not needed before all groups are known."""
        people, field = self._people, self._field
        if self._two_stage:
            weights = Weights(int(field.size[group]), int(field.size[other]))
            own, others = self._boxes_of(group), self._boxes_of(other)
            return merge_two_stage(own, others, weights, self._scale, samples_of(people), members)
        if len(members) >= self._k and not self._loose:
            return None
        boxes = np.empty((int(people.counts[members].min()), 6), np.int32)
        ends, count = np.array([0, len(members)]), np.zeros(1, np.int64)
        merged = MergedRecords(boxes, ends[:1], count, np.zeros(1))
        merge_records(samples_of(people), MemberLists(ends, members), MEMBERS, PAPERS, merged)
        return boxes[: count[0]]

    def _boxes_of(self, group: int) -> NDArray[np.int32]:
        field = self._field
        if field.size[group] > 1:
            return field.boxes.edges[field.start[group] : field.stop[group]]
        return np.repeat(self._people.user(group), 2, axis=1)

    def _stand(self, group: int, boxes: NDArray[np.int32]) -> None:
        """Enter the boxes of a new group into the field."""
        start, stop = self._used, self._used + len(boxes)
        self._field = field = _with_room(self._field, stop)
        self._used = stop
        field.boxes.edges[start:stop] = boxes
        field.start[group], field.stop[group], field.length[group] = start, stop, len(boxes)
        box_reach(field.boxes, start, stop)
        begin = int(self._people.t.min())
        first, last = ((boxes[:, at] - begin) // self._width for at in (0, 1))
        field.bin[start:stop] = np.where(first == last, first, -1)
        floors = field.floors
        fill_box_gaps(boxes, self._scale, TimeBins(begin, self._width, floors.step), floors.gaps[group])
        _fill_box_places(floors, group, boxes)

    def groups(self) -> GloveGroups:
        """Return the result, with groups in the canonical order of their first members."""
        finished = self._finished
        if self._loose:
            finished = [(self._members[at], self._boxes_of(at)) for at in np.flatnonzero(self._field.there).tolist()]
        finished = sorted(finished, key=lambda group: int(group[0][0]))
        sizes = np.array([len(members) for members, _ in finished])
        members = np.concatenate([members for members, _ in finished])
        record_of = np.full(len(self._people), -1)
        record_of[members] = np.repeat(np.arange(len(sizes)), sizes)
        plan = Plan(offsets_of(sizes), members, record_of)
        if not self._two_stage:
            return GloveGroups(plan, None, None, self._begun)
        merged = [boxes for _, boxes in finished if boxes is not None]
        offsets = offsets_of(np.array([len(boxes) for boxes in merged]))
        return GloveGroups(plan, offsets, np.concatenate(merged), self._begun)


def _field(people: Trajectories, floors: Floors, *, boxes_too: bool) -> Field:
    """Return the field with everybody alone; with `boxes_too`, samples are boxes too, to be compared with groups."""
    n = len(people)
    room = int(people.samples * _ROOM) if boxes_too else 0
    boxes, bin_of = StretchedBoxes(np.empty((room, 6), np.int32), np.empty(room, np.int32)), np.empty(room, np.int32)
    if boxes_too:
        for at, column in enumerate((people.t, people.x, people.y)):
            boxes.edges[: people.samples, 2 * at] = boxes.edges[: people.samples, 2 * at + 1] = column
        boxes.reach[: people.samples] = people.t
        bin_of[: people.samples] = floors.bin
    return Field(
        floors,
        boxes,
        bin_of,
        people.offsets[:-1].copy(),
        people.offsets[1:].copy(),
        people.counts,
        np.ones(n, np.int64),
        np.ones(n, np.bool_),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((n, _LISTED), np.int32),
        np.zeros((n, _LISTED), np.int64),
        np.zeros(n, np.int64),
    )


def _with_room(field: Field, rows: int) -> Field:
    """Return the same field with room for so many boxes."""
    if rows <= len(field.bin):
        return field
    more, every = rows * 3 // 2, (*field.boxes, field.bin)
    grown = [np.concatenate([old, np.empty((more - len(old), *old.shape[1:]), np.int32)]) for old in every]
    return field._replace(boxes=StretchedBoxes(grown[0], grown[1]), bin=grown[2])


def _fill_box_places(floors: Floors, group: int, boxes: NDArray[np.int32]) -> None:
    """Fill the places of a group: those of the middles of its boxes, stretched until they hold the boxes."""
    first, last = int(floors.places[group]), int(floors.places[group + 1])
    room = min(last - first, len(boxes))
    middle = (boxes[:, 2::2] + boxes[:, 3::2]) // 2
    place, n_places = np.empty(len(boxes), np.uint8), np.empty(1, np.int32)
    box, weight, hull = np.empty((room, 4), np.int32), np.empty(room, np.int32), np.empty((1, 4), np.int32)
    own = floors._replace(
        samples=Samples(boxes[:, 0].copy(), middle[:, 0].copy(), middle[:, 1].copy(), np.array([0, len(boxes)])),
        place=place,
        places=np.array([0, room]),
        n_places=n_places,
        box=box,
        weight=weight,
        hull=hull,
    )
    fill_places(own, 0, 1)
    for at in range(0, 4, 2):
        np.minimum.at(box[:, at], place, boxes[:, 2 + at])
        np.maximum.at(box[:, at + 1], place, boxes[:, 3 + at])
    n = int(n_places[0])
    floors.n_places[group] = n
    floors.box[first : first + n], floors.weight[first : first + n] = box[:n], weight[:n]
    floors.hull[group] = [box[:n, 0].min(), box[:n, 1].max(), box[:n, 2].min(), box[:n, 3].max()]
