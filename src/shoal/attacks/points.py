"""The attack `points`: look for the records that fit a few random samples of the victim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.attacks.knowledge import anyone, failures, first_known, percent, promised, row_of, shuffled, too_few
from shoal.attacks.matching import count_people
from shoal.attacks.outcome import Attack, Outcome, register
from shoal.attacks.target import draw_victims
from shoal.claim import Claim
from shoal.run import LOCAL, Run
from shoal.settings import Settings, setting
from shoal.streams import Stream, draw_from

if TYPE_CHECKING:
    from shoal.attacks.target import Target

__all__ = ["POINTS", "points_attack"]

_MOST = 10


def points_attack(
    target: Target, *, victims: int = 1000, seed: int = 0, points: int | None = None, run: Run = LOCAL
) -> Outcome:
    """Single people out by `points` random samples (None: a row for each of 1…10), place and time to the granule.

    Input: a target, how many victims to draw, the seed of all draws. Output: for each number of points the share of
    victims with one candidate only, and the numbers of candidates. Of a victim with fewer samples all are known.
    p points are the first p of the same draw. Control: the same points among everybody's raw samples.
    Cost: a search in an index of boxes per victim and row, and one sort of all raw samples.
    """
    chance = draw_from(seed, Stream.POINTS)
    drawn = draw_victims(anyone(target), victims, chance)
    known = shuffled(target.published, drawn, chance)
    fits = None if target.k is None else Claim("cover", k=target.k)
    rows, broken = [], 0
    numbers = range(1, _MOST + 1) if points is None else [points]
    with run.stage("attack points", len(numbers)) as advance:
        for number in numbers:
            some = first_known(known, number)
            people = count_people(target.matcher, some, run=run)
            control = count_people(target.raw, some, run=run)
            rows.append({"points": number, **row_of(target, people, control)})
            broken = max(broken, too_few(target, people, fits))
            advance(1)
    settings = {"points": points, "victims": victims, "seed": seed}
    return Outcome(
        "points", settings, len(drawn), rows, promised(target), _messages(rows), failures(target, broken, len(drawn))
    )


def _messages(rows: list[dict[str, float]]) -> tuple[str, ...]:
    row = next((row for row in rows if row["points"] == 4), rows[-1])
    said = (
        f"Somebody who knows {row['points']} random points of a person, place and time, singles out the person in "
        f"{percent(row['success'])} of cases; in raw data in {percent(row['control'])}."
    )
    return (said,)


class PointsSettings(Settings):
    """The settings of the attack `points`."""

    points: int | None = setting(None, help="How many samples are known; by default several numbers.", ge=1)


POINTS = register(
    Attack(
        "points",
        points_attack,
        "a few random samples of the victim, place and time",
        PointsSettings,
        sample_bytes=32,
        box_bytes=128,
    )
)
