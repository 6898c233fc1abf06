"""The table of a run, for the page on reliability."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz.kinds import KINDS

if TYPE_CHECKING:
    from tests.fuzz.watch import Tally

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
_MARK = re.compile(r"(<!-- fuzz table -->\n).*?(<!-- /fuzz table -->)", re.DOTALL)
_BROKEN = ("uncaught", "died", "told", "left", "wrong", "memory", "time")


def table(tallies: dict[str, Tally]) -> list[str]:
    """Return the table as lines of Markdown."""
    return _lines({kind: _row(tally, kind) for kind, tally in tallies.items()}, _errors(tallies))


def write(tallies: dict[str, Tally]) -> None:
    """Write the table into the page, between its marks; the lines of kinds that were not run stay."""
    text = PAGE.read_text()
    found = _MARK.search(text)
    kept = [] if found is None else found[0].splitlines()
    rows = {line.split("|")[1].strip(): line for line in kept if line.startswith("| ")}
    errors = {line[2:].partition(":")[0]: line for line in kept if line.startswith("- ")}
    rows |= {kind: _row(tally, kind) for kind, tally in tallies.items()}
    errors |= _errors(tallies)
    lines = "\n".join(_lines({kind: rows[kind] for kind in KINDS if kind in rows}, errors))
    PAGE.write_text(_MARK.sub(lambda found: f"{found[1]}{lines}\n{found[2]}", text))


def _lines(rows: dict[str, str], errors: dict[str, str]) -> list[str]:
    head = ["kind", "cases", "returned", "typed errors", *_BROKEN, "seconds", "ms per case"]
    rules = ["---", *["---:"] * (len(head) - 1)]
    return [_joined(head), _joined(rules), *rows.values(), "", *(errors[kind] for kind in rows)]


def _row(tally: Tally, kind: str) -> str:
    typed = sum(tally.ends.values()) - tally.ends["returned"]
    counts = (tally.cases, tally.ends["returned"], typed, *map(tally.of, _BROKEN), round(tally.seconds))
    per_case = f"{1000 * tally.seconds / max(tally.cases, 1):.1f}"
    return _joined([kind, *(f"{count:,}" for count in counts), per_case])


def _errors(tallies: dict[str, Tally]) -> dict[str, str]:
    return {kind: f"- {kind}: {_ends(tally) or 'no errors'}" for kind, tally in tallies.items()}


def _ends(tally: Tally) -> str:
    return ", ".join(f"{end} {count:,}" for end, count in tally.ends.most_common() if end != "returned")


def _joined(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
