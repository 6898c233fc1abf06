"""Verdict: what was checked, what was found, in words that a privacy officer can read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shoal.errors import NotVerified
from shoal.notebook import Displayed

if TYPE_CHECKING:
    from shoal.claim import Claim

__all__ = ["Findings", "Verdict"]


@dataclass(frozen=True, repr=False)
class Verdict(Displayed):
    """The outcome of `verify`.

    `ok` is true if every check that could run passed, and the one of the claim did run. What could not run (no
    audit, no manifest, no file yet) is not in `checked`, and `messages` say so. `failures` are the kinds that
    failed, sorted and distinct; `checked` the kinds that ran; `figures` counts as plain numbers; `messages`
    plain sentences, of which `problems` say what failed; `not_checked` what could not run. `shown` is the strongest
    claim that the checks have shown, none if something failed: nobody should say more than that.
    Nothing in it says whose data is concerned: no label, place or time.

    >>> from shoal.claim import Claim
    >>> Verdict(True, (), {"users": 9}, Claim("cover", k=3), ("cover",), ()).to_dict()["claim"]
    {'name': 'cover', 'k': 3}
    """

    ok: bool
    failures: tuple[str, ...]
    figures: dict[str, Any]
    claim: Claim
    checked: tuple[str, ...]
    messages: tuple[str, ...]
    problems: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    shown: Claim | None = None

    def summary(self) -> list[tuple[str, Any]]:
        """Return whether the release holds what it claims, and what was checked."""
        found = [("verdict", "HOLDS" if self.ok else "DOES NOT HOLD"), ("claim", str(self.claim))]
        failed = [("failed", ", ".join(self.failures))] if self.failures else []
        left = [("not checked", "; ".join(self.not_checked))] if self.not_checked else []
        return [*found, *failed, ("checked", ", ".join(self.checked)), *left]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that can be written as JSON."""
        return {
            "ok": self.ok,
            "failures": list(self.failures),
            "figures": self.figures,
            "claim": self.claim.to_dict(),
            "checked": list(self.checked),
            "messages": list(self.messages),
            "problems": list(self.problems),
            "not_checked": list(self.not_checked),
            "shown": None if self.shown is None else self.shown.to_dict(),
        }

    def raise_if_broken(self) -> None:
        """Raise `NotVerified` with the kinds of failure unless all is well."""
        if not self.ok:
            kinds = ", ".join(self.failures)
            raise NotVerified(f"the release does not hold what it claims ({kinds}): " + " ".join(self.messages))


@dataclass
class Findings:
    """What the checks have found so far."""

    failures: set[str] = field(default_factory=set)
    checked: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def ran(self, kind: str) -> None:
        """Note that a check ran."""
        if kind not in self.checked:
            self.checked.append(kind)

    def fail(self, kind: str, message: str) -> None:
        """Note a failure of a check that ran."""
        self.ran(kind)
        self.failures.add(kind)
        if message not in self.problems:
            self.problems.append(message)
        self.say(message)

    def fail_if(self, broken: Any, kind: str, message: str) -> None:
        """Note that a check ran, and that it failed if `broken` is true or a positive count."""
        self.ran(kind)
        if broken:
            self.fail(kind, message)

    def say(self, message: str) -> None:
        """Add a sentence, once."""
        if message not in self.messages:
            self.messages.append(message)

    def skip(self, what: str) -> None:
        """Note what could not be checked; the sentence that says what holds names it."""
        self.skipped.append(what)

    def verdict(self, claim: Claim, shown: Claim | None = None) -> Verdict:
        """Close the book; a book in which nothing was checked is not a pass, and one with a failure shows nothing."""
        ok = not self.failures and bool(self.checked)
        return Verdict(
            ok,
            tuple(sorted(self.failures)),
            dict(self.figures),
            claim,
            tuple(self.checked),
            tuple(self.messages),
            tuple(self.problems),
            tuple(self.skipped),
            shown if ok else None,
        )
