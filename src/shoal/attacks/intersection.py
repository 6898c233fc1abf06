"""The attack `intersection`: look for people in two releases at once; each release alone keeps its promise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array
from shoal.attacks.knowledge import anyone, first_known, percent, promised, shuffled
from shoal.attacks.matching import count_people
from shoal.attacks.outcome import Attack, Outcome, crowd, rate, register
from shoal.attacks.points import PointsSettings
from shoal.attacks.target import draw_victims
from shoal.errors import CannotCheck
from shoal.jit import jit
from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks, distinct, spread
from shoal.seen.audit import places_among
from shoal.seen.index import covering, index_rarest
from shoal.streams import Stream, draw_from

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.attacks.matching import KnownPoints
    from shoal.attacks.target import Target
    from shoal.jit import Ints

__all__ = ["INTERSECTION", "intersection_attack"]

_POINTS = (2, 4, 10)
_BLOCK = 50  # victims at a time, and in one call of the kernel


class _Side(NamedTuple):
    """One of the releases: its target, the victims in it, and which kinds each of the common people may be.

    Person p, who is in both, has `kinds[offsets[p]:offsets[p + 1]]`: their own kind if the audit says it, else all
    kinds that cover them.
    """

    target: Target
    victims: NDArray[np.int64]
    offsets: NDArray[np.int64]
    kinds: NDArray[np.int64]


class _PublishedBoxes(NamedTuple):
    """Boxes of records in granules of `cell_m` metres and `slot_s` seconds; the data lasts from `start` to `end`, s."""

    offsets: Ints
    boxes: Any
    sound: NDArray[np.bool_]
    cell_m: int
    slot_s: int
    start: int
    end: int


class _Rule(NamedTuple):
    """Which boxes must meet: those in the seconds start…end of both releases; which release suppresses no samples."""

    start: int
    end: int
    strict_one: bool
    strict_other: bool


class _Lists(NamedTuple):
    """The candidates of each victim."""

    offsets: Ints
    kinds: Ints


def intersection_attack(
    target: Target, *, other: Target, victims: int = 1000, seed: int = 0, points: int | None = None, run: Run = LOCAL
) -> Outcome:
    """Look for people in two releases at once, by `points` random samples known of them (None: 2, 4, 10).

    Victims are in both originals (the same labels); the same samples are known where the originals agree. In each
    release the candidates are the records that hold them. Two candidates may be one person if every box of the
    one, in the period of both, meets a box of the other, and the other way round. (Every box of a record holds a
    sample of the person who was published as it.)
    Output, for each number of points: the candidates in each release; the largest number of people that the linked
    candidates can be (`left`); how many people really are candidates in both (`together`: the intersected anonymity;
    `success` if it is one). The audits say who is in which record; without an audit, it is whom the record covers. For
    the share `untold` of victims it is not known. The figures tell how large a victim's boxes are in each release and
    after intersecting them. Control: the points in raw data. Both releases need the same CRS.
    Cost: besides the searches, a pass over both records for each pair of candidates of a victim.
    """
    if target.grid.crs != other.grid.crs:
        raise CannotCheck("the two releases are in different CRS, so their boxes can't be intersected")
    chance = draw_from(seed, Stream.TWO_RELEASES)
    with run.stage("who is in both releases"):
        here, there = _common(target, other)
        chosen = draw_victims(np.arange(len(here)), victims, chance)
        sides = [_side(*pair, chosen, run) for pair in ((target, here), (other, there))]
    known = [shuffled(side.target.published, side.victims, draw_from(seed, Stream.KNOWN_IN_BOTH)) for side in sides]
    rows = []
    numbers = _POINTS if points is None else (points,)
    with run.stage("attack intersection", len(numbers)) as advance:
        for number in numbers:
            some = [first_known(one, number) for one in known]
            rows.append({"points": number, **_row(sides, some, len(here), run)})
            advance(1)
    figures = promised(target) | {"other_claim": str(other.claim), "other_k": other.k, "users_in_both": len(here)}
    figures |= {"untold": _untold(sides, chosen), **_precision(sides, chosen)}
    settings = {"points": points, "victims": victims, "seed": seed}
    return Outcome("intersection", settings, len(chosen), rows, figures, _messages(rows[-1], figures))


def _common(target: Target, other: Target) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the people who can be attacked in both releases, by their index in each."""
    here, there = anyone(target), anyone(other)
    mine, theirs = (
        one.people.labels.cast(pa.large_string()).take(to_arrow_array(who))
        for one, who in ((target, here), (other, there))
    )
    place = places_among(mine, theirs)
    if not (place >= 0).any():
        raise CannotCheck(
            "nobody is in both releases under the same label. People who have other labels in the second original "
            "can't be told here; compare the originals themselves"
        )
    return here[place >= 0], there[place[place >= 0]]


