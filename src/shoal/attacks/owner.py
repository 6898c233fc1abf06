"""The attack `owner`: an adversary who knows a person's whole trajectory looks for the person's own record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from shoal.attacks.features import victim_features
from shoal.attacks.knowledge import anyone, percent, promised
from shoal.attacks.matching import KnownPoints
from shoal.attacks.outcome import Attack, Outcome, crowd, rate, register
from shoal.attacks.posterior import Choices, contrasts, effective_sizes, expected_hits, held_out_scores, posterior
from shoal.attacks.rivals import rival_features
from shoal.attacks.target import draw_victims
from shoal.lists import offsets_of, take_lists
from shoal.run import LOCAL, Run
from shoal.seen.arrays import spread
from shoal.seen.cover import cover_pairs
from shoal.settings import Settings, setting
from shoal.streams import Stream, draw_from

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.attacks.features import Features
    from shoal.attacks.target import Target

__all__ = ["OWNER", "owner_attack"]

Knowledge = Literal["victim", "everybody"]

_LEARNERS = 2_000  # people the model learns from, victims of other folds included, if there are so many
_FOLDS = 4
_DOUBT = 3.1  # standard deviations above the promise that count as broken: by chance once in a thousand

# Simple rules: take the candidate with the greatest (+1) or least (-1) of a feature.
_RULES: tuple[tuple[str, str, int], ...] = (
    ("least cost to the victim", "owner_cost", -1),
    ("the victim is in its cheap boxes", "cost_ratio", -1),
    ("fewest better cuts for the victim", "savings_shrinking", -1),
    ("most faces touched", "faces_time_by_sample", 1),
    ("tightest boxes", "tight", 1),
    ("most boxes", "boxes", 1),
    ("fewest people covered", "reach", -1),
    ("most faces the victim's alone", "faces_alone", 1),
    ("merged again, least regret", "regret", -1),
)


class _Game(NamedTuple):
    """The candidates of the victims and of the people to learn from: their kinds, and which one is the own record."""

    users: NDArray[np.int64]
    kinds: NDArray[np.int64]
    truth: NDArray[np.bool_]
    choices: Choices
    fold: NDArray[np.int64]


def owner_attack(
    target: Target, *, victims: int = 1000, seed: int = 0, knows: Knowledge = "victim", run: Run = LOCAL
) -> Outcome:
    """Find each victim's own record among those that cover them, knowing their samples, our code and all parameters.

    Input: a target with its audit (for learning and scoring), how many victims to draw, the seed of the draw, and
    whether the adversary knows the `victim` only or `everybody`'s samples. A candidate is a record that covers the
    victim two-way; identical records share their probability equally.
    Output: a row for each simple rule, and one for a learned model: the share of own records found, with its
    95 % interval; ties count with their probability. The model is a conditional logit over each victim's candidates.
    It is fitted to other people than those it is tried on. `effective_k` is 2 to the entropy of its calibrated
    posterior.
    Guarantee: deterministic for a seed; identical groups give exactly 1/size. `failures` if a release that promises
    1/k (k-anonymity, k-concealment) is beaten beyond chance. Cost: a search of the records of some 2,000 people, passes
    over these records and, with `everybody`, over all people they cover; it does not grow with the crowd.
    """
    target.require_audit("owner")
    with run.stage("attack owner", 3) as advance:
        drawn, game = _play(target, victims, seed, run)
        advance(1)
        features = _features(target, game, knows, run)
        advance(1)
        columns = contrasts(np.stack(list(features.values()), axis=1), game.choices)
        scores = held_out_scores(columns, game.truth, game.choices, game.fold)
        advance(1)
    judged, rows = game.choices.take(np.flatnonzero(game.fold >= 0))
    guess = {name: sign * features[feature][rows] for name, feature, sign in _RULES if feature in features}
    guess = {"any candidate": np.zeros(len(rows)), **guess, "learned": scores[rows]}
    control = _control(target, drawn)
    table = [_row(name, values, game.truth[rows], judged, len(drawn), control) for name, values in guess.items()]
    figures = promised(target) | {"knows": knows} | _hidden(target, scores[rows], game.truth[rows], judged, len(drawn))
    settings = {"victims": victims, "seed": seed, "knows": knows}
    said, failures = _messages(target, table, figures), _failures(target, table[-1])
    return Outcome("owner", settings, len(drawn), table, figures, said, failures)


def _play(target: Target, victims: int, seed: int, run: Run) -> tuple[NDArray[np.int64], _Game]:
    """Draw the victims and others to learn from, and find their candidates."""
    chance = draw_from(seed, Stream.OWNERS)
    eligible = anyone(target)
    drawn = draw_victims(eligible, victims, chance)
    others = chance.permutation(np.setdiff1d(eligible, drawn))[: max(0, _LEARNERS - len(drawn))]
    pool = np.sort(np.concatenate([drawn, others]))
    users, kinds = cover_pairs(target.published, target.records.unique, pool, run=run)
    order = np.lexsort((kinds, users))
    users, kinds = users[order], kinds[order]
    found, counts = np.unique(users, return_counts=True)
    fold = np.where(np.isin(found, drawn), chance.permutation(len(found)) % _FOLDS, -1)
    own = target.own if target.own is not None else np.full(len(target.people), -1)
    truth = target.records.groups[own[users]] == kinds
    choices = Choices(offsets_of(counts), target.records.unique.weights[kinds])
    return drawn, _Game(users, kinds, truth, choices, fold)


def _features(target: Target, game: _Game, knows: Knowledge, run: Run) -> Features:
    people, records = target.published, target.records.unique
    features = victim_features(people, records, game.users, game.kinds)
    if knows == "everybody":
        features |= rival_features(people, records, game.users, game.kinds, run=run)
    return features


def _row(
    name: str, scores: NDArray[np.float64], truth: NDArray[np.bool_], choices: Choices, victims: int, control: float
) -> dict[str, Any]:
    hits = expected_hits(scores, truth, choices)
    candidates = choices.total(choices.weights.astype(np.float64)).astype(np.int64)
    row: dict[str, Any] = {"adversary": name, "victims": victims, **rate("success", float(hits.sum()), victims)}
    return row | crowd(candidates) | rate("control", control, victims)


def _control(target: Target, drawn: NDArray[np.int64]) -> float:
    """Count the victims found in raw data: a victim who has the same samples as n-1 others counts 1/n."""
    people = target.people
    offsets, rows = take_lists(people.offsets, drawn)
    ends, holders = target.raw.holders(KnownPoints(offsets, people.t[rows], people.x[rows], people.y[rows]))
    victim = spread(np.diff(ends))
    same = people.counts[holders] == people.counts[drawn[victim]]
    alike = np.bincount(victim[same], minlength=len(drawn))
    return float((1 / alike[alike > 0]).sum())


def _hidden(
    target: Target, scores: NDArray[np.float64], truth: NDArray[np.bool_], choices: Choices, victims: int
) -> dict[str, Any]:
    """Return among how many people the victims are hidden in effect, by the learned posterior, and how good that is.

    `surprise_k` is 2 to the mean of -log₂ of the posterior of the own record: an overconfident posterior can't make it
    small. `confidence` is the mean posterior of the record guessed: where it equals the success, the posterior is
    calibrated.
    """
    chances = posterior(scores, choices)
    sizes = effective_sizes(chances, choices)
    each = chances / choices.weights
    told = each[truth]
    return {
        "effective_k_mean": float(sizes.mean()) if len(sizes) else None,
        "effective_k_median": float(np.median(sizes)) if len(sizes) else None,
        "effective_k_below_half": float((sizes < target.k / 2).mean()) if target.k and len(sizes) else None,
        "surprise_k": float(np.exp2(-np.log2(np.maximum(told, 1e-300)).mean())) if len(told) else None,
        "confidence": float(choices.best(each).sum() / victims),
        "own_not_among_candidates": (victims - int(truth.sum())) / victims,
    }


def _failures(target: Target, learned: dict[str, Any]) -> tuple[str, ...]:
    """Return a sentence if a release that promises 1/k does not keep it; else nothing."""
    promise, success, victims = target.promise, learned["success"], learned["victims"]
    if promise is None or target.claim.name not in ("k-anonymity", "k-concealment"):
        return ()
    if success <= promise + _DOUBT * np.sqrt(promise * (1 - promise) / victims):
        return ()
    return (
        f"Own records were found in {percent(success)} of cases, more than the {percent(promise)} that 1/k allows.",
    )


def _messages(target: Target, rows: list[dict[str, Any]], figures: dict[str, Any]) -> tuple[str, ...]:
    learned = rows[-1]
    rule = max(rows[:-1], key=lambda row: row["success"])
    whom = "everybody" if figures["knows"] == "everybody" else "the victim"
    low, high = (percent(learned[f"success_{edge}"]) for edge in ("low", "high"))
    at_most = f"; 1/k is {percent(target.promise)}" if target.promise is not None else ""
    told = (
        f"An adversary who knows all samples of {whom}, and has learned from similar data, finds a person's own record "
        f"in {percent(learned['success'])} of cases (95 %: {low} to {high}){at_most}. In raw data: "
        f"{percent(learned['control'])}."
    )
    said = [told, f"The best simple rule ({rule['adversary']}) finds it in {percent(rule['success'])}."]
    if figures["effective_k_mean"] is not None:
        mean, median = figures["effective_k_mean"], figures["effective_k_median"]
        half = figures["effective_k_below_half"]
        below = f"; below k/2 for {percent(half)} of victims" if half is not None else ""
        said.append(f"Effective k: {mean:.2f} on average, {median:.2f} in the median{below}.")
    if target.claim.name == "cover" and target.promise is not None and learned["success_low"] > target.promise:
        said.append(f"Cover by {target.k} records does not hide whose record is whose; identical groups do.")
    return tuple(said)


class OwnerSettings(Settings):
    """The settings of the attack `owner`."""

    knows: Knowledge = setting("victim", help="Whose samples are known; by default only the victim's.")


OWNER = register(
    Attack(
        "owner",
        owner_attack,
        "the victim's whole trajectory, and our code",
        OwnerSettings,
        needs_audit=True,
        sample_bytes=56,
        box_bytes=24,
    )
)
