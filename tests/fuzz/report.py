"""The table of a run, for the page on reliability."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.watch import Tally

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_MARK = re.compile(r"(<!-- fuzz table -->\n).*?(<!-- /fuzz table -->)", re.DOTALL)
_BROKEN = ("uncaught", "died", "told", "left", "wrong", "memory", "time")


def table(tallies: dict[str, Tally]) -> list[str]:
    """Return the table as lines of Markdown."""
    head = ["kind", "cases", "returned", "typed errors", *_BROKEN, "seconds", "ms per case"]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for kind, tally in tallies.items():
        typed = sum(tally.ends.values()) - tally.ends["returned"]
        counts = (tally.cases, tally.ends["returned"], typed, *map(tally.of, _BROKEN), round(tally.seconds))
        rows.append([kind, *(f"{count:,}" for count in counts), f"{1000 * tally.seconds / max(tally.cases, 1):.1f}"])
    rows += [[]]
    lines = ["| " + " | ".join(row) + " |" if row else "" for row in rows]
    for kind, tally in tallies.items():
        ends = ", ".join(f"{end} {count:,}" for end, count in tally.ends.most_common() if end != "returned")
        lines.append(f"- {kind}: {ends or 'no errors'}")
    return lines


def write(tallies: dict[str, Tally]) -> None:
    """Write the table into the page, between its marks."""
    text = PAGE.read_text()
    lines = "\n".join(table(tallies))
    PAGE.write_text(_MARK.sub(lambda found: f"{found[1]}{lines}\n{found[2]}", text))
