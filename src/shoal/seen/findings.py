"""Findings: the results of reading and checking a release so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.seen.codes import NOT_CHECKED, NOTES, PROBLEMS

__all__ = ["Finding", "Findings"]


class Finding(NamedTuple):
    """Something that was found: its code, one of the keys of `PROBLEMS` or `NOTES`, and the numbers it is about."""

    code: str
    facts: dict[str, Any]

    @property
    def is_problem(self) -> bool:
        """Whether this is the failure of a check."""
        return self.code in PROBLEMS

    @property
    def kind(self) -> str:
        """The kind of check that a problem belongs to: the part of its code before the slash."""
        return self.code.partition("/")[0]

    def __str__(self) -> str:
        return (PROBLEMS if self.is_problem else NOTES)[self.code].format(**self.facts)


@dataclass
class Findings:
    """The results so far: the kinds of checks that ran, what was found, what could not be checked, and figures.

    They identify nobody: they have no label, place or time.

    >>> findings = Findings()
    >>> findings.fail_if(0, "audit/no-owner")
    >>> findings.fail_if(3, "cover/too-few-records", k=5)
    >>> findings.checked, findings.codes, findings.problems
    (['audit', 'cover'], ['cover/too-few-records'], ['3 users are hidden by fewer than 5 records.'])
    """

    found: list[Finding] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def ran(self, kind: str) -> None:
        """Note that a check ran."""
        if kind not in self.checked:
            self.checked.append(kind)

    def fail(self, code: str, **facts: Any) -> None:
        """Note that a check ran and failed; `facts` are the numbers in the sentence of that code."""
        problem = Finding(code, facts)
        self.ran(problem.kind)
        self._add(problem)

    def fail_if(self, broken: Any, code: str, **facts: Any) -> None:
        """Note that a check ran, and that it failed if `broken` is true or a positive count: the sentence's `n`."""
        if broken:
            self.fail(code, **({"n": int(broken)} if "{n:" in PROBLEMS[code] else {}), **facts)
        else:
            self.ran(code.partition("/")[0])

    def note(self, code: str, **facts: Any) -> None:
        """Add a sentence that is not about a failure."""
        self._add(Finding(code, facts))

    def skip(self, code: str) -> None:
        """Note what could not be checked; the sentence about the result names it."""
        self.skipped.append(NOT_CHECKED[code])

    def conclude(self, code: str, **facts: Any) -> None:
        """Note what holds, with what was not checked as its `rest`; after a failure, only what was not checked."""
        skipped = "; ".join(self.skipped)
        if not self.failures:
            self.note(code, rest=f", except {skipped}" if skipped else "", **facts)
        elif skipped:
            self.note("not-checked", what=skipped)

    def _add(self, finding: Finding) -> None:
        if finding not in self.found:
            self.found.append(finding)

    @property
    def codes(self) -> list[str]:
        """The codes of the problems, in the order in which they were found."""
        return [finding.code for finding in self.found if finding.is_problem]

    @property
    def failures(self) -> set[str]:
        """The kinds of checks that failed."""
        return {finding.kind for finding in self.found if finding.is_problem}

    @property
    def problems(self) -> list[str]:
        """The sentences on failures."""
        return list(dict.fromkeys(str(finding) for finding in self.found if finding.is_problem))

    @property
    def messages(self) -> list[str]:
        """All sentences, in the order in which they were found."""
        return list(dict.fromkeys(map(str, self.found)))