def _side(target: Target, people: NDArray[np.int64], chosen: NDArray[np.int64], run: Run) -> _Side:
    if target.own is not None:
        kinds = target.records.groups[target.own[people]]
        return _Side(target, people[chosen], np.arange(len(people) + 1), kinds)
    records = target.records.unique
    order = np.argsort(people)
    index = index_rarest(records, target.people, run=run)
    found = covering(target.people, index, people[order], run=run)
    person = order[np.searchsorted(people[order], found.user)]
    by_person = np.lexsort((found.record, person))
    return _Side(
        target, people[chosen], offsets_of(np.bincount(person, minlength=len(people))), found.record[by_person]
    )


def _untold(sides: list[_Side], chosen: NDArray[np.int64]) -> float:
    """Return the share of victims whose record is not known: there is no audit, and no record covers them."""
    told = [np.diff(side.offsets)[chosen] > 0 for side in sides]
    return float(1 - (told[0] & told[1]).mean())


def _row(sides: list[_Side], known: list[KnownPoints], n_people: int, run: Run) -> dict[str, Any]:
    """Return the row of the table for the known points."""
    n = len(known[0].offsets) - 1
    counts = [np.zeros(n, dtype=np.int64) for _ in sides]
    left, together = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    by_kind = [_people_of(side) for side in sides]
    boxes = [_boxes(side.target) for side in sides]
    for start in range(0, n, _BLOCK):
        part = slice(start, min(start + _BLOCK, n))
        found = [
            side.target.matcher.holders(one.part(part.start, part.stop), run=run)
            for side, one in zip(sides, known, strict=True)
        ]
        weights = [side.target.matcher.weights[kinds] for side, (_, kinds) in zip(sides, found, strict=True)]
        for total, (offsets, _), weight in zip(counts, found, weights, strict=True):
            total[part] = _sums(offsets, weight)
        left[part] = _linked(boxes, found, weights, run, strict=[not side.target.suppressed for side in sides])
        together[part] = _together(by_kind, found, n_people)
    control = count_people(sides[0].target.raw, known[0], run=run)
    missing = (counts[0] == 0) | (counts[1] == 0)
    row: dict[str, Any] = {"victims": n, **rate("success", int((together == 1).sum()), n)}
    row |= {"not_found": float(missing.mean()), **crowd(counts[0]), **crowd(counts[1], "other_candidates")}
    row |= {**crowd(left[~missing], "left"), **rate("left_alone", int((left == 1).sum()), n)}
    row |= crowd(together[~missing], "together")
    return row | rate("control", int((control == 1).sum()), n) | crowd(control, "control_candidates")


