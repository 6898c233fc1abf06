"""Claim: the privacy guarantee that a release promises, as a typed value."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from shoal.errors import SettingsError
from shoal.units import INT32

__all__ = ["CLAIMS", "Claim"]

CLAIMS = (
    "k-anonymity",
    "k-concealment",
    "cover",
    "kte-anonymity",
    "kte-cover",
    "geo-indistinguishability",
    "none",
)
# What each claim must say, and what it may say besides.
_SAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(CLAIMS[:3], (("k",), ())),
    "kte-anonymity": (("k", "tau_s", "epsilon_s"), ()),
    "kte-cover": (("k", "tau_s"), ("epsilon_s", "leakage_share")),
    "geo-indistinguishability": (("epsilon_per_m",), ("total_per_m",)),
    "none": ((), ("why",)),
}
_COUNTS = ("k", "tau_s", "epsilon_s")
_WORDS: dict[str, tuple[str, str]] = {
    "k-anonymity": (
        "Every record has at least {k} identical copies. Everyone's samples are inside the record of their group.",
        "Learn what a whole group has in common, and that somebody is in the data at all.",
    ),
    "k-concealment": (
        "Everyone is inside at least {k} records of at least {k} people each. Each of them may be the person's own.",
        "Intersect a person's {k} records: together they reveal more than each of them alone.",
    ),
    "cover": (
        "Everyone's samples are inside at least {k} records, and every box of these records holds one of the samples.",
        "Often find out which of the {k} records is a person's own, and intersect the records to regain precision.",
    ),
    "kte-anonymity": (
        "If all of a person's samples during {tau} are known, {k} records fit; they agree on at most {epsilon} more.",
        "Find a person with two separate sightings, or with knowledge of more than {tau}.",
    ),
    "kte-cover": (
        "If all of a person's samples during {tau} are known, at least {k} records fit.",
        "Follow a person for longer wherever all records that fit agree{share}, and combine two separate sightings.",
    ),
    "geo-indistinguishability": (
        (
            "Every published place is drawn around the true one. It is at most exp({epsilon_per_m}) times as likely "
            "for one true place as for another one metre away."
        ),
        "Average the noise over many samples at one place, which finds it. The loss adds up over the samples{total}.",
    ),
    "none": ("Nothing is promised{why}.", "Do anything that the published data allows."),
}


@dataclass(frozen=True)
class Claim:
    """The privacy guarantee that a release promises.

    `CLAIMS` lists the names, the first three from the strongest to the weakest.

    `k-anonymity(k)`: every record has at least k identical copies, for a group of at least k people.

    `k-concealment(k)`: everyone is inside at least k records of at least k people each, and each of these records may
    be the person's own.

    `cover(k)`: everyone's samples are inside at least k records, and every box of these records holds one of the
    samples.

    `kte-anonymity(k, τ, ε)`: the same as cover, for the samples in any window of length `tau_s`. All those records
    together reveal at most `epsilon_s` before and after the window.

    `kte-cover(k, τ)`: as `kte-anonymity`, but without a limit on what is revealed outside the window. `leakage_share`
    is the measured share of windows that reveal more than `epsilon_s`.

    `geo-indistinguishability(ε)`: noise of `epsilon_per_m` for each point; `total_per_m` for the person with the most.

    `none`: nothing is promised; `why` gives the reason.

    Raises SettingsError if a value is missing, out of range, or does not belong to the claim.

    >>> str(Claim("cover", k=3)), str(Claim("none", why="research"))
    ('cover(3)', 'none (research)')
    >>> str(Claim("kte-anonymity", k=2, tau_s=3600, epsilon_s=1800))
    'kte-anonymity(2, 60min, 30min)'
    """

    name: str
    k: int | None = None
    why: str | None = None
    tau_s: int | None = None
    epsilon_s: int | None = None
    leakage_share: float | None = None
    epsilon_per_m: float | None = None
    total_per_m: float | None = None

    def __post_init__(self) -> None:
        if self.name not in CLAIMS:
            raise SettingsError(f"the claim must be one of {', '.join(CLAIMS)}")
        needed, possible = _SAYS[self.name]
        said = {field.name for field in fields(self)[1:] if getattr(self, field.name) is not None}
        if not set(needed) <= said:
            raise SettingsError(f"the claim {self.name} must say {' and '.join(needed)}")
        if not said <= {*needed, *possible}:
            raise SettingsError(f"the claim {self.name} takes only {' and '.join([*needed, *possible]) or 'a name'}")
        if not all(_fits(name, getattr(self, name)) for name in said):
            raise SettingsError(f"the claim {self.name} has a value out of range or of another kind")
        if self.leakage_share is not None and self.epsilon_s is None:
            raise SettingsError("a claim that says how many windows leak must say beyond which epsilon_s")

    def __str__(self) -> str:
        if self.name == "none":
            return f"{self.name} ({self.why})" if self.why else self.name
        said = {
            "k": self.k,
            "tau_s": _duration(self.tau_s),
            "epsilon_s": _duration(self.epsilon_s),
            "epsilon_per_m": None if self.epsilon_per_m is None else f"{self.epsilon_per_m:.4g}/m",
            "total_per_m": None if self.total_per_m is None else f"{self.total_per_m:.4g}/m in all",
        }
        optional = ["total_per_m"] if self.total_per_m is not None else []
        return f"{self.name}({', '.join(str(said[name]) for name in [*_SAYS[self.name][0], *optional])})"

    @classmethod
    def of(cls, name: str, /, **values: Any) -> Claim:
        """Return the claim of that name with the given values that belong to it.

        >>> str(Claim.of("cover", k=3, tau_s=3600))
        'cover(3)'
        """
        part = {word for words in _SAYS.get(name, ((), ())) for word in words}
        return cls(name, **{key: value for key, value in values.items() if key in part})

    def to_dict(self) -> dict[str, Any]:
        """Return the claim as a dictionary, as it is written into the file."""
        return {key: value for key, value in vars(self).items() if value is not None}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Claim:
        """Read a claim from the dictionary in the file; entries that do not belong to the claim are ignored.

        Raises ValueError if the dictionary is not a claim.

        >>> Claim.from_dict({"name": "cover", "k": 3, "note": "x"})
        Claim(name='cover', k=3, ...)
        """
        try:
            return cls.of(str(values.get("name", "none")), **{k: v for k, v in values.items() if k != "name"})
        except SettingsError as error:
            raise ValueError(str(error)) from None

    def implies(self, other: Claim) -> bool:
        """Return whether every release that keeps this claim also keeps the other one, which then is not stronger.

        >>> Claim("cover", k=5).implies(Claim("cover", k=3)), Claim("cover", k=5).implies(Claim("k-anonymity", k=3))
        (True, False)
        >>> Claim("cover", k=5).implies(Claim("kte-cover", k=5, tau_s=60))
        True
        """
        if other.name == "none":
            return True
        if CLAIMS.index(self.name) <= CLAIMS.index("cover"):  # holds for any subset of a person's samples
            weaker = (*CLAIMS[CLAIMS.index(self.name) : CLAIMS.index("cover") + 1], "kte-cover")
            return other.name in weaker and other.leakage_share is None and _least(self.k) >= _least(other.k)
        if self.name in ("kte-anonymity", "kte-cover"):
            return self._implies_windows(other)
        return (
            self.name == other.name
            and _least(self.k) >= _least(other.k)
            and _most(self.epsilon_per_m) <= _most(other.epsilon_per_m)
            and _most(self.total_per_m) <= _most(other.total_per_m)
        )

    def _implies_windows(self, other: Claim) -> bool:
        """Return whether this window claim implies the other: τ at least as long, leakage only compared for equal τ."""
        if other.name not in ("kte-anonymity", "kte-cover") or _least(self.k) < _least(other.k):
            return False
        covered = _least(self.tau_s) >= _least(other.tau_s)
        if other.name == "kte-cover" and other.leakage_share is None:
            return covered
        bounded = self.tau_s == other.tau_s and _most(self.epsilon_s) <= _most(other.epsilon_s)
        share = 0.0 if self.name == "kte-anonymity" else self.leakage_share
        return bounded and share is not None and share <= (other.leakage_share or 0.0)

    @property
    def promise(self) -> str:
        """What the claim promises, in a sentence."""
        return self._worded(0)

    @property
    def still_possible(self) -> str:
        """What an adversary can still do, in a sentence."""
        return self._worded(1)

    def _worded(self, side: int) -> str:
        share = "" if self.leakage_share is None else f" ({100 * self.leakage_share:.2g} % of windows: more than {{}})"
        return _WORDS[self.name][side].format(
            k=self.k,
            tau=_duration(self.tau_s),
            epsilon=_duration(self.epsilon_s),
            share=share.format(_duration(self.epsilon_s)),
            epsilon_per_m=self.epsilon_per_m,
            total="" if self.total_per_m is None else f", to {self.total_per_m} for the person with the most",
            why=f" ({self.why})" if self.why else "",
        )


def _fits(name: str, value: Any) -> bool:
    if name == "why":
        return isinstance(value, str)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if name in _COUNTS:
        return isinstance(value, int) and 1 <= value <= INT32
    return 0 <= value <= 1 if name == "leakage_share" else 0 < value < math.inf


def _duration(seconds: int | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds // 60}min" if seconds % 60 == 0 else f"{seconds}s"


def _least(value: int | None) -> int:
    return 0 if value is None else value


def _most(value: float | None) -> float:
    return math.inf if value is None else value
