"""The attack `window`: the adversary knows all samples of the victim during some time, and learns others from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.attacks.knowledge import anyone, failures, percent, promised, row_of, too_few
from shoal.attacks.matching import KnownPoints, matches
from shoal.attacks.outcome import Attack, Outcome, register
from shoal.attacks.target import draw_victims
from shoal.claim import Claim
from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import blocks, distinct, spread
from shoal.settings import Settings, setting
from shoal.streams import Stream, draw_from
from shoal.units import Seconds  # noqa: TC001  pydantic needs them

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.attacks.matching import Matcher
    from shoal.attacks.target import Target
    from shoal.seen.original import Original

__all__ = ["WINDOW", "window_attack"]

_TAUS_S = (3_600, 6 * 3_600, 24 * 3_600)


class _KnownWindows(NamedTuple):
    """A window of each victim: the slots first…last, and the victim's samples inside, rows start…stop-1."""

    victims: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]


class _Learned(NamedTuple):
    """The knowledge that all candidates agree on.

    For each victim: the share of samples outside the window that all candidates hold, and how far the unbroken run of
    such samples reaches on the longer side, in slots. For each such sample: side and duration of the hull of the
    candidates' boxes, in granules.
    """

    share: NDArray[np.float64]
    run: NDArray[np.int64]
    side: NDArray[np.float64]
    slots: NDArray[np.int64]


