"""The declaration of an attack, the registry, and the outcome: how often the adversary won, also in raw data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.intervals import wilson
from shoal.notebook import Displayed
from shoal.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from shoal.attacks.target import Target
    from shoal.run import Run

__all__ = ["ATTACKS", "Attack", "NoSettings", "Outcome", "crowd", "rate", "register"]


@dataclass(frozen=True, repr=False)
class Outcome(Displayed):
    """The outcome of an attack.

    `settings` are the settings of the attack, and `victims` is the number of people it was tried on. `rows` is the
    table, with one row for each amount of knowledge. A row holds the share of victims who were found with its 95 %
    interval, the number of candidates, and the same share on raw data (`control`). `figures` are about the whole
    attack; they include `k` and `promise` (1/k). `messages` are the results in plain sentences. `failures` are
    sentences about promises that the release broke.

    An outcome identifies nobody: it has no label, place or time, only counts and shares over victims.

    >>> Outcome("points", {}, 9, [{"points": 4, "success": 0.0}]).to_dict()["rows"][0]["points"]
    4
    """

    attack: str
    settings: dict[str, Any]
    victims: int
    rows: list[dict[str, Any]]
    figures: dict[str, Any] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    def summary(self) -> list[tuple[str, Any]]:
        """Return the attack, whether the promise was kept, and the table's size."""
        return [("attack", self.attack), ("promise kept", self.ok), ("victims", self.victims), ("rows", len(self.rows))]

    @property
    def ok(self) -> bool:
        """Whether the release kept what it promises, as far as this attack can tell."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that can be written as JSON."""
        return {
            "attack": self.attack,
            "ok": self.ok,
            "settings": self.settings,
            "victims": self.victims,
            "rows": self.rows,
            "figures": self.figures,
            "messages": list(self.messages),
            "failures": list(self.failures),
        }


class NoSettings(Settings):
    """The settings of an attack that has none of its own."""


@dataclass(frozen=True)
class Attack:
    """The declaration of an attack; the registry, the command line and the errors are derived from it.

    `run(target, *, victims, seed, run, **settings)` plays the adversary. `knows` says what the adversary knows, in
    plain words. `settings` is the class of the settings that `run` takes besides the common ones, as plain numbers.
    `layouts` are those of the releases that it can be played on; `all` plays it on the first of them. `needs_audit`
    and `needs_other` say that it can't be played without the audit file or a second release. `on_traces` says that it
    uses places and times as they are: it is played on a `Pairs` of traces and published points; other attacks are
    played on a `Target` of boxes. `sample_bytes` and `box_bytes` are the memory that it takes at most for each sample
    of the original and each box of the release, besides what any attack takes.
    """

    name: str
    run: Callable[..., Outcome]
    knows: str
    settings: type[Settings] = NoSettings
    layouts: tuple[str, ...] = ("boxes",)
    needs_audit: bool = False
    needs_other: bool = False
    on_traces: bool = False
    sample_bytes: int = 0
    box_bytes: int = 0

    @property
    def takes(self) -> set[str]:
        """The names of what `run` takes besides the common settings: its own and, if it needs one, the other target."""
        return {*self.settings.model_fields, "other"} if self.needs_other else {*self.settings.model_fields}

    def require_room(self, targets: Sequence[Target], run: Run) -> None:
        """Check that the attack on open targets fits into the memory of the run; raises TooLarge."""
        samples = sum(len(one.people.t) for one in targets)
        boxes = sum(len(one.records.unique.boxes) for one in targets)
        needed = _BLOCK_BYTES + self.sample_bytes * samples + self.box_bytes * boxes
        advice = "allow more (`memory`), or make and attack a release of fewer people"
        run.require_room(needed, f"the attack {self.name}", advice, held=sum(one.nbytes for one in targets))

    def own(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return this attack's settings among some values, checked, as plain numbers, and with the defaults."""
        given = {name: value for name, value in values.items() if value is not None}
        return self.settings(**{name: given[name] for name in self.settings.model_fields if name in given}).model_dump()


_BLOCK_BYTES = 64_000_000  # of the blocks that any attack works in

ATTACKS: dict[str, Attack] = {}


def register(attack: Attack) -> Attack:
    """Register an attack, so that `shoal.attack` and the command line know it."""
    ATTACKS[attack.name] = attack
    return attack


def rate(name: str, successes: float, trials: int) -> dict[str, float | None]:
    """Return a share and its 95 % interval as columns of a row; the share is None if nothing was tried.

    >>> sorted(rate("control", 9, 10))
    ['control', 'control_high', 'control_low']
    """
    low, high = wilson(successes, trials)
    share = float(successes) / trials if trials else None
    return {name: share, f"{name}_low": low, f"{name}_high": high}


def crowd(counts: NDArray[np.int64], name: str = "candidates") -> dict[str, float | int | None]:
    """Return the least, median and mean number of people (None where there are no numbers) as columns of a row.

    >>> crowd(np.array([5, 7, 12]))
    {'candidates_min': 5, 'candidates_median': 7.0, 'candidates_mean': 8.0}
    """
    if not len(counts):
        return dict.fromkeys((f"{name}_min", f"{name}_median", f"{name}_mean"))
    return {
        f"{name}_min": int(counts.min()),
        f"{name}_median": float(np.median(counts)),
        f"{name}_mean": float(counts.mean()),
    }