def _sums(offsets: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(offsets_of(values)[offsets])


def _people_of(side: _Side) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the people of each kind: (offsets, people)."""
    person = spread(np.diff(side.offsets))
    counts = np.bincount(side.kinds, minlength=len(side.target.records.unique))
    return offsets_of(counts), person[np.argsort(side.kinds, kind="stable")]


def _together(
    by_kind: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    n_people: int,
) -> NDArray[np.int64]:
    """Count the people who are candidates in both releases, for each victim."""
    pairs = []
    for (edges, people), (offsets, kinds) in zip(by_kind, found, strict=True):
        size = np.diff(edges)[kinds]
        entry = spread(size)
        rows = np.arange(len(entry)) + (edges[kinds] - offsets_of(size)[:-1])[entry]
        pairs.append(distinct(spread(np.diff(offsets))[entry] * n_people + people[rows]))
    both = np.intersect1d(pairs[0], pairs[1], assume_unique=True)
    return np.bincount(both // n_people, minlength=len(found[0][0]) - 1)


def _boxes(target: Target) -> _PublishedBoxes:
    records, slot_s = target.records.unique, target.grid.slot_s
    t = records.boxes[records.sound[spread(records.counts)]][:, :2]
    start, end = int(t[:, 0].min()) * slot_s, (int(t[:, 1].max()) + 1) * slot_s
    return _PublishedBoxes(records.offsets, records.boxes, records.sound, target.grid.cell_m, slot_s, start, end)


def _linked(
    boxes: list[_PublishedBoxes],
    found: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    weights: list[NDArray[np.int64]],
    run: Run,
    *,
    strict: list[bool],
) -> NDArray[np.int64]:
    """Count the largest number of people that the linked candidates of each victim can be.

    Candidates fall into clusters of linked ones; a cluster hides no more people than its smaller side. A box may lack
    its partner where samples are suppressed in the other release (`strict` says of which release none are).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    (edges_a, kinds_a), (_, kinds_b) = found
    n, parts = len(edges_a) - 1, {}
    one, other = boxes
    rule = _Rule(max(one.start, other.start), min(one.end, other.end), strict[0], strict[1])
    lists = [_Lists(*candidates) for candidates in found]

    def work(begin: int, stop: int) -> None:
        parts[begin] = _links(one, other, lists[0], lists[1], (begin, stop), rule)

    run.ranges(work, ((victim, victim + 1) for victim in range(n)))
    left, right = (
        np.concatenate([np.empty(0, np.int64), *(parts[key][side] for key in sorted(parts))]) for side in (0, 1)
    )
    size = len(kinds_a) + len(kinds_b)
    graph = coo_array((np.ones(len(left), dtype=np.int8), (left, len(kinds_a) + right)), shape=(size, size))
    n_clusters, cluster = connected_components(graph, directed=False)
    people_a = np.bincount(cluster[: len(kinds_a)], weights=weights[0], minlength=n_clusters)
    people_b = np.bincount(cluster[len(kinds_a) :], weights=weights[1], minlength=n_clusters)
    victim = np.zeros(n_clusters, dtype=np.int64)
    # A cluster without candidates of the first release hides nobody.
    victim[cluster[: len(kinds_a)]] = spread(np.diff(edges_a))
    return np.bincount(victim, weights=np.minimum(people_a, people_b), minlength=n).astype(np.int64)


@jit
def _all_meet(one: _PublishedBoxes, other: _PublishedBoxes, a: int, b: int, start: int, end: int) -> bool:
    """Return whether every box of record a that lies in the period meets a box of record b of the other release."""
    j = other.offsets[b]
    last = other.offsets[b + 1]
    for i in range(one.offsets[a], one.offsets[a + 1]):
        t0, t1 = np.int64(one.boxes[i, 0]) * one.slot_s, (np.int64(one.boxes[i, 1]) + 1) * one.slot_s
        if t0 < start or t1 > end:
            continue
        while j < last and (np.int64(other.boxes[j, 1]) + 1) * other.slot_s <= t0:
            j += 1
        met = False
        m = j
        while m < last and not met and np.int64(other.boxes[m, 0]) * other.slot_s < t1:
            met = True
            for low in (2, 4):
                left = max(np.int64(one.boxes[i, low]) * one.cell_m, np.int64(other.boxes[m, low]) * other.cell_m)
                right_one = (np.int64(one.boxes[i, low + 1]) + 1) * one.cell_m
                right_other = (np.int64(other.boxes[m, low + 1]) + 1) * other.cell_m
                if left >= min(right_one, right_other):
                    met = False
            m += 1
        if not met:
            return False
    return True


@jit
def _links(
    one: _PublishedBoxes, other: _PublishedBoxes, first: _Lists, second: _Lists, victims: tuple[int, int], rule: _Rule
) -> tuple[Ints, Ints]:
    """Return the pairs of candidates of victims first…last-1, by their places in the lists, that may be one person."""
    start, end = rule.start, rule.end
    left, right = np.empty(16, np.int64), np.empty(16, np.int64)
    n = 0
    for victim in range(victims[0], victims[1]):
        for i in range(first.offsets[victim], first.offsets[victim + 1]):
            for j in range(second.offsets[victim], second.offsets[victim + 1]):
                a, b = first.kinds[i], second.kinds[j]
                if rule.strict_other and not _all_meet(one, other, a, b, start, end):
                    continue
                if rule.strict_one and not _all_meet(other, one, b, a, start, end):
                    continue
                if n == len(left):
                    left, right = np.append(left, np.empty(n, np.int64)), np.append(right, np.empty(n, np.int64))
                left[n], right[n] = i, j
                n += 1
    return left[:n], right[:n]


def _precision(sides: list[_Side], chosen: NDArray[np.int64]) -> dict[str, float | None]:
    """Return the mean side and duration of the boxes that hold the victims' samples: in each release, and in both.

    Samples are those of the first original. Every pair of kinds that a victim may be has the same weight.
    """
    target = sides[0].target
    sums, total = np.zeros((3, 2)), 0
    sizes = [np.diff(side.offsets)[chosen] for side in sides]
    samples = target.published.counts[sides[0].victims]
    for part in blocks(sizes[0] * sizes[1] * samples):
        boxes = _common_boxes(sides, chosen[part], sides[0].victims[part])
        total += len(boxes[0])
        both = boxes[0].copy()
        both[:, 0::2] = np.maximum(boxes[0][:, 0::2], boxes[1][:, 0::2])
        both[:, 1::2] = np.minimum(boxes[0][:, 1::2], boxes[1][:, 1::2])
        for row, edges in enumerate((*boxes, both)):
            length = edges[:, 1::2] - edges[:, 0::2]
            sums[row] += length[:, 1:].mean(axis=1).sum(), length[:, 0].sum()
    names = ("first", "second", "both")
    side_km = {
        f"side_km_{name}": float(value / total / 1000) if total else None
        for name, value in zip(names, sums[:, 0], strict=True)
    }
    return side_km | {
        f"duration_min_{name}": float(value / total / 60) if total else None
        for name, value in zip(names, sums[:, 1], strict=True)
    }


def _common_boxes(sides: list[_Side], chosen: NDArray[np.int64], victims: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the two boxes (half-open, seconds and metres) for each victim, pair of kinds and sample that both hold."""
    first, second = (np.diff(side.offsets)[chosen] for side in sides)
    people = sides[0].target.published
    n = first * second * people.counts[victims]
    who = spread(n)
    place = np.arange(len(who)) - offsets_of(n)[:-1][who]
    place, sample = np.divmod(place, people.counts[victims][who])
    row = people.offsets[victims][who] + sample
    held, boxes = np.ones(len(who), dtype=bool), []
    for side, number in zip(sides, np.divmod(place, second[who]), strict=True):
        kind = side.kinds[side.offsets[chosen][who] + number]
        at = _on_grid(people, row, sides[0].target, side.target)
        box = side.target.matcher.find(kind, *at)
        held &= box >= 0
        edges = side.target.matcher.boxes(np.maximum(box, 0))
        edges[:, 1::2] += 1
        edges *= np.repeat([side.target.grid.slot_s, side.target.grid.cell_m, side.target.grid.cell_m], 2)
        boxes.append(edges)
    return [edges[held] for edges in boxes]


def _on_grid(people: Any, row: NDArray[np.int64], target: Target, other: Target) -> list[NDArray[np.int64]]:
    """Return the middles of samples of one target as granules of another's grid."""
    sizes = [(target.grid.slot_s, other.grid.slot_s), *[(target.grid.cell_m, other.grid.cell_m)] * 2]
    columns = (people.t[row], people.x[row], people.y[row])
    return [
        (column.astype(np.int64) * 2 + 1) * mine // (2 * theirs)
        for column, (mine, theirs) in zip(columns, sizes, strict=True)
    ]


def _messages(row: dict[str, Any], figures: dict[str, Any]) -> tuple[str, ...]:
    found = (
        f"Suppose {row['points']} random points are known of a person who is in both releases. Then "
        f"{row['candidates_median'] or 0:,.0f} people (median) are candidates in the first and "
        f"{row['other_candidates_median'] or 0:,.0f} in the second. {row['together_median'] or 0:,.0f} are candidates "
        f"in both, and {percent(row['success'])} of victims are alone there (raw data: {percent(row['control'])})."
    )
    linked = (
        f"An adversary who links candidates whose boxes fit each other sees {row['left_median'] or 0:,.0f} people left "
        f"(median), and a single one in {percent(row['left_alone'])} of cases."
    )
    said = [found, linked]
    if figures["side_km_both"] is not None:
        said.append(
            "The intersection of a victim's boxes in both releases narrows their mean side from "
            f"{figures['side_km_first']:.1f} km to "
            f"{figures['side_km_both']:.1f} km, their mean duration from {figures['duration_min_first']:,.0f} min to "
            f"{figures['duration_min_both']:,.0f} min."
        )
    if figures["untold"]:
        said.append(
            f"For {percent(figures['untold'])} of the victims it is not known which records they are in. They do not "
            "count as together with anybody. Give both audit files: `audit`, `other_audit`."
        )
    said.append("Each release promises something about itself only. Nothing is promised about both together.")
    return tuple(said)


INTERSECTION = register(
    Attack(
        "intersection",
        intersection_attack,
        "a few random samples, and a second release",
        PointsSettings,
        needs_other=True,
        sample_bytes=32,
        box_bytes=128,
    )
)