def window_attack(
    target: Target,
    *,
    victims: int = 1000,
    seed: int = 0,
    tau: int | None = None,
    epsilon: int | None = None,
    run: Run = LOCAL,
) -> Outcome:
    """Single people out by all their samples of `tau` seconds (None: 1 h, 6 h, 24 h); measure what else is learned.

    The window starts at a random sample of the victim. Candidates hold all samples in it. They have no box wholly
    inside the window without one of these samples: the adversary knows that there are no others. The adversary learns
    what ALL candidates agree on: the share of the victim's other samples that each candidate holds in some box, the
    longest unbroken run of such samples right before or after the window (`epsilon` seconds: the share of victims
    with a longer one), and the precision: side and duration of the hull of the candidates' boxes. Control: the same
    on raw samples.
    Cost: a search per victim, and a lookup in each candidate for each sample until some candidate lacks it.
    """
    taus = _TAUS_S if tau is None else (tau,)
    chance = draw_from(seed, Stream.WINDOWS)
    drawn = draw_victims(anyone(target), victims, chance)
    people = target.published
    start = people.offsets[drawn] + (chance.random(len(drawn)) * people.counts[drawn]).astype(np.int64)
    rows, broken = [], 0
    with run.stage("attack window", 2 * len(taus)) as advance:
        for tau_s in taus:
            windows = _windows(people, drawn, start, -(-tau_s // target.grid.slot_s))
            counts, columns = _play(target, target.matcher, windows, epsilon, run)
            advance(1)
            control, raw = _play(target, target.raw, windows, epsilon, run)
            advance(1)
            beyond = columns | {f"control_{name}": value for name, value in raw.items()}
            fits = None if target.k is None else Claim("kte-cover", k=target.k, tau_s=tau_s)
            rows.append({"tau_s": tau_s, **row_of(target, counts, control), **beyond})
            broken = max(broken, too_few(target, counts, fits))
    settings = {"tau_s": tau, "epsilon_s": epsilon, "victims": victims, "seed": seed}
    said = tuple(_message(row) for row in rows)
    return Outcome("window", settings, len(drawn), rows, promised(target), said, failures(target, broken, len(drawn)))


def _windows(people: Original, victims: NDArray[np.int64], at: NDArray[np.int64], slots: int) -> _KnownWindows:
    """Return the windows of this many slots that begin with the slots of the samples `at`."""
    first = people.t[at].astype(np.int64)
    last = first + slots - 1
    user = spread(people.counts[victims])
    rows = np.arange(len(user)) + (people.offsets[victims] - offsets_of(people.counts[victims])[:-1])[user]
    inside = (people.t[rows] >= first[user]) & (people.t[rows] <= last[user])
    early = people.t[rows] < first[user]
    start = people.offsets[victims] + np.bincount(user[early], minlength=len(victims))
    return _KnownWindows(victims, first, last, start, start + np.bincount(user[inside], minlength=len(victims)))


def _play(
    target: Target, matcher: Matcher, windows: _KnownWindows, epsilon_s: int | None, run: Run
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Return the number of people who are candidates of each victim, and what is learned beyond the window."""
    query, kind = _candidates(target.published, matcher, windows, run)
    people = np.bincount(query, weights=matcher.weights[kind], minlength=len(windows.victims)).astype(np.int64)
    learned = _learn(target.published, matcher, windows, query, kind)
    slot_s, cell_m = target.grid.slot_s, target.grid.cell_m
    columns: dict[str, Any] = {
        "learned": _mean(learned.share),
        "run_h_median": _median(learned.run * slot_s / 3600),
        "run_h_mean": _mean(learned.run * slot_s / 3600),
        "side_km_median": _median(learned.side * cell_m / 1000),
        "duration_min_median": _median(learned.slots * slot_s / 60),
    }
    if epsilon_s is not None:
        columns["above_epsilon"] = _mean(learned.run * slot_s > epsilon_s)
    return people, columns


def _candidates(
    people: Original, matcher: Matcher, windows: _KnownWindows, run: Run
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the candidates as (victim, kind), sorted by victim; see `window_attack`."""
    n = windows.stop - windows.start
    rows = np.arange(int(n.sum())) + (windows.start - offsets_of(n)[:-1])[spread(n)]
    known = KnownPoints(offsets_of(n), people.t[rows], people.x[rows], people.y[rows])
    queries, kinds = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for query, kind in matches(matcher, known, run=run):
        good = np.ones(len(query), dtype=bool)
        for part in blocks(n[query]):
            good[part] = _nothing_else(matcher, windows, known, query[part], kind[part])
        queries.append(query[good])
        kinds.append(kind[good])
    return np.concatenate(queries), np.concatenate(kinds)


def _nothing_else(
    matcher: Matcher, windows: _KnownWindows, known: KnownPoints, query: NDArray[np.int64], kind: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which kinds have no box wholly inside the window without a known sample."""
    low, high = matcher.within(kind, windows.first[query], windows.last[query])
    counts = np.diff(known.offsets)[query]
    pair = spread(counts)
    point = np.arange(len(pair)) + (known.offsets[query] - offsets_of(counts)[:-1])[pair]
    box = matcher.find(kind[pair], known.t[point], known.x[point], known.y[point])
    inside = (box >= low[pair]) & (box < high[pair])
    width = int(box.max(initial=0)) + 1
    full = distinct(pair[inside] * width + box[inside]) // width
    return np.bincount(full, minlength=len(query)) >= high - low


def _learn(
    people: Original, matcher: Matcher, windows: _KnownWindows, query: NDArray[np.int64], kind: NDArray[np.int64]
) -> _Learned:
    """Find the samples outside the window that all candidates hold, for victims who have candidates."""
    counts = np.bincount(query, minlength=len(windows.victims))
    begun = offsets_of(counts)
    first, end = people.offsets[windows.victims], people.offsets[windows.victims + 1]
    outside = np.where(counts > 0, (end - first) - (windows.stop - windows.start), 0)
    victim = spread(outside)
    row = np.arange(len(victim)) + (first - offsets_of(outside)[:-1])[victim]
    row += np.where(row >= windows.start[victim], (windows.stop - windows.start)[victim], 0)
    trying, held_by_all = np.arange(len(row)), [np.empty(0, np.int64)]
    hull = np.tile(np.array([2**62, -(2**62)] * 3), (len(row), 1))
    rank = 0
    while len(trying):  # one candidate after the other, with the samples that all candidates before it hold
        at = row[trying]
        box = matcher.find(kind[begun[victim[trying]] + rank], people.t[at], people.x[at], people.y[at])
        held, rank = trying[box >= 0], rank + 1
        edges = matcher.boxes(box[box >= 0])
        hull[held, 0::2] = np.minimum(hull[held, 0::2], edges[:, 0::2])
        hull[held, 1::2] = np.maximum(hull[held, 1::2], edges[:, 1::2])
        last = counts[victim[held]] == rank
        held_by_all.append(held[last])
        trying = held[~last]
    alive = np.concatenate(held_by_all)
    common = np.zeros(len(row), dtype=bool)
    common[alive] = True
    share = np.bincount(victim[alive], minlength=len(counts))[outside > 0] / outside[outside > 0]
    run = _longest_run(people, windows, victim, row, common)[outside > 0]
    sizes = hull[alive, 1::2] - hull[alive, 0::2] + 1
    return _Learned(share, run, sizes[:, 1:].mean(axis=1), sizes[:, 0])


def _longest_run(
    people: Original,
    windows: _KnownWindows,
    victim: NDArray[np.int64],
    row: NDArray[np.int64],
    common: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return how far, in slots, the unbroken run of common samples reaches from the window, on the longer side."""
    run = np.zeros(len(windows.victims), dtype=np.int64)
    after = row >= windows.stop[victim]
    for side in (after, ~after):
        # The run ends at the row nearest to the window that is not common.
        broken = np.flatnonzero(side & ~common)
        away = np.where(side, np.where(after, row - windows.stop[victim], windows.start[victim] - 1 - row), 0)
        limit = np.full(len(run), np.iinfo(np.int64).max)
        np.minimum.at(limit, victim[broken], away[broken])
        reached = np.flatnonzero(side & common & (away < limit[victim]))
        t = people.t[row[reached]].astype(np.int64)
        far = np.where(after[reached], t - windows.last[victim[reached]], windows.first[victim[reached]] - t)
        np.maximum.at(run, victim[reached], far)
    return run


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None


def _median(values: NDArray[Any]) -> float | None:
    return float(np.median(values)) if len(values) else None


def _message(row: dict[str, Any]) -> str:
    return (
        f"Somebody who knows all that a person did during {row['tau_s'] / 3600:g} h singles out the person in "
        f"{percent(row['success'])} of cases (raw data: {percent(row['control'])}). {percent(row['learned'])} of the "
        "person's other samples are in boxes of all candidates, which together are wider than "
        f"{row['side_km_median'] or 0:.1f} km in half of all cases (raw data: {percent(row['control_learned'])}, exact)"
        "."
    )


class WindowSettings(Settings):
    """The settings of the attack `window`."""

    tau: Seconds | None = setting(
        None, unit="s", help="How long a time is known completely, e.g. 6h; by default 1, 6 and 24 h.", ge=1
    )
    epsilon: Seconds | None = setting(
        None, unit="s", help="Count the victims about whom more than this is learned before or after, e.g. 1h.", ge=0
    )


WINDOW = register(
    Attack(
        "window",
        window_attack,
        "everything that the victim did during some time",
        WindowSettings,
        sample_bytes=32,
        box_bytes=128,
    )
)
