"""A calibrated conditional logit over each victim's candidates, and how many people its posterior leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.lists import offsets_of
from shoal.seen.arrays import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Choices", "Model", "contrasts", "effective_sizes", "expected_hits", "fit", "held_out_scores", "posterior"]

_PENALTIES = (1.0, 0.1, 0.01, 0.001)  # of squared weights, strongest first
_ITERATIONS = 150
_HELD_OUT = 4  # one victim in so many is held out to choose the penalty and the temperature
_FLAT = 100.0


@dataclass(frozen=True, eq=False)
class Choices:
    """The candidates of some victims: those of victim v are `ends[v]` … `ends[v + 1] - 1`, at least one for each.

    A candidate is a kind of record; `weights` people were published as this kind and can't be told apart.
    """

    ends: NDArray[np.int64]
    weights: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends) - 1

    @cached_property
    def victim(self) -> NDArray[np.int64]:
        """The victim of each candidate."""
        return spread(np.diff(self.ends))

    def best(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the greatest score among each victim's candidates."""
        highest: NDArray[np.float64] = np.maximum.reduceat(scores, self.ends[:-1]) if len(self) else scores[:0]
        return highest

    def total(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Add up a value over each victim's candidates."""
        return np.bincount(self.victim, weights=values, minlength=len(self)).astype(np.float64)

    def take(self, victims: NDArray[np.int64]) -> tuple[Choices, NDArray[np.int64]]:
        """Return the choices of these victims, and the rows of their candidates."""
        counts = np.diff(self.ends)[victims]
        ends = offsets_of(counts)
        rows = np.arange(ends[-1]) + (self.ends[:-1][victims] - ends[:-1])[spread(counts)]
        return Choices(ends, self.weights[rows]), rows


@dataclass(frozen=True, eq=False)
class Model:
    """A model that scores candidates: linear in the contrasts, each divided by its scale, all by the temperature."""

    weights: NDArray[np.float64]
    scale: NDArray[np.float64]
    temperature: float = 1.0

    def scores(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score of each candidate."""
        return columns @ (self.weights / self.scale / self.temperature)


def contrasts(columns: NDArray[np.float64], choices: Choices) -> NDArray[np.float64]:
    """Compare each feature among a victim's candidates: its excess over the mean, its rank, and whether it is extreme.

    Input: a row for each candidate. Output: three columns for each feature. Ranks are from -½ to ½; ties share the mean
    of their ranks.

    >>> three = Choices(np.array([0, 3]), np.ones(3, dtype=np.int64))
    >>> contrasts(np.array([[5.0], [2.0], [2.0]]), three).tolist()
    [[2.0, 0.5, 1.0], [-1.0, -0.25, -1.0], [-1.0, -0.25, -1.0]]
    """
    victim, starts = choices.victim, choices.ends[:-1]
    counts = np.diff(choices.ends)
    if not len(columns):
        return np.empty((0, 3 * columns.shape[1]))
    excess = columns - (np.add.reduceat(columns, starts, axis=0) / counts[:, None])[victim]
    ranks = np.empty_like(columns)
    for column in range(columns.shape[1]):
        order = np.lexsort((columns[:, column], victim))
        ordered = columns[order, column]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (ordered[1:] != ordered[:-1]) | (victim[order[1:]] != victim[order[:-1]])
        tie = np.cumsum(new) - 1
        place = np.arange(len(order)) - starts[victim[order]]
        ranks[order, column] = (np.bincount(tie, weights=place) / np.bincount(tie))[tie]
    ranks = np.where(counts[victim, None] > 1, ranks / np.maximum(counts[victim, None] - 1, 1) - 0.5, 0.0)
    highest = columns == np.maximum.reduceat(columns, starts, axis=0)[victim]
    lowest = columns == np.minimum.reduceat(columns, starts, axis=0)[victim]
    return np.concatenate([excess, ranks, highest.astype(np.float64) - lowest], axis=1)


def posterior(scores: NDArray[np.float64], choices: Choices) -> NDArray[np.float64]:
    """Return the probability of each candidate: the softmax of the scores, weighted by the people published as it.

    >>> two = Choices(np.array([0, 2]), np.array([3, 1]))
    >>> posterior(np.zeros(2), two).tolist()
    [0.75, 0.25]
    """
    odds = choices.weights * np.exp(scores - choices.best(scores)[choices.victim])
    return odds / choices.total(odds)[choices.victim]


def expected_hits(scores: NDArray[np.float64], truth: NDArray[np.bool_], choices: Choices) -> NDArray[np.float64]:
    """Return the probability that each victim is found by an adversary who takes the best-scored record.

    Among identical records and ties one is taken at random. The probability is computed and not drawn, so that it has
    no noise.

    >>> groups = Choices(np.array([0, 2]), np.array([5, 2]))
    >>> expected_hits(np.array([1.0, 0.0]), np.array([True, False]), groups).tolist()
    [0.2]
    """
    best = scores == choices.best(scores)[choices.victim]
    return choices.total(best & truth) / choices.total(best * choices.weights)


def effective_sizes(chances: NDArray[np.float64], choices: Choices) -> NDArray[np.float64]:
    """Return 2 to the entropy of each victim's posterior over records: among how many people they are hidden in effect.

    >>> effective_sizes(np.ones(1), Choices(np.array([0, 1]), np.array([5]))).round(9).tolist()
    [5.0]
    """
    safe = np.where(chances > 0, chances, 1.0)
    return np.exp2(-choices.total(safe * np.log2(safe / choices.weights) * (chances > 0)))


def fit(columns: NDArray[np.float64], truth: NDArray[np.bool_], choices: Choices) -> Model:
    """Fit a model of which candidate is the own record, from victims whose own record is known.

    Input: the contrasts, and which candidate is the own record. Victims whose own record is not a candidate are left
    out. The penalty and the temperature (the scores are divided by it) are those with the greatest log-likelihood of
    held-out victims.
    Output: a Model. Its scores are all zero (a guess) if that explains the held-out victims as well, to within a
    standard error. Guarantee: deterministic. Cost: five penalised maximum-likelihood fits by L-BFGS.
    """
    useful = np.flatnonzero((choices.total(truth) > 0) & (np.diff(choices.ends) > 1))
    choices, rows = choices.take(useful)
    columns, truth = columns[rows], truth[rows]
    scale = np.maximum(columns.std(axis=0), 1e-9) if len(rows) else np.ones(columns.shape[1])
    nothing = Model(np.zeros(columns.shape[1]), scale)
    if len(choices) < 2 * _HELD_OUT:
        return nothing
    apart = np.arange(len(choices)) % _HELD_OUT == 0
    (seen, seen_rows), (kept, kept_rows) = (choices.take(np.flatnonzero(side)) for side in (~apart, apart))
    weights, tried = nothing.weights, []
    for penalty in _PENALTIES:
        weights = _maximise(columns[seen_rows] / scale, truth[seen_rows], seen, penalty, weights)
        scores = Model(weights, scale).scores(columns[kept_rows])
        temperature = _temperature(scores, truth[kept_rows], kept)
        tried.append((_surprises(scores / temperature, truth[kept_rows], kept), penalty, temperature, weights))
    surprises, penalty, temperature, weights = min(tried, key=lambda one: one[0].mean())
    learned = _surprises(np.zeros(len(kept_rows)), truth[kept_rows], kept) - surprises
    if learned.mean() <= learned.std() / np.sqrt(len(learned)):
        return nothing
    weights = _maximise(columns / scale, truth, choices, penalty, weights)
    return replace(nothing, weights=weights, temperature=temperature)


def held_out_scores(
    columns: NDArray[np.float64], truth: NDArray[np.bool_], choices: Choices, fold: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Score every victim's candidates by a model that was fitted to the victims of the other folds only.

    Victims of fold -1 are only learned from; their scores are 0.
    """
    scores = np.zeros(len(columns))
    for number in range(int(fold.max(initial=-1)) + 1):
        seen, rows = choices.take(np.flatnonzero(fold != number))
        model = fit(columns[rows], truth[rows], seen)
        _, rows = choices.take(np.flatnonzero(fold == number))
        scores[rows] = model.scores(columns[rows])
    return scores


def _maximise(
    columns: NDArray[np.float64],
    truth: NDArray[np.bool_],
    choices: Choices,
    penalty: float,
    start: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the weights with the greatest penalised likelihood."""
    from scipy.optimize import minimize

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = columns @ weights
        slope = columns.T @ (posterior(scores, choices) - truth) / len(choices)
        lost = float(_surprises(scores, truth, choices).mean())
        return lost + penalty * float(weights @ weights), slope + 2 * penalty * weights

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS})
    weights: NDArray[np.float64] = found.x
    return weights


def _surprises(scores: NDArray[np.float64], truth: NDArray[np.bool_], choices: Choices) -> NDArray[np.float64]:
    """Return -log of the posterior of each victim's own record."""
    best = choices.best(scores)
    odds = choices.total(choices.weights * np.exp(scores - best[choices.victim]))
    true = scores[truth] + np.log(choices.weights[truth])
    surprises: NDArray[np.float64] = np.log(odds) + best - true
    return surprises


def _temperature(scores: NDArray[np.float64], truth: NDArray[np.bool_], choices: Choices) -> float:
    """Return the number to divide scores by so that the posterior is calibrated."""
    from scipy.optimize import minimize_scalar

    def loss(log: float) -> float:
        return float(_surprises(scores / np.exp(log), truth, choices).mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-np.log(5), np.log(_FLAT)), method="bounded").x))
