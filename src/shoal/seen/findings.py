"""Findings: the results of reading and checking a release so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Findings"]


@dataclass
class Findings:
    """The results so far: the kinds of checks that ran, those that failed, and sentences about them.

    They identify nobody: they have no label, place or time.
    """

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
        """Add a sentence, unless it is there already."""
        if message not in self.messages:
            self.messages.append(message)

    def skip(self, what: str) -> None:
        """Note what could not be checked; the sentence about the result names it."""
        self.skipped.append(what)
