"""The verdict on a release: what was checked and what was found, in plain sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.errors import NotVerified
from shoal.notebook import Displayed

if TYPE_CHECKING:
    from shoal.claim import Claim
    from shoal.seen.findings import Findings

__all__ = ["Verdict"]


@dataclass(frozen=True, repr=False)
class Verdict(Displayed):
    """The outcome of `verify`.

    `ok` is true if every check that could run passed, and the one of the claim did run (`verify_signature` does not run
    it). What could not run (no audit, no manifest, no file yet) is not in `checked`, and `messages` say so. `failures`
    are the kinds that failed, sorted and distinct; `checked` the kinds that ran; `figures` counts as plain numbers;
    `messages` plain sentences, of which `problems` say what failed; `codes` the same for programs
    (`cover/too-few-records`; the page on findings lists them); `not_checked` what could not run. `shown` is the
    strongest claim that the checks have shown, none if something failed: do not state more than that.
    A verdict identifies nobody: it has no label, place or time.

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
    codes: tuple[str, ...] = ()

    @classmethod
    def of(cls, findings: Findings, claim: Claim, shown: Claim | None = None) -> Verdict:
        """Return the verdict of these findings: not `ok` if nothing was checked; no claim shown if something failed."""
        ok = not findings.failures and bool(findings.checked)
        return cls(
            ok,
            tuple(sorted(findings.failures)),
            dict(findings.figures),
            claim,
            tuple(findings.checked),
            tuple(findings.messages),
            tuple(findings.problems),
            tuple(findings.skipped),
            shown if ok else None,
            tuple(findings.codes),
        )

    def __bool__(self) -> bool:
        """Whether the verdict is `ok`."""
        return self.ok

    @property
    def right(self) -> tuple[str, ...]:
        """The kinds of checks that ran and found nothing wrong."""
        return tuple(kind for kind in self.checked if kind not in self.failures)

    @property
    def result(self) -> str:
        """The verdict in a few words, the first line of each form of it.

        A release that claims nothing, and of which nothing was shown, does not hold it. A claim that is kept with a
        weaker truth than others of its name says so.
        """
        if not self.ok:
            return "DOES NOT HOLD"
        if self.shown is None and "signature" in self.checked:
            return "SIGNED WITH THE GIVEN KEY; THE CLAIM WAS NOT CHECKED"
        if "truth_level" in self.figures:
            return "HOLDS FOR GROUPS ONLY, WITH WEAKER TRUTH: a box may show where one person of a group was"
        nothing = self.claim.name == "none" and (self.shown is None or self.shown.name == "none")
        return "NOTHING IS CLAIMED" if nothing else "HOLDS"

    def summary(self) -> list[tuple[str, Any]]:
        """Return whether the release keeps what it claims, and what was checked."""
        found = [("verdict", self.result), ("claim", str(self.claim))]
        failed = [("failed", ", ".join(self.failures))] if self.failures else []
        left = [("not checked", "; ".join(self.not_checked))] if self.not_checked else []
        return [*found, *failed, ("found right", ", ".join(self.right)), *left]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that can be written as JSON."""
        return {
            "verdict": self.result,
            "ok": self.ok,
            "failures": list(self.failures),
            "figures": self.figures,
            "claim": self.claim.to_dict(),
            "checked": list(self.checked),
            "messages": list(self.messages),
            "problems": list(self.problems),
            "codes": list(self.codes),
            "not_checked": list(self.not_checked),
            "shown": None if self.shown is None else self.shown.to_dict(),
        }

    def raise_if_broken(self) -> None:
        """Raise `NotVerified` with the kinds of failure unless the verdict is `ok`."""
        if not self.ok:
            kinds = ", ".join(self.failures)
            raise NotVerified(f"the release does not keep its claim ({kinds}): " + " ".join(self.messages))
